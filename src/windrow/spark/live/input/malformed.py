"""Malformed entries: those that a reader of a streaming DataFrame reports as corrupt, and those for which an
expression of the query fails (:mod:`windrow.spark.live.micro_batches.uncomputable`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from windrow.spark.logs.live_source import BOUND
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.streams.entries import PATTERN
from windrow.syntax.sqltext import quoted

__all__ = [
    "MALFORMED",
    "MALFORMED_SCHEMA",
    "OF_ENTRY",
    "WHY",
    "malformed_rows",
    "marked",
    "numbered",
    "sound_rows",
    "uncomputable_rows",
]

OF_ENTRY = StructType([StructField(name, StringType()) for name in ("stream", "row", "reason")])
"""What is reported of a malformed entry; `row` is the record as its reader has read it, as JSON."""

MALFORMED_SCHEMA = StructType([*OF_ENTRY, StructField("batch", LongType())])
"""The columns of malformed rows."""

MALFORMED = "__malformed"
"""The column with what is reported of an entry; NULL in sound ones."""

WHY = "__why"
"""The column with the reason why a row is malformed."""

_CORRUPT = "spark.sql.columnNameOfCorruptRecord"
_UNREADABLE, _TIMELESS = "cannot be parsed", "has no rowtime"


def marked(batch: DataFrame, streams: Sequence[tuple[int, str, Stream]]) -> DataFrame:
    """The entries of a micro-batch with the column `MALFORMED`, which is of type `OF_ENTRY`.

    Parameters
    ----------
    batch, streams
        As for :meth:`windrow.spark.live.micro_batches.host.MicroBatches.take` and `streams`.
    """
    kinds = F.lit(None).cast(OF_ENTRY)
    for at, name, stream in streams:
        reason = F.when(_is_unreadable(batch, at, stream), _UNREADABLE).otherwise(_TIMELESS)
        entry = F.struct(*_reported(at, name, stream, reason))
        kinds = F.when(_wrong(batch, at, stream), entry.cast(OF_ENTRY)).otherwise(kinds)
    return batch.withColumn(MALFORMED, kinds)


def sound_rows(entries: DataFrame) -> DataFrame:
    """The marked entries that are not malformed."""
    return entries.where(F.isnull(MALFORMED)).drop(MALFORMED)


def malformed_rows(entries: DataFrame, number: int) -> DataFrame:
    """The malformed ones of marked entries, with the columns of `MALFORMED_SCHEMA`."""
    return numbered(entries.where(~F.isnull(MALFORMED)).select(f"{MALFORMED}.*"), number)


def numbered(rows: DataFrame, number: int) -> DataFrame:
    """Malformed rows of a micro-batch, with the columns of `MALFORMED_SCHEMA`."""
    return rows.withColumn("batch", F.lit(number).cast("bigint"))


def uncomputable_rows(rows: DataFrame, streams: Sequence[tuple[int, str, Stream]], number: int) -> DataFrame:
    """Rows that have the reason in `WHY`, with the columns of `MALFORMED_SCHEMA`."""
    parts = [
        rows.where(F.col("__stream") == at).select(*_reported(at, name, stream, F.col(WHY)))
        for at, name, stream in streams
    ]
    return numbered(reduce(DataFrame.unionAll, parts), number)


def _reported(at: int, name: str, stream: Stream, reason: Column) -> list[Column]:
    columns = [F.col(_inside(at, own)).alias(own) for own in stream.columns]
    return [
        F.lit(name).alias("stream"),
        F.to_json(F.struct(*columns)).alias("row"),
        reason.alias("reason"),
    ]


def _wrong(batch: DataFrame, at: int, stream: Stream) -> Column:
    """Whether an entry is a malformed one of a stream."""
    if stream.live is None or stream.live.identity:  # a named stream has typed rows
        return F.lit(False)
    required = [name for name in (ROWTIME, BOUND, PATTERN) if name in stream.live.frame.columns]
    is_empty = reduce(Column.__and__, [F.col(_inside(at, name)).isNull() for name in required])
    return (F.col("__stream") == at) & (is_empty | _is_unreadable(batch, at, stream))


def _is_unreadable(batch: DataFrame, at: int, stream: Stream) -> Column:
    """Whether the reader has put the record into the column for corrupt records."""
    corrupt = str(batch.sparkSession.conf.get(_CORRUPT) or "").lower()
    own = next((name for name in stream.columns if name.lower() == corrupt), None)
    if own is None or stream.frame.schema[own].dataType != StringType():
        return F.lit(False)
    return F.col(_inside(at, own)).isNotNull()


def _inside(at: int, name: str) -> str:
    return quoted(f"__{at}_{name}")
