"""Windows that end at their partition's last row, regardless of later rows: sessions whose gap has passed.

END may read the row after the last row of a window. If it is true for a missing row and for a row at the
frontier, and stays true for later rows, the window does not need to wait for a row.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.advance.frontier import Frontier
from windrow.kernels.advance.suffix import CountedRows
from windrow.kernels.pairs import satisfied
from windrow.kernels.strategies.monotone import computes_integers, direction
from windrow.kernels.window_by import Windows
from windrow.kernels.window_plan import (
    ColumnRef,
    Operation,
    PairExpression,
    PositionOutput,
    RowOutput,
    SameRow,
    WindowPlan,
)

__all__ = ["ends_by_time", "has_timeouts", "may_time_out", "timed_out"]

Array = np.ndarray
_NEXT = "next"


def has_timeouts(plan: WindowPlan, frontier: Frontier) -> bool:
    """Whether END can be known to be true before the next row arrives."""
    if plan.end is None or plan.end.predicate is None:
        return False
    if not plan.ansi and computes_integers(plan.end.predicate):
        return False
    reads_on = any(
        isinstance(output, RowOutput | PositionOutput) and output.side == "end" and output.shift > 0
        for output in plan.outputs
    )
    return not reads_on and _rises(_apart(plan.end.predicate), frontier)


def may_time_out(plan: WindowPlan, frontier: Frontier) -> bool:
    """Whether windows may end as the frontier moves without new rows: END reads the next row."""
    if plan.end is None or plan.end.predicate is None or not has_timeouts(plan, frontier):
        return False
    return _reads_next(_apart(plan.end.predicate))


def ends_by_time(plan: WindowPlan, frontier: Frontier) -> bool:
    """Whether END is true for any row once the frontier is far enough after it."""
    if plan.end is None or plan.end.predicate is None or not has_timeouts(plan, frontier):
        return False
    return _passes(_apart(plan.end.predicate), frontier)


def _passes(expression: PairExpression, frontier: Frontier) -> bool:
    """Whether it becomes true for a next row at the frontier, whatever the row before."""
    match expression:
        case Operation(operator="AND", operands=operands):
            return all(_passes(operand, frontier) for operand in operands)
        case Operation(operator="OR", operands=operands):
            return any(_passes(operand, frontier) for operand in operands)
        case Operation():
            return _reads_next(expression) and _rises(expression, frontier)
        case _:
            return False


def timed_out(
    plan: WindowPlan, rows: CountedRows, bounds: Array, windows: Windows, frontier: Frontier
) -> Windows:
    """The windows, including those ended by the frontier."""
    open_ = np.flatnonzero(windows.open_end & ~windows.open_start)
    if not len(open_) or not has_timeouts(plan, frontier):
        return windows
    assert plan.end is not None
    predicate = plan.end.predicate
    assert predicate is not None
    last = rows.stop[windows.label[open_]] - 1
    sides = {"label": windows.label[open_], "start": windows.start[open_], "end": last}
    guard = plan.end.guard
    passed = satisfied(ColumnRef(guard, "end") if guard else None, rows, sides)
    later = _with_next(rows, bounds, plan, frontier)
    moved = np.searchsorted(bounds, last, side="right") - 1  # a row more in each partition before
    try:
        ended = passed & satisfied(predicate, rows, sides)
        ended &= satisfied(predicate, later, {side: index + moved for side, index in sides.items()})
    except ExecutionError:  # for a pair of rows that the search may not reach
        return windows
    found, at = open_[ended], last[ended]
    end, stop, open_end = windows.end.copy(), windows.stop.copy(), windows.open_end.copy()
    end[found], stop[found], open_end[found] = at, at + 1, False
    return replace(windows, end=end, stop=stop, open_end=open_end)


def _apart(expression: PairExpression) -> PairExpression:
    """The predicate with the row after the last as a separate side."""
    if isinstance(expression, ColumnRef) and expression.side == "end" and expression.shift > 0:
        return replace(expression, side=_NEXT, shift=expression.shift - 1)
    if isinstance(expression, Operation):
        return replace(expression, operands=tuple(map(_apart, expression.operands)))
    return expression


def _reads_next(expression: PairExpression) -> bool:
    match expression:
        case ColumnRef(side=side):
            return side == _NEXT
        case SameRow(left=left, right=right):
            return any(side == "end" and shift > 0 for side, shift in (left, right))
        case Operation(operands=operands):
            return any(map(_reads_next, operands))
        case _:
            return False


def _rises(expression: PairExpression, frontier: Frontier) -> bool:
    """Whether it is true for all next rows if it is true for one at the frontier."""
    if not _reads_next(expression):
        return True
    match expression:
        case ColumnRef(column=column):
            return column in frontier.fixed
        case Operation(operator="AND" | "OR", operands=operands):
            return all(_rises(operand, frontier) for operand in operands)
        case Operation():
            return direction(expression, _NEXT) == 1 and all(
                ref.shift == 0 and ref.rank is None and ref.column in frontier.values.column_names
                for ref in _next_columns(expression)
            )
        case _:
            return False


def _next_columns(expression: PairExpression) -> list[ColumnRef]:
    match expression:
        case ColumnRef(side=side):
            return [expression] if side == _NEXT else []
        case Operation(operands=operands):
            return [ref for operand in operands for ref in _next_columns(operand)]
        case _:
            return []


def _with_next(rows: CountedRows, bounds: Array, plan: WindowPlan, frontier: Frontier) -> CountedRows:
    """The rows with an additional row after each partition, at the frontier; its unknown columns are NULL."""
    table, values = rows.table, frontier.values
    following = pa.table(
        [
            values.column(field.name).cast(field.type)
            if field.name in values.column_names
            else pa.nulls(1, field.type)
            for field in table.schema
        ],
        schema=pa.schema([pa.field(field.name, field.type) for field in table.schema]),
    )
    counts = np.diff(bounds)
    order = np.insert(np.arange(table.num_rows), bounds[1:], table.num_rows)
    at = np.insert(rows.at, bounds[1:], rows.at[bounds[1:] - 1] + 1)
    both = pa.concat_tables([table.cast(following.schema), following]).take(pa.array(order)).combine_chunks()
    edges = np.concatenate([[0], np.cumsum(counts + 1)])
    return CountedRows(plan, both, edges, at)
