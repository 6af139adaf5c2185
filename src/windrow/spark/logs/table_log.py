"""Tables as recorded streams: which columns have rowtimes, processing times, producers and bounds."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, Span, UsageError, did_you_mean, refuse_unknown
from windrow.spark.errors import raising
from windrow.spark.jvm.plans import retains_all_rows
from windrow.spark.logs.admitted_rows import VIOLATED_BOUND, admitted, admitted_by_patterns
from windrow.spark.logs.session_streams import (
    ARRIVAL,
    ARRIVED,
    ENTRY_BOUND,
    IS_LATE,
    PRODUCER,
    PTIME,
    ROWTIME,
    SENDER,
    Stream,
    StreamArrivals,
)
from windrow.streams.entries import PATTERN
from windrow.syntax.lengths import TIME_UNITS
from windrow.syntax.sqltext import quoted

__all__ = ["TableLog", "of_frame", "unit_named"]

_NO_BOUND = "__no_bound"
_BOUND = "__bound"


def unit_named(unit: str | None) -> str | None:
    """The unit of time of this name, in the singular or plural.

    Raises
    ------
    UsageError
        ``UNKNOWN_UNIT``.
    """
    if unit is None:
        return None
    known = unit.upper().removesuffix("S")
    if known not in TIME_UNITS:
        names = [f"{name.lower()}s" for name in TIME_UNITS]
        raise UsageError(
            f"{unit!r} is not a unit of time",
            condition="UNKNOWN_UNIT",
            hint=did_you_mean(unit.lower(), names) or f"use one of {', '.join(names)}",
        )
    return known


@dataclass(frozen=True)
class TableLog:
    """The columns of a table that is a log.

    Attributes
    ----------
    rowtime, unit
        The column of rowtimes, and the unit of integers in it.
    ptime, producer
        The columns with the processing time and the producer of an entry. They order rows of equal rowtime.
    bound
        The column of bounds, or a single bound of the whole log in ticks. Entries with a bound and without a
        rowtime are no rows.
    on_late
        ``"keep"`` puts rows below their producer's bound among the late rows, ``"fail"`` fails the query.
    watermark
        The column of watermarks: like `bound`, but rows below an estimate are in the stream.
    punctuation
        The column of punctuations: patterns, as JSON, that no later row of the producer matches.
    places
        The places of the columns' names in `sql`, by the names in lower case.
    """

    rowtime: str
    unit: str | None = None
    ptime: str | None = None
    producer: str | None = None
    bound: str | int | None = None
    on_late: str = "keep"
    watermark: str | None = None
    places: Mapping[str, Span] = field(default_factory=dict)
    sql: str | None = None
    punctuation: str | None = None

    def wrong(
        self, column: str, message: str, condition: str, hint: str, sqlstate: str | None = None
    ) -> AnalysisError:
        """An error at the place of a column."""
        span = self.places.get(column.lower())
        return AnalysisError(
            message,
            condition=condition,
            sqlstate=sqlstate,
            hint=hint,
            span=span,
            sql=self.sql if span else None,
        )

    def refuse_unknown(self, names: Iterable[str | None], columns: Sequence[str]) -> None:
        """Refuse names of columns that do not exist.

        Raises
        ------
        AnalysisError
            ``UNKNOWN_ROWTIME``, or ``UNKNOWN_COLUMN`` for other columns.
        """
        known = {column.lower() for column in columns}
        for name in names:
            if name is not None and name.lower() not in known:
                condition = "UNKNOWN_ROWTIME" if name == self.rowtime else "UNKNOWN_COLUMN"
                hint = did_you_mean(name, columns) or f"use one of the columns {', '.join(columns)}"
                raise self.wrong(name, f"the rows have no column {name}", condition, hint, "42703")


def of_frame(
    frame: DataFrame,
    log: TableLog,
    lag: int | datetime.timedelta | None = None,
    place: Span | None = None,
) -> Stream:
    """The rows of a table as a stream.

    Parameters
    ----------
    lag, place
        A time, or ticks of the rowtime: how far rows are estimated to be below the greatest rowtime before
        them; and where that is written.

    Raises
    ------
    AnalysisError
        ``UNKNOWN_ROWTIME``, ``UNKNOWN_COLUMN`` for a column that does not exist, ``INVALID_ROWTIME`` for a
        type that no rowtime has, ``INVALID_BOUND`` for bounds of another type than the rowtime.
    UsageError
        ``MISSING_PTIME`` for bounds or a lag in a log without an order, ``UNKNOWN_OPTION`` for another
        `on_late`.
    """
    refuse_unknown(f"on_late={log.on_late!r}", log.on_late, ("keep", "fail"), "UNKNOWN_OPTION")
    stream = replace(_read(frame, log), on_late=log.on_late)
    if lag is None:
        return stream
    if log.bound is not None or log.watermark is not None:
        raise AnalysisError(
            "a log has either a lag, or bounds or watermarks",
            condition="INVALID_BOUND",
            sql=log.sql if place else None,
            span=place,
            hint="leave the lag out; or put the lesser of both into the column of watermarks",
        )
    if stream.arrivals is None:
        raise AnalysisError(
            "a lag is how far rows may be below those before them, but the rows have no order of arrival",
            condition="MISSING_PTIME",
            sql=log.sql if place else None,
            span=place,
            hint="name the column of processing times, or of the entries' numbers: PTIME at TIMESTAMP",
        )
    if isinstance(lag, datetime.timedelta):
        lag = lag // datetime.timedelta(microseconds=1) * 1000 // stream.scale.nanoseconds
    return stream.lagging(lag)


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
    if promising is None:
        whole = frame.select("*", _checked(frame, F.coalesce(ticks, missing)), *_named(order))
        bounds = () if log.bound is None else (int(log.bound),)
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
    bound_rows = entries.where(F.col(_BOUND).isNotNull()).select(F.col(_BOUND).alias(ROWTIME))
    stream = Stream(
        entries.where(F.col(ROWTIME).isNotNull()).select(*own),
        columns,
        scale,
        names,
        (),
        rowtime,
        bound_rows=bound_rows,
    )
    if log.watermark is not None and log.punctuation is None:
        return replace(stream, arrivals=_arrivals(log, scale, entries))
    producer = SENDER if log.producer is not None else None
    if log.punctuation is None:
        rows, late = admitted(entries, ROWTIME, _BOUND, ARRIVED, producer)
    else:
        column = found[log.punctuation.lower()]
        bound = _BOUND if log.watermark is None else _NO_BOUND  # a watermark rejects no rows
        judged = entries.withColumn(_NO_BOUND, F.lit(None).cast("bigint"))
        rows, late = admitted_by_patterns(judged, columns, ROWTIME, bound, column, ARRIVED, producer)
    pattern = None if log.punctuation is None else found[log.punctuation.lower()]
    arrivals = _arrivals(log, scale, entries, rows, late, (pattern, columns))
    if log.on_late == "fail":
        message = "a row is late: it violates an earlier bound or punctuation of its producer"
        if log.punctuation is None:
            message = "a row is late: its rowtime is below an earlier bound of its producer"
        failed = raising(
            "LATE_ROW", message, "set on_late='keep', in SQL ON LATE KEEP, which collects late rows"
        )
        whole = rows.unionByName(late.withColumn(ROWTIME, failed)).select(*own)
        return replace(stream, frame=whole, arrivals=arrivals)
    late = late.select(*own, VIOLATED_BOUND)
    return replace(stream, frame=rows.select(*own), late=late, arrivals=arrivals)


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
