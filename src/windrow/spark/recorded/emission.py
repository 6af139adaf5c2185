"""Queries with EMIT over recorded logs: tables as of a processing time, and their changes.

A stream is here the table of the rows that have arrived so far. So a query is a time-varying relation over
processing time, which the operators of such relations evaluate. The table at one instant is plain Spark SQL
over the rows that had arrived by then. EMIT changes the times at which rows are emitted: the result is a
time-varying relation again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from windrow.algebra.time_scale import NEVER, TimeScale
from windrow.algebra.watermarks import WatermarkHistory, least_watermark, value_at
from windrow.errors import AnalysisError, Span
from windrow.kernels.zset.relation import COMPLETE, ENTER, LEAVE
from windrow.plan import nodes
from windrow.plan.arrow_types import is_orderable
from windrow.plan.event_time import HIDDEN, Completeness, Occurrence, SessionFacts, Timed
from windrow.plan.sql import sql_of_plan
from windrow.spark.analysis.collations import with_compared
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import LEFT, NUMBER, PTIME, ROWTIME, Stream, StreamArrivals
from windrow.spark.recorded.emission_plan import PlanReading
from windrow.spark.recorded.emission_times import Materialization, WindowsByDefinition, common_ptime
from windrow.spark.recorded.punctuation_times import (
    ColumnPairs,
    PunctuationTimes,
    closing_columns_of,
    with_since,
)
from windrow.spark.recorded.rows_late_for_groups import LateForGroups
from windrow.spark.recorded.watermark_steps import looked_up, when_above
from windrow.spark.relations.carried import why_not_carried
from windrow.spark.relations.changelog import changelog, one_sql
from windrow.spark.relations.relation_of_plan import relation_of_plan
from windrow.spark.relations.time_varying_relation import TimeVarying, columns_of
from windrow.spark.tasks.keyed import run_keyed
from windrow.streams.entries import BEFORE
from windrow.syntax.sqltext import quoted

__all__ = ["Emitted", "EmittedInside"]

_MARK = "__mark"


@dataclass(frozen=True, eq=False)
class EmittedInside:
    """A query with EMIT in another: a stream of its changes, or a table that changes.

    Attributes
    ----------
    query
        The query.
    envelope
        The envelope of its changes; None for the table.
    rowtime
        The column of event time by which its rows are complete; None for none.
    scale
        The unit of rowtimes, and of processing times without such a column.
    comes_late
        Whether rows may come below the watermark.
    text
        The query as written.
    """

    query: Emitted
    envelope: str | None
    rowtime: str | None
    scale: TimeScale
    comes_late: bool
    text: str


@dataclass(frozen=True)
class Emitted:
    """A query with EMIT over recorded logs.

    Parameters
    ----------
    gateway, streams
        The session, and the streams that the query reads.
    execution
        ``"batch"`` or ``"reference"``.
    timed
        The query.
    reading
        Its plan, with the texts that it was read from.
    how
        When it emits.
    place
        The user's text, and the place of the query in it.
    by_definition
        Evaluates it instant by instant: the reference.
    inside
        The queries with EMIT among its streams, by their names.
    """

    gateway: Gateway
    streams: Mapping[str, Stream]
    execution: str
    timed: Timed
    reading: PlanReading
    how: Materialization
    place: tuple[str, Span]
    by_definition: Callable[[Emitted], TimeVarying]
    inside: Mapping[str, EmittedInside] = field(default_factory=dict)

    @cached_property
    def parts(self) -> list[Emitted]:
        """The query and those inside it."""
        return [self, *(part for one in self.inside.values() for part in one.query.parts)]

    @cached_property
    def sources(self) -> dict[str, Stream]:
        """The streams that it reads, also inside, which are no queries."""
        return {
            name: stream
            for part in self.parts
            for name, stream in part.streams.items()
            if name not in part.inside
        }

    @property
    def judged_by_inside(self) -> str | None:
        """A stream whose rows may be late by the watermark of a query inside, or which is one that has late
        rows; None without.
        """
        for each in self.timed.occurrences:
            own = self.inside.get(each.stream)
            if each.watermark_of and (
                own.comes_late if own else not each.watermark_of.isdisjoint(self.inside)
            ):
                return each.stream
        return None

    @property
    def scale(self) -> TimeScale:
        """The unit of processing times."""
        return common_ptime(self._arrivals.values(), self.place)

    @property
    def _arrivals(self) -> dict[str, StreamArrivals]:
        return {
            name: arrivals for name, stream in self.streams.items() if (arrivals := stream.timed) is not None
        }

    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """The first and the last processing time of the logs."""
        found = [ends for arrival in self._arrivals.values() if (ends := arrival.ends) is not None]
        return (min(first for first, _ in found), max(last for _, last in found)) if found else None

    @cached_property
    def watermark(self) -> WatermarkHistory:
        """The watermark of the query's rows."""
        return self.watermark_of(self.timed.streams)

    def watermark_of(self, names: Iterable[str]) -> WatermarkHistory:
        """The combined watermark of these streams."""
        arrivals = [self._arrivals[name] for name in names]
        scales = {arrival.rowtime for arrival in arrivals}
        if len(scales) > 1:
            raise AnalysisError(
                "cannot combine watermarks of streams whose rowtime types differ",
                condition="NO_COMMON_CLOCK",
                sql=self.place[0],
                span=self.place[1],
                hint="create the streams with rowtimes of one type",
            )
        return least_watermark([arrival.watermark for arrival in arrivals])

    # -- arrived rows ----------------------------------------------------------------------------------

    @cached_property
    def arrived(self) -> dict[str, DataFrame]:
        """The rows of each stream in the query, with `ENTER`, their processing time, and `LEAVE`."""
        return {each.name: self._arrived(each) for each in self.timed.occurrences}

    def _arrived(self, occurrence: Occurrence) -> DataFrame:
        name = occurrence.stream
        stream = self.streams[name]
        arrival = self._arrivals[name]
        arrived_at = F.expr(arrival.arrived_at).alias(ENTER)
        number = []
        if occurrence.is_numbered:
            known = F.col(NUMBER) if NUMBER in stream.frame.columns else F.lit(0)
            number = [known.cast("bigint").alias(occurrence.number)]
        marking = [
            name for name in (ROWTIME, BEFORE) if occurrence.watermark_of and name in stream.frame.columns
        ]
        left = F.col(LEFT) if LEFT in stream.frame.columns else F.lit(NEVER).cast("bigint")
        times = [arrived_at, left.alias(LEAVE)]
        own = [*map(quoted, stream.columns), *([occurrence.number] if number else []), ENTER, LEAVE]
        frame = stream.frame.select(*map(quoted, stream.columns), *marking, *number, *times)
        if arrival.patterns is not None:
            frame = self._admitted(name, frame)
        if not occurrence.watermark_of:
            return frame.select(*own)
        mark = F.expr(arrival.rowtime.to_column(_MARK)).alias(occurrence.watermark)
        frame = frame.withColumn(_MARK, self._mark(occurrence))
        if stream.on_late == "fail":
            frame = self.late_for_groups.failing(occurrence, frame, _MARK)
        return frame.select(*own, mark)

    def _mark(self, occurrence: Occurrence) -> Column:
        """The watermark before each row, less the allowed lateness; NULL in rows that are not below it.

        It is that of the earlier entries: in the row's own stream those before it in the log, if the log has
        an order, and in other streams those of earlier processing times.
        """
        name, names = occurrence.stream, occurrence.watermark_of
        parts = []
        if BEFORE in self.streams[name].frame.columns:
            parts, names = [F.col(BEFORE)], names - {name}
        if names:
            parts.append(self._watermark_before(names))
        every = reduce(and_, (part.isNotNull() for part in parts))
        known = parts[0] if len(parts) == 1 else F.when(every, F.least(*parts))
        mark = known - F.lit((self.how.lateness or {}).get(name, 0))
        return F.when(F.col(ROWTIME) < mark, mark)

    def _watermark_before(self, names: Iterable[str]) -> Column:
        """The watermark of streams by the entries of earlier processing times than `ENTER`; NULL without."""
        history = self.watermark_of(names)
        at, values = [at + 1 for at, _ in history], [value for _, value in history]
        return looked_up(self.gateway.spark, ENTER, at, values)

    def log_of(self, name: str) -> DataFrame:
        """The admitted rows of a stream, with `ROWTIME`, `ENTER`, and `BEFORE`, its watermark before each."""
        frame = self._log(name)
        return frame if BEFORE in frame.columns else frame.withColumn(BEFORE, self._watermark_before([name]))

    def _log(self, name: str) -> DataFrame:
        arrival = self._arrivals[name]
        frame = self.streams[name].frame.withColumn(ENTER, F.expr(arrival.arrived_at))
        return frame if arrival.patterns is None else self._admitted(name, frame)

    @property
    def late_for_groups(self) -> LateForGroups:
        """Which rows are late for a group."""
        return LateForGroups(self.streams, self._arrivals, self.timed, self.how.until, self._mark, self._log)

    def _admitted(self, name: str, rows: DataFrame) -> DataFrame:
        """The rows that no earlier punctuation of the whole stream excludes, also for later producers."""
        punctuation = PunctuationTimes({name: self.streams[name]})
        punctuation.take(name, self._arrivals[name].punctuations)
        own = {column: column for column in punctuation.lines(name)}
        since = punctuation.of(name, own)
        if since is None:
            return rows
        return (
            with_since(rows, [(COMPLETE, since, own)]).where(F.col(COMPLETE) >= F.col(ENTER)).drop(COMPLETE)
        )

    # -- at an instant ---------------------------------------------------------------------------------

    def at(self, tick: int) -> DataFrame:
        """The table at an instant of processing time."""
        if self.how.delay is not None:
            frame = self.emitted_rows.at(tick)
            return _without_hidden(frame, self.emitted_rows.names)
        frame = self.raw_at(tick)
        if self.how.watermark:
            frame = self._complete_at(frame, tick)
        return _without_hidden(frame, frame.columns)

    def _complete_at(self, frame: DataFrame, tick: int) -> DataFrame:
        """The rows that are complete at an instant."""
        names = frame.columns
        if not self._may_punctuate:
            return frame.where(self.is_complete(tick))
        inside = [f"c{number}" for number in range(len(names))]
        known = frame.withColumn(COMPLETE, self.is_complete(tick)).toDF(*inside, COMPLETE)
        columns = dict(zip((name.lower() for name in names), inside, strict=True))
        known, punctuation = self._with_punctuation(known, columns)
        return known.where(F.col(COMPLETE) | (punctuation <= tick)).select(*inside).toDF(*names)

    def raw_at(self, tick: int) -> DataFrame:
        """All rows of the query at an instant, with the added columns."""
        there = (F.col(ENTER) <= tick) & (F.col(LEAVE) > tick)
        arrived = {name: frame.where(there) for name, frame in self.arrived.items()}
        return self._rows_of(self.timed.plan, arrived)

    def sessions_of(self, sessions: SessionFacts) -> DataFrame:
        """The ``number`` of each row in these sessions (`NUMBER` of its stream), and its session ``end``."""
        return self._rows_of(sessions.plan, self.arrived)

    def _rows_of(self, plan: nodes.Node, arrived: Mapping[str, DataFrame]) -> DataFrame:
        """The rows of a plan over the arrived rows of each stream."""
        frames = {name: frame.drop(ENTER, LEAVE) for name, frame in arrived.items()}
        with self.reading.as_written(self.gateway):
            frames = {**self.reading.tables, **frames, **self.reading.called(self.gateway, frames)}
            windows = WindowsByDefinition(self.gateway, frames) if self.execution == "reference" else None
            text = sql_of_plan(plan, windows)
            found = self.gateway.sql(text, frames if windows is None else windows.frames)
        return found.toDF(*(column.name for column in plan.columns))

    @property
    def schema(self) -> StructType:
        """The query's columns, with the added ones."""
        return StructType([StructField(column.name, column.type) for column in self.timed.plan.columns])

    def is_complete(self, tick: int) -> Column:
        """Whether rows are complete at an instant: for every stream one of its keys must be."""
        mark = value_at(self.watermark, tick)
        if mark is None:
            return F.lit(False)
        at_mark = self._rowtime.to_column(f"{mark}L")
        by_origin: dict[int, Column] = {}
        for each in self.timed.complete:
            below = F.coalesce(
                F.expr(f"{quoted(each.column)} < {each.mapped.replace('{t}', at_mark)}"), F.lit(False)
            )
            by_origin[each.origin] = by_origin.get(each.origin, F.lit(False)) | below
        whole = F.lit(bool(by_origin))
        for below in by_origin.values():
            whole = whole & below
        return whole

    @property
    def _may_punctuate(self) -> bool:
        """Whether punctuation may make rows complete."""
        return bool(self.timed.lineage)

    @cached_property
    def punctuation(self) -> PunctuationTimes:
        """The punctuations of the streams."""
        found = PunctuationTimes({each.stream: self.streams[each.stream] for each in self.timed.occurrences})
        for name, arrival in self._arrivals.items():
            found.take(name, arrival.punctuations)
        return found

    def closing_columns(
        self, visible: StructType, columns: Mapping[str, str]
    ) -> list[tuple[int, str, ColumnPairs]]:
        """The columns of the streams that close the query's rows, as for :func:`closing_columns_of`."""
        return closing_columns_of(self.timed, self.streams, visible, columns)

    def _with_punctuation(self, frame: DataFrame, columns: Mapping[str, str]) -> tuple[DataFrame, Column]:
        """Rows, and when punctuation made them complete; `columns` are the query's in the frame."""
        pairs = [
            (f"__since{place}", self.punctuation.of(name, own), own)
            for place, name, own in self.closing_columns(frame.schema, columns)
        ]
        times = [F.col(name) for name, _, _ in pairs]
        return with_since(frame, pairs), times[0] if len(times) == 1 else F.greatest(*times)

    @property
    def _rowtime(self) -> TimeScale:
        return next(self._arrivals[name].rowtime for name in self.timed.streams)

    # -- in time ---------------------------------------------------------------------------------------

    @cached_property
    def temporal(self) -> TimeVarying:
        """The query's rows with the added columns, as a time-varying relation."""
        if (why := why_not_carried(self.gateway, self.timed.plan)) is not None:
            raise self.reading.unsupported(why)
        return self.temporal_over(self.arrived)

    def temporal_over(self, arrived: Mapping[str, DataFrame]) -> TimeVarying:
        """The same over these rows of each stream in the query.

        Parameters
        ----------
        arrived
            Rows with the columns of :attr:`arrived`.
        """
        relations = {}
        for each in self.timed.occurrences:
            entries = self._arrivals[each.stream].entries.select(F.col(PTIME).alias(ROWTIME))
            known = self._arrivals[each.stream].known
            instants = Stream(entries, (), self.scale, known_ends=None if known is None else known[1])
            rows = arrived[each.name]
            columns = [F.col(quoted(name)) for name in rows.columns if name not in (ENTER, LEAVE)]
            relations[each.name] = TimeVarying.of(rows.select(*columns, ENTER, LEAVE), self.scale, [instants])
        for key in self.reading.sources.keys() - relations.keys():  # results of a user's table functions
            rows = self.reading.tables[key].limit(0)
            never = {ENTER: F.lit(0).cast("bigint"), LEAVE: F.lit(0).cast("bigint")}
            relations[key] = TimeVarying.of(rows.withColumns(never), self.scale, [])
        plan = self.timed.plan
        with self.reading.as_written(self.gateway):
            found = relation_of_plan(self.gateway, plan, self.scale, relations, self.reading.tables)
        return found.renamed(tuple(column.name for column in plan.columns))

    @cached_property
    def emitted_rows(self) -> TimeVarying:
        """The emitted rows, as a time-varying relation."""
        if self.execution == "reference" or self.timed.calls_own:
            return self.by_definition(self)
        found = self.temporal
        frame = found.frame
        if self.how.watermark:
            frame = frame.withColumn(COMPLETE, self._complete_since(found))
            if self._may_punctuate:
                inside = {name.lower(): own for name, own in zip(found.names, found.columns, strict=True)}
                own = frame.columns
                frame, punctuation = self._with_punctuation(frame, inside)
                frame = frame.withColumn(COMPLETE, F.least(COMPLETE, punctuation)).select(*own)
        if self.how.delay is not None:
            if not self.how.watermark:
                frame = frame.withColumn(COMPLETE, F.lit(NEVER).cast("bigint"))
            kinds = StructType([field for field in frame.schema if field.name in found.columns])
            frame, compared = with_compared(frame, kinds)
            keys = [dict(compared).get(name, name) for name in self.keys(found)]
            frame = run_keyed(self.gateway, "delay", [frame], keys, kinds, self.how.delay, compared=compared)
            return replace(found, frame=frame, net_by=None)
        if self.how.watermark:
            later = F.greatest(F.col(ENTER), F.col(COMPLETE))
            frame = frame.withColumn(ENTER, later).where(F.col(ENTER) < F.col(LEAVE)).drop(COMPLETE)
        return replace(found, frame=frame, net_by=None)

    def refuse_unordered_groups(self) -> None:
        """Refuse to number the changes of groups that have no order.

        Raises
        ------
        AnalysisError
            ``UNORDERABLE_TYPE``.
        """
        plan, names = self.timed.plan, self.timed.keys
        keys = [column for column in plan.columns if names is None or column.name in names]
        kind = next((column.type for column in keys if not is_orderable(column.type)), None)
        if kind is None or not self.counts:
            return
        at = self.reading.place_of_unordered_key(plan)
        with self.reading.as_written(self.gateway):
            raise AnalysisError(
                f"changes of groups cannot be numbered by a value of type {kind.simpleString().upper()}",
                condition="UNORDERABLE_TYPE",
                sqlstate="42822",
                sql=self.place[0] if at is None else self.reading.tokens.sql,
                span=self.place[1] if at is None else at,
                hint="group by a field of it, cast it to STRING, or write EMIT STREAM AS delta",
            )

    @property
    def counts(self) -> bool:
        """Whether changes are numbered: not where a group has one change, when it is complete."""
        how = self.how
        is_final = how.watermark and how.delay is None and not any((how.lateness or {}).values())
        has_one_change = is_final and self.timed.has_one_row and self.execution != "reference"
        return self.timed.counts and not has_one_change

    def keys(self, found: TimeVarying) -> list[str]:
        """The internal columns that are the keys of groups."""
        if self.timed.keys is None:
            return found.columns
        wanted = set(self.timed.keys)
        return [column for name, column in zip(found.names, found.columns, strict=True) if name in wanted]

    def _complete_since(self, found: TimeVarying) -> Column:
        """The time from which a row is complete."""
        inside = {name.lower(): column for name, column in zip(found.names, found.columns, strict=True)}
        by_origin: dict[int, list[Column]] = {}
        for each in self.timed.complete:
            column = inside[each.column.lower()]
            by_origin.setdefault(each.origin, []).append(self._complete_by(each, found.frame, column))
        never = F.lit(NEVER).cast("bigint")
        parts = [columns[0] if len(columns) == 1 else F.least(*columns) for columns in by_origin.values()]
        return never if not parts else parts[0] if len(parts) == 1 else F.greatest(*parts)

    def _complete_by(self, each: Completeness, frame: DataFrame, column: str) -> Column:
        """The time from which a column of event time is below the watermark there."""
        (found,) = self.mapped([(each.mapped, frame.schema[column].dataType.simpleString())], self.watermark)
        # a row is complete from the first change of the watermark above its value
        values, whens = [value for value, _ in found], [when for _, when in found]
        ticks = self.ticks_of(frame.schema[column].dataType, column)
        return when_above(frame.sparkSession, ticks, values, whens)

    @staticmethod
    def ticks_of(kind: DataType, column: str) -> Column:
        """A column of event time in ticks."""
        scale = _scale_of(kind.simpleString())
        return F.expr(scale.of_column(column, scale.kind, scale.unit))

    def mapped(
        self, columns: Sequence[tuple[str, str]], watermark: WatermarkHistory
    ) -> list[list[tuple[int, int]]]:
        """The values of a watermark in columns of event time, in ticks, with their times, in order."""
        if not watermark:
            return [[] for _ in columns]
        at, marks = zip(*sorted(watermark), strict=True)
        history = self.gateway.spark.createDataFrame(pa.table({"at": at, "mark": marks}))
        with self.gateway.translated():
            found = sorted(
                history.selectExpr("at", *self.mapping(columns)).collect(), key=lambda row: row["at"]
            )
        return [[(row[f"mapped{number}"], row["at"]) for row in found] for number in range(len(columns))]

    def mapping(self, columns: Sequence[tuple[str, str]]) -> list[str]:
        """SQL for the values of a watermark, `mark` in ticks, in columns of event time, also in ticks.

        `columns` are SQL in which ``{t}`` is the watermark, with the type of the column.
        """
        at_mark = self._rowtime.to_column("mark")
        listed = []
        for number, (mapped, kind) in enumerate(columns):
            scale = _scale_of(kind)
            ticks = scale.of_column(f"({mapped.replace('{t}', at_mark)})", scale.kind, scale.unit)
            listed.append(f"{ticks} AS mapped{number}")
        return listed

    def plan(self, is_stream: bool) -> str:
        """EXPLAIN's lines: the query's streams, its groups, when it emits, and its plan."""
        lines = []
        for each in self.timed.occurrences:
            judged = ", without rows late for groups" if each.watermark_of else ""
            lines.append(f"stream {each.stream}, in order of arrival{judged}")
        counted = "of the whole row" if self.timed.keys is None else f"by {len(self.timed.keys)} keys"
        lines.append(f"groups {counted if self.timed.counts else 'none'}")
        emitted = "changes" if is_stream else "rows"
        waits = []
        if self.how.delay is not None:
            waits.append(f"delayed by {self.how.delay * self.scale.nanoseconds / 1e9:g} seconds")
        waits += ["complete by the watermark"] if self.how.watermark else []
        lines.append(f"emitted {', '.join([emitted, *waits])}")
        return "\n".join([*lines, "plan", *(f"  {line}" for line in self.timed.lines)])

    def changes(self, envelope: str, emitted_rows: TimeVarying | None = None) -> TimeVarying:
        """The relation whose changelog in an envelope is that of the query."""
        emitted_rows = self.emitted_rows if emitted_rows is None else emitted_rows
        if self.how.until is not None:
            until = F.lit(self.how.until)
            frame = emitted_rows.frame.where(F.col(ENTER) <= until)
            left = F.when(F.col(LEAVE) > until, F.lit(NEVER)).otherwise(F.col(LEAVE))
            emitted_rows = replace(emitted_rows, frame=frame.withColumn(LEAVE, left))
        if envelope == "one-sql":
            return emitted_rows
        visible = [place for place, name in enumerate(emitted_rows.names) if not name.startswith(HIDDEN)]
        columns = [emitted_rows.columns[place] for place in visible]
        names = tuple(emitted_rows.names[place] for place in visible)
        inner = emitted_rows.frame.select(*columns, ENTER, LEAVE).toDF(*columns_of(names), ENTER, LEAVE)
        return replace(emitted_rows, frame=inner, names=names)

    def emitted(
        self,
        envelope: str,
        *,
        ordered: bool = False,
        since: int | None = None,
        key: Sequence[tuple[str, Span | None]] = (),
        emitted_rows: TimeVarying | None = None,
    ) -> DataFrame:
        """The changelog in an envelope: ``"one-sql"``, or one of
        :func:`windrow.spark.relations.changelog.changelog`.

        Parameters
        ----------
        envelope, ordered, key
            As there.
        since
            The first processing time whose changes are returned; None for all.
        emitted_rows
            The emitted rows, if they have been computed.
        """
        if envelope == "one-sql":
            self.refuse_unordered_groups()
        emitted_rows = self.changes(envelope, emitted_rows)
        if envelope != "one-sql":
            return changelog(replace(emitted_rows, since=since), envelope, key=key, ordered=ordered)
        groups = self.keys(emitted_rows) if self.counts else None
        return one_sql(emitted_rows, groups, ordered=ordered, since=since)


def _scale_of(kind: str) -> TimeScale:
    scale = TimeScale.of(kind, "NANOSECOND")
    assert scale is not None
    return scale


def _without_hidden(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    inside = [f"c{number}" for number in range(len(names))]
    both = zip(names, inside, strict=True)
    visible = [(name, column) for name, column in both if not name.startswith(HIDDEN)]
    return frame.toDF(*inside).select(*(column for _, column in visible)).toDF(*(name for name, _ in visible))
