"""Streams of a session: recorded rows with their rowtimes, and the entries of their logs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra.time_scale import TimeScale
from windrow.algebra.watermarks import WatermarkHistory, of_producers
from windrow.plan.arrow_types import pattern_schema
from windrow.spark.errors import raising, translate
from windrow.spark.logs.admitted_rows import VIOLATED_BOUND
from windrow.streams.entries import PATTERN, REASONS
from windrow.streams.log_position import Punctuations
from windrow.streams.producer_punctuations import shared_since
from windrow.streams.punctuation_json import pattern_of
from windrow.syntax.sqltext import quoted

if TYPE_CHECKING:
    from windrow.spark.logs.live_source import LiveSource
    from windrow.spark.logs.table_log import TableLog

__all__ = [
    "ARRIVAL",
    "ARRIVED",
    "ENTRY_BOUND",
    "IS_LATE",
    "LATE",
    "LEFT",
    "NUMBER",
    "PRODUCER",
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
"""The column with the numbers of a stream's rows, if they are needed."""

SEQUENCE = "__sequence"
ARRIVED = "__tie0"
SENDER = "__tie1"
"""The tie-breakers of recorded tables: an entry's processing time, and its producer."""

LEFT = "__left"
"""The column with the processing times, in ticks, at which rows leave: of tables that change."""

REASON = "__reason"
"""The column with the reason why a row is late, one of `windrow.streams.entries.REASONS`."""
ARRIVAL, PTIME, PRODUCER, ENTRY_BOUND, IS_LATE = "__arrival", "__ptime", "__producer", "__promise", "__late"
"""The columns of the entries of :class:`StreamArrivals`, besides `ROWTIME`."""

LATE = "stream STRING, row STRING, rowtime {kind}, bound {kind}, producer STRING, reason STRING"
"""The columns of the late rows of several streams; `kind` is the type of instants."""

_BEFORE, _FIRST = "__before", "__first"


