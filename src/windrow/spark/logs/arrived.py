"""Named and live streams as logs: their entries with processing times.

So a query with EMIT reads them like a recorded log, with processing times in microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.algebra.watermarks import WatermarkHistory
from windrow.spark.logs.session_streams import (
    ARRIVAL,
    ARRIVED,
    ENTRY_BOUND,
    IS_LATE,
    NUMBER,
    PRODUCER,
    PTIME,
    ROWTIME,
    Stream,
    StreamArrivals,
)
from windrow.streams.entries import BEFORE
from windrow.syntax.sqltext import quoted

__all__ = ["PTIMES", "arrived", "before_end", "nothing_arrived"]

_ENDS = {"date": 36_500_000}
_END = 2**62
"""Watermarks of closed streams, chosen so that arithmetic with times does not overflow."""

PTIMES = TimeScale("timestamp", "MICROSECOND")
"""The unit of processing times of named and live streams."""


def arrived(
    stream: Stream,
    rows: DataFrame,
    watermark: WatermarkHistory,
    ends: tuple[int, int] | None,
    punctuations: Sequence[tuple[int, str]] = (),
) -> Stream:
    """The stream as the log of these rows.

    Parameters
    ----------
    stream
        A named or live stream.
    rows
        The admitted rows: the stream's columns, `ROWTIME`, `ARRIVED` in ticks of `PTIMES`, and `BEFORE`, the
        stream's watermark before rows that are below it; maybe `NUMBER`.
    watermark
        The changes of the watermark, with their processing times.
    ends
        The first and the last processing time.
    punctuations
        The punctuations of the stream, with their processing times.
    """
    numbers = [NUMBER] if NUMBER in rows.columns else []
    frame = rows.select(*map(quoted, stream.columns), ROWTIME, ARRIVED, BEFORE, *numbers)
    nothing = F.lit(None).cast("bigint")
    entries = frame.select(
        F.expr(PTIMES.to_column(ARRIVED)).alias(ARRIVAL),
        F.col(ARRIVED).alias(PTIME),
        F.lit("").alias(PRODUCER),
        F.col(ROWTIME),
        nothing.alias(ENTRY_BOUND),
    )
    if watermark:
        history = rows.sparkSession.createDataFrame(watermark, f"{PTIME} bigint, {ENTRY_BOUND} bigint")
        when = F.expr(PTIMES.to_column(PTIME)).alias(ARRIVAL)
        bounds = history.select(when, PTIME, F.lit("").alias(PRODUCER), nothing.alias(ROWTIME), ENTRY_BOUND)
        entries = entries.unionByName(bounds)
    judged = entries.withColumn(IS_LATE, F.lit(False))
    arrivals = StreamArrivals(entries, judged, stream.scale, "ptime", PTIMES, (watermark, ends))
    if stream.live is not None and stream.live.has_patterns:
        arrivals = replace(
            arrivals, known_punctuations=(*((0, text) for text in stream.live.domain), *punctuations)
        )
    return replace(stream, frame=frame, ties=(ARRIVED,), arrivals=arrivals)


def before_end(scale: TimeScale, watermark: WatermarkHistory) -> WatermarkHistory:
    """A watermark limited to values for which arithmetic with times does not overflow."""
    end = _ENDS.get(scale.kind, _END)
    return [(at, min(mark, end)) for at, mark in watermark]


def nothing_arrived(stream: Stream) -> Stream:
    """The stream as an empty log."""
    empty = stream.frame.select(*map(quoted, stream.columns), ROWTIME).limit(0)
    ours = {name: F.lit(None).cast("bigint") for name in (ARRIVED, BEFORE)}
    return arrived(stream, empty.withColumns(ours), [], None)
