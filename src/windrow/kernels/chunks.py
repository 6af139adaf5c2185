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

__all__ = ["CELL", "CHUNK", "SEQUENCE", "pack", "unpack", "written"]

CELL = "__cell"
CHUNK = "__chunk"
SEQUENCE = "__sequence"
_SCHEMA = pa.schema([pa.field(CELL, pa.int32()), pa.field(CHUNK, pa.binary())])
_ROWS_AT_ONCE = 1 << 20
_BYTES_AT_ONCE = 256 << 20
_WORTH_CODING = 8  # rows per distinct string from which codes are shorter


def pack(batches: Iterable[pa.RecordBatch], layout: Layout, order: SortKey) -> Iterator[pa.RecordBatch]:
    """Divide rows by their cell.

    Parameters
    ----------
    batches
        Rows with two int32 columns of their own: `CELL`, the bucket, and `SEQUENCE`, the number of the
        sequence or -1.
    layout
        The cells.
    order
        The first order key, by which sequences are cut.

    Yields
    ------
    pyarrow.RecordBatch
        (cell, chunk): the rows of a cell, without those columns, as an Arrow IPC stream in which
        repetitive strings are dictionary-coded.
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield _packed(pa.Table.from_batches(held), layout, order)
            held, rows, size = [], 0, 0
    if rows:
        yield _packed(pa.Table.from_batches(held), layout, order)


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


def _packed(table: pa.Table, layout: Layout, order: SortKey) -> pa.RecordBatch:
    table = table.combine_chunks()
    cells = np.asarray(table.column(CELL).chunk(0))
    if layout.sequences:
        sequences = np.asarray(table.column(SEQUENCE).chunk(0))
        cells = cells_of(layout, cells, sequences, table.column(order.column).chunk(0), order)
    table = table.drop_columns([CELL, SEQUENCE])
    counts = np.bincount(cells)
    used = np.flatnonzero(counts)
    table = _coded(table, len(used))
    if len(used) > 1:
        small = np.uint16 if len(counts) <= 1 << 16 else np.uint32
        table = table.take(pa.array(np.argsort(cells.astype(small), kind="stable")))
    chunks, at = [], 0
    for count in counts[used].tolist():
        chunks.append(written(table.slice(at, count)))
        at += count
    columns = [pa.array(used, pa.int32()), pa.array(chunks, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _coded(table: pa.Table, cells: int) -> pa.Table:
    """The table with strings dictionary-coded where that is shorter; each cell repeats the dictionary."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            sample = pc.count_distinct(table.column(at).slice(0, 10_000)).as_py()
            if sample * _WORTH_CODING > min(table.num_rows, 10_000):
                continue
            coded = table.column(at).combine_chunks().dictionary_encode()
            if len(coded.dictionary) * cells * _WORTH_CODING <= table.num_rows:
                table = table.set_column(at, field.name, coded)
    return table


def written(table: pa.Table) -> bytes:
    """The rows as one chunk."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
