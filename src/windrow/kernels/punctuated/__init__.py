"""Operators over punctuated streams: blocking operators emit what punctuations allow, and retain no more.

An operator is frozen data with one function::

    advance(carry | None, delta, …) -> (delta, carry)

A `Delta` is the rows of a micro-batch and the punctuations after them, for each input. The carry is the
operator's state between micro-batches. `advance` consumes its carry, so a micro-batch costs in proportion to
its rows and output, not to the state. A carry is plain data (:mod:`windrow.kernels.stored`);
``carry.retained`` counts its rows. :mod:`windrow.kernels.reference.punctuation` defines what each operator
emits, which punctuations it must pass on, and which rows it must retain.
"""

from windrow.kernels.punctuated.delta import Delta
from windrow.kernels.punctuated.filters import FilterOperator, ProjectOperator
from windrow.kernels.punctuated.group import GroupOperator
from windrow.kernels.punctuated.session_windows import SessionOperator
from windrow.kernels.punctuated.sets import SetOperator
from windrow.kernels.punctuated.sort import SortOperator
from windrow.kernels.punctuated.symmetric_join import SymmetricJoin
from windrow.kernels.punctuated.window_functions import OverOperator

__all__ = [
    "Delta",
    "FilterOperator",
    "GroupOperator",
    "OverOperator",
    "ProjectOperator",
    "SessionOperator",
    "SetOperator",
    "SortOperator",
    "SymmetricJoin",
]
