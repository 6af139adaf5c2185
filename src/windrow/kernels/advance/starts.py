"""How far back windows with a label may begin: the rows before that are not needed for later windows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.advance.frontier import Frontier, reads_only, retained_from
from windrow.kernels.advance.suffix import Suffix
from windrow.kernels.pairs import PairRows, satisfied
from windrow.kernels.slices.predicate_analysis import columns
from windrow.kernels.strategies.monotone import computes_integers, conjuncts, direction
from windrow.kernels.window_plan import (
    ColumnRef,
    ConstantRef,
    Number,
    Operation,
    PairExpression,
    WindowPlan,
    sides_of,
)

__all__ = ["bounding", "first_starts", "rows_before"]

Array = np.ndarray


def rows_before(plan: WindowPlan) -> int | None:
    """How many rows before its label row a window may begin, if START counts rows; otherwise None."""
    search = plan.start
    if search is None or search.strategy != "position" or search.base != "label" or search.guard:
        return None
    if search.comparison not in ("=", ">", ">="):
        return None  # it begins at the first row of all
    return max(0, -search.offset)


def bounding(plan: WindowPlan, known: frozenset[str]) -> tuple[PairExpression, ...]:
    """The parts of START, over columns of the rowtime, that bound a window's begin near its label row. Empty
    if a window may begin at the very first row, as one does whose START is not found.
    """
    search = plan.start
    if search is None or search.predicate is None:
        return ()
    if not plan.ansi and computes_integers(search.predicate):
        return ()
    parts = conjuncts(search.predicate)
    bounds = tuple(
        part
        for part in parts
        if sides_of(part) == {"label", "start"}
        and reads_only(part, known)
        and direction(part, "start") == 1
        and direction(part, "label") == -1
    )
    is_found = len(bounds) == len(parts) and not search.guard and all(map(_by_difference, parts))
    return bounds if plan.only_start or is_found else ()


def first_starts(plan: WindowPlan, suffix: Suffix, undone: Array, frontier: Frontier) -> Array | None:
    """The first row of each partition at which a window of an undecided label row may begin; None if any row
    may be.

    `undone` is the first undecided row of each partition.
    """
    first, end = suffix.bounds[:-1], suffix.bounds[1:]
    count = rows_before(plan)
    if count is not None:
        counted: Array = np.maximum(undone - count, first)
        return counted
    parts = bounding(plan, frozenset(frontier.values.column_names))
    if not parts or not all(_holds_of_itself(part, plan, frontier) or plan.only_start for part in parts):
        return None
    starts = first.copy()
    table = suffix.table
    for part in parts:
        names = sorted({ref.column for ref in columns(part)})
        retained = table.select(names)
        later = pa.concat_tables([retained, frontier.values.select(names).cast(retained.schema)])
        following = np.repeat(np.where(undone < end, undone, table.num_rows), end - first)
        sides = ("label", "start")
        try:
            reached = retained_from(
                part, retained, plan.constants, later.take(pa.array(following)), sides, ansi=plan.ansi
            )
        except ExecutionError:  # of a pair of rows that no window may have
            continue
        # it rises along the rows: those near the label row are at the end
        starts = np.maximum(starts, end - suffix.counts(reached))
    bounded: Array = np.minimum(starts, undone)
    return bounded


def _holds_of_itself(part: PairExpression, plan: WindowPlan, frontier: Frontier) -> bool:
    """Whether a label row's window may begin at the row itself: a difference decides it for all rows."""
    rows = PairRows(frontier.values, np.array([0, 1], np.int64), plan.constants, (part,), plan.ansi)
    here = np.zeros(1, np.int64)
    return bool(satisfied(part, rows, {"label": here, "start": here})[0])


def _by_difference(part: PairExpression) -> bool:
    """Whether a comparison is between a constant and the label row's column minus the start row's."""
    if not isinstance(part, Operation):
        return False
    left, right = (_weight(operand) for operand in part.operands)
    return left is not None and left == right  # all columns of the rowtime have the same values


def _weight(expression: PairExpression) -> int | None:
    """The number of columns in a sum; None for other expressions."""
    match expression:
        case ColumnRef():
            return 1
        case Number() | ConstantRef():
            return 0
        case Operation(operator="NEG", operands=(operand,)):
            inner = _weight(operand)
            return None if inner is None else -inner
        case Operation(operator="*", operands=(operand, Number(value=factor))):
            inner = _weight(operand)
            return None if inner is None else inner * factor
        case Operation(operator="+" | "-" as operator, operands=operands):
            left, right = (_weight(operand) for operand in operands)
            if left is None or right is None:
                return None
            return left + right if operator == "+" else left - right
        case _:
            return None
