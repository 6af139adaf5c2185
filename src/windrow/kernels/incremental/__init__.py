"""Live operators in memory: the state of windows and groups, and the changes of a micro-batch.

A micro-batch covers the instants from the last watermark to the new one (:class:`.timed_rows.Times`). It adds
rows, recomputes the affected keys, and drops rows that have left. The operators are those of
:mod:`windrow.kernels.zset`, over the rows of the affected keys alone.
"""

from __future__ import annotations

from windrow.kernels.incremental.bracket_windows.input_state import InputState
from windrow.kernels.incremental.bracket_windows.membership import BracketWindow, WindowValueError
from windrow.kernels.incremental.bracket_windows.window_input import WindowInput
from windrow.kernels.incremental.changes import changes, exceeding, netted
from windrow.kernels.incremental.chunking import PER_MICRO_BATCH, SMALLEST, merging
from windrow.kernels.incremental.completing import Completing, first_above
from windrow.kernels.incremental.delaying import Delaying
from windrow.kernels.incremental.grouping import RunningGroups, goes_on
from windrow.kernels.incremental.operated import Operated, UnmatchedError
from windrow.kernels.incremental.programs.operator_program import Ending, Program, ProgramNode, Run
from windrow.kernels.incremental.programs.over_panes import over_panes
from windrow.kernels.incremental.programs.over_tumbling import over_tumbling
from windrow.kernels.incremental.programs.program_fragment import Otherwise, ProgramFragment
from windrow.kernels.incremental.standing import Standing, instants_of
from windrow.kernels.incremental.stepwise import stepwise
from windrow.kernels.incremental.timed_rows import TimedRows, Times
from windrow.kernels.incremental.tumbling_groups import TumblingGroups
from windrow.kernels.incremental.upserts import Became, upserts
from windrow.kernels.incremental.versions import Versions

__all__ = [
    "PER_MICRO_BATCH",
    "SMALLEST",
    "Became",
    "BracketWindow",
    "Completing",
    "Delaying",
    "Ending",
    "InputState",
    "Operated",
    "Otherwise",
    "Program",
    "ProgramFragment",
    "ProgramNode",
    "Run",
    "RunningGroups",
    "Standing",
    "TimedRows",
    "Times",
    "TumblingGroups",
    "UnmatchedError",
    "Versions",
    "WindowInput",
    "WindowValueError",
    "changes",
    "exceeding",
    "first_above",
    "goes_on",
    "instants_of",
    "merging",
    "netted",
    "over_panes",
    "over_tumbling",
    "stepwise",
    "upserts",
]
