"""Makes streams of tables, whose columns tell what arrived."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.algebra.clock import Clock
from windrow.errors import AnalysisError, Span, UsageError, did_you_mean
from windrow.spark.errors import raising
from windrow.spark.logs.admitted_rows import PROMISED, admitted, kept_to
from windrow.spark.logs.session_streams import (
    ARRIVED,
    CAME,
    IS_LATE,
    PRODUCER,
    PROMISE,
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
            f"{unit!r} is no unit of time",
            condition="UNKNOWN_UNIT",
            hint=did_you_mean(unit.lower(), names) or f"units are {', '.join(names)}",
        )
    return known


@dataclass(frozen=True)
class TableLog:
    """How the columns of a table tell what arrived.

    Attributes
    ----------
    rowtime, unit
        The column of the rowtimes, and the unit of integers in it.
    ptime, producer
        When an entry came, and from whom. They order rows of one rowtime.
    bound
        The column of the bounds that entries promise, or one bound of the whole log in ticks. Entries with a
        bound and without a rowtime are no rows.
    on_late
        ``"keep"`` rows below their producer's bound apart, or ``"fail"``.
    watermark
        As `bound`, but of estimates: rows below them are in the stream.
    punctuation
        The column of patterns, as JSON, that no later row of the producer matches.
    places
        Where in `sql` the columns are named, by their names in lower case.
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
        """Refuse names that none of the columns has.

        Raises
        ------
        AnalysisError
            ``UNKNOWN_ROWTIME``, of columns that hold something else ``UNKNOWN_COLUMN``.
        """
        known = {column.lower() for column in columns}
        for name in names:
            if name is not None and name.lower() not in known:
                condition = "UNKNOWN_ROWTIME" if name == self.rowtime else "UNKNOWN_COLUMN"
                hint = did_you_mean(name, columns) or f"columns are {', '.join(columns)}"
                raise self.wrong(name, f"the rows have no column {name}", condition, hint, "42703")


def of_frame(frame: DataFrame, log: TableLog) -> Stream:
    """The rows of a table as a stream.

    Raises
    ------
    AnalysisError
        ``UNKNOWN_ROWTIME``, ``UNKNOWN_COLUMN`` for a column that is not there, ``INVALID_ROWTIME`` for one of
        another type than a rowtime has, ``INVALID_BOUND`` for bounds of another type than the rowtime.
    UsageError
        ``MISSING_PTIME`` for bounds in a log without an order, ``UNKNOWN_OPTION`` for another `on_late`.
    """
    if log.on_late not in ("keep", "fail"):
        raise UsageError(
            f"on_late={log.on_late!r} is unknown", condition="UNKNOWN_OPTION", hint="use 'keep' or 'fail'"
        )
    return replace(_read(frame, log), on_late=log.on_late)


