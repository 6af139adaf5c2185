"""Tables as recorded streams: their rows, which of them are late, and the arrival of their entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, UsageError, refuse_unknown
from windrow.spark.errors import raising
from windrow.spark.jvm.plans import retains_all_rows
from windrow.spark.logs.admitted_rows import VIOLATED_BOUND, admitted, admitted_by_patterns
from windrow.spark.logs.quarantine import greatest_rowtime, quarantined
from windrow.spark.logs.session_streams import (
    ARRIVAL,
    ARRIVED,
    ENTRY_BOUND,
    IS_LATE,
    PRODUCER,
    PTIME,
    REASON,
    ROWTIME,
    SENDER,
    Stream,
    StreamArrivals,
)
from windrow.spark.logs.table_log import TableLog
from windrow.streams.entries import PATTERN, REASONS
from windrow.syntax.sqltext import quoted

__all__ = ["of_frame"]

_NO_BOUND = "__no_bound"
_BOUND = "__bound"


def of_frame(frame: DataFrame, log: TableLog) -> Stream:
    """The rows of a table as a stream.

    Raises
    ------
    AnalysisError
        ``UNKNOWN_ROWTIME``, ``UNKNOWN_COLUMN`` for a column that does not exist, ``INVALID_ROWTIME`` for a
        type that no rowtime has, ``INVALID_BOUND`` for bounds of another type than the rowtime,
        ``MISSING_PTIME`` for LAG, IDLE or FUTURE of a log without an order, or without times.
    UsageError
        ``MISSING_PTIME`` for bounds in a log without an order, ``UNKNOWN_OPTION`` for another `on_late`.
    """
    refuse_unknown(f"on_late={log.on_late!r}", log.on_late, ("keep", "fail"), "UNKNOWN_OPTION")
    stream = replace(_read(frame, log), on_late=log.on_late, made_of=(frame, log))
    if log.lag is not None:
        if stream.arrivals is None:
            raise _without_order(
                log,
                "LAG",
                "a lag is how far rows may be below those before them, but the rows have no order of arrival",
            )
        stream = stream.lagging(log.ticks(stream.scale))
    if log.idle is not None:
        if stream.arrivals is None or (scale := stream.arrivals.scale) is None or scale.kind == "bigint":
            raise _without_order(
                log, "IDLE", "a producer is idle by processing times, but the rows have no column of times"
            )
        idle = -(-log.idle * 1000 // scale.nanoseconds)
        stream = replace(stream, arrivals=replace(stream.arrivals, idle=idle))
    return stream


def _without_order(log: TableLog, option: str, message: str) -> AnalysisError:
    place = log.options.get(option)
    numbers = ", or of the entries' numbers" if option == "LAG" else ""
    written = "PTIME at TIMESTAMP" if place else "ptime='at'"
    return AnalysisError(
        message,
        condition="MISSING_PTIME",
        sql=log.sql if place else None,
        span=place,
        hint=f"name the column of processing times{numbers}: {written}",
    )


def _read(frame: DataFrame, log: TableLog) -> Stream:
    found = {name.lower(): name for name in frame.columns}
    if log.bound is not None and log.watermark is not None:
        message = "a log cannot have both a column of bounds and one of watermarks"
        raise log.wrong(log.watermark, message, "INVALID_BOUND", "name only one of them")
    if log.punctuation is not None and isinstance(log.bound, int):
        message = "a log with punctuations cannot have a single bound"
        raise log.wrong(log.punctuation, message, "INVALID_BOUND", "name a column of bounds, or no bound")
    in_columns = log.watermark or (log.bound if isinstance(log.bound, str) else None)
    log.refuse_unknown((log.rowtime, log.ptime, log.producer, in_columns, log.punctuation), frame.columns)
    promising = in_columns or log.punctuation
    if promising is not None and log.ptime is None:
        what = "bounds" if in_columns is not None else "punctuations"
        raise UsageError(
            f"{what} in column {promising} apply to later entries, but the entries have no order",
            condition="MISSING_PTIME",
            span=log.places.get(promising.lower()),
            sql=log.sql,
            hint="name the column of processing times, or of the entries' numbers: ptime",
        )
    kind = frame.schema[found[log.rowtime.lower()]].dataType.simpleString()
    scale = TimeScale.of(kind, log.unit)
    if scale is None or (log.unit is not None and scale.kind != "bigint"):
        message = (
            f"a rowtime of type {kind.upper()} takes no unit"
            if scale
            else f"a rowtime cannot be of type {kind.upper()}"
        )
        kinds = "cast the column to TIMESTAMP, DATE or BIGINT where the stream is created"
        hint = "leave the unit out" if scale else kinds
        raise log.wrong(log.rowtime, message, "INVALID_ROWTIME", hint)
    ties = [name for name in (log.ptime, log.producer) if name is not None]
    names = tuple(made for made, name in ((ARRIVED, log.ptime), (SENDER, log.producer)) if name is not None)
    order = {made: F.col(quoted(found[tie.lower()])) for tie, made in zip(ties, names, strict=True)}
    missing = raising(
        "NULL_ROWTIME",
        f"a row has NULL as its rowtime {log.rowtime}",
        "filter out such rows with WHERE",
        log.sql,
        log.places.get(log.rowtime.lower()),
    )
    ticks = F.expr(scale.of_column(quoted(found[log.rowtime.lower()]), scale.kind, scale.unit))
    rowtime = found[log.rowtime.lower()]
    bounds = (log.bound,) if isinstance(log.bound, int) else ()
    if promising is None and log.future is None:
        whole = frame.select("*", _checked(frame, F.coalesce(ticks, missing)), *_named(order))
        arrivals = _arrivals(log, scale, whole.withColumn(_BOUND, F.lit(None).cast("bigint")))
        return Stream(
            whole,
            tuple(frame.columns),
            scale,
            names,
            bounds,
            rowtime,
            arrivals=arrivals,
            table=frame,
        )
    bound_ticks, has_control = F.lit(None).cast("bigint"), F.lit(False)
    if in_columns is not None:
        bound_kind = frame.schema[found[in_columns.lower()]].dataType.simpleString()
        if bound_kind != kind and {bound_kind, kind} != {"int", "bigint"}:
            message = f"bounds are of type {bound_kind.upper()}, but the rowtime is of type {kind.upper()}"
            raise log.wrong(in_columns, message, "INVALID_BOUND", "cast them to the type of the rowtime")
        bound_ticks = F.expr(scale.of_column(quoted(found[in_columns.lower()]), scale.kind, scale.unit))
        has_control = bound_ticks.isNotNull()
    if log.punctuation is not None:
        has_control |= F.col(quoted(found[log.punctuation.lower()])).isNotNull()
    some = F.when(~has_control & ticks.isNull(), missing).otherwise(ticks)
    entries = frame.select("*", _checked(frame, some), bound_ticks.alias(_BOUND), *_named(order))
    apart = {found[name.lower()] for name in (in_columns, log.punctuation) if name is not None}
    columns = tuple(name for name in frame.columns if name not in apart)
    own = [*map(quoted, columns), ROWTIME, *names]
    entries, ahead = (entries, None) if log.future is None else _quarantined(entries, log, scale, columns)
    bound_rows = entries.where(F.col(_BOUND).isNotNull()).select(F.col(_BOUND).alias(ROWTIME))
    stream = Stream(
        entries.where(F.col(ROWTIME).isNotNull()).select(*own),
        columns,
        scale,
        names,
        bounds,
        rowtime,
        bound_rows=None if in_columns is None else bound_rows,
    )
    pattern = None if log.punctuation is None else found[log.punctuation.lower()]
    rows, late = _admitted(entries, log, columns, pattern)
    stream = replace(stream, arrivals=_arrivals(log, scale, entries, rows, late, (pattern, columns)))
    if ahead is not None:
        late = ahead if late is None else late.withColumn(REASON, Stream.why_late(late)).unionByName(ahead)
    if late is None:
        return stream
    reason = [REASON] if ahead is not None else []
    rows = stream.frame if rows is None else rows.select(*own)
    late = late.select(*own, VIOLATED_BOUND, *reason)
    if log.on_late == "keep":
        return replace(stream, frame=rows, late=late)
    # a filter, as a query need not read the rowtime
    failing = late.where(Stream.why_late(late) != REASONS[-1]).where(_failed(log, Stream.why_late(late)))
    return replace(stream, frame=rows.unionByName(failing.select(*own)))


def _quarantined(
    entries: DataFrame, log: TableLog, rowtime: TimeScale, columns: Sequence[str]
) -> tuple[DataFrame, DataFrame]:
    """The entries that are not too far ahead of their processing times, and the late rows that are."""
    kind = entries.schema[ARRIVED].dataType.simpleString() if log.ptime is not None else ""
    ptime = TimeScale.of(kind)
    if ptime is None or ptime.kind == "bigint":
        message = "rows are too far ahead by their processing times, but they have no column of times"
        raise _without_order(log, "FUTURE", message)
    if log.punctuation is not None:
        message = "a log with punctuations cannot have a limit of the future"
        hint = "leave FUTURE out; or leave out rows that are too far ahead with WHERE"
        raise log.wrong(log.punctuation, message, "INVALID_BOUND", hint)
    assert log.future is not None
    limit = greatest_rowtime(ARRIVED, ptime, rowtime, log.future)
    return quarantined(entries, limit, ROWTIME, _BOUND, columns)


def _admitted(
    entries: DataFrame, log: TableLog, columns: Sequence[str], pattern: str | None
) -> tuple[DataFrame | None, DataFrame | None]:
    """The admitted and the rejected rows; None if no row can be rejected."""
    producer = SENDER if log.producer is not None else None
    if pattern is not None:
        bound = _BOUND if log.watermark is None else _NO_BOUND  # a watermark rejects no rows
        judged = entries.withColumn(_NO_BOUND, F.lit(None).cast("bigint"))
        return admitted_by_patterns(judged, columns, ROWTIME, bound, pattern, ARRIVED, producer)
    if not isinstance(log.bound, str):
        return None, None
    return admitted(entries, ROWTIME, _BOUND, ARRIVED, producer)


def _failed(log: TableLog, reason: Column) -> Column:
    """A condition that raises an error for a late row."""
    keep = "set on_late='keep', in SQL ON LATE KEEP, which collects late rows"
    message = "a row is late: it violates an earlier bound or punctuation of its producer"
    if log.punctuation is None:
        message = "a row is late: its rowtime is below an earlier bound of its producer"
    ahead = "a row is late: it is too far ahead of its processing time"
    errors = [raising("LATE_ROW", text, keep).cast("boolean") for text in (ahead, message)]
    return F.when(reason == REASONS[3], errors[0]).when(reason.isNotNull(), errors[1]).otherwise(True)


def _checked(frame: DataFrame, rowtime: Column) -> Column:
    """A rowtime that raises an error for invalid rows, but not for rows that the frame filters out.

    Spark pushes filters by the rowtime into those of the frame, and evaluates `x IS NOT NULL` last there. It
    does not push filters below a generator, which would be the more expensive way.
    """
    return (rowtime if retains_all_rows(frame) else F.explode(F.array(rowtime))).alias(ROWTIME)


def _arrivals(
    log: TableLog,
    rowtime: TimeScale,
    entries: DataFrame,
    rows: DataFrame | None = None,
    late: DataFrame | None = None,
    patterns_in: tuple[str | None, Sequence[str]] = (None, ()),
) -> StreamArrivals | None:
    """The arrival of a log's entries, if it has processing times; without `rows` and `late`, no row is late.

    `patterns_in` has the column of patterns, and the columns that patterns are over.
    """
    if log.ptime is None:
        return None
    # the unit does not matter for numbers
    scale = TimeScale.of(entries.schema[ARRIVED].dataType.simpleString(), "NANOSECOND")
    missing = F.lit(None).cast("bigint")
    own = [
        F.col(ARRIVED).alias(ARRIVAL),
        (missing if scale is None else _ticks(scale)).alias(PTIME),
        (F.col(SENDER).cast("string") if log.producer is not None else F.lit("")).alias(PRODUCER),
        F.col(ROWTIME),
        F.col(_BOUND).alias(ENTRY_BOUND),
    ]

    def part(some: DataFrame, *, is_late: bool) -> DataFrame:
        return some.select(*own, F.lit(is_late).alias(IS_LATE))

    if rows is None or late is None:
        judged = part(entries, is_late=False)
    else:
        others = entries.where(F.col(ROWTIME).isNull())
        judged = part(rows, is_late=False).unionByName(part(late, is_late=True))
        judged = judged.unionByName(part(others, is_late=False))
    arrivals = StreamArrivals(entries.select(*own), judged, rowtime, log.ptime, scale)
    pattern, columns = patterns_in
    if pattern is None:
        return arrivals
    patterns = entries.select(*own[1:3], F.col(quoted(pattern)).alias(PATTERN))
    return replace(arrivals, patterns=patterns, columns=entries.select(*map(quoted, columns)).schema)


def _ticks(scale: TimeScale) -> Column:
    return F.expr(scale.of_column(ARRIVED, scale.kind, scale.unit))


def _named(columns: Mapping[str, Column]) -> list[Column]:
    return [column.alias(name) for name, column in columns.items()]
