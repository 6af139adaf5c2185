"""Streams as the session knows them: recorded rows with their rowtimes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.algebra.clock import Clock
from windrow.algebra.watermarks import Steps, of_producers
from windrow.errors import AnalysisError, InputError, Span, UsageError, did_you_mean
from windrow.spark.admission import PROMISED, admitted, kept_to
from windrow.spark.errors import raising, translate
from windrow.spark.gateway import Gateway
from windrow.spark.text_log import TextLog
from windrow.syntax.sqltext import quoted
from windrow.syntax.streams import TIME_UNITS

if TYPE_CHECKING:
    from windrow.algebra.continuous import Continuous, Reader
    from windrow.spark.live.queries import LiveQueries
    from windrow.spark.live.sequences import SequenceView
    from windrow.spark.live.source import LiveSource
    from windrow.spark.named import Named
    from windrow.spark.varying import Varying

__all__ = [
    "ARRIVED",
    "CAME",
    "IS_LATE",
    "LATE",
    "NUMBER",
    "PRODUCER",
    "PROMISE",
    "PTIME",
    "ROWTIME",
    "Arrivals",
    "Catalog",
    "Definition",
    "Log",
    "Stream",
    "is_text_log",
    "of_frame",
    "of_text_log",
    "rescaled",
    "unit_named",
]

ROWTIME = "__rowtime"
NUMBER = "__number"
"""Of a stream's rows, what tells them apart, where that is asked for."""

SEQUENCE = "__sequence"
_NO_BOUND = "__no_bound"
_BOUND = "__bound"
ARRIVED = "__tie0"  # the first of the ties, as the producer is the second
_PRODUCER = "__tie1"
CAME, PTIME, PRODUCER, PROMISE, IS_LATE = "__came", "__ptime", "__producer", "__promise", "__late"
"""The columns of the entries of :class:`Arrivals`, beside `ROWTIME`."""

LATE = "stream STRING, row STRING, rowtime {kind}, bound {kind}, producer STRING"
"""The columns of the late rows of several streams, of which the instants are of this type."""


@dataclass(frozen=True)
class Arrivals:
    """The entries of a log as they came, those that were late among them.

    Attributes
    ----------
    entries
        `CAME`: what says when an entry came, or its number; `PTIME`: the same in ticks, where there is a
        `clock`; `PRODUCER`; `ROWTIME` and `PROMISE`, in ticks of `rowtime`, NULL where the entry has none.
    judged
        The same with `IS_LATE`, which takes more to compute.
    rowtime
        What rowtimes and promises are counted in.
    told
        The name of what says when entries came.
    clock
        What processing times are counted in; None where what says when entries came is no time and no number,
        or is not among the stream's columns.
    known
        Up to which rowtime the log was known, in time, and its first and last processing times, where that is
        not told by the entries. `ARRIVED` of the stream's rows is in ticks then, as that of named and of live
        streams is.
    """

    entries: DataFrame
    judged: DataFrame
    rowtime: Clock
    told: str
    clock: Clock | None = None
    known: tuple[Steps, tuple[int, int] | None] | None = None

    @property
    def ptime(self) -> Clock:
        """What processing times are counted in, where they are known."""
        assert self.clock is not None
        return self.clock

    @property
    def came(self) -> str:
        """SQL for when a row of the stream came, in ticks."""
        clock = self.ptime
        return ARRIVED if self.known is not None else clock.of_column(ARRIVED, clock.kind, clock.unit)

    @cached_property
    def watermark(self) -> Steps:
        """Up to which rowtime the log was known, in time."""
        if self.known is not None:
            return self.known[0]
        promises = self.entries.where(F.col(PROMISE).isNotNull()).groupBy(PTIME, PRODUCER)
        came = self.entries.groupBy(PRODUCER).agg(F.min(PTIME).alias(PTIME))
        found = promises.agg(F.max(PROMISE).alias(PROMISE)).unionByName(
            came.withColumn(PROMISE, F.lit(None).cast("bigint"))
        )
        try:
            rows = found.select(PTIME, PRODUCER, PROMISE).collect()
        except PySparkException as error:
            raise translate(error) from None
        return of_producers((row[0], row[1], row[2]) for row in rows)

    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """The first and the last processing time; None of an empty log."""
        if self.known is not None:
            return self.known[1]
        try:
            first, last = self.entries.agg(F.min(PTIME), F.max(PTIME)).collect()[0]
        except PySparkException as error:
            raise translate(error) from None
        return None if first is None else (first, last)


