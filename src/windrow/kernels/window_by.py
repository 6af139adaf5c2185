"""The WINDOW BY kernel: sorted rows in, one row per window out.

The steps are those of ``docs/sql/window-by.md``: label rows are chosen, each window's start and end are
found (:mod:`windrow.kernels.search`), tumbling windows are chosen among them, ONLY filters, and the
variables, aggregates and rows of what is left are put out. Everything is done for all windows of all
partitions at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExecutionError, Span
from windrow.kernels.aggregates import Aggregate, aggregate
from windrow.kernels.pairs import Array, Rows, holds
from windrow.kernels.partitions import partition_bounds
from windrow.kernels.plan import PositionOutput, RowOutput, RowsOutput, WindowPlan
from windrow.kernels.search import find

__all__ = ["Windows", "find_windows", "run", "window_by"]

_WINDOWS_PER_BATCH = 1 << 16
_ROWS_PER_BATCH = 1 << 20  # of arrays of rows: what one batch may hold in memory


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

    def take(self, index: Array) -> Windows:
        """These windows only."""
        return Windows(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def run(plan: WindowPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read all rows of a task, sorted by partition and order, and give the result in batches."""
    held = list(batches)
    if held:
        yield from window_by(plan, pa.Table.from_batches(held))


def window_by(plan: WindowPlan, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Evaluate the clause over whole partitions.

    Parameters
    ----------
    plan
        The bound clause.
    table
        Rows with the columns that the plan names, sorted by ``plan.partition``, then by the clause's
        ORDER BY. Any number of partitions, of any length.

    Yields
    ------
    pyarrow.RecordBatch
        With schema ``plan.result``; windows in the order of their partitions and label rows.
    """
    if not table.num_rows:
        return
    table = table.combine_chunks()
    bounds = partition_bounds(table, plan.partition)
    searches = [search.predicate for search in (plan.start, plan.end) if search is not None]
    expressions = tuple(expression for expression in [plan.labels, *searches] if expression is not None)
    rows = Rows(table, bounds, plan.constants, expressions, plan.ansi)
    windows = find_windows(plan, rows, bounds)
    totals = [_total(spec, place, table, windows) for _, spec, place in plan.aggregates]
    for part in _batches(plan, windows):
        chosen = windows.take(np.arange(part.start, part.stop))
        columns = [
            _output(output, rows, chosen, field.type)
            for output, field in zip(plan.outputs, plan.result, strict=False)
        ]
        columns += [total.slice(part.start, part.stop - part.start) for total in totals]
        yield _record_batch(columns, plan.result)


def _total(spec: Aggregate, place: tuple[int, int], table: pa.Table, windows: Windows) -> pa.Array:
    try:
        return aggregate(spec, table, windows.low, windows.stop)
    except ExecutionError as error:
        error.span = Span(*place)
        raise


def find_windows(plan: WindowPlan, rows: Rows, bounds: Array) -> Windows:
    """The boundaries of all windows that the clause makes, in order."""
    label = _label_rows(plan, rows, bounds)
    first, stop = rows.first[label], rows.stop[label]
    start = label
    if plan.start is not None:
        start = find(plan.start, rows, {"label": label}, "start", first, stop)
    open_start = start < 0
    low = np.where(open_start, first, start)
    if plan.end is None:
        return _between_starts(
            plan, Windows(label, start, start, low, stop, open_start, np.zeros(len(label), bool))
        )
    end = find(plan.end, rows, {"label": label, "start": start}, "end", low, stop)
    open_end = end < 0
    windows = Windows(label, start, end, low, np.where(open_end, stop, end + 1), open_start, open_end)
    if plan.tumbling:
        windows = _tumble(windows)
    return _only(plan, windows)


def _label_rows(plan: WindowPlan, rows: Rows, bounds: Array) -> Array:
    if plan.first_only:
        return bounds[:-1]
    every = np.arange(rows.table.num_rows, dtype=np.int64)
    side = "label" if plan.has_label else "start"
    return np.flatnonzero(holds(plan.labels, rows, {side: every}))


def _tumble(windows: Windows) -> Windows:
    """In order of (start, label), those that start after the last one kept has ended."""
    ordered = windows.take(np.lexsort((windows.label, windows.low)))
    following = np.searchsorted(ordered.low, ordered.stop).tolist()
    kept, index = [], 0
    while index < len(following):
        kept.append(index)
        index = following[index]
    return ordered.take(np.array(kept, np.int64))


def _between_starts(plan: WindowPlan, windows: Windows) -> Windows:
    """Tumbling without END: each start's window runs to the row before the next start."""
    ordered = windows.take(np.lexsort((windows.label, windows.low)))
    new = np.append(True, ordered.low[1:] != ordered.low[:-1])[: len(ordered.low)]
    ordered = ordered.take(np.flatnonzero(new))
    limit = np.append(ordered.low[1:], np.iinfo(np.int64).max)[: len(ordered.low)]
    stop = np.minimum(ordered.stop, limit)
    none = np.full(len(stop), -1, np.int64)
    closed = Windows(
        ordered.label, ordered.start, none, ordered.low, stop, ordered.open_start, ordered.open_end
    )
    return _only(plan, closed)


def _only(plan: WindowPlan, windows: Windows) -> Windows:
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


def _output(
    output: RowOutput | PositionOutput | RowsOutput, rows: Rows, windows: Windows, kind: pa.DataType
) -> pa.Array:
    match output:
        case RowsOutput():
            return _window_rows(output, rows, windows, kind)
        case PositionOutput(side=side, shift=shift):
            index = _row_index(rows, getattr(windows, side), shift)
            position = index - rows.first[np.maximum(index, 0)] + 1
            return pa.array(position, pa.int64(), mask=index < 0)
        case RowOutput(side=side, shift=shift):
            return _structs(rows.table, output.fields, _row_index(rows, getattr(windows, side), shift), kind)


def _row_index(rows: Rows, base: Array, shift: int) -> Array:
    """The rows `shift` rows on, −1 where there is no such row in the partition."""
    index = base + shift
    clipped = np.maximum(base, 0)
    there = (base >= 0) & (index >= rows.first[clipped]) & (index < rows.stop[clipped])
    return np.where(there, index, -1)


def _window_rows(output: RowsOutput, rows: Rows, windows: Windows, kind: pa.DataType) -> pa.Array:
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
    """One array of this type: what differs is at most the label of a time zone."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array if array.type == kind else array.cast(kind)


def _record_batch(columns: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [_conform(column, field.type) for column, field in zip(columns, schema, strict=True)]
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_arrays([], names=[]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