def _read(frame: DataFrame, log: TableLog) -> Stream:
    found = {name.lower(): name for name in frame.columns}
    if log.bound is not None and log.watermark is not None:
        told = "a log has bounds or watermarks: promises or estimates"
        raise log.wrong(log.watermark, told, "INVALID_BOUND", "give one of them")
    if log.punctuation is not None and isinstance(log.bound, int):
        told = "a log with punctuations has a column of bounds or watermarks, or none"
        raise log.wrong(log.punctuation, told, "INVALID_BOUND", "leave the one bound out")
    in_columns = log.watermark or (log.bound if isinstance(log.bound, str) else None)
    log.refuse_unknown((log.rowtime, log.ptime, log.producer, in_columns, log.punctuation), frame.columns)
    telling = in_columns or log.punctuation
    if telling is not None and log.ptime is None:
        what = "bounds" if in_columns is not None else "punctuations"
        raise UsageError(
            f"{what} in column {telling} are about later entries, and no column tells their order",
            condition="MISSING_PTIME",
            span=log.places.get(telling.lower()),
            sql=log.sql,
            hint="name the column of the times at which they came, or of their numbers: ptime",
        )
    kind = frame.schema[found[log.rowtime.lower()]].dataType.simpleString()
    clock = Clock.of(kind, log.unit)
    if clock is None or (log.unit is not None and clock.kind != "bigint"):
        told = (
            f"a rowtime of type {kind.upper()} has a unit of its own"
            if clock
            else f"{kind.upper()} is no type of a rowtime"
        )
        kinds = "rowtimes are TIMESTAMP, DATE or BIGINT with a unit: cast the column where the stream is made"
        hint = "leave the unit out" if clock else kinds
        raise log.wrong(log.rowtime, told, "INVALID_ROWTIME", hint)
    ties = [name for name in (log.ptime, log.producer) if name is not None]
    names = tuple(made for made, name in ((ARRIVED, log.ptime), (SENDER, log.producer)) if name is not None)
    order = {made: F.col(quoted(found[tie.lower()])) for tie, made in zip(ties, names, strict=True)}
    missing = raising(
        "NULL_ROWTIME",
        f"a row has NULL as its rowtime {log.rowtime}",
        "leave such rows out with WHERE",
        log.sql,
        log.places.get(log.rowtime.lower()),
    )
    ticks = F.expr(clock.of_column(quoted(found[log.rowtime.lower()]), clock.kind, clock.unit))
    rowtime = found[log.rowtime.lower()]
    if telling is None:
        whole = frame.select("*", F.coalesce(ticks, missing).alias(ROWTIME), *_named(order))
        bounds = () if log.bound is None else (int(log.bound),)
        arrivals = _arrivals(log, clock, whole.withColumn(_BOUND, F.lit(None).cast("bigint")))
        return Stream(
            whole, tuple(frame.columns), clock, names, bounds, rowtime, arrivals=arrivals, on_late=log.on_late
        )
    promise, says = F.lit(None).cast("bigint"), F.lit(False)
    if in_columns is not None:
        bound_kind = frame.schema[found[in_columns.lower()]].dataType.simpleString()
        if bound_kind != kind and {bound_kind, kind} != {"int", "bigint"}:
            told = f"bounds are of type {bound_kind.upper()}, and the rowtime is of type {kind.upper()}"
            raise log.wrong(in_columns, told, "INVALID_BOUND", "cast them to the type of the rowtime")
        promise = F.expr(clock.of_column(quoted(found[in_columns.lower()]), clock.kind, clock.unit))
        says = promise.isNotNull()
    if log.punctuation is not None:
        says |= F.col(quoted(found[log.punctuation.lower()])).isNotNull()
    some = F.when(~says & ticks.isNull(), missing).otherwise(ticks)
    entries = frame.select("*", some.alias(ROWTIME), promise.alias(_BOUND), *_named(order))
    apart = {found[name.lower()] for name in (in_columns, log.punctuation) if name is not None}
    columns = tuple(name for name in frame.columns if name not in apart)
    kept = [*map(quoted, columns), ROWTIME, *names]
    promises = entries.where(F.col(_BOUND).isNotNull()).select(F.col(_BOUND).alias(ROWTIME))
    if log.watermark is not None and log.punctuation is None:
        rows, arrivals = (
            entries.where(F.col(ROWTIME).isNotNull()).select(*kept),
            _arrivals(log, clock, entries),
        )
        return Stream(
            rows,
            columns,
            clock,
            names,
            (),
            rowtime,
            promises=promises,
            arrivals=arrivals,
            on_late=log.on_late,
        )
    producer = SENDER if log.producer is not None else None
    if log.punctuation is None:
        rows, late = admitted(entries, ROWTIME, _BOUND, ARRIVED, producer)
    else:
        told_in = found[log.punctuation.lower()]
        bound = _BOUND if log.watermark is None else _NO_BOUND  # watermarks are no promises
        judged = entries.withColumn(_NO_BOUND, F.lit(None).cast("bigint"))
        rows, late = kept_to(judged, columns, ROWTIME, bound, told_in, ARRIVED, producer)
    said = None if log.punctuation is None else found[log.punctuation.lower()]
    arrivals = _arrivals(log, clock, entries, rows, late, (said, columns))
    if log.on_late == "fail":
        told = "a row is late: its producer has promised before that none like it follows"
        if log.punctuation is None:
            told = "a row is late: its rowtime is below a bound that its producer promised before"
        failed = raising("LATE_ROW", told, "on_late='keep' keeps late rows apart")
        whole = rows.unionByName(late.withColumn(ROWTIME, failed)).select(*kept)
        return Stream(
            whole,
            columns,
            clock,
            names,
            (),
            rowtime,
            promises=promises,
            arrivals=arrivals,
            on_late=log.on_late,
        )
    late, rows = late.select(*kept, PROMISED), rows.select(*kept)
    return Stream(
        rows,
        columns,
        clock,
        names,
        (),
        rowtime,
        promises=promises,
        late=late,
        arrivals=arrivals,
        on_late=log.on_late,
    )


def _arrivals(
    log: TableLog,
    rowtime: Clock,
    entries: DataFrame,
    rows: DataFrame | None = None,
    late: DataFrame | None = None,
    told: tuple[str | None, Sequence[str]] = (None, ()),
) -> StreamArrivals | None:
    """How the entries of a log came, if a column says that; without `rows` and `late`, all in time.

    `told` has the column of patterns, and those of the rows, of which they tell.
    """
    if log.ptime is None:
        return None
    # numbers count themselves
    clock = Clock.of(entries.schema[ARRIVED].dataType.simpleString(), "NANOSECOND")
    missing = F.lit(None).cast("bigint")
    shown = [
        F.col(ARRIVED).alias(CAME),
        (missing if clock is None else _ticks(clock)).alias(PTIME),
        (F.col(SENDER).cast("string") if log.producer is not None else F.lit("")).alias(PRODUCER),
        F.col(ROWTIME),
        F.col(_BOUND).alias(PROMISE),
    ]

    def part(some: DataFrame, *, is_late: bool) -> DataFrame:
        return some.select(*shown, F.lit(is_late).alias(IS_LATE))

    if rows is None or late is None:
        judged = part(entries, is_late=False)
    else:
        others = entries.where(F.col(ROWTIME).isNull())
        judged = part(rows, is_late=False).unionByName(part(late, is_late=True))
        judged = judged.unionByName(part(others, is_late=False))
    arrivals = StreamArrivals(entries.select(*shown), judged, rowtime, log.ptime, clock)
    pattern, columns = told
    if pattern is None:
        return arrivals
    patterns = entries.select(*shown[1:3], F.col(quoted(pattern)).alias(PATTERN))
    return replace(arrivals, patterns=patterns, columns=entries.select(*map(quoted, columns)).schema)


def _ticks(clock: Clock) -> Column:
    return F.expr(clock.of_column(ARRIVED, clock.kind, clock.unit))


def _named(columns: Mapping[str, Column]) -> list[Column]:
    return [column.alias(name) for name, column in columns.items()]
