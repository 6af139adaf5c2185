"""Rows into one Parquet file of this machine's, whichever machines compute them.

Spark's own writer would leave a directory, on the disks of the workers. Here each Arrow batch travels to
the driver as one value, and one is retained at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.cli.output.rows_on_driver import stream, translated
from windrow.cli.output.whole_files import writing_to
from windrow.errors import AnalysisError
from windrow.spark.runtime.interpreter import map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["write_parquet"]


def write_parquet(
    frame: DataFrame,
    path: Path,
    target: Path,
    sql: str,
    count: Callable[[int], None],
) -> int:
    """Write the rows to `path`, in order, and return their number.

    Parameters
    ----------
    frame
        The rows.
    path, target
        The file, and its name in errors.
    sql
        The statement, to locate errors in.
    count
        Called with every batch's number of rows when that is written.

    Raises
    ------
    AnalysisError
        ``DUPLICATE_COLUMN``: a Parquet file has each column once.
    ExecutionError
        ``OUTPUT_NOT_WRITTEN``, and what the query raises.
    """
    seen: set[str] = set()
    for name in frame.columns:
        if name in seen:
            raise AnalysisError(
                f"column {name} appears twice in the result",
                condition="DUPLICATE_COLUMN",
                sqlstate="42701",
                hint="rename columns with AS",
            )
        seen.add(name)
    with translated(sql):
        schema = pa.schema(map(_nullable, frame.limit(0).toArrow().schema))
    total = 0
    batches = stream(map_in_arrow(frame, _packed, "batch binary"), sql)
    with writing_to(target), pq.ParquetWriter(path, schema) as writer:
        for (packed,) in batches:
            # Names of time zones differ between the two ways (UTC, Etc/UTC), instants do not.
            table = pa.ipc.open_stream(pa.py_buffer(packed)).read_all().cast(schema)
            writer.write_table(table)
            total += table.num_rows
            count(total)
    return total


def _nullable(field: pa.Field) -> pa.Field:
    """A field that may be NULL, with all within it: a struct that is NULL has no values of its fields."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_nullable(kind.field(at)) for at in range(kind.num_fields)])
    elif pa.types.is_list(kind):
        kind = pa.list_(_nullable(kind.value_field))
    elif pa.types.is_map(kind):
        kind = pa.map_(kind.key_type, _nullable(kind.item_field))
    return field.with_type(kind).with_nullable(True)


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as one binary value; runs in Spark's workers."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()])], names=["batch"])