@dataclass(frozen=True)
class StreamArrivals:
    """The entries of a log in order of arrival, with the late ones.

    Attributes
    ----------
    entries
        `ARRIVAL`: the processing time or the number of an entry; `PTIME`: the same in ticks, if there is a
        `scale`; `PRODUCER`; `ROWTIME` and `ENTRY_BOUND`, in ticks of `rowtime`, NULL if the entry has none.
    judged
        The same with `IS_LATE`, which costs more.
    rowtime
        The unit of rowtimes and bounds.
    time_column
        The name of the column with the processing times.
    scale
        The unit of processing times; None if they are neither times nor numbers, or are not a column of the
        stream.
    known
        The changes of the watermark with their processing times, and the first and last processing times, if
        they are not derived from the entries. Then `ARRIVED` of the stream's rows is in ticks, as in named
        and live streams.
    patterns
        `PTIME`, `PRODUCER` and `PATTERN` of logs with punctuations; None for others.
    columns
        The columns of the rows, over which patterns are.
    known_punctuations
        The punctuations of the stream with their processing times, if they are not derived from the entries.
    idle
        The processing time, in ticks, after which a silent producer is idle; None for never.
    """

    entries: DataFrame
    judged: DataFrame
    rowtime: TimeScale
    time_column: str
    scale: TimeScale | None = None
    known: tuple[WatermarkHistory, tuple[int, int] | None] | None = None
    patterns: DataFrame | None = None
    columns: StructType | None = None
    known_punctuations: Punctuations | None = None
    idle: int | None = None

    @cached_property
    def punctuations(self) -> Punctuations:
        """The punctuations of the stream, with their processing times."""
        if self.known_punctuations is not None or self.patterns is None or self.columns is None:
            return self.known_punctuations or ()
        has_pattern = F.col(PATTERN).isNotNull()
        first = self.entries.groupBy(PRODUCER).agg(F.min(PTIME).alias(PTIME))
        found = self.patterns.where(has_pattern).unionByName(
            first.withColumn(PATTERN, F.lit(None).cast("string"))
        )
        try:
            rows = found.select(PTIME, PRODUCER, PATTERN).collect()
        except PySparkException as error:
            raise translate(error) from None
        columns = pattern_schema(self.columns)
        known = {text: pattern_of(text, columns).to_json() for _, _, text in rows if text is not None}
        return tuple(shared_since([(at, name, known.get(text)) for at, name, text in rows], columns))

    @property
    def may_punctuate(self) -> bool:
        """Whether entries may have punctuations."""
        return self.patterns is not None or self.known_punctuations is not None

    @property
    def ptime(self) -> TimeScale:
        """The unit of processing times, which must be known."""
        assert self.scale is not None
        return self.scale

    @property
    def arrived_at(self) -> str:
        """SQL for the processing time of a row of the stream, in ticks."""
        scale = self.ptime
        return ARRIVED if self.known is not None else scale.of_column(ARRIVED, scale.kind, scale.unit)

    @cached_property
    def watermark(self) -> WatermarkHistory:
        """The changes of the watermark, with their processing times."""
        if self.known is not None:
            return self.known[0]
        heard = self._heard if self.idle is not None else self._deciding(self._heard)
        return of_producers(self._collected(heard), self.idle)

    @property
    def _heard(self) -> DataFrame:
        """When there was an entry of each producer, with its bound and its greatest rowtime; of the rows that
        are not late, if that decides when it is idle.
        """
        judged = self.entries.withColumn(IS_LATE, F.lit(False)) if self.idle is None else self.judged
        rowtime = F.max(F.when(~F.col(IS_LATE), F.col(ROWTIME))).alias(ROWTIME)
        return judged.groupBy(PTIME, PRODUCER).agg(F.max(ENTRY_BOUND).alias(ENTRY_BOUND), rowtime)

    @staticmethod
    def _deciding(heard: DataFrame) -> DataFrame:
        """The entries that may move the watermark if no producer is idle: those with a bound, those before
        their producer has one, and its first row that is not late.
        """
        own = Window.partitionBy(PRODUCER)
        earlier = own.orderBy(PTIME).rowsBetween(Window.unboundedPreceding, -1)
        marked = heard.withColumn(_BEFORE, F.max(ENTRY_BOUND).over(earlier))
        is_taken = F.col(ROWTIME) >= F.coalesce(_BEFORE, ROWTIME)
        first = F.min(F.when(is_taken, F.col(PTIME))).over(own)
        decides = F.col(ENTRY_BOUND).isNotNull() | F.col(_BEFORE).isNull() | (F.col(PTIME) == F.col(_FIRST))
        return marked.withColumn(_FIRST, first).where(decides).drop(_BEFORE, _FIRST)

    @staticmethod
    def _collected(frame: DataFrame) -> list[tuple[Any, ...]]:
        try:
            return [tuple(row) for row in frame.collect()]
        except PySparkException as error:
            raise translate(error) from None

    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """The first and the last processing time; None for an empty log."""
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
        The columns of queries, `ROWTIME` in ticks of the time scale, and the columns of `ties`.
    columns
        The columns of queries.
    scale
        The unit of its rowtimes.
    ties
        The columns that order rows of equal rowtime.
    bounds
        Bounds of the log that are not in its rows.
    rowtime
        The column with the rowtime; None without.
    sources
        The streams that it is derived from.
    bound_rows
        `ROWTIME`: the bounds in the log, in ticks; None if there are only `bounds`.
    late
        The rejected rows, as those of `frame`, with `VIOLATED_BOUND`: the bound that each violates; maybe
        with `REASON`.
    name
        Its name in the session.
    live
        The source of a live stream; then `frame` has no rows.
    known_ends
        The log's first and last instants, if they are known.
    arrivals
        Its entries in order of arrival, if the log has processing times.
    on_late
        What happens to rows that are late for a group of a query: ``"keep"`` or ``"fail"``.
    table
        The rows without their checks, as Spark reads them under the stream's name; None for those of `frame`.
    made_of
        The table that it is made of, and how; None for streams that are no tables.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    scale: TimeScale
    ties: tuple[str, ...] = ()
    bounds: tuple[int, ...] = ()
    rowtime: str | None = None
    sources: tuple[Stream, ...] = ()
    bound_rows: DataFrame | None = None
    late: DataFrame | None = None
    name: str | None = None
    live: LiveSource | None = None
    known_ends: tuple[int, int] | None = None
    arrivals: StreamArrivals | None = None
    on_late: str = "keep"
    table: DataFrame | None = None
    made_of: tuple[DataFrame, TableLog] | None = None

    @property
    def is_log(self) -> bool:
        """Whether a live stream is a named one, whose entries have processing times."""
        return self.live is not None and bool(self.live.identity)

    @property
    def timed(self) -> StreamArrivals | None:
        """Its entries, if their processing times are known."""
        return self.arrivals if self.arrivals is not None and self.arrivals.scale is not None else None

    def on(self, scale: TimeScale) -> Stream:
        """The stream with rowtimes in ticks of a finer unit."""
        if self.scale == scale:
            return self
        frame = self.frame.withColumn(ROWTIME, rescaled(ROWTIME, self.scale, scale))
        factor = self.scale.nanoseconds // scale.nanoseconds
        same = self.scale.kind == scale.kind or scale.kind != "timestamp"
        bounds = tuple(bound * factor for bound in self.bounds) if same else ()
        sources = tuple(source.on(scale) for source in self.sources)
        bound_rows, late = (
            table.withColumns({name: rescaled(name, self.scale, scale) for name in columns})
            if table is not None
            else None
            for table, columns in ((self.bound_rows, [ROWTIME]), (self.late, [ROWTIME, VIOLATED_BOUND]))
        )
        return replace(
            self, frame=frame, scale=scale, bounds=bounds, sources=sources, bound_rows=bound_rows, late=late
        )

    @property
    def visible_names(self) -> tuple[str, ...]:
        """The columns of queries."""
        return self.columns

    def lagging(self, lag: int) -> Stream:
        """The stream of a table, whose rows are estimated to be at most so many ticks late.

        An admitted row is an estimate beside the bound or the watermark of its entry.
        """
        arrivals = self.arrivals
        assert arrivals is not None
        implied = F.when(~F.col(IS_LATE), F.col(ROWTIME) - F.lit(lag))
        judged = arrivals.judged.withColumn(ENTRY_BOUND, F.greatest(ENTRY_BOUND, implied))
        return replace(self, arrivals=replace(arrivals, entries=judged.drop(IS_LATE), judged=judged))

    def renamed(self, names: tuple[str, ...]) -> Stream:
        """The stream with other names of the columns."""
        hidden = [name for name in self.frame.columns if name == ROWTIME or name in self.ties]
        frame = self.frame.select(*map(quoted, self.columns), *hidden).toDF(*names, *hidden)
        new = dict(zip(self.columns, names, strict=True))
        rowtime = self.rowtime and new[self.rowtime]
        table = self.table
        if table is not None:
            table = table.select(*map(quoted, self.columns)).toDF(*names)
        return replace(self, frame=frame, columns=names, rowtime=rowtime, table=table, made_of=None)

    def df(self, *, ordered: bool = False) -> DataFrame:
        """The rows with their rowtimes, `ordered` by these or not."""
        name = "rowtime" if "rowtime" not in {column.lower() for column in self.columns} else "_rowtime"
        instant = F.expr(self.scale.to_column(ROWTIME)).alias(name)
        frame = self.frame.orderBy(ROWTIME, *self.ties) if ordered else self.frame
        return frame.select(instant, *map(quoted, self.columns))

    def late_rows(self) -> DataFrame | None:
        """The late rows as a table, with their rowtime, the violated bound, and the producer."""
        if self.late is None:
            return None
        ours = {
            "_rowtime": F.expr(self.scale.to_column(ROWTIME)),
            "_bound": F.expr(self.scale.to_column(VIOLATED_BOUND)),
        }
        if SENDER in self.late.columns:
            ours["_producer"] = F.col(SENDER)
        ours["_reason"] = self.why_late(self.late)
        return self.late.select(
            *map(quoted, self.columns), *(made.alias(name) for name, made in ours.items())
        )

    def all_late(self) -> list[tuple[str, DataFrame]]:
        """The late rows of this stream and of those that it is derived from, by their names, as `LATE`."""
        found = [table for source in self.sources for table in source.all_late()]
        late = self.own_late()
        return found if late is None else [*found, (self.name or "", late)]

    def own_late(self) -> DataFrame | None:
        """The late rows and quarantined bounds of this stream itself, as `LATE`; None if it can have none."""
        if self.late is None:
            return None
        producer = F.col(SENDER) if SENDER in self.late.columns else F.lit(None)
        return self.late.select(
            F.lit(self.name).alias("stream"),
            F.when(
                self.why_late(self.late) != REASONS[-1], F.to_json(F.struct(*map(quoted, self.columns)))
            ).alias("row"),
            F.expr(self.scale.to_column(ROWTIME)).alias("rowtime"),
            F.expr(self.scale.to_column(VIOLATED_BOUND)).alias("bound"),
            producer.cast("string").alias("producer"),
            self.why_late(self.late).alias("reason"),
        )

    def count_late(self) -> int:
        """The number of late rows."""
        if self.late is None:
            return 0
        return self.late.where(self.why_late(self.late) != REASONS[-1]).count()

    @staticmethod
    def why_late(late: DataFrame) -> Column:
        """Why rows are late."""
        if REASON in late.columns:
            return F.col(REASON)
        return F.when(F.col(VIOLATED_BOUND).isNull(), "punctuation").otherwise("bound")

    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """The log's first and last instants; None if it is empty."""
        if self.known_ends is not None:
            return self.known_ends
        log = self.frame.select(ROWTIME)
        if self.bound_rows is not None:
            log = log.unionByName(self.bound_rows)
        try:
            found = log.agg(F.min(ROWTIME).alias("first"), F.max(ROWTIME).alias("last")).collect()[0]
        except PySparkException as error:
            raise translate(error) from None
        made_of = [ends for source in self.sources if (ends := source.ends) is not None]
        instants = [*self.bounds, *(value for value in found if value is not None), *chain(*made_of)]
        return (min(instants), max(instants)) if instants else None


def rescaled(column: str, old: TimeScale, new: TimeScale) -> Column:
    """Ticks of a unit in those of a finer one."""
    if old.kind in ("date", "timestamp_ntz") and new.kind == "timestamp":
        # in the session's time zone
        local = f"CAST({old.to_column(column)} AS TIMESTAMP)"
        return F.expr(new.of_column(local, "timestamp", "MICROSECOND"))
    factor = old.nanoseconds // new.nanoseconds
    if factor == 1:
        return F.col(column)
    wrong = raising("ROWTIME_OVERFLOW", f"a rowtime is too large in {new.unit.lower()}s")
    return F.when(F.abs(F.col(column)) <= 2**62 // factor, F.col(column) * F.lit(factor)).otherwise(wrong)
