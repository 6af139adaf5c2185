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

__all__ = ["MALFORMED_SCHEMA", "WHY", "malformed_rows", "sound_rows", "uncomputable_rows"]

MALFORMED_SCHEMA = StructType(
    [
        *(StructField(name, StringType()) for name in ("stream", "row", "reason")),
        StructField("batch", LongType()),
    ]
)
"""The columns of malformed rows; `row` is the record as its reader has read it, as JSON."""

WHY = "__why"
"""The column with the reason why a row is malformed."""

_CORRUPT = "spark.sql.columnNameOfCorruptRecord"
_UNREADABLE, _TIMELESS = "cannot be parsed", "has no rowtime"


def sound_rows(batch: DataFrame, streams: Sequence[tuple[int, str, Stream]]) -> DataFrame:
    """The entries of a micro-batch that are not malformed.

    Parameters
    ----------
    batch, streams
        As for :meth:`windrow.spark.live.micro_batches.host.MicroBatches.take` and `streams`.
    """
    return batch.where(~reduce(Column.__or__, [_wrong(batch, at, one) for at, _, one in streams]))


def malformed_rows(batch: DataFrame, streams: Sequence[tuple[int, str, Stream]], number: int) -> DataFrame:
    """The malformed entries of a micro-batch, with the columns of `MALFORMED_SCHEMA`."""
    parts = []
    for at, name, stream in streams:
        reason = F.when(_is_unreadable(batch, at, stream), _UNREADABLE).otherwise(_TIMELESS)
        parts.append(_reported(batch.where(_wrong(batch, at, stream)), at, name, stream, reason, number))
    return reduce(DataFrame.unionAll, parts)


def uncomputable_rows(rows: DataFrame, streams: Sequence[tuple[int, str, Stream]], number: int) -> DataFrame:
    """Rows that have the reason in `WHY`, with the columns of `MALFORMED_SCHEMA`."""
    parts = [
        _reported(rows.where(F.col("__stream") == at), at, name, stream, F.col(WHY), number)
        for at, name, stream in streams
    ]
    return reduce(DataFrame.unionAll, parts)


def _reported(rows: DataFrame, at: int, name: str, stream: Stream, reason: Column, number: int) -> DataFrame:
    columns = [F.col(_inside(at, own)).alias(own) for own in stream.columns]
    return rows.select(
        F.lit(name).alias("stream"),
        F.to_json(F.struct(*columns)).alias("row"),
        reason.alias("reason"),
        F.lit(number).cast("bigint").alias("batch"),
    )


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
