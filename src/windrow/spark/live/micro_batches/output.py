"""The output of a micro-batch, and the one way in which sinks get it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from windrow.punctuations import Pattern
from windrow.spark.collected import frame_of_collected
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Files, write_file
from windrow.spark.logs.session_streams import Stream

__all__ = ["RowsForSink", "RowsForStream", "write_output"]


@dataclass(frozen=True, eq=False)
class RowsForSink:
    """Rows as users see them.

    Attributes
    ----------
    rows
        In memory, as a DataFrame, or as what writes them into a file of a folder, for a sink of files.
    schema
        The types and names of rows in memory; two columns may have the same name.
    """

    rows: pa.Table | DataFrame | Callable[[Path], Path | None]
    schema: StructType


@dataclass(frozen=True, eq=False)
class RowsForStream:
    """Rows for a named stream.

    Attributes
    ----------
    rows
        The rows, with rowtimes in ticks of their time scale.
    bound
        No later row has a rowtime below it, in the same ticks; None without.
    punctuations
        Patterns that no later row matches, over the stream's columns.
    """

    rows: Stream
    bound: int | None
    punctuations: tuple[Pattern, ...] = ()


def write_output(context: LiveContext, output: RowsForSink | RowsForStream, number: int, before: int) -> int:
    """Write the output of a micro-batch to the sink of a query; how many rows it has.

    Parameters
    ----------
    before
        The number of rows of all earlier micro-batches.
    """
    sink = context.sink
    if isinstance(sink, IntoStream):
        assert isinstance(output, RowsForStream)
        with context.gateway.translated():
            return sink.insert(output.rows, output.bound, output.punctuations, before)
    assert isinstance(output, RowsForSink)
    rows = output.rows
    if isinstance(rows, pa.Table):
        into = context.table_sink(output.schema, rows.column_names)
        if into is not None:
            return into.write_table(rows, number)
    with context.gateway.translated():
        if callable(rows):
            assert isinstance(sink, Files)
            return write_file(rows, sink.folder, number)
        return sink.write(_frame_of(context, rows, output.schema), number) or 0


def _frame_of(context: LiveContext, rows: pa.Table | DataFrame, schema: StructType) -> DataFrame:
    if isinstance(rows, DataFrame):
        return rows
    distinct = StructType()
    for at, field in enumerate(schema):
        distinct = distinct.add(f"o{at}", field.dataType)
    frame = frame_of_collected(context.spark, rows.rename_columns(distinct.names), distinct)
    return frame.toDF(*schema.names)
