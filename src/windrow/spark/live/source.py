"""Streaming DataFrames as streams: their rows with rowtimes, producers and bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windrow.errors import NotSupportedError, UsageError, did_you_mean
from windrow.spark.log_source import NUMBER
from windrow.spark.streams import ROWTIME, Log, Stream, of_frame
from windrow.streams import Ordering
from windrow.streams.entries import GENERATION, KIND, SEQUENCE
from windrow.syntax.sqltext import quoted

__all__ = [
    "BOUND",
    "LOGGED",
    "NUMBER",
    "PLACE",
    "PRODUCER",
    "PTIME",
    "STEP",
    "LiveSource",
    "live_stream",
]

PRODUCER, PTIME, BOUND = "__producer", "__ptime", "__bound"
LOGGED = (KIND, GENERATION, SEQUENCE, NUMBER)
"""What an entry of a named stream says besides: its kind, lease and number, and the file that it is in."""
STEP, PLACE = "__step", "__place"
"""Columns that order the rows of a stream as they came: the micro-batch, and the place in it."""


@dataclass(frozen=True)
class LiveSource:
    """What arrives at a live stream.

    Attributes
    ----------
    frame
        A streaming DataFrame: the stream's columns, `ROWTIME`, `PRODUCER` (string), `PTIME` (microseconds),
        and `BOUND`: a promise, in ticks, about the producer's later rows; an entry without a rowtime is no
        row.
    columns
        How they were made of the columns of the source.
    ordering
        What a row says about the later ones of its producer.
    idle
        After so many microseconds without an entry a producer is idle; None for never.
    identity
        That of the named stream, of which all entries of the log arrive; they then have the columns of
        `LOGGED` too.
    """

    frame: DataFrame
    columns: tuple[Column, ...]
    ordering: Ordering
    idle: int | None = None
    identity: str = ""


def live_stream(
    spark: SparkSession,
    frame: DataFrame,
    log: Log,
    *,
    lag: int | None = None,
    idle: int | None = None,
) -> Stream:
    """A stream of a streaming DataFrame; its `frame` has no rows, its `live` has what arrives.

    Parameters
    ----------
    lag
        In ticks of the rowtime: no row is estimated to come more than so much below the greatest seen.
        Without, and without a column of bounds, producers are ordered.
    idle
        In microseconds.

    Raises
    ------
    WindrowError
        As :func:`windrow.spark.streams.of_frame`; ``UNKNOWN_OPTION`` for `lag` and bounds together.
    """
    if log.ptime is not None:
        raise NotSupportedError(
            "processing times in a column of a streaming DataFrame are not supported",
            condition="UNSUPPORTED_STREAM",
            hint="leave ptime out: the time of the micro-batch is recorded",
        )
    if isinstance(log.bound, int):
        raise UsageError(
            "a live stream has no one bound",
            condition="UNKNOWN_OPTION",
            hint="name the column that holds bounds",
        )
    nothing = spark.createDataFrame([], frame.schema)
    # without its column of bounds: what that column says is told apart below
    plain = of_frame(nothing, replace(log, producer=None, bound=None))
    clock = plain.clock
    found = {name.lower(): name for name in frame.columns}
    for name in (log.producer, log.bound):
        if name is not None and name.lower() not in found:
            hint = did_you_mean(name, frame.columns) or f"columns are {', '.join(frame.columns)}"
            raise log.wrong(name, f"the rows have no column {name}", "UNKNOWN_ROWTIME", hint, "42703")
    bound = None if log.bound is None else found[log.bound.lower()]
    shown = tuple(name for name in plain.columns if name != bound)

    def ticks(name: str) -> Column:
        return F.expr(clock.of_column(quoted(found[name.lower()]), clock.kind, clock.unit))

    producer = F.lit("")
    if log.producer is not None:
        producer = F.coalesce(F.col(quoted(found[log.producer.lower()])).cast("string"), F.lit(""))
    columns = (
        *(F.col(quoted(name)) for name in shown),
        ticks(log.rowtime).alias(ROWTIME),
        producer.alias(PRODUCER),
        F.unix_micros(F.current_timestamp()).alias(PTIME),
        (ticks(bound) if bound is not None else F.lit(None).cast("bigint")).alias(BOUND),
    )
    if lag is not None:
        ordering = Ordering.lagging(lag)
    else:
        ordering = Ordering.unordered() if bound is not None else Ordering.ordered()
    empty = plain.frame.select(*map(quoted, shown), ROWTIME).withColumns(
        {STEP: F.lit(0).cast("bigint"), PLACE: F.lit(0).cast("bigint")}
    )
    live = LiveSource(frame.select(*columns), columns, ordering, idle)
    return replace(plain, frame=empty, columns=shown, ties=(STEP, PLACE), live=live)
