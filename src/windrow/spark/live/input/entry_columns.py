"""The entries of several streams as one DataFrame, in which each stream has separate columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.spark.jvm.plans import without_views
from windrow.spark.live.input.file_order import origin
from windrow.spark.logs.live_source import PTIME
from windrow.spark.logs.session_streams import Stream
from windrow.syntax.sqltext import quoted

__all__ = ["STREAM", "TICKS", "entries_of", "in_one", "inside", "ticks_among"]

STREAM = "__stream"
"""The number of the stream of an entry."""
TICKS = -1
"""The stream number of ticks, which have only a processing time."""


def entries_of(
    streams: Sequence[tuple[int, str, Stream]], frames: Mapping[str, DataFrame] | None = None
) -> list[DataFrame]:
    """For each stream, by number and name, its entries with its number and separate column names.

    Parameters
    ----------
    frames
        Entries in place of the streams' own.
    """
    parts = []
    for number, known, stream in streams:
        assert stream.live is not None
        frame = without_views(stream.live.frame if frames is None else frames[known])
        fields = [F.col(quoted(name)).alias(inside(number, name)) for name in frame.columns]
        parts.append(frame.select(F.lit(number).alias(STREAM), *fields, *origin(frame)))
    return parts


def ticks_among(ticks: DataFrame) -> DataFrame:
    """Ticks as entries; they have ``tick``, in microseconds."""
    return ticks.select(F.lit(TICKS).alias(STREAM), F.col("tick").alias(inside(TICKS, PTIME)))


def in_one(parts: Sequence[DataFrame]) -> DataFrame:
    """All rows, with NULL in the columns of other streams."""
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), parts)


def inside(number: int, name: str) -> str:
    """The name of a stream's column among those of all streams."""
    return f"__{number}_{name}"
