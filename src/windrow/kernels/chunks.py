"""Rows on their way between stages: Arrow IPC chunks, one per task and cell.

A *cell* is what one task is given: all rows of a hash bucket of partitions, or a slice of one long
partition. Packing divides the rows of a task by cell; many rows travel as one binary value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.cells import Layout, cells_of
from windrow.kernels.sorting import SortKey

__all__ = ["CELL", "CHUNK", "pack", "unpack", "written"]

CELL = "__cell"
CHUNK = "__chunk"
_SCHEMA = pa.schema([pa.field(CELL, pa.int32()), pa.field(CHUNK, pa.binary())])
_ROWS_AT_ONCE = 1 << 20
_BYTES_AT_ONCE = 256 << 20
_SAMPLE = 10_000  # rows
_WORTH_CODING = 8  # rows per distinct string from which codes are shorter


def pack(
    batches: Iterable[pa.RecordBatch], layout: Layout, partition: tuple[str, ...], order: SortKey
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
        The first order key, by which sequences are cut.

    Yields
    ------
    pyarrow.RecordBatch
        (cell, chunk): the rows of a cell as an Arrow IPC stream in which repetitive strings are
        dictionary-coded.
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield _packed(pa.Table.from_batches(held), layout, partition, order)
            held, rows, size = [], 0, 0
    if rows:
        yield _packed(pa.Table.from_batches(held), layout, partition, order)


def unpack(chunks: Iterable[pa.Buffer]) -> pa.Table | None:
    """The rows of chunks of one cell, in the order of the chunks; None if there are no chunks."""
    tables = [pa.ipc.open_stream(chunk).read_all() for chunk in chunks]
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


def _packed(table: pa.Table, layout: Layout, partition: tuple[str, ...], order: SortKey) -> pa.RecordBatch:
    table = _coded(table.unify_dictionaries().combine_chunks())
    cells = cells_of(layout, table, partition, order)
    counts = np.bincount(cells)
    used = np.flatnonzero(counts)
    table = _worth_repeating(table, len(used))
    if len(used) > 1:
        small = np.uint16 if len(counts) <= 1 << 16 else np.uint32
        table = table.take(pa.array(np.argsort(cells.astype(small), kind="stable")))
    chunks, at = [], 0
    for count in counts[used].tolist():
        chunks.append(written(table.slice(at, count)))
        at += count
    columns = [pa.array(used, pa.int32()), pa.array(chunks, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


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
