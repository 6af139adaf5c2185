"""The kernel of MATCH_RECOGNIZE: matches, the rows of the output, and their measures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windrow.kernels.patterns.execution import find_matches, requested
from windrow.kernels.patterns.measures import MatchRows, OutputRows, measured
from windrow.kernels.patterns.pattern_plan import STATE, MatchPlan, is_asking

__all__ = ["match_recognize", "rows_of_matches"]

_ROWS_PER_BATCH = 1 << 17
Array = np.ndarray


def match_recognize(plan: MatchPlan, table: pa.Table, bounds: Array) -> Iterator[pa.RecordBatch]:
    """The rows that the clause returns.

    Parameters
    ----------
    plan
        The clause.
    table
        Whole partitions, sorted by partition, then by the clause's ORDER BY.
    bounds
        int64, (partitions + 1,): partition p is rows ``bounds[p] : bounds[p + 1]``.

    Yields
    ------
    pyarrow.RecordBatch
        With ``plan.result`` as schema, in the order of partitions and, within them, of rows and matches. If
        the plan requests it, the values for which Spark must evaluate conditions.

    Raises
    ------
    ExecutionError
        As :func:`windrow.kernels.patterns.execution.find_matches`, and of the aggregates.
    """
    if is_asking(plan):
        yield from requested(plan, table, bounds)
        return
    matches = find_matches(plan, table, bounds)
    yield from rows_of_matches(plan, MatchRows(matches, table), np.ones(table.num_rows, bool))


def rows_of_matches(plan: MatchPlan, written: MatchRows, may_be_free: Array) -> Iterator[pa.RecordBatch]:
    """The output of the clause for these matches; other rows that `may_be_free` are unmatched.

    With frames, it is one row for each frame.
    """
    table = written.table
    output, state = _output_rows(plan, written, may_be_free)
    for at in range(0, len(output.row), _ROWS_PER_BATCH):
        part = slice(at, at + _ROWS_PER_BATCH)
        some = OutputRows(output.match[part], output.point[part], output.row[part])
        rows = pa.array(some.row)
        columns = [table.column(column).take(rows) for _, column in plan.outputs]
        columns += [measured(plan, measure, written, some) for measure in plan.measures]
        columns.append(pa.chunked_array([pa.array(state[part], pa.int32())]))
        names = [*(name for name, _ in plan.outputs), *(measure.name for measure in plan.measures), STATE]
        plain = [
            column.cast(plan.result.field(name).type)
            if column.type != plan.result.field(name).type
            else column
            for name, column in zip(names, columns, strict=True)
        ]
        yield from pa.table(dict(zip(names, plain, strict=True)), plan.result).combine_chunks().to_batches()


def _output_rows(plan: MatchPlan, written: MatchRows, may_be_free: Array) -> tuple[OutputRows, Array]:
    """The rows of the result, and the kind of each."""
    matches = written.matches
    every = np.arange(len(matches.start))
    last = written.base + matches.length - 1
    is_empty = matches.length == 0
    if plan.frame is not None:
        match = np.full(written.table.num_rows, -1)
        match[matches.origin] = every
        point = np.full(len(match), -1)
        point[matches.origin] = np.where(is_empty, -1, last)
        state = np.full(len(match), 2, np.int32)
        state[matches.origin] = is_empty
        rows = np.flatnonzero(may_be_free)
        return OutputRows(match[rows], point[rows], rows), state[rows]
    if not plan.all_rows:
        point = np.where(is_empty, -1, last)
        return OutputRows(every, point, matches.start), is_empty.astype(np.int32)
    rows_out = np.flatnonzero(~matches.excluded)
    parts = [(written.match[rows_out], rows_out, written.row[rows_out], 0)]
    if plan.shows_empty:
        empty = every[is_empty]
        parts.append((empty, np.full(len(empty), -1), matches.start[empty], 1))
    if plan.with_unmatched:
        free = may_be_free.copy()
        free[written.row] = False
        free[matches.start[is_empty]] = False
        rows = np.flatnonzero(free)
        parts.append((np.full(len(rows), -1), np.full(len(rows), -1), rows, 2))
    match, point, row = (np.concatenate([part[at] for part in parts]) for at in range(3))
    state = np.concatenate([np.full(len(part[0]), part[3], np.int32) for part in parts])
    if plan.shows_empty or plan.with_unmatched:
        start = np.where(match >= 0, matches.start[np.maximum(match, 0)] if len(every) else 0, row)
        order = np.lexsort((row, match, start))
        match, point, row, state = match[order], point[order], row[order], state[order]
    return OutputRows(match, point, row), state
