"""An operator over time-varying relations as tasks run it: rows are packed by key, each task has whole keys.

Messages are those of :mod:`windrow.kernels.packing.messages`; rows of the right side are of the kind
``RIGHT``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.aggregates.windows import by_length, expanded
from windrow.kernels.packing.chunks import pack, unpack
from windrow.kernels.packing.messages import CHUNK, KIND, NUMBER, MessageKind
from windrow.kernels.packing.numbering import numbered, numbered_in_order
from windrow.kernels.packing.shards import Layout
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.zset.delayed import delayed
from windrow.kernels.zset.elementary_intervals import elementary, gaps, timeline
from windrow.kernels.zset.first import first_of_groups
from windrow.kernels.zset.group_and_time import by_group_and_time
from windrow.kernels.zset.grouped import grouped
from windrow.kernels.zset.join import overlapping
from windrow.kernels.zset.multiplicities import COUNTS, counted
from windrow.kernels.zset.partners import partnered
from windrow.kernels.zset.relation import COMPLETE, ENTER, LEAVE, PARTNER, with_one_zero
from windrow.kernels.zset.time_windows import WindowingFunction, runs, sessions, ticks_of, with_time

__all__ = ["OF_PARTNERS", "First", "Keyed"]

Array = np.ndarray
Batches = Iterable[pa.RecordBatch]
Numbering = Callable[[pa.Table, Sequence[str]], Array]
_TIME = (SortKey(ENTER),)

OF_PARTNERS = ("semi", "anti", "mark")
"""Operators whose rows are those of the left side; of the right side they read only keys."""


@dataclass(frozen=True)
class First:
    """ORDER BY with OFFSET and LIMIT: skip `offset` rows, then select `limit` rows or all; these columns."""

    columns: tuple[str, ...]
    order: tuple[SortKey, ...]
    offset: int
    limit: int | None


@dataclass(frozen=True)
class Keyed:
    """The plan of the tasks.

    Attributes
    ----------
    name
        ``expand``: each row once for every elementary interval of its key in which it exists;
        ``timeline``: the periods between changes; ``delay``: the times of rows if the changes of a key are
        buffered; ``join``: the pairs of rows whose times overlap; ``semi``, ``anti``: the left rows while a
        right row with the same key exists, or while none does, where NULL equals NULL; ``mark``: the left
        rows with `PARTNER`, which says so; ``group``: the aggregates of each key, and
        without keys the row of the other side while there is no row; ``first``: the first rows of a key in
        an order, over time; ``windows``: rows with their time windows, sessions by key; or one of `COUNTS`.
    keys
        The key columns, on either side.
    layout
        The shards.
    origin
        For ``delay``: how long changes are buffered.
    aggregates
        For ``group``: (column, aggregate) of each; its rows have the keys and these.
    first
        For ``first``: which rows.
    windows
        For ``windows``: which.
    compared
        For ``delay``: columns, each with the one that has the values by which it is compared, which is not in
        the output.
    """

    name: str
    keys: tuple[str, ...]
    layout: Layout
    origin: int = 0
    aggregates: tuple[tuple[str, AggregateSpec], ...] = ()
    first: First | None = None
    windows: WindowingFunction | None = None
    compared: tuple[tuple[str, str], ...] = ()

    def pack(self, batches: Batches, task: int, *, right: bool = False) -> Iterator[pa.RecordBatch]:
        """Pack the rows of one side as chunks for shards."""
        kind = MessageKind.RIGHT if right else MessageKind.ROWS
        return pack(batches, self.layout, self.keys, _TIME, None, task, kind)

    def run(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Run the operator over messages."""
        for left, right in _sides(batches):
            yield from self.rows(left, right, number=numbered_in_order)

    def rows(
        self, left: pa.Table | None, right: pa.Table | None = None, *, number: Numbering = numbered
    ) -> Iterator[pa.RecordBatch]:
        """Run the operator over all rows of some keys; None for a side without rows.

        `number` numbers groups and pairs, in the order in which they are emitted.
        """
        if self.name in COUNTS:
            yield from self._counted(left, right)
        elif self.name in OF_PARTNERS:
            if left is not None:
                yield from self._partnered(left, right)
        elif self.name == "join":
            if left is not None and right is not None:
                yield from self._joined(left, right, number)
        elif self.name == "group":
            if left is not None:
                yield from self._grouped(left, number)
            if right is not None:
                yield from self.while_empty(right, left)
        else:
            assert left is not None
            yield from self._of_one_side(left)

    def _of_one_side(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        if self.name == "timeline":
            times = timeline(_ints(rows, ENTER), _ints(rows, LEAVE))
            yield pa.RecordBatch.from_arrays([pa.array(part) for part in times], names=[ENTER, LEAVE])
        elif self.name == "expand":
            yield from self._expanded(rows)
        elif self.name == "first":
            yield from self._first(rows)
        elif self.name == "delay":
            yield from self._delayed(rows)
        else:
            yield from self._windowed(rows)

    def _expanded(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        group = numbered_in_order(rows, self.keys)
        pieces = elementary(group, _ints(rows, ENTER), _ints(rows, LEAVE))
        others = rows.drop_columns([ENTER, LEAVE])
        for part in by_length(pieces.first, pieces.stop):
            row, piece = expanded(pieces.first[part], pieces.stop[part])
            yield from _put(others, row + part.start, pieces.enter[piece], pieces.leave[piece])

    def _grouped(self, rows: pa.Table, number: Numbering) -> Iterator[pa.RecordBatch]:
        group = number(rows, self.keys)
        specs = [spec for _, spec in self.aggregates]
        keys = with_one_zero(rows.select(self.keys))
        times = _ints(rows, ENTER), _ints(rows, LEAVE)
        for row, enter, leave, values in grouped(rows, group, *times, specs):
            names = [*self.keys, *(name for name, _ in self.aggregates), ENTER, LEAVE]
            columns = [*keys.take(pa.array(row)).columns, *values, pa.array(enter), pa.array(leave)]
            whole = pa.Table.from_arrays(columns, names=names).combine_chunks()
            yield from whole.to_batches(max_chunksize=_ROWS_PER_BATCH)

    def while_empty(self, row: pa.Table, rows: pa.Table | None) -> Iterator[pa.RecordBatch]:
        """One row, from its begin on, while none of some other rows exists."""
        none = np.zeros(0, np.int64)
        enter, leave = (none, none) if rows is None else (_ints(rows, ENTER), _ints(rows, LEAVE))
        times = gaps(enter, leave, int(_ints(row, ENTER)[0]))
        row_columns = row.select([name for name, _ in self.aggregates])
        yield from _put(row_columns, np.zeros(len(times[0]), np.int64), *times)

    def _first(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        assert self.first is not None
        order, bounds = sorted_partitions(rows, self.keys, self.first.order)
        enter, leave = _ints(rows, ENTER), _ints(rows, LEAVE)
        place = np.arange(rows.num_rows) if order is None else order
        found, *times = first_of_groups(
            bounds, enter[place], leave[place], self.first.offset, self.first.limit
        )
        yield from _put(rows.select(self.first.columns), place[found], *times)

    def _delayed(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        compared = dict(self.compared)
        others = rows.drop_columns([ENTER, LEAVE, COMPLETE, *compared.values()])
        names = tuple(compared.get(name, name) for name in others.column_names)
        group, same = (numbered_in_order(rows, keys) for keys in (self.keys, names))
        times = _ints(rows, ENTER), _ints(rows, LEAVE)
        emitted = delayed(group, same, *times, _ints(rows, COMPLETE), self.origin)
        yield from _put(others, *emitted)

    def _windowed(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        windows = self.windows
        assert windows is not None
        rows = with_time(rows, windows.time)
        others, ticks = rows.drop_columns([ENTER, LEAVE]), ticks_of(rows.column(windows.time))
        enter, leave = _ints(rows, ENTER), _ints(rows, LEAVE)
        if windows.kind != "SESSION":
            row, begin, end = windows.fixed(ticks)
            yield from _put(windows.with_columns(_at(others, row), begin, end), None, enter[row], leave[row])
            return
        gap = windows.lengths["gap"]
        order, run = runs(numbered_in_order(rows, self.keys), ticks, gap)
        for row, begin, end, since, until in sessions(run, ticks[order], enter[order], leave[order], gap):
            yield from _put(windows.with_columns(_at(others, order[row]), begin, end), None, since, until)

    def _counted(self, left: pa.Table | None, right: pa.Table | None) -> Iterator[pa.RecordBatch]:
        assert self.name in COUNTS
        sides = [side for side in (left, right) if side is not None]
        rows = pa.concat_tables(sides).combine_chunks()
        is_right = np.arange(rows.num_rows) >= (0 if left is None else left.num_rows)
        group = numbered_in_order(rows, self.keys)
        found, enter, leave = counted(self.name, group, _ints(rows, ENTER), _ints(rows, LEAVE), is_right)
        first_of = np.zeros(int(group.max(initial=-1)) + 1, np.int64)
        first_of[group[::-1]] = np.arange(len(group))[::-1]
        yield from _put(with_one_zero(rows.drop_columns([ENTER, LEAVE])), first_of[found], enter, leave)

    def _partnered(self, left: pa.Table, right: pa.Table | None) -> Iterator[pa.RecordBatch]:
        count, sides = left.num_rows, [left] if right is None else [left, right]
        both = pa.concat_tables([side.select([*self.keys, ENTER, LEAVE]) for side in sides]).combine_chunks()
        key, since, until = numbered_in_order(both, self.keys), _ints(both, ENTER), _ints(both, LEAVE)
        row, there, enter, leave = partnered(
            (key[:count], since[:count], until[:count]), (key[count:], since[count:], until[count:])
        )
        others = left.drop_columns([*self.keys, ENTER, LEAVE])
        if self.name != "mark":
            chosen = there == (self.name == "semi")
            yield from _put(others, row[chosen], enter[chosen], leave[chosen])
            return
        for at in range(0, len(row), _ROWS_PER_BATCH):
            part = slice(at, at + _ROWS_PER_BATCH)
            columns = _at(others, row[part]).columns if others.num_columns else []
            names = [*others.column_names, PARTNER]
            rows = pa.Table.from_arrays([*columns, pa.array(there[part])], names=names)
            yield from _put(rows, None, enter[part], leave[part])

    def _joined(self, left: pa.Table, right: pa.Table, number: Numbering) -> Iterator[pa.RecordBatch]:
        count = left.num_rows
        both = pa.concat_tables([side.select([*self.keys, ENTER, LEAVE]) for side in (left, right)])
        group, enter, leave = number(both, self.keys), _ints(both, ENTER), _ints(both, LEAVE)
        known = np.ones(len(group), bool)
        for key in self.keys:
            known &= np.asarray(both.column(key).is_valid())
        sides, orders = [], []
        for part in (slice(0, count), slice(count, None)):
            order = by_group_and_time(group[part], enter[part])
            order = order[known[part][order]] + part.start
            sides.append((group[order], enter[order], leave[order]))
            orders.append(order)
        one, other = overlapping(sides[0], sides[1])
        rows, others = orders[0][one], orders[1][other]
        outputs = [
            (side.drop_columns([*self.keys, ENTER, LEAVE]), index)
            for side, index in ((left, rows), (right, others - count))
        ]
        later, earlier = np.maximum(enter[rows], enter[others]), np.minimum(leave[rows], leave[others])
        for at in range(0, len(rows), _ROWS_PER_BATCH):
            part = slice(at, at + _ROWS_PER_BATCH)
            columns = [
                column
                for side, index in outputs
                for column in side.take(pa.array(index[part])).combine_chunks().columns
            ]
            names = [name for side, _ in outputs for name in side.column_names]
            times = [pa.array(later[part]), pa.array(earlier[part])]
            whole = pa.Table.from_arrays([*columns, *times], names=[*names, ENTER, LEAVE])
            yield from whole.combine_chunks().to_batches()


_ROWS_PER_BATCH = 1 << 18


def _at(rows: pa.Table, places: Array) -> pa.Table:
    return rows.take(pa.array(places)).combine_chunks()


def _put(rows: pa.Table, index: Array | None, enter: Array, leave: Array) -> Iterator[pa.RecordBatch]:
    """Rows, or those at some places, with their times."""
    for at in range(0, len(enter), _ROWS_PER_BATCH):
        part = slice(at, at + _ROWS_PER_BATCH)
        if index is None:
            chosen = rows.slice(at, _ROWS_PER_BATCH)
        else:
            chosen = rows.take(pa.array(index[part])) if rows.num_columns else pa.table({})
        columns = [*chosen.columns, pa.array(enter[part]), pa.array(leave[part])]
        table = pa.Table.from_arrays(columns, names=[*chosen.column_names, ENTER, LEAVE])
        yield from table.combine_chunks().to_batches()


def _ints(table: pa.Table, name: str) -> Array:
    values: Array = table.column(name).to_numpy()
    return values


def _sides(batches: Batches) -> Iterator[tuple[pa.Table | None, pa.Table | None]]:
    """The rows of a task on either side; several shards may be processed together, like one."""
    chunks: dict[MessageKind, dict[tuple[int, int], pa.Buffer]] = {
        MessageKind.ROWS: {},
        MessageKind.RIGHT: {},
    }
    for batch in batches:
        kinds, numbers = (batch.column(name).to_pylist() for name in (KIND, NUMBER))
        for at, (kind, number) in enumerate(zip(kinds, numbers, strict=True)):
            shard = batch.column(0)[at].as_py()
            chunks[MessageKind(kind)][number, shard] = batch.column(CHUNK)[at].as_buffer()
    left, right = (
        _decoded(unpack([chunk for _, chunk in sorted(numbered.items(), key=lambda item: item[0])]))
        for numbered in chunks.values()
    )
    if left is not None or right is not None:
        yield left, right


def _decoded(table: pa.Table | None) -> pa.Table | None:
    """The table without dictionary codes."""
    if table is None:
        return None
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    # the sides may differ in nullability
    return table.cast(
        pa.schema([pa.field(field.name, field.type) for field in table.schema])
    ).combine_chunks()
