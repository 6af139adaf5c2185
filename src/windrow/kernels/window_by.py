"""The WINDOW BY kernel: sorted rows in, one row per window out.

The order is that of ``docs/sql/window-by.md``: select label rows, find each window's start and end
(:mod:`windrow.kernels.strategies`), select tumbling windows among them, filter by ONLY, and output the
variables, aggregates and rows of the remaining windows. Each function handles all windows of all partitions
at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExecutionError, Span
from windrow.kernels.aggregates import AggregateSpec, Gaps, aggregate
from windrow.kernels.compiling.chains import walk
from windrow.kernels.pairs import Array, PairRows, satisfied
from windrow.kernels.strategies import find
from windrow.kernels.window_plan import (
    FieldOutput,
    Output,
    PositionOutput,
    RowOutput,
    RowsOutput,
    WindowPlan,
)

__all__ = [
    "Windows",
    "between_starts",
    "find_windows",
    "following_windows",
    "label_rows",
    "only",
    "results",
    "tumbled",
    "window_by",
    "windows_at",
]

_WINDOWS_PER_BATCH = 1 << 16
_ROWS_PER_BATCH = 1 << 20  # the size of a batch with arrays of rows


@dataclass(frozen=True)
class Windows:
    """Windows as indices into the sorted rows, all int64 of one length.

    `label`: the label row. `start`, `end`: the first and last row as the predicates found them, −1
    where none did. `low`, `stop`: the window's rows. `open_start`, `open_end` (bool): the predicate was
    not satisfied, so the window ran to the partition's edge and bears a NULL marker there.
    """

    label: Array
    start: Array
    end: Array
    low: Array
    stop: Array
    open_start: Array
    open_end: Array

    def take(self, index: Array | slice) -> Windows:
        """These windows only."""
        return Windows(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def window_by(plan: WindowPlan, table: pa.Table, bounds: Array) -> Iterator[pa.RecordBatch]:
    """Evaluate the clause over whole partitions.

    Parameters
    ----------
    plan
        The bound clause.
    table
        Rows with the columns that the plan names, in the order of their partitions and of the clause's
        ORDER BY. Any number of partitions, of any length.
    bounds
        int64, (partitions + 1,): offsets of the partitions' first rows and, last, the number of rows.

    Yields
    ------
    pyarrow.RecordBatch
        With schema ``plan.result``; windows in the order of their partitions and label rows.
    """
    if not table.num_rows:
        return
    table = table.combine_chunks()
    rows = PairRows(table, bounds, plan.constants, plan.expressions(), plan.ansi)
    yield from results(plan, rows, find_windows(plan, rows, bounds))


def results(
    plan: WindowPlan, rows: PairRows, windows: Windows, gaps: Sequence[Gaps | None] | None = None
) -> Iterator[pa.RecordBatch]:
    """The clause's result for these windows.

    If `rows` lacks some rows, `gaps` has their partial states for each aggregate.
    """
    gaps = gaps if gaps is not None else [None] * len(plan.aggregates)
    totals = [
        _total(spec, place, rows.table, windows, left_out)
        for (_, spec, place), left_out in zip(plan.aggregates, gaps, strict=True)
    ]
    for part in _batches(plan, windows):
        chosen = windows.take(part)
        columns = [
            _output(output, rows, chosen, field.type)
            for output, field in zip(plan.outputs, plan.result, strict=False)
        ]
        columns += [total.slice(part.start, part.stop - part.start) for total in totals]
        yield _record_batch(columns, plan.result)


def _total(
    spec: AggregateSpec, place: tuple[int, int], table: pa.Table, windows: Windows, gaps: Gaps | None
) -> pa.Array:
    try:
        return aggregate(spec, table, windows.low, windows.stop, gaps)
    except ExecutionError as error:
        error.span = Span(*place)
        raise


def find_windows(plan: WindowPlan, rows: PairRows, bounds: Array) -> Windows:
    """The boundaries of all windows that the clause makes, in order."""
    every = np.arange(rows.table.num_rows, dtype=np.int64)
    label = bounds[:-1] if plan.first_only else label_rows(plan, rows, every)
    windows = windows_at(plan, rows, label)
    if plan.tumbling:
        windows = between_starts(windows) if plan.end is None else tumbled(windows)
    return only(plan, windows)


def label_rows(plan: WindowPlan, rows: PairRows, candidates: Array) -> Array:
    """The candidates at which the clause makes a window."""
    side = "label" if plan.has_label else "start"
    chosen: Array = candidates[satisfied(plan.labels, rows, {side: candidates})]
    return chosen


def windows_at(
    plan: WindowPlan, rows: PairRows, label: Array, unsearched: tuple[int, int] = (0, 0)
) -> Windows:
    """The window of each of these label rows, as a sliding one; without END, to the partition's end.

    So many of a partition's last rows are `unsearched` for START and for END.
    """
    first, stop = rows.first[label], rows.stop[label]
    start = label
    if plan.start is not None:
        searched = np.maximum(stop - unsearched[0], first)
        start = find(plan.start, rows, {"label": label}, "start", first, searched)
    open_start = start < 0
    low = np.where(open_start, first, start)
    if plan.end is None:
        return Windows(label, start, start, low, stop, open_start, np.zeros(len(label), bool))
    searched = np.maximum(stop - unsearched[1], low)
    end = find(plan.end, rows, {"label": label, "start": start}, "end", low, searched)
    open_end = end < 0
    return Windows(label, start, end, low, np.where(open_end, stop, end + 1), open_start, open_end)


def tumbled(windows: Windows) -> Windows:
    """In order of (start, label), the windows that start after the last selected one has ended."""
    if not len(windows.low):
        return windows
    ordered = _by_start(windows)
    return ordered.take(walk(following_windows(ordered.low, ordered.stop)))


def following_windows(low: Array, stop: Array) -> Array:
    """For each window, the first one that starts after it has ended: the number of windows if none does.

    Both are rows, windows in the order of `low`; as ``searchsorted(low, stop)``, without the search.
    """
    first = low[0]
    starts = np.bincount(low - first, minlength=int(stop.max() - first))
    before = np.concatenate([[0], np.cumsum(starts)])
    following: Array = before[stop - first]
    return following


def _by_start(windows: Windows) -> Windows:
    if (windows.low[1:] >= windows.low[:-1]).all():
        return windows  # label rows are in order
    return windows.take(np.lexsort((windows.label, windows.low)))


def between_starts(windows: Windows) -> Windows:
    """Tumbling without END: each start's window runs to the row before the next start."""
    ordered = _by_start(windows)
    new = np.append(True, ordered.low[1:] != ordered.low[:-1])[: len(ordered.low)]
    ordered = ordered.take(np.flatnonzero(new))
    limit = np.append(ordered.low[1:], np.iinfo(np.int64).max)[: len(ordered.low)]
    stop = np.minimum(ordered.stop, limit)
    none = np.full(len(stop), -1, np.int64)
    return Windows(
        ordered.label, ordered.start, none, ordered.low, stop, ordered.open_start, ordered.open_end
    )


