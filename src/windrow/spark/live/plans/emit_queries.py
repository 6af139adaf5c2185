"""Queries with EMIT over live and named streams: what a micro-batch evaluates, and which rows it retains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.algebra.time_scale import NEVER, TimeScale
from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.algebra.watermarks import least_watermark, value_at
from windrow.errors import AnalysisError, NotSupportedError
from windrow.errors import Span as Place
from windrow.kernels.operator_state import ROWS_BEFORE_STATE
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.columns import Completeness
from windrow.plan.event_time import HIDDEN, Closed, ClosedBy, ClosedKeys, Occurrence
from windrow.plan.passing import ids_of
from windrow.spark.collected import collected, frame_of_collected
from windrow.spark.errors import raising
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.emit_program import mark_before
from windrow.spark.live.operators.punctuated.expected_punctuation import bounded
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.logs.arrived import arrived, before_end
from windrow.spark.logs.clause_view import Unbounded
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.recorded.emission import Emitted, EmittedInside
from windrow.spark.recorded.emitted_inside import stream_inside
from windrow.spark.recorded.punctuation_times import PunctuationTimes
from windrow.streams import FOREVER, NamedStream
from windrow.streams.log_position import Punctuations
from windrow.syntax.sqltext import quoted

__all__ = ["EmittedPlan", "Evaluated", "KnownWatermarks"]


@dataclass(frozen=True)
class KnownWatermarks:
    """The known watermarks of a stream in a micro-batch.

    Attributes
    ----------
    rows
        The rows that may be needed, with `ROWTIME`, `ARRIVED` and `BEFORE`.
    marks
        The changes of its watermark, each with its processing time.
    punctuations
        Its punctuations, each with its processing time.
    """

    rows: DataFrame
    marks: Marks
    punctuations: Punctuations = ()


@dataclass(frozen=True)
class Evaluated:
    """The result of a micro-batch.

    Attributes
    ----------
    changes
        The emitted changes.
    due
        When the next change is to be emitted, if no entry arrives; None for never.
    """

    changes: DataFrame
    due: int | None


@dataclass(frozen=True)
class EmittedPlan(LivePlan):
    """A query with EMIT over live streams.

    Attributes
    ----------
    written
        The statement.
    query
        The query over the log at the time of the statement.
    emit_envelope
        The envelope of EMIT STREAM; None without that clause.
    """

    written: str
    query: Emitted
    emit_envelope: str | None

    def fingerprint(self) -> dict[str, Any]:
        """The properties of the query and of its state: earlier versions had no watermarks beside rows."""
        return {"state": "rows with the watermark before each", **super().fingerprint()}

    @property
    def scale(self) -> TimeScale:
        """The unit of processing times."""
        return self.query.scale

    @property
    def text(self) -> str:
        """The query as written."""
        return self.written

    @property
    def envelope(self) -> str:
        """The envelope of EMIT STREAM."""
        return self.emit_envelope or "delta"

    @property
    def asks_changes(self) -> bool:
        """Whether it has EMIT STREAM."""
        return self.emit_envelope is not None

    @property
    def columns(self) -> list[str]:
        """The columns of its output."""
        return list(self.no_rows().columns)

    @property
    def is_relation(self) -> bool:
        """Whether its rows can be retracted: they may be."""
        return True

    @property
    def has_ttl(self) -> bool:
        """Whether keys have a state TTL."""
        return self.query.timed.has_ttl

    @property
    def table_columns(self) -> list[str]:
        """The columns of the query, without those that EMIT STREAM adds."""
        return [name for name in self.query.schema.names if not name.startswith(HIDDEN)]

    @property
    def span(self) -> Place:
        """Where the query stands."""
        return self.query.place[1]

    def views(self) -> dict[str, str]:
        """The query with those of its views, and those inside it."""
        inside = {f"inside{number}": one.text for number, one in enumerate(self._inside)}
        return {"expanded": self.query.reading.texts[0][0].render(), **inside}

    @property
    def _inside(self) -> list[EmittedInside]:
        return [one for part in self.query.parts for one in part.inside.values()]

    @cached_property
    def parts(self) -> list[EmittedPlan]:
        """The plans of the query and of those inside it."""
        return [self, *(replace(self, query=part) for part in self.query.parts[1:])]

    @cached_property
    def appends(self) -> bool:
        """Whether its rows are those of a stream one by one, and are never retracted."""
        timed = self.query.timed
        is_plain = timed.keys is None and not timed.counts and not timed.closes
        return is_plain and timed.unbounded is None and self.query.how.delay is None

    @cached_property
    def retains(self) -> str:
        """Which rows a micro-batch retains, and why."""
        timed, how = self.query.timed, self.query.how
        if timed.unbounded is not None:
            return f"the operators' state, unbounded because {timed.unbounded}"
        if self.appends:
            return "rows that are not complete" if how.watermark else "no rows"
        if not timed.closes:
            return "changes until their delay is over"
        late = " and no late rows can change them" if how.lateness else ""
        groups = "sessions, which later rows may still join" if timed.sessions else "groups"
        kinds = {type(each) for grouping in timed.closes for each in grouping}
        if kinds == {Closed}:
            return "rows, or the operators' state, until punctuation closes their groups"
        return f"rows until the watermark has passed their {groups}{late}"

    @property
    def bound_in(self) -> str:
        """The time in which the query's bound is: changes before it have been emitted."""
        return "processing time"

    @property
    def stored(self) -> str | None:
        """The reason why a checkpoint has the state of operators; None if the watermark drops rows."""
        timed = self.query.timed
        closes = {type(each) for grouping in timed.closes or () for each in grouping}
        if timed.unbounded is None and closes != {Closed}:
            return None
        return f"as rows, up to {ROWS_BEFORE_STATE:,}, then as the operators' state"

    @property
    def retains_by_tasks(self) -> str:
        """The same if tasks evaluate the micro-batches: they retain rows only."""
        why = self.query.timed.unbounded or ("of AFTER DELAY without groups" if self.needs_all else None)
        why = "a query with EMIT is inside it" if self.query.inside else why
        return self.retains if why is None else f"all rows, because {why}"

    @property
    def delay(self) -> int:
        """How long changes are buffered, in ticks of processing time."""
        return self.query.how.delay or 0

    @property
    def needs_all(self) -> bool:
        """Whether all rows would be needed forever, if the state of operators did not replace them."""
        timed = self.query.timed
        is_unbounded = timed.unbounded is not None or (not self.appends and not timed.closes)
        return is_unbounded or bool(self.query.inside)

    def unbounded(self) -> Sequence[Unbounded]:
        """Rows that are retained forever, or until unexpected punctuation arrives."""
        if self.query.timed.unbounded is not None:
            needs = "groups by windows of time, or by keys with a STATE LIFETIME, would bound it"
            return [Unbounded("the query", self.retains, needs)]
        found = []
        for name, part in [(each, part) for each in sorted(self.streams) for part in self.closes(each)]:
            if any(isinstance(each, ClosedKeys) or self._is_expected(each) for each in part):
                continue
            closing = [f"{self.places[at]} ({', '.join(column for column, _ in pairs)})"
                       for each in part if isinstance(each, Closed) for at, pairs in each.by]  # fmt: skip
            needs = f"punctuations of {' and '.join(dict.fromkeys(closing))} would bound it"
            found.append(Unbounded("the query", f"{self.retains}, of {name}", needs))
        return found

    def _is_expected(self, closing: ClosedBy) -> bool:
        """Whether streams declare the punctuation that closes these keys."""
        return isinstance(closing, Closed) and all(
            bounded(self.catalog, self.places[at]).within([column for column, _ in pairs])
            for at, pairs in closing.by
            if self.places[at] in self.streams
        )

    # -- as a stream -----------------------------------------------------------------------------------

    @property
    def stream_columns(self) -> list[str]:
        """The columns of the query: complete rows are never retracted, so changes need no more."""
        return self.table_columns

    @cached_property
    def rowtime(self) -> str | None:
        """The column by whose values rows become complete, and in whose order they are emitted.

        None if rows may be retracted, or no column of the query decides it for all streams.
        """
        how = self.query.how
        if not how.watermark or how.delay is not None or any((how.lateness or {}).values()):
            return None
        origins = {one.origin for one in self.query.timed.complete}
        by = ((name, {one.origin for one in self._complete_by(name)}) for name in self.table_columns)
        return next((name for name, of in by if of and of == origins), None)

    def _complete_by(self, name: str) -> list[Completeness]:
        """The conditions by which values of a column of the query make rows complete."""
        plan = self.query.timed.plan
        ids = {column.name: column.id for column in plan.columns}
        own = ids_of(plan, ids[name])
        return [one for one in self.query.timed.complete if not own.isdisjoint(ids_of(plan, ids[one.column]))]

    @cached_property
    def rowtime_scale(self) -> TimeScale:
        """The unit of rowtimes: that of a stream, or of the type of the column."""
        kind = self.query.schema[self.rowtime or ""].dataType.simpleString()
        own = {self.catalog.streams[name].scale for name in self.streams}
        found = next((scale for scale in own if scale.kind == kind), None) or TimeScale.of(kind)
        assert found is not None, "event time has the type of a rowtime"
        return found

    def refuse_no_stream(self) -> None:
        """Refuse a query whose rows may be retracted, or that has no column for when they are complete.

        Raises
        ------
        AnalysisError
            ``RELATION_WHERE_STREAM_IS_NEEDED``.
        NotSupportedError
            ``UNSUPPORTED_CLAUSE`` of a query around others with EMIT.
        """
        if self.query.inside:
            raise NotSupportedError(
                "a query around another with EMIT goes into no named stream",
                condition="UNSUPPORTED_CLAUSE",
                sql=self.text,
                span=self.span,
                hint="insert the rows of the query inside into a named stream, and read that",
            )
        if self.rowtime is None:
            raise AnalysisError(
                "the query may retract rows or does not select their event time; a named stream takes"
                " only final rows with a rowtime",
                condition="RELATION_WHERE_STREAM_IS_NEEDED",
                sql=self.text,
                span=self.span,
                hint="write EMIT STREAM AFTER WATERMARK, without ALLOWED LATENESS; group by the end of a"
                " window, and select it",
            )

    def refuse_into(self, stream: NamedStream, columns: tuple[str, ...]) -> None:  # noqa: ARG002 - of others
        """Refuse an ordered stream if punctuation may complete rows before others with an earlier time.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_STREAM``.
        """
        if self.query.timed.lineage and stream.definition.ordering.lag is not None:
            raise NotSupportedError(
                "punctuation may make rows final before others with an earlier time, but the stream takes"
                " rows in the order of their rowtimes",
                condition="UNSUPPORTED_STREAM",
                sql=self.text,
                span=self.span,
                hint="declare the stream UNORDERED",
            )

    def moved(self, place: int) -> None:
        """Refuse a rowtime column that does not decide when rows are complete."""
        if self.stream_columns[place] != self.rowtime:
            raise self.rowtime_differs(
                place, f"its rows are final by {self.rowtime}", f"; or select {self.rowtime}"
            )

    def as_stream(self, changes: DataFrame) -> Stream:
        """Complete rows, from a changelog in the envelope ``delta``."""
        scale, rowtime = self.rowtime_scale, self.rowtime or ""
        changed = raising("UNSTABLE_VALUES", "a final row has changed", "leave AFTER WATERMARK out")
        of_row = F.expr(scale.of_column(quoted(rowtime), scale.kind, scale.unit))
        ticks = F.when(F.col("_change_type") == "insert", of_row).otherwise(changed)
        rows = changes.withColumn(ROWTIME, ticks).select(*map(quoted, self.stream_columns), ROWTIME)
        return Stream(rows, tuple(self.stream_columns), scale, (), rowtime=rowtime)

    def rowtime_until(self, gateway: Gateway, marks: Mapping[str, Marks], until: int) -> int | None:
        """The rowtime before which no row is emitted after a processing time; None while it is unknown."""
        known = [
            self.known(name, marks[name]) if name in marks else arrival.watermark
            for name in sorted(self.query.timed.streams)
            if (arrival := self.query.streams[name].timed) is not None
        ]
        mark = value_at(least_watermark(known), until)
        if mark is None:
            return None
        if all(value_at(steps, until) == FOREVER for steps in marks.values()):
            return FOREVER
        scale = self.rowtime_scale
        parts = []
        for one in self._complete_by(self.rowtime or ""):
            own = self.query.streams[self.places[one.origin]].scale
            mapped = one.mapped.replace("{t}", own.to_column(f"{mark}L"))
            parts.append(scale.of_column(f"({mapped})", scale.kind, scale.unit))
        least = parts[0] if len(parts) == 1 else f"least({', '.join(parts)})"
        with gateway.translated():
            found = gateway.spark.sql(f"SELECT {least} AS until").collect()[0][0]
        return None if found is None else int(found)

    def no_rows(self) -> DataFrame:
        """No rows, with the columns of the output."""
        return (
            self.query.emitted(self.emit_envelope) if self.emit_envelope is not None else self.query.at(0)
        ).limit(0)

    def evaluate(
        self,
        gateway: Gateway,
        known: Mapping[str, KnownWatermarks],
        span: tuple[int | None, int],
        origin: int,
        envelope: str,
    ) -> Evaluated:
        """The changes of a micro-batch.

        Parameters
        ----------
        gateway
            The gateway of the micro-batch.
        known
            The known entries of each live stream by the end of the micro-batch.
        span
            The processing times of the micro-batch: it emits changes after the first, which is None at the
            beginning, up to the last.
        origin
            The first processing time of the logs.
        envelope
            The form of the changes.
        """
        since, until = span
        query = self.query_over(gateway, known, (origin, until))
        rows, due = query.emitted_rows, None
        if query.how.delay is not None:
            table = collected(rows.frame)
            if table is not None:
                rows = replace(rows, frame=frame_of_collected(gateway.spark, table, rows.frame.schema))
            due = _next(rows.frame, until) if table is None else _next_of(table, until)
        delayed = [part for part in query.parts[1:] if part.how.delay is not None]
        dues = [due, *(_next(part.emitted_rows.frame, until) for part in delayed)]
        due = min((at for at in dues if at is not None), default=None)
        first = None if since is None else since + 1
        return Evaluated(query.emitted(envelope, since=first, emitted_rows=rows), due)

    def query_over(
        self, gateway: Gateway, known: Mapping[str, KnownWatermarks], span: tuple[int, int]
    ) -> Emitted:
        """The query over the known entries of the live streams up to the end of the processing times."""
        return self._query_over(self.query, gateway, known, span)

    def _query_over(
        self,
        query: Emitted,
        gateway: Gateway,
        known: Mapping[str, KnownWatermarks],
        span: tuple[int, int],
    ) -> Emitted:
        inside = {
            name: replace(one, query=self._query_over(one.query, gateway, known, span))
            for name, one in query.inside.items()
        }
        streams = {
            name: arrived(
                stream, known[name].rows, self.known(name, known[name].marks), span, known[name].punctuations
            )
            if name in known
            else stream_inside(inside[name])
            if name in inside
            else stream
            for name, stream in query.streams.items()
        }
        how = replace(query.how, until=span[1])
        return replace(query, gateway=gateway, streams=streams, how=how, inside=inside)

    def marks_before(self, each: Occurrence, rows: pa.Table, marks: Mapping[str, Marks]) -> pa.Array:
        """The watermark before each row of a stream, at one place of the query: as in `Emitted`, in memory.

        Parameters
        ----------
        rows
            With `ROWTIME`, `ARRIVED` and `BEFORE`.
        marks
            The changes of each live stream's watermark, each with its processing time.
        """
        others = [
            self.known(name, marks[name]) if name in marks else arrival.watermark
            for name in sorted(each.watermark_of - {each.stream})
            if (arrival := self.query.streams[name].timed) is not None
        ]
        return mark_before(rows, others, (self.query.how.lateness or {}).get(each.stream, 0))

    def known(self, name: str, marks: Marks) -> Marks:
        """The changes of a stream's watermark, in the query's units."""
        return before_end(self.catalog.streams[name].scale, marks)

    @cached_property
    def places(self) -> dict[int, str]:
        """The streams, by their places in the query."""
        return {each.place: each.stream for each in self.query.timed.occurrences}

    def punctuation(self, logged: Mapping[str, Punctuations]) -> PunctuationTimes:
        """The punctuations of the streams: declared, and logged."""
        streams = {
            name: self.catalog.streams.get(name, stream) for name, stream in self.query.sources.items()
        }
        found = PunctuationTimes(streams)
        for name, stream in streams.items():
            if name in logged:
                found.take(name, [(0, text) for text in (stream.live.domain if stream.live else ())])
            elif stream.timed is not None:
                found.take(name, stream.timed.punctuations)
            found.take(name, logged.get(name, ()))
        return found

    @cached_property
    def reads_punctuations(self) -> bool:
        """Whether punctuation matters to the query."""
        every = [part.timed for part in self.query.parts]
        closings = [
            each for timed in every for grouping in (*timed.closes, timed.closed) for each in grouping
        ]
        return any(timed.lineage for timed in every) or any(isinstance(each, Closed) for each in closings)

    @property
    def emits_at_once(self) -> bool:
        """Whether rows are emitted when they arrive, and never again."""
        return self.appends and not self.query.how.watermark

    @property
    def has_sessions(self) -> bool:
        """Whether other rows decide until when a row is needed."""
        return bool(self.query.timed.sessions) and self.query.timed.unbounded is None

    def closings(self, name: str) -> list[list[ClosedBy]]:
        """The conditions by which rows of a stream are no longer needed: one of each list.

        For queries without sessions.
        """
        timed = self.query.timed
        if not self.appends:
            return self.closes(name) or [[]]
        places = [each.place for each in timed.occurrences if each.stream == name]
        by_time = [ClosedKeys("{t}", "{t}", at) for at in places] if timed.complete else []
        return [[*by_time, *(each for each in timed.closed if each.origin in places)]]

    def over(self, groupings: Sequence[Sequence[ClosedBy]], name: str, mark: str) -> Column:
        """Whether a row is no longer needed, by its rowtime.

        `mark` is SQL for the watermark of :meth:`mark_of`, in ticks.
        """
        over = F.lit(True)
        for grouping in groupings:
            closed = F.lit(False)
            for each in (each for each in grouping if isinstance(each, ClosedKeys)):
                closed = closed | self.below(each.greatest, each.least, name, mark)
            over = over & closed
        return over

    def closes(self, name: str) -> list[list[ClosedBy]]:
        """The conditions that close rows of a stream, at all its places in the query: one of each list."""
        timed = self.query.timed
        places = [each.place for each in timed.occurrences if each.stream == name]
        parts = [
            [each for each in grouping if each.origin == at] for grouping in timed.closes for at in places
        ]
        return [part for part in parts if part]

    def closes_in_time(self, name: str) -> list[list[ClosedKeys]]:
        """The same by the watermark alone."""
        return [[each for each in part if isinstance(each, ClosedKeys)] for part in self.closes(name)]

    def mark_of(self, name: str, marks: Mapping[str, Marks], until: int) -> int | None:
        """The watermark below which rows that are complete by a processing time have been emitted."""
        arrivals = {each: self.query.streams[each].timed for each in self.query.timed.streams}
        if self.catalog.streams[name].rowtime is None:
            return None
        if len({each.rowtime for each in arrivals.values() if each is not None}) > 1:
            return None  # rowtimes of several types have no least
        known = [
            self.known(each, marks[each]) if each in marks else arrival.watermark
            for each, arrival in arrivals.items()
            if arrival is not None
        ]
        # by then the last changes have been emitted
        mark = value_at(least_watermark(known), until - self.delay)
        late = 0 if self.appends else (self.query.how.lateness or {}).get(name, 0)
        return None if mark is None else mark - late

    def below(self, greatest: str, least: str, name: str, mark: str, column: str | None = None) -> Column:
        """Whether the greatest value of a row, in its rowtime or another column, is below the watermark."""
        stream = self.catalog.streams[name]
        instant = stream.scale.to_column(mark)
        row = greatest.replace("{t}", quoted(column or stream.rowtime or ""))
        return F.coalesce(F.expr(f"{row} < {least.replace('{t}', instant)}"), F.lit(False))


def _next(frame: DataFrame, until: int) -> int | None:
    """The first instant after `until` at which rows enter or leave."""

    def after(column: str) -> Column:
        return F.min(F.when((F.col(column) > until) & (F.col(column) != NEVER), F.col(column)))

    found: Sequence[int | None] = frame.agg(after(ENTER), after(LEAVE)).collect()[0]
    return min((at for at in found if at is not None), default=None)


def _next_of(table: pa.Table, until: int) -> int | None:
    """The same for a table."""
    ticks = np.concatenate([table.column(name).to_numpy() for name in (ENTER, LEAVE)])
    return min(ticks[(ticks > until) & (ticks != NEVER)].tolist(), default=None)
