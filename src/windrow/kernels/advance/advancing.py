"""A micro-batch of growing sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from windrow.kernels.advance.ended import Ended
from windrow.kernels.advance.final_matches import advance_matches, requested_matches
from windrow.kernels.advance.final_windows import advance_windows
from windrow.kernels.advance.frontier import Frontier
from windrow.kernels.advance.suffix import Suffix, retained_rows, suffix_of
from windrow.kernels.patterns.pattern_plan import MatchPlan
from windrow.kernels.sorting import SortKey
from windrow.kernels.window_plan import WindowPlan

__all__ = ["Ended", "Frontier", "Growing", "advance", "requested_of"]


@dataclass(frozen=True)
class Growing:
    """A clause over rows that arrive in order.

    `partition` and `order` name columns of the rows; `columns` are those that the kernel reads. It also reads
    those in `passing`, which are valid for one micro-batch only; retained rows receive them anew.
    """

    plan: WindowPlan | MatchPlan
    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    columns: tuple[str, ...]
    passing: tuple[str, ...] = ()

    @property
    def carried(self) -> tuple[str, ...]:
        """The columns of the retained rows, except the carried state."""
        return tuple(dict.fromkeys((*self.partition, *self.columns)))


def advance(
    growing: Growing,
    retained: pa.Table | None,
    new_rows: pa.Table,
    frontier: Frontier | None,
    ended: Ended | None = None,
) -> tuple[list[pa.RecordBatch], pa.Table]:
    """The output of growing sequences, and the rows of them that are still needed.

    Parameters
    ----------
    growing
        The clause.
    retained
        The rows that the last micro-batch retained, with current values of the passing columns; None before
        the first.
    new_rows
        The new rows, in any order; all follow the earlier ones.
    frontier
        The bound of later rows; None if there are no later rows.
    ended
        The partitions that receive no more rows. No rows of them are retained.

    Returns
    -------
    emitted
        With ``plan.result`` as schema.
    retained
        The rows to retain, with the columns of :data:`windrow.kernels.advance.CARRIED`.

    Raises
    ------
    ExecutionError
        As :func:`windrow.kernels.window_by.window_by` and
        :func:`windrow.kernels.patterns.match_recognize.match_recognize` over the whole sequence.
    """
    over, open_ = _apart(retained, new_rows, None if frontier is None else ended)
    if over is None:
        return _advanced(growing, *open_, frontier)
    emitted, _ = _advanced(growing, *over, None)
    further, left = _advanced(growing, *open_, frontier)
    return emitted + further, left


def requested_of(
    growing: Growing,
    retained: pa.Table | None,
    new_rows: pa.Table,
    frontier: Frontier | None,
    ended: Ended | None = None,
) -> list[pa.RecordBatch]:
    """The conditions that :func:`advance`, with these arguments, needs Spark to evaluate.

    The plan is one of MATCH_RECOGNIZE that requests them, with the values' columns as its result.
    """
    over, open_ = _apart(retained, new_rows, None if frontier is None else ended)
    found = [] if over is None else _requested(growing, *over, None)
    return found + _requested(growing, *open_, frontier)


def _requested(
    growing: Growing, retained: pa.Table | None, new_rows: pa.Table, frontier: Frontier | None
) -> list[pa.RecordBatch]:
    suffix, plan = _suffix(growing, retained, new_rows), growing.plan
    assert isinstance(plan, MatchPlan)
    return list(requested_matches(plan, suffix, frontier)) if suffix.table.num_rows else []


_Rows: TypeAlias = "tuple[pa.Table | None, pa.Table]"


def _apart(retained: pa.Table | None, new_rows: pa.Table, ended: Ended | None) -> tuple[_Rows | None, _Rows]:
    """The retained and new rows of partitions that have ended, None if there are none, and of all others."""
    if ended is None:
        return None, (retained, new_rows)
    is_over = ended.rows(new_rows)
    was_over = None if retained is None else ended.rows(retained)
    if not is_over.any() and (was_over is None or not was_over.any()):
        return None, (retained, new_rows)

    def chosen(over: bool) -> _Rows:
        old = None if retained is None else retained.filter(pa.array(was_over == over))
        return old, new_rows.filter(pa.array(is_over == over))

    return chosen(True), chosen(False)


def _advanced(
    growing: Growing, retained: pa.Table | None, new_rows: pa.Table, frontier: Frontier | None
) -> tuple[list[pa.RecordBatch], pa.Table]:
    """As :func:`advance`, if no partition ends before others."""
    suffix, plan = _suffix(growing, retained, new_rows), growing.plan
    if not suffix.table.num_rows:
        retained = retained_rows(suffix, suffix.bounds[:-1], suffix.state, suffix.emitted)
        return [], retained.drop_columns(list(growing.passing))
    if isinstance(plan, MatchPlan):
        emitted, found = advance_matches(plan, suffix, frontier)
        needed, state, count = found.needed, found.state, found.emitted
    else:
        emitted, needed, state = advance_windows(plan, suffix, frontier)
        count = suffix.emitted
    return emitted, retained_rows(suffix, needed, state, count).drop_columns(list(growing.passing))


def _suffix(growing: Growing, retained: pa.Table | None, new_rows: pa.Table) -> Suffix:
    """The rows in order, with their carried state."""
    read = (*growing.carried, *growing.passing)
    columns = list(dict.fromkeys((*read, *(key.column for key in growing.order))))
    retained = None if retained is None else _plain(retained)
    return suffix_of(retained, _plain(new_rows.select(columns)), growing.partition, growing.order, read)


def _plain(rows: pa.Table) -> pa.Table:
    """The rows without dictionary encoding."""
    for at, column in enumerate(rows.schema):
        if pa.types.is_dictionary(column.type):
            plain = rows.column(at).cast(column.type.value_type)
            rows = rows.set_column(at, column.name, plain)
    return rows
