"""Streams as the session knows them: recorded rows with their rowtimes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra.clock import Clock
from windrow.algebra.watermarks import Steps, of_producers
from windrow.spark.arrow import told_of
from windrow.spark.errors import raising, translate
from windrow.spark.logs.admitted_rows import PROMISED
from windrow.streams.entries import PATTERN, REASONS
from windrow.streams.log_position import Punctuations
from windrow.streams.producer_punctuations import shared_since
from windrow.streams.punctuation_json import pattern_of
from windrow.syntax.sqltext import quoted

if TYPE_CHECKING:
    from windrow.spark.logs.live_source import LiveSource

__all__ = [
    "ARRIVED",
    "CAME",
    "IS_LATE",
    "LATE",
    "NUMBER",
    "PRODUCER",
    "PROMISE",
    "PTIME",
    "REASON",
    "ROWTIME",
    "SENDER",
    "SEQUENCE",
    "Stream",
    "StreamArrivals",
    "rescaled",
]

ROWTIME = "__rowtime"
NUMBER = "__number"
"""Of a stream's rows, what tells them apart, where that is asked for."""

SEQUENCE = "__sequence"
ARRIVED = "__tie0"
SENDER = "__tie1"
"""The ties of recorded tables: when an entry came, and from whom."""

REASON = "__reason"
"""Of a late row, why it is: one of `windrow.streams.entries.REASONS`."""
CAME, PTIME, PRODUCER, PROMISE, IS_LATE = "__came", "__ptime", "__producer", "__promise", "__late"
"""The columns of the entries of :class:`StreamArrivals`, beside `ROWTIME`."""

LATE = "stream STRING, row STRING, rowtime {kind}, bound {kind}, producer STRING, reason STRING"
"""The columns of the late rows of several streams, of which the instants are of this type."""


@dataclass(frozen=True)
class StreamArrivals:
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
    patterns
        `PTIME`, `PRODUCER` and `PATTERN`, of logs with punctuations; None of others.
    columns
        Those of the rows, of which patterns tell.
    promised
        What the stream has promised by patterns, and when, where that is not told by the entries.
    """

    entries: DataFrame
    judged: DataFrame
    rowtime: Clock
    told: str
    clock: Clock | None = None
    known: tuple[Steps, tuple[int, int] | None] | None = None
    patterns: DataFrame | None = None
    columns: StructType | None = None
    promised: Punctuations | None = None

    @cached_property
    def promises(self) -> Punctuations:
        """What the stream has promised by patterns, and when."""
        if self.promised is not None or self.patterns is None or self.columns is None:
            return self.promised or ()
        said = F.col(PATTERN).isNotNull()
        first = self.entries.groupBy(PRODUCER).agg(F.min(PTIME).alias(PTIME))
        found = self.patterns.where(said).unionByName(first.withColumn(PATTERN, F.lit(None).cast("string")))
        try:
            rows = found.select(PTIME, PRODUCER, PATTERN).collect()
        except PySparkException as error:
            raise translate(error) from None
        columns = told_of(self.columns)
        known = {text: pattern_of(text, columns).to_json() for _, _, text in rows if text is not None}
        return tuple(shared_since([(at, name, known.get(text)) for at, name, text in rows], columns))

    @property
    def may_promise(self) -> bool:
        """Whether entries may promise patterns."""
        return self.patterns is not None or self.promised is not None

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
        The rows that were not admitted, as those of `frame`, with `PROMISED`: the bound that each violates;
        maybe with `REASON`.
    name
        That it has in the session.
    live
        What arrives at it, if it is a live stream; `frame` then has no rows.
    known_ends
        The log's first and last instants, where they are known.
    arrivals
        How its entries came, if the log says that.
    on_late
        What becomes of rows that are late for a group of a query: ``"keep"`` or ``"fail"``.
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
    arrivals: StreamArrivals | None = None
    on_late: str = "keep"

    @property
    def timed(self) -> StreamArrivals | None:
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
        if SENDER in self.late.columns:
            ours["_producer"] = F.col(SENDER)
        ours["_reason"] = self.why_late(self.late)
        return self.late.select(
            *map(quoted, self.columns), *(made.alias(name) for name, made in ours.items())
        )

    def all_late(self) -> list[tuple[str, DataFrame]]:
        """The late rows of this stream and of those that it was made of, by their names, as `LATE`."""
        found = [table for source in self.sources for table in source.all_late()]
        if self.late is not None:
            producer = F.col(SENDER) if SENDER in self.late.columns else F.lit(None)
            told = self.late.select(
                F.lit(self.name).alias("stream"),
                F.when(
                    self.why_late(self.late) != REASONS[-1], F.to_json(F.struct(*map(quoted, self.columns)))
                ).alias("row"),
                F.expr(self.clock.to_column(ROWTIME)).alias("rowtime"),
                F.expr(self.clock.to_column(PROMISED)).alias("bound"),
                producer.cast("string").alias("producer"),
                self.why_late(self.late).alias("reason"),
            )
            found.append((self.name or "", told))
        return found

    def count_late(self) -> int:
        """How many rows are late."""
        if self.late is None:
            return 0
        return self.late.where(self.why_late(self.late) != REASONS[-1]).count()

    @staticmethod
    def why_late(late: DataFrame) -> Column:
        """Why rows are late."""
        if REASON in late.columns:
            return F.col(REASON)
        return F.when(F.col(PROMISED).isNull(), "punctuation").otherwise("bound")

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
