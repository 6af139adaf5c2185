"""Rows in an exchange: Arrow IPC chunks, one for each task and shard.

A *shard* is the rows of one task: a hash bucket of partitions, or a slice of one long partition. Packing
divides the rows of a task by shard; many rows are sent as one binary value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.packing.messages import MessageKind, message
from windrow.kernels.packing.shards import Layout, shards_of
from windrow.kernels.slices.halo import Halo
from windrow.kernels.sorting import SortKey, cut_codes, one_array, sorted_partitions

__all__ = ["Borders", "gathered", "joined", "pack", "unpack", "written"]

_ROWS_AT_ONCE = 1 << 20
_BYTES_AT_ONCE = 256 << 20
_SAMPLE = 10_000  # rows
_WORTH_SLICING = 512  # rows for each run of one shard from which slices are cheaper than a copy
_WORTH_CODING = 8  # rows per distinct string from which codes are shorter


def pack(
    batches: Iterable[pa.RecordBatch],
    layout: Layout,
    partition: tuple[str, ...],
    order: tuple[SortKey, ...],
    halo: Halo | None = None,
    task: int = 0,
    kind: MessageKind = MessageKind.ROWS,
) -> Iterator[pa.RecordBatch]:
    """Divide rows by shard.

    Parameters
    ----------
    batches
        Rows.
    layout
        The shards.
    partition
        The columns of the partition keys.
    order
        The order keys; sequences are cut by the first.
    halo
        The rows around its own that each slice needs; None for none.
    task
        The unique number of this task.
    kind
        The kind of the messages.

    Yields
    ------
    pyarrow.RecordBatch
        Messages: the rows of a shard as an Arrow IPC stream in which repetitive strings are dictionary-coded.
    """
    borders = None if halo is None else Borders(layout, order, halo)
    buffered: list[pa.RecordBatch] = []
    rows = size = 0
    number = task << 32
    for batch in chain(batches, [None]):
        if batch is not None:
            buffered.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows and (batch is None or rows >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE):
            for shard, part in _divided(pa.Table.from_batches(buffered), layout, partition, order[0]):
                if borders is not None:
                    borders.add(shard, part)
                yield message(shard, kind, number, written(part))
            number += 1
            buffered, rows, size = [], 0, 0
    if borders is not None:
        for shard, side, part in borders.around():
            yield message(shard, side, number, written(part))


def unpack(chunks: Iterable[pa.Buffer]) -> pa.Table | None:
    """The rows of chunks of one shard, in the order of the chunks; None if there are no chunks."""
    return joined([pa.ipc.open_stream(chunk).read_all() for chunk in chunks])


def gathered(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """The rows of batches, with repetitive strings dictionary-coded; None if there are no batches."""
    found = list(batches)
    return _coded(pa.Table.from_batches(found)).combine_chunks() if found else None


def joined(tables: list[pa.Table]) -> pa.Table | None:
    """The rows of tables that differ at most in dictionary encoding; None for no tables."""
    if not tables:
        return None
    for at, field in enumerate(tables[0].schema):
        if not all(table.schema.field(at).type == field.type for table in tables):
            # some tasks have hardly any distinct values, others many
            plain = field.with_type(_plain(field.type))
            tables = [table.set_column(at, plain, table.column(at).cast(plain.type)) for table in tables]
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _divided(
    table: pa.Table, layout: Layout, partition: tuple[str, ...], order: SortKey
) -> Iterator[tuple[int, pa.Table]]:
    """The shards of rows, with their rows."""
    table = _coded(table)
    shards = shards_of(layout, table, partition, order)
    starts = np.concatenate([[0], np.flatnonzero(shards[1:] != shards[:-1]) + 1])
    if len(starts) * _WORTH_SLICING <= len(shards):
        yield from _in_runs(table, shards[starts], np.append(starts, len(shards)))
        return
    table = table.combine_chunks()
    counts = np.bincount(shards)
    used = np.flatnonzero(counts)
    table = _worth_repeating(table, len(used))
    small = np.uint16 if len(counts) <= 1 << 16 else np.uint32
    table = table.take(pa.array(np.argsort(shards.astype(small, copy=False), kind="stable")))
    at = 0
    for shard, count in zip(used.tolist(), counts[used].tolist(), strict=True):
        yield shard, table.slice(at, count)
        at += count


def _in_runs(table: pa.Table, shards: np.ndarray, edges: np.ndarray) -> Iterator[tuple[int, pa.Table]]:
    """The shards of rows that come in long runs of one shard, without a copy of the rows."""
    used = np.unique(shards)
    table = _worth_repeating(table, len(used))
    for shard in used.tolist():
        runs = np.flatnonzero(shards == shard)
        spans = zip(edges[runs].tolist(), edges[runs + 1].tolist(), strict=True)
        yield shard, pa.concat_tables([table.slice(start, stop - start) for start, stop in spans])


class Borders:
    """The rows of a task that are nearest to the edges of slices.

    For each slice it retains as many of the first and last rows as any other slice may need, and all in reach
    of the slice before it.
    """

    def __init__(self, layout: Layout, order: tuple[SortKey, ...], halo: Halo) -> None:
        self.layout, self.order, self.halo = layout, order, halo
        self.first: dict[int, pa.Table] = {}
        self.last: dict[int, pa.Table] = {}

    def add(self, shard: int, rows: pa.Table) -> None:
        """Add rows of a shard, after all earlier ones."""
        if self.layout.sequence_of(shard) is None:
            return
        _, (first, _) = self.layout.slice_of(shard)
        for nearest, count, is_last in (
            (self.first, self.halo.after, False),
            (self.last, self.halo.before, True),
        ):
            if count:
                near = self._near(rows, count, first, is_last=is_last)
                both = joined([nearest[shard], near]) if shard in nearest else near
                assert both is not None
                nearest[shard] = self._near(both, count, first, is_last=is_last)

    def around(self) -> Iterator[tuple[int, MessageKind, pa.Table]]:
        """The shards of slices, with the rows before or after them."""
        for number in range(len(self.layout.sequences)):
            shards = self.layout.slices_of(number)
            for shard in shards:
                after = [self.first[other] for other in shards if other > shard and other in self.first]
                before = [self.last[other] for other in shards if other < shard and other in self.last]
                for kind, parts in ((MessageKind.AFTER, after), (MessageKind.BEFORE, before)):
                    rows = joined(parts)
                    if rows is not None:
                        yield shard, kind, self.near(shard, kind, rows)

    def near(self, shard: int, kind: MessageKind, rows: pa.Table) -> pa.Table:
        """The rows that a slice needs, of those after it or before it."""
        is_last = kind is MessageKind.BEFORE
        count = self.halo.before if is_last else self.halo.after
        _, (_, stop) = self.layout.slice_of(shard)
        return self._near(rows, count, stop, is_last=is_last)

    def _near(self, rows: pa.Table, count: int, edge: int | None, *, is_last: bool) -> pa.Table:
        """The rows that a slice needs of those after an edge, or of the last ones."""
        if self.halo.reach is None or edge is None or is_last:
            return self._nearest(rows, count, is_last=is_last)
        beyond = self.halo.reach.is_beyond(one_array(rows.column(self.order[0].column)), edge)
        within, rest = rows.filter(pa.array(~beyond)), rows.filter(pa.array(beyond))
        both = joined([within, self._nearest(rest, count, is_last=False)])
        assert both is not None
        return both

    def _nearest(self, rows: pa.Table, count: int, *, is_last: bool) -> pa.Table:
        """The first rows in order, or the last ones, sorted."""
        codes = cut_codes(rows.column(self.order[0].column), self.order[0])
        if len(codes) > count:
            place = len(codes) - count if is_last else count - 1
            edge = np.partition(codes, place)[place]
            near = np.flatnonzero(codes >= edge if is_last else codes <= edge)
            rows = rows.take(pa.array(near))
        order, _ = sorted_partitions(rows, (), self.order)
        rows = rows if order is None else rows.take(pa.array(order))
        return rows.slice(max(rows.num_rows - count, 0)) if is_last else rows.slice(0, count)


def _coded(table: pa.Table) -> pa.Table:
    """The table with repetitive strings dictionary-coded, each column with one dictionary."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            sample = table.column(at).slice(0, _SAMPLE)
            if pc.count_distinct(sample).as_py() * _WORTH_CODING <= len(sample):
                coded = table.column(at).dictionary_encode()
                table = table.set_column(at, field.with_type(coded.type), coded)
    return table.unify_dictionaries()


def _worth_repeating(table: pa.Table, shards: int) -> pa.Table:
    """The table without codes where they are no shorter, as each shard repeats the dictionary."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and table.num_rows:
            values = len(table.column(at).chunk(0).dictionary)
            if values * shards * _WORTH_CODING > table.num_rows:
                plain = field.with_type(field.type.value_type)
                table = table.set_column(at, plain, table.column(at).cast(plain.type))
    return table


def written(table: pa.Table) -> bytes:
    """The rows as one chunk."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