def only(plan: WindowPlan, windows: Windows) -> Windows:
    """The windows that satisfy ONLY."""
    drop = (windows.open_start & plan.only_start) | (windows.open_end & plan.only_end)
    return windows.take(np.flatnonzero(~drop)) if drop.any() else windows


# -- output --------------------------------------------------------------------------------------


def _batches(plan: WindowPlan, windows: Windows) -> Iterator[slice]:
    """Slices of the windows whose output fits one batch; at least one window each."""
    count = len(windows.label)
    if not any(isinstance(output, RowsOutput) for output in plan.outputs):
        yield from (
            slice(at, min(at + _WINDOWS_PER_BATCH, count)) for at in range(0, count, _WINDOWS_PER_BATCH)
        )
        return
    sizes = np.cumsum(windows.stop - windows.low + 2)
    at = 0
    while at < count:
        before = sizes[at - 1] if at else 0
        to = int(np.searchsorted(sizes, before + _ROWS_PER_BATCH, side="right"))
        to = min(max(to, at + 1), at + _WINDOWS_PER_BATCH, count)
        yield slice(at, to)
        at = to


def _output(output: Output, rows: PairRows, windows: Windows, kind: pa.DataType) -> pa.Array:
    match output:
        case FieldOutput(side=side, column=column):
            return _rows_at(rows.table.column(column), getattr(windows, side))
        case RowsOutput():
            return _window_rows(output, rows, windows, kind)
        case PositionOutput(side=side, shift=shift):
            index = _row_index(rows, getattr(windows, side), shift)
            return pa.array(rows.position(np.maximum(index, 0)), pa.int64(), mask=index < 0)
        case RowOutput(side=side, shift=shift):
            return _structs(rows.table, output.fields, _row_index(rows, getattr(windows, side), shift), kind)


def _row_index(rows: PairRows, base: Array, shift: int) -> Array:
    """The rows `shift` rows on, −1 where there is no such row in the partition."""
    index = base + shift
    clipped = np.maximum(base, 0)
    there = (base >= 0) & (index >= rows.first[clipped]) & (index < rows.stop[clipped])
    return np.where(there, index, -1)


def _window_rows(output: RowsOutput, rows: PairRows, windows: Windows, kind: pa.DataType) -> pa.Array:
    leading = windows.open_start & output.markers
    trailing = windows.open_end & output.markers
    low, stop = windows.low - leading, windows.stop + trailing
    lengths = stop - low
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    index = np.repeat(low - offsets[:-1], lengths) + np.arange(offsets[-1])
    index[offsets[:-1][leading]] = -1
    index[offsets[1:][trailing] - 1] = -1
    elements = _structs(rows.table, output.fields, index, kind.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, type=kind)


def _rows_at(column: pa.ChunkedArray, index: Array) -> pa.ChunkedArray:
    """The column at these rows, copied only if they are not consecutive."""
    first = int(index[0]) if len(index) else 0
    if len(index) and int(index[-1]) - first == len(index) - 1 and (np.diff(index) == 1).all():
        return column.slice(first, len(index))
    return pc.take(column, pa.array(index))


def _structs(
    table: pa.Table, fields: tuple[tuple[str, str], ...], index: Array, kind: pa.DataType
) -> pa.Array:
    """Rows of the table as structs; NULL where the index is −1."""
    missing = index < 0
    at = pa.array(index, mask=missing)
    arrays = []
    for (_, column), field in zip(fields, kind, strict=True):
        arrays.append(_conform(pc.take(table.column(column), at), field.type))
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=pa.array(missing))


def _conform(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """One array of this type, which may differ in the name of a time zone only."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array if array.type == kind else array.cast(kind)


def _record_batch(columns: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [_conform(column, field.type) for column, field in zip(columns, schema, strict=True)]
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_arrays([], names=[]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