@dataclass(frozen=True)
class Stream:
    """A recorded stream.

    Attributes
    ----------
    frame
        The columns that queries see, `ROWTIME` in ticks of the clock, and those of `ties`.
    columns
        Those that queries see.
    clock
        What its rowtimes are counted in.
    ties
        The columns that order rows of one rowtime.
    bounds
        Instants up to which the log is known, apart from its rows.
    rowtime
        The column that shows the rowtime, if one does.
    sources
        The streams that it was made of by a query.
    promises
        `ROWTIME`: the bounds in the log, in ticks; None if there are none but `bounds`.
    late
        The rows that were not admitted, as those of `frame`, with `PROMISED`: the bound that each violates.
    name
        That it has in the session.
    live
        What arrives at it, if it is a live stream; `frame` then has no rows.
    known_ends
        The log's first and last instants, where they are known.
    arrivals
        How its entries came, if the log says that.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    clock: Clock
    ties: tuple[str, ...] = ()
    bounds: tuple[int, ...] = ()
    rowtime: str | None = None
    sources: tuple[Stream, ...] = ()
    promises: DataFrame | None = None
    late: DataFrame | None = None
    name: str | None = None
    live: LiveSource | None = None
    known_ends: tuple[int, int] | None = None
    arrivals: Arrivals | None = None

    @property
    def timed(self) -> Arrivals | None:
        """Its entries, where it is known at which processing times they came."""
        return self.arrivals if self.arrivals is not None and self.arrivals.clock is not None else None

    def on(self, clock: Clock) -> Stream:
        """The same with rowtimes in ticks of a finer clock."""
        if self.clock == clock:
            return self
        frame = self.frame.withColumn(ROWTIME, rescaled(ROWTIME, self.clock, clock))
        factor = self.clock.nanoseconds // clock.nanoseconds
        same = self.clock.kind == clock.kind or clock.kind != "timestamp"
        bounds = tuple(bound * factor for bound in self.bounds) if same else ()
        sources = tuple(source.on(clock) for source in self.sources)
        promises, late = (
            table.withColumns({name: rescaled(name, self.clock, clock) for name in columns})
            if table is not None
            else None
            for table, columns in ((self.promises, [ROWTIME]), (self.late, [ROWTIME, PROMISED]))
        )
        return replace(
            self, frame=frame, clock=clock, bounds=bounds, sources=sources, promises=promises, late=late
        )

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that queries see."""
        return self.columns

    def renamed(self, names: tuple[str, ...]) -> Stream:
        """The same with other names for the columns."""
        hidden = [name for name in self.frame.columns if name == ROWTIME or name in self.ties]
        frame = self.frame.select(*map(quoted, self.columns), *hidden).toDF(*names, *hidden)
        new = dict(zip(self.columns, names, strict=True))
        return replace(self, frame=frame, columns=names, rowtime=self.rowtime and new[self.rowtime])

    def df(self, *, ordered: bool = False) -> DataFrame:
        """The rows with their rowtimes; if they are to be `ordered`, by these."""
        name = "rowtime" if "rowtime" not in {column.lower() for column in self.columns} else "_rowtime"
        shown = F.expr(self.clock.to_column(ROWTIME)).alias(name)
        frame = self.frame.orderBy(ROWTIME, *self.ties) if ordered else self.frame
        return frame.select(shown, *map(quoted, self.columns))

    def late_rows(self) -> DataFrame | None:
        """The late rows as a table: with their rowtime, the bound that they violate, and the producer."""
        if self.late is None:
            return None
        ours = {
            "_rowtime": F.expr(self.clock.to_column(ROWTIME)),
            "_bound": F.expr(self.clock.to_column(PROMISED)),
        }
        if _PRODUCER in self.late.columns:
            ours["_producer"] = F.col(_PRODUCER)
        return self.late.select(
            *map(quoted, self.columns), *(made.alias(name) for name, made in ours.items())
        )

    def all_late(self) -> list[tuple[str, DataFrame]]:
        """The late rows of this stream and of those that it was made of, by their names, as `LATE`."""
        found = [table for source in self.sources for table in source.all_late()]
        if self.late is not None:
            producer = F.col(_PRODUCER) if _PRODUCER in self.late.columns else F.lit(None)
            told = self.late.select(
                F.lit(self.name).alias("stream"),
                F.to_json(F.struct(*map(quoted, self.columns))).alias("row"),
                F.expr(self.clock.to_column(ROWTIME)).alias("rowtime"),
                F.expr(self.clock.to_column(PROMISED)).alias("bound"),
                producer.cast("string").alias("producer"),
            )
            found.append((self.name or "", told))
        return found

    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """The log's first and last instants; None if it is empty."""
        if self.known_ends is not None:
            return self.known_ends
        log = self.frame.select(ROWTIME)
        if self.promises is not None:
            log = log.unionByName(self.promises)
        try:
            found = log.agg(F.min(ROWTIME).alias("first"), F.max(ROWTIME).alias("last")).collect()[0]
        except PySparkException as error:
            raise translate(error) from None
        made_of = [ends for source in self.sources if (ends := source.ends) is not None]
        instants = [*self.bounds, *(value for value in found if value is not None), *chain(*made_of)]
        return (min(instants), max(instants)) if instants else None


