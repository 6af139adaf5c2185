"""Operators over punctuated streams: blocking ones give what the punctuations allow, and keep no more.

An operator is frozen data with one function::

    advance(carry | None, step, …) -> (step, carry)

A `Step` is rows and the punctuations after them, of each input. The carry is what the operator keeps from one
step to the next; the one that is given is used up, so that a step costs what it brings, not what is kept. It
is data (:mod:`windrow.kernels.stored`). ``carry.kept`` counts the rows in it. What each operator may give,
must promise and must keep is defined in :mod:`windrow.kernels.reference.punctuation`.
"""

from windrow.kernels.punctuated.elementary import Filter, Project
from windrow.kernels.punctuated.group import Group
from windrow.kernels.punctuated.join import Join
from windrow.kernels.punctuated.over import Over
from windrow.kernels.punctuated.session import Session
from windrow.kernels.punctuated.sets import SetOperator
from windrow.kernels.punctuated.sort import Sort
from windrow.kernels.punctuated.step import Step
from windrow.kernels.punctuated.window import Window

__all__ = ["Filter", "Group", "Join", "Over", "Project", "Session", "SetOperator", "Sort", "Step", "Window"]
