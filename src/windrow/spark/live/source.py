"""Streaming DataFrames as streams: their rows with rowtimes, producers and bounds."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windrow.errors import NotSupportedError, UsageError
from windrow.spark.live.file_batches import FileColumns, is_of_files
from windrow.spark.log_source import NUMBER
from windrow.spark.streams import ROWTIME, Stream
from windrow.spark.table_log import Log, of_frame
from windrow.streams import Ordering, Position, State
from windrow.streams.entries import GENERATION, KIND, PATTERN, SEQUENCE
from windrow.streams.future import Future
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
LOGGED = (KIND, GENERATION, SEQUENCE, NUMBER, PATTERN)
"""What an entry of a named stream says besides: its kind, lease and number, the file that it is in, and what
it promises."""
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
    domain
        Of a named stream: the patterns that none of its rows ever matches.
    on_late
        What becomes of late rows in every query: ``"keep"`` or ``"fail"``.
    given
        Those of `PRODUCER`, `BOUND` and `PATTERN` that are not the same in all rows: without them there is
        one producer, with the empty name, and there are no bounds, and no patterns.
    files
        Of what arrives in Parquet files, and is nothing but their columns: which.
    """

    frame: DataFrame
    columns: tuple[Column, ...]
    ordering: Ordering
    idle: int | None = None
    identity: str = ""
    domain: tuple[str, ...] = ()
    on_late: str = "keep"
    given: frozenset[str] = frozenset({PRODUCER, BOUND})
    files: FileColumns | None = None

    @property
    def has_patterns(self) -> bool:
        """Whether entries may promise patterns."""
        return bool(self.identity) or PATTERN in self.given

    @property
    def start(self) -> Position:
        """Where reading begins."""
        return Position(self.identity, clock=State(shared=self.domain))


def live_stream(
    spark: SparkSession,
    frame: DataFrame,
    log: Log,
    *,
    lag: int | datetime.timedelta | None = None,
    idle: int | None = None,
    future: int | None = None,
) -> Stream:
    """A stream of a streaming DataFrame; its `frame` has no rows, its `live` has what arrives.

    Parameters
    ----------
    lag
        A time, or ticks of the rowtime: no row is estimated to come more than so much below the greatest
        seen. Without, and without a column of bounds, producers are ordered.
    idle, future
        In microseconds: rows and bounds that are further ahead than `future` of the micro-batch that they
        come in are quarantined.

    Raises
    ------
    WindrowError
        As :func:`windrow.spark.table_log.of_frame`; ``RESERVED_NAME``.
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
    own = {ROWTIME, PRODUCER, PTIME, BOUND, PATTERN, STEP, PLACE}
    reserved = next((name for name in frame.columns if name.lower() in own), None)
    if reserved is not None:
        hint = "give the column another name in the streaming DataFrame"
        told = f"column {reserved} has a name that a live stream has for itself"
        raise log.wrong(reserved, told, "RESERVED_NAME", hint, "42939")
    nothing = spark.createDataFrame([], frame.schema)
    # without its column of bounds: what that column says is told apart below
    plain = of_frame(nothing, replace(log, producer=None, bound=None, punctuation=None))
    clock = plain.clock
    found = {name.lower(): name for name in frame.columns}
    log.refuse_unknown((log.producer, log.bound, log.punctuation), frame.columns)
    bound = None if log.bound is None else found[log.bound.lower()]
    pattern = None if log.punctuation is None else found[log.punctuation.lower()]
    shown = tuple(name for name in plain.columns if name not in (bound, pattern))

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
        *([] if pattern is None else [F.col(quoted(pattern)).cast("string").alias(PATTERN)]),
    )
    if isinstance(lag, datetime.timedelta):
        lag = lag // datetime.timedelta(microseconds=1) * 1000 // clock.nanoseconds
    if lag is not None:
        ordering = Ordering.lagging(lag)
    else:
        ordering = Ordering.unordered() if bound is not None else Ordering.ordered()
    if future is not None:
        ordering = replace(ordering, future=Future(future, clock.nanoseconds))
    empty = plain.frame.select(*map(quoted, shown), ROWTIME).withColumns(
        {STEP: F.lit(0).cast("bigint"), PLACE: F.lit(0).cast("bigint")}
    )
    said = ((PRODUCER, log.producer), (BOUND, bound), (PATTERN, pattern))
    given = frozenset(name for name, column in said if column is not None)
    said_by = None if log.producer is None else found[log.producer.lower()]
    files = None
    if pattern is None and is_of_files(frame):
        files = FileColumns(frame.schema, shown, found[log.rowtime.lower()], said_by, bound)
    live = LiveSource(
        frame.select(*columns), columns, ordering, idle, on_late=log.on_late, given=given, files=files
    )
    return replace(plain, frame=empty, columns=shown, ties=(STEP, PLACE), live=live)