def rescaled(column: str, old: Clock, new: Clock) -> Column:
    """Ticks of a clock in those of a finer one."""
    if old.kind in ("date", "timestamp_ntz") and new.kind == "timestamp":
        # as the session's clock shows them
        shown = f"CAST({old.to_column(column)} AS TIMESTAMP)"
        return F.expr(new.of_column(shown, "timestamp", "MICROSECOND"))
    factor = old.nanoseconds // new.nanoseconds
    if factor == 1:
        return F.col(column)
    wrong = raising("ROWTIME_OVERFLOW", f"a rowtime is too large for a clock of {new.unit.lower()}s")
    return F.when(F.abs(F.col(column)) <= 2**62 // factor, F.col(column) * F.lit(factor)).otherwise(wrong)


@dataclass(frozen=True)
class Definition:
    """The query of a view, and the names of its columns."""

    reader: Reader
    query: Continuous
    names: tuple[str, ...]


@dataclass
class Catalog:
    """The streams and varying relations of a session, what views are, which streams are views of windows and
    matches, which are named ones, the user's table functions, and the queries of views over recorded streams,
    by their names in lower case; and its live queries.
    """

    streams: dict[str, Stream] = field(default_factory=dict)
    relations: dict[str, Varying] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)
    sequences: dict[str, SequenceView] = field(default_factory=dict)
    named: dict[str, Named] = field(default_factory=dict)
    functions: dict[str, Callable[..., DataFrame]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    queries: LiveQueries | None = None

    @property
    def rowtimes(self) -> dict[str, str]:
        """The columns that show the rowtimes of streams, by the streams' names."""
        return {name: found.rowtime for name, found in self.streams.items() if found.rowtime is not None}

    def forget(self, name: str) -> None:
        """Drop what has a name, if anything has; the session leaves a named stream."""
        named = self.named.pop(name.lower(), None)
        if named is not None:
            named.close()
        self.streams.pop(name.lower(), None)
        self.relations.pop(name.lower(), None)
        self.definitions.pop(name.lower(), None)
        self.sequences.pop(name.lower(), None)
        self.texts.pop(name.lower(), None)

    @property
    def names(self) -> frozenset[str]:
        """All names."""
        return frozenset(self.streams) | frozenset(self.relations)


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
class Log:
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


def of_frame(frame: DataFrame, log: Log) -> Stream:
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
    names = tuple(
        made for made, name in ((ARRIVED, log.ptime), (_PRODUCER, log.producer)) if name is not None
    )
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
        return Stream(whole, tuple(frame.columns), clock, names, bounds, rowtime, arrivals=arrivals)
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
        return Stream(rows, columns, clock, names, (), rowtime, promises=promises, arrivals=arrivals)
    producer = _PRODUCER if log.producer is not None else None
    if log.punctuation is None:
        rows, late = admitted(entries, ROWTIME, _BOUND, ARRIVED, producer)
    else:
        told_in = found[log.punctuation.lower()]
        bound = _BOUND if log.watermark is None else _NO_BOUND  # watermarks are no promises
        judged = entries.withColumn(_NO_BOUND, F.lit(None).cast("bigint"))
        rows, late = kept_to(judged, columns, ROWTIME, bound, told_in, ARRIVED, producer)
    arrivals = _arrivals(log, clock, entries, rows, late)
    if log.on_late == "fail":
        told = "a row is late: its producer has promised before that none like it follows"
        if log.punctuation is None:
            told = "a row is late: its rowtime is below a bound that its producer promised before"
        failed = raising("LATE_ROW", told, "on_late='keep' keeps late rows apart")
        whole = rows.unionByName(late.withColumn(ROWTIME, failed)).select(*kept)
        return Stream(whole, columns, clock, names, (), rowtime, promises=promises, arrivals=arrivals)
    late, rows = late.select(*kept, PROMISED), rows.select(*kept)
    return Stream(rows, columns, clock, names, (), rowtime, promises=promises, late=late, arrivals=arrivals)


def _arrivals(
    log: Log,
    rowtime: Clock,
    entries: DataFrame,
    rows: DataFrame | None = None,
    late: DataFrame | None = None,
) -> Arrivals | None:
    """How the entries of a log came, if a column says that; without `rows` and `late`, all in time."""
    if log.ptime is None:
        return None
    # numbers count themselves
    clock = Clock.of(entries.schema[ARRIVED].dataType.simpleString(), "NANOSECOND")
    missing = F.lit(None).cast("bigint")
    shown = [
        F.col(ARRIVED).alias(CAME),
        (missing if clock is None else _ticks(clock)).alias(PTIME),
        (F.col(_PRODUCER).cast("string") if log.producer is not None else F.lit("")).alias(PRODUCER),
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
    return Arrivals(entries.select(*shown), judged, rowtime, log.ptime, clock)


def _ticks(clock: Clock) -> Column:
    return F.expr(clock.of_column(ARRIVED, clock.kind, clock.unit))


def _named(columns: Mapping[str, Column]) -> list[Column]:
    return [column.alias(name) for name, column in columns.items()]


def of_text_log(
    gateway: Gateway,
    log: TextLog,
    columns: tuple[tuple[str, str], ...] | None,
    clock: Clock,
    rowtime: str | None,
) -> Stream:
    """The rows of a recorded text.

    Parameters
    ----------
    columns
        The names of the values and their types, as Spark writes them; by default c1, c2 and so on, with types
        told from the values.
    clock
        What the instants are in.
    rowtime
        The name of the column of the instants, if queries are to see one. It may be among the columns.
    """
    values = (
        [name for name, _ in columns if name != rowtime]
        if columns
        else [f"c{at + 1}" for at in range(log.width)]
    )
    if log.rows and log.width != len(values):
        raise InputError(
            f"rows have {log.width} values, and {len(values)} columns are declared",
            condition="MALFORMED_LINE",
            hint="declare a column for each value, and ROWTIME for the instant",
        )
    texts = ", ".join(f"{quoted(name)} STRING" for name in values)
    data = [(instant, line, *row) for instant, row, line in log.rows]
    frame = gateway.spark.createDataFrame(data, f"{ROWTIME} BIGINT, {SEQUENCE} BIGINT, {texts}")
    types = (
        dict(columns)
        if columns
        else {name: _guessed([row[at] for _, row, _ in log.rows]) for at, name in enumerate(values)}
    )
    made = [f"{_cast(name, types[name])} AS {quoted(name)}" for name in values]
    if rowtime is not None:
        named = [name for name, _ in columns or ()]
        place = named.index(rowtime) if rowtime in named else 0
        made.insert(place, f"{clock.to_column(ROWTIME)} AS {quoted(rowtime)}")
    late = None
    if log.late:
        told = [(instant, line, promised, *row) for instant, row, line, promised in log.late]
        instants = f"{ROWTIME} BIGINT, {SEQUENCE} BIGINT, {PROMISED} BIGINT"
        late = gateway.spark.createDataFrame(told, f"{instants}, {texts}")
    with gateway.translated():
        frame = frame.selectExpr(*made, ROWTIME, SEQUENCE)
        late = late.selectExpr(*made, ROWTIME, SEQUENCE, PROMISED) if late is not None else None
    shown = tuple(name for name in frame.columns if name not in (ROWTIME, SEQUENCE))
    # a row promises that no row of an earlier instant follows, as a heartbeat does
    came: list[tuple[int, int | None, int | None, bool]]
    came = [(line, instant, instant, False) for instant, _, line in log.rows]
    came += [(line, None, instant, False) for instant, line in log.beats]
    came += [(line, instant, None, True) for instant, _, line, _ in log.late]
    schema = f"{CAME} BIGINT, {ROWTIME} BIGINT, {PROMISE} BIGINT, {IS_LATE} BOOLEAN"
    unknown = F.lit(None).cast("bigint")
    judged = gateway.spark.createDataFrame(came, schema).withColumns({PRODUCER: F.lit(""), PTIME: unknown})
    beats = tuple(instant for instant, _ in log.beats)
    arrivals = Arrivals(judged.drop(IS_LATE), judged, clock, "line")
    return Stream(frame, shown, clock, (SEQUENCE,), beats, rowtime, late=late, arrivals=arrivals)


def _guessed(values: list[str | None]) -> str:
    """The narrowest type that all values have."""
    present = [value for value in values if value is not None]
    if not present:
        return "STRING"
    if all(re.fullmatch(r"[+-]?\d{1,18}", value) for value in present):
        return "BIGINT"
    number = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
    return "DOUBLE" if all(re.fullmatch(number, value) for value in present) else "STRING"


def _cast(name: str, kind: str) -> str:
    plain = f"CAST({quoted(name)} AS {kind})"
    if kind.upper() in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        text = f"try_to_timestamp({quoted(name)}, 'MM/dd/yyyy HH:mm:ss')"
        return f"CAST(CASE WHEN {text} IS NULL THEN {plain} ELSE {text} END AS {kind})"
    return plain


def is_text_log(path: object) -> bool:
    """Whether a path is of a recorded text, by its name."""
    return isinstance(path, str | Path) and Path(str(path)).suffix.lower() == ".cql"
