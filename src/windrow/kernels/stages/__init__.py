"""Live operators in memory: the state of windows and groups, and what changes in a step.

A step is one micro-batch: it covers the instants from the last watermark to the new one
(:class:`.held.Times`). It adds rows, computes the affected keys anew, and drops rows that have left. The
operators are those of :mod:`windrow.kernels.zset`, over the rows of the affected keys alone.
"""

from __future__ import annotations

from windrow.kernels.stages.block import Block, WindowInput
from windrow.kernels.stages.changes import changes, netted
from windrow.kernels.stages.chunking import PER_STEP, SMALLEST, merging
from windrow.kernels.stages.completing import Completing, first_above
from windrow.kernels.stages.grouping import goes_on
from windrow.kernels.stages.held import Held, Times
from windrow.kernels.stages.holding import Holding
from windrow.kernels.stages.operated import Operated, UnmatchedError
from windrow.kernels.stages.operators import group, join, rows_of
from windrow.kernels.stages.program import Ending, Fragment, Node, Otherwise, Program, Run
from windrow.kernels.stages.stepwise import stepwise
from windrow.kernels.stages.upserts import Became, upserts
from windrow.kernels.stages.versions import Versions
from windrow.kernels.stages.windows import Window

__all__ = [
    "PER_STEP",
    "SMALLEST",
    "Became",
    "Block",
    "Completing",
    "Ending",
    "Fragment",
    "Held",
    "Holding",
    "Node",
    "Operated",
    "Otherwise",
    "Program",
    "Run",
    "Times",
    "UnmatchedError",
    "Versions",
    "Window",
    "WindowInput",
    "changes",
    "first_above",
    "goes_on",
    "group",
    "join",
    "merging",
    "netted",
    "rows_of",
    "stepwise",
    "upserts",
]
