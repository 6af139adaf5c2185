"""Streaming DataFrames as streams: their rows with rowtimes, producers and bounds."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.errors import NotSupportedError, UsageError
from windrow.spark.live.input.file_batches import format_of
from windrow.spark.logs.live_source import BOUND, MICRO_BATCH, PLACE, PRODUCER, PTIME, FileColumns, LiveSource
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.logs.table_log import TableLog
from windrow.spark.logs.table_streams import of_frame
from windrow.streams import Ordering
from windrow.streams.admission.future import Future
from windrow.streams.entries import PATTERN
from windrow.syntax.sqltext import quoted

__all__ = ["endless", "live_stream"]


def endless(spark: SparkSession, columns: StructType) -> DataFrame:
    """A streaming DataFrame with these columns, which is only planned and never run."""
    rows = spark.readStream.format("rate").load()
    return rows.select(*(F.lit(None).cast(one.dataType).alias(one.name) for one in columns)).where("FALSE")


def live_stream(spark: SparkSession, frame: DataFrame, log: TableLog) -> Stream:
    """A stream over a streaming DataFrame; its `frame` is empty, its `live` has the arriving entries.

    The processing time of an entry is that of its micro-batch. Without a lag and a column of bounds, the
    rowtimes of a producer must not decrease.

    Raises
    ------
    WindrowError
        As :func:`windrow.spark.logs.table_streams.of_frame`; ``RESERVED_NAME``.
    """
    if log.ptime is not None:
        raise NotSupportedError(
            "processing times in a column of a streaming DataFrame are not supported",
            condition="UNSUPPORTED_STREAM",
            hint="leave ptime out: the processing time is that of the micro-batch",
        )
    if isinstance(log.bound, int):
        raise UsageError(
            "a live stream cannot have a single bound",
            condition="UNKNOWN_OPTION",
            hint="name the column of bounds",
        )
    own = {ROWTIME, PRODUCER, PTIME, BOUND, PATTERN, MICRO_BATCH, PLACE}
    reserved = next((name for name in frame.columns if name.lower() in own), None)
    if reserved is not None:
        hint = "rename the column in the streaming DataFrame"
        message = f"column name {reserved} is reserved for live streams"
        raise log.wrong(reserved, message, "RESERVED_NAME", hint, "42939")
    nothing = spark.createDataFrame([], frame.schema)
    # without its bounds, which are read below
    plain = of_frame(
        nothing, TableLog(log.rowtime, log.unit, on_late=log.on_late, places=log.places, sql=log.sql)
    )
    scale = plain.scale
    found = {name.lower(): name for name in frame.columns}
    log.refuse_unknown((log.producer, log.bound, log.punctuation), frame.columns)
    bound = None if log.bound is None else found[log.bound.lower()]
    pattern = None if log.punctuation is None else found[log.punctuation.lower()]
    names = tuple(name for name in plain.columns if name not in (bound, pattern))

    def ticks(name: str) -> Column:
        return F.expr(scale.of_column(quoted(found[name.lower()]), scale.kind, scale.unit))

    producer = F.lit("")
    if log.producer is not None:
        producer = F.coalesce(F.col(quoted(found[log.producer.lower()])).cast("string"), F.lit(""))
    columns = (
        *(F.col(quoted(name)) for name in names),
        ticks(log.rowtime).alias(ROWTIME),
        producer.alias(PRODUCER),
        F.unix_micros(F.current_timestamp()).alias(PTIME),
        (ticks(bound) if bound is not None else F.lit(None).cast("bigint")).alias(BOUND),
        *([] if pattern is None else [F.col(quoted(pattern)).cast("string").alias(PATTERN)]),
    )
    if log.lag is not None:
        ordering = Ordering.lagging(log.ticks(scale))
    else:
        ordering = Ordering.unordered() if bound is not None else Ordering.ordered()
    if log.future is not None:
        ordering = replace(ordering, future=Future(log.future, scale.nanoseconds))
    empty = plain.frame.select(*map(quoted, names), ROWTIME).withColumns(
        {MICRO_BATCH: F.lit(0).cast("bigint"), PLACE: F.lit(0).cast("bigint")}
    )
    optional = ((PRODUCER, log.producer), (BOUND, bound), (PATTERN, pattern))
    declared = frozenset(name for name, column in optional if column is not None)
    producer_name = None if log.producer is None else found[log.producer.lower()]
    files = None
    if pattern is None and (form := format_of(frame)) is not None:
        files = FileColumns(form, frame.schema, names, found[log.rowtime.lower()], producer_name, bound)
    live = LiveSource(
        frame.select(*columns),
        columns,
        ordering,
        log.idle,
        on_late=log.on_late,
        declared=declared,
        files=files,
    )
    return replace(plain, made_of=None, frame=empty, columns=names, ties=(MICRO_BATCH, PLACE), live=live)
