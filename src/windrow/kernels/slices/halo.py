"""One pass over slices with short windows: every slice is dealt the rows around it that they can reach.

How many rows that is follows from the clause if its boundaries are so many rows from the label row. No task
knows which rows follow a slice; each sends those nearest of its own, and the nearest of all are among them.
Where fewer rows follow, all of them are there: what is then the edge of the rows is the sequence's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.pairs import Rows
from windrow.kernels.plan import PositionOutput, RowOutput, Search, WindowPlan
from windrow.kernels.slices.expressions import own_side, reads_positions, shifts
from windrow.kernels.window_by import label_rows, only, results, windows_at

__all__ = ["Halo", "finish_alone", "halo_of"]

_MOST = 10_000  # rows that each task sends to each slice


@dataclass(frozen=True, slots=True)
class Halo:
    """How many rows before and after its own a slice needs."""

    before: int
    after: int


def halo_of(plan: WindowPlan) -> Halo | None:
    """The rows around a slice that its windows can reach; None where the clause alone does not say.

    Sliding windows whose END is so many rows after the label row, or its first row searched, and whose START
    is so many rows before it. A boundary that is not found is then beyond the sequence's edge.
    """
    if plan.tumbling or plan.first_only or plan.end is None:
        return None
    if plan.labels is not None and reads_positions(plan.labels):
        return None
    if any(isinstance(output, PositionOutput) for output in plan.outputs):
        return None
    own = own_side(plan)
    before = 0 if plan.start is None else _rows_to(plan.start, own, -1)
    after = 0 if plan.end.strategy == "always" else _rows_to(plan.end, own, 1)
    if before is None or after is None or before + after > _MOST:
        return None
    looks_around = any(isinstance(output, RowOutput) and output.shift for output in plan.outputs) or (
        plan.labels is not None and len(shifts(plan.labels)) > 1
    )
    return Halo(before + looks_around, after + looks_around)


def _rows_to(search: Search, base: str, way: int) -> int | None:
    """How far a boundary is from the label row, if it is on this side of it."""
    if search.strategy != "position" or search.base != base or search.offset * way < 0:
        return None
    if search.comparison == "=":
        return abs(search.offset)
    if way > 0 and search.comparison in (">", ">="):
        return search.offset + 1
    return None


def finish_alone(plan: WindowPlan, table: pa.Table, first: int, count: int) -> Iterator[pa.RecordBatch]:
    """The windows of a slice, from its rows and those around it: `count` are its own, from `first` on."""
    bounds = np.array([0, table.num_rows], np.int64)
    rows = Rows(table, bounds, plan.constants, plan.expressions(), plan.ansi)
    label = label_rows(plan, rows, np.arange(first, first + count, dtype=np.int64))
    yield from results(plan, rows, only(plan, windows_at(plan, rows, label)))
