"""Named and live streams as logs: what has come of them, and when.

So a query that is told by processing time reads them as it reads a recorded log. Their processing times are
microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.algebra.clock import Clock
from windrow.algebra.watermarks import Steps
from windrow.spark.logs.session_streams import (
    ARRIVED,
    CAME,
    IS_LATE,
    NUMBER,
    PRODUCER,
    PROMISE,
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
"""Watermarks after which nothing comes: so far that arithmetic with times can still go beyond."""

PTIMES = Clock("timestamp", "MICROSECOND")
"""What processing times of named and live streams are counted in."""


def arrived(
    stream: Stream,
    rows: DataFrame,
    watermark: Steps,
    ends: tuple[int, int] | None,
    promised: Sequence[tuple[int, str]] = (),
) -> Stream:
    """The stream as the log of these rows.

    Parameters
    ----------
    stream
        A named or live stream.
    rows
        Those that no promise rules out: the stream's columns, `ROWTIME`, `ARRIVED` in ticks of `PTIMES`, and
        `BEFORE`: the stream's clock before rows that are below it; maybe `NUMBER`.
    watermark
        Up to which rowtime the stream was known, in time.
    ends
        The first and the last processing time.
    promised
        What the stream has promised by patterns, and when.
    """
    numbers = [NUMBER] if NUMBER in rows.columns else []
    frame = rows.select(*map(quoted, stream.columns), ROWTIME, ARRIVED, BEFORE, *numbers)
    nothing = F.lit(None).cast("bigint")
    came = frame.select(
        F.expr(PTIMES.to_column(ARRIVED)).alias(CAME),
        F.col(ARRIVED).alias(PTIME),
        F.lit("").alias(PRODUCER),
        F.col(ROWTIME),
        nothing.alias(PROMISE),
    )
    if watermark:
        steps = rows.sparkSession.createDataFrame(watermark, f"{PTIME} bigint, {PROMISE} bigint")
        shown = F.expr(PTIMES.to_column(PTIME)).alias(CAME)
        told = steps.select(shown, PTIME, F.lit("").alias(PRODUCER), nothing.alias(ROWTIME), PROMISE)
        came = came.unionByName(told)
    judged = came.withColumn(IS_LATE, F.lit(False))
    arrivals = StreamArrivals(came, judged, stream.clock, "ptime", PTIMES, (watermark, ends))
    if stream.live is not None and stream.live.has_patterns:
        arrivals = replace(arrivals, promised=(*((0, text) for text in stream.live.domain), *promised))
    return replace(stream, frame=frame, ties=(ARRIVED,), arrivals=arrivals)


def before_end(clock: Clock, watermark: Steps) -> Steps:
    """A watermark that ends where arithmetic with times does not."""
    end = _ENDS.get(clock.kind, _END)
    return [(at, min(mark, end)) for at, mark in watermark]


def nothing_arrived(stream: Stream) -> Stream:
    """The stream as an empty log."""
    empty = stream.frame.select(*map(quoted, stream.columns), ROWTIME).limit(0)
    ours = {name: F.lit(None).cast("bigint") for name in (ARRIVED, BEFORE)}
    return arrived(stream, empty.withColumns(ours), [], None)
