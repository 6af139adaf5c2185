"""Rows on their way between stages: Arrow IPC chunks, one per task and cell.

A *cell* is what one task is given: all rows of a hash bucket of partitions, or a slice of one long
partition. Packing divides the rows of a task by cell; many rows travel as one binary value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.packing.cells import Layout, cells_of
from windrow.kernels.packing.messages import MessageKind, message
from windrow.kernels.slices.halo import Halo
from windrow.kernels.sorting import SortKey, cut_codes, one_array, sorted_partitions

__all__ = ["Borders", "joined", "pack", "unpack", "written"]

_ROWS_AT_ONCE = 1 << 20
_BYTES_AT_ONCE = 256 << 20
_SAMPLE = 10_000  # rows
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
    """Divide rows by their cell.

    Parameters
    ----------
    batches
        Rows.
    layout
        The cells.
    partition
        The columns of the partition keys.
    order
        The order keys; sequences are cut by the first.
    halo
        How many rows around its own each slice is to have too, if it is to have any.
    task
        The number of this task, different from that of any other.
    kind
        What the rows are called.

    Yields
    ------
    pyarrow.RecordBatch
        Messages: the rows of a cell as an Arrow IPC stream in which repetitive strings are dictionary-coded.
    """
    borders = None if halo is None else Borders(layout, order, halo)
    held: list[pa.RecordBatch] = []
    rows = size = 0
    number = task << 32
    for batch in chain(batches, [None]):
        if batch is not None:
            held.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows and (batch is None or rows >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE):
            for cell, part in _divided(pa.Table.from_batches(held), layout, partition, order[0]):
                if borders is not None:
                    borders.add(cell, part)
                yield message(cell, kind, number, written(part))
            number += 1
            held, rows, size = [], 0, 0
    if borders is not None:
        for cell, side, part in borders.around():
            yield message(cell, side, number, written(part))


def unpack(chunks: Iterable[pa.Buffer]) -> pa.Table | None:
    """The rows of chunks of one cell, in the order of the chunks; None if there are no chunks."""
    return joined([pa.ipc.open_stream(chunk).read_all() for chunk in chunks])


def joined(tables: list[pa.Table]) -> pa.Table | None:
    """The rows of tables that differ at most in which columns are dictionary-coded; None for no tables."""
    if not tables:
        return None
    for at, field in enumerate(tables[0].schema):
        if not all(table.schema.field(at).type == field.type for table in tables):
            # some tasks met few values, others many
            plain = field.with_type(_plain(field.type))
            tables = [table.set_column(at, plain, table.column(at).cast(plain.type)) for table in tables]
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _divided(
    table: pa.Table, layout: Layout, partition: tuple[str, ...], order: SortKey
) -> Iterator[tuple[int, pa.Table]]:
    """The cells that rows are of, with their rows."""
    table = _coded(table.unify_dictionaries().combine_chunks())
    cells = cells_of(layout, table, partition, order)
    counts = np.bincount(cells)
    used = np.flatnonzero(counts)
    table = _worth_repeating(table, len(used))
    if len(used) > 1:
        small = np.uint16 if len(counts) <= 1 << 16 else np.uint32
        table = table.take(pa.array(np.argsort(cells.astype(small), kind="stable")))
    at = 0
    for cell, count in zip(used.tolist(), counts[used].tolist(), strict=True):
        yield cell, table.slice(at, count)
        at += count


class Borders:
    """The rows of a task that are the nearest to the edges of slices.

    Of each slice it keeps as many of the first and of the last rows as any other may need, and all that are
    in reach of the slice before it.
    """

    def __init__(self, layout: Layout, order: tuple[SortKey, ...], halo: Halo) -> None:
        self.layout, self.order, self.halo = layout, order, halo
        self.first: dict[int, pa.Table] = {}
        self.last: dict[int, pa.Table] = {}

    def add(self, cell: int, rows: pa.Table) -> None:
        """Take in rows of a cell, after all that were added before."""
        if self.layout.sequence_of(cell) is None:
            return
        for kept, count, is_last in (
            (self.first, self.halo.after, False),
            (self.last, self.halo.before, True),
        ):
            if count:
                near = self._near(cell, rows, count, is_last=is_last)
                both = joined([kept[cell], near]) if cell in kept else near
                assert both is not None
                kept[cell] = self._near(cell, both, count, is_last=is_last)

    def around(self) -> Iterator[tuple[int, MessageKind, pa.Table]]:
        """The cells of slices with the rows before or after them."""
        for number in range(len(self.layout.sequences)):
            cells = self.layout.slices_of(number)
            for cell in cells:
                after = [self.first[other] for other in cells if other > cell and other in self.first]
                before = [self.last[other] for other in cells if other < cell and other in self.last]
                for kind, parts, count in (
                    (MessageKind.AFTER, after, self.halo.after),
                    (MessageKind.BEFORE, before, self.halo.before),
                ):
                    rows = joined(parts)
                    if rows is not None:
                        is_last = kind is MessageKind.BEFORE
                        yield cell, kind, self._near(cell + 1, rows, count, is_last=is_last)

    def _near(self, cell: int, rows: pa.Table, count: int, *, is_last: bool) -> pa.Table:
        """The rows that slices before this cell, or after theirs, may need."""
        edge = None if is_last else self._edge(cell)
        if self.halo.reach is None or edge is None:
            return self._nearest(rows, count, is_last=is_last)
        beyond = self.halo.reach.is_beyond(one_array(rows.column(self.order[0].column)), edge)
        within, rest = rows.filter(pa.array(~beyond)), rows.filter(pa.array(beyond))
        both = joined([within, self._nearest(rest, count, is_last=False)])
        assert both is not None
        return both

    def _edge(self, cell: int) -> int | None:
        """The first code of a slice; None for the first slice, which is after no other."""
        for number, sequence in enumerate(self.layout.sequences):
            cells = self.layout.slices_of(number)
            if cell in cells:
                return None if cell == cells.start else sequence.cuts[cell - cells.start - 1]
        return None

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
    """The table with repetitive strings dictionary-coded."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            sample = table.column(at).slice(0, _SAMPLE)
            if pc.count_distinct(sample).as_py() * _WORTH_CODING <= len(sample):
                table = table.set_column(at, field.name, table.column(at).dictionary_encode())
    return table


def _worth_repeating(table: pa.Table, cells: int) -> pa.Table:
    """The table without codes where they are no shorter, as each cell repeats the dictionary."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and table.num_rows:
            values = len(table.column(at).chunk(0).dictionary)
            if values * cells * _WORTH_CODING > table.num_rows:
                table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    return table


def written(table: pa.Table) -> bytes:
    """The rows as one chunk."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
