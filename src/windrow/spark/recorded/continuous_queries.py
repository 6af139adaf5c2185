"""Runs continuous queries over recorded streams: time-varying relations, and streams derived from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.algebra.continuous import (
    CHANGELOG,
    ChangelogOf,
    Continuous,
    NamedRelation,
    Query,
    Reader,
    StreamQuery,
    WindowedStream,
)
from windrow.algebra.time_scale import TimeScale, common_scale
from windrow.errors import NotSupportedError, ParseError, Span, WindrowError, no_column
from windrow.plan.nodes import Node
from windrow.plan.reasons import Reason
from windrow.spark.analysis.evaluated_lengths import nanoseconds_of
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import Stream
from windrow.spark.relations.carried import why_not_carried
from windrow.spark.relations.changelog import changelog, changes_as_stream
from windrow.spark.relations.relation_of_plan import plan_of, relation_of_plan
from windrow.spark.relations.snapshots import by_snapshots
from windrow.spark.relations.stream_windows import Sizes, windowed
from windrow.spark.relations.time_varying_relation import ENTER, LEAVE, TimeVarying, columns_of
from windrow.syntax.cql_clauses import StreamWindowClause
from windrow.syntax.lengths import Length

__all__ = ["Result", "Runner"]

Result = TimeVarying | Stream | DataFrame
"""The result of a continuous query; a DataFrame if the query reads no stream."""


class Runner:
    """Runs one statement.

    Parameters
    ----------
    gateway, catalog
        The session, and its streams and time-varying relations.
    reader
        The reader of the statement.
    execution
        ``"batch"`` or ``"reference"``.

    Attributes
    ----------
    plans
        The plan of each query that was run; empty in the reference, which has no plans.
    """

    def __init__(self, gateway: Gateway, catalog: Catalog, reader: Reader, execution: str) -> None:
        self.gateway, self.catalog, self.reader, self.execution = gateway, catalog, reader, execution
        self.tokens, self.sql = reader.tokens, reader.tokens.sql
        self.plans: dict[Span, Node] = {}
        self._lengths: dict[tuple[int, int], Decimal] = {}

    def run(self, query: Continuous) -> Result:
        """The relation or stream of a query."""
        try:
            scale = (
                common_scale(*self._scales_and_lengths(query))
                if _is_temporal(query)
                else TimeScale("bigint", "SECOND")
            )
            if isinstance(query, StreamQuery):
                return self.stream(query, scale)
            return self.relation(query, scale) if query.is_temporal else self.table(query)
        except WindrowError as error:
            raise error.located(self.sql) from error.__cause__

    def relation(self, query: Query, scale: TimeScale) -> TimeVarying:
        """The time-varying relation of a query, in ticks of this time scale."""
        inputs: dict[str, TimeVarying] = {}
        tables: dict[str, DataFrame] = {}
        for item in query.inputs:
            if isinstance(item, WindowedStream):
                inputs[item.key] = self.window(item, scale)
            elif isinstance(item, NamedRelation):
                inputs[item.key] = self.named(item, scale)
            else:
                tables[item.key] = self.changelog(item)
        # first, so that errors have positions in the text as it is written
        as_written = self.gateway.sql(
            query.text, {**{key: item.visible() for key, item in inputs.items()}, **tables}
        )
        if self.execution == "reference":
            if self.gateway.plan_only:
                return _unrun(as_written, scale)
            return by_snapshots(self.gateway, lambda at: self.answer(query, {**at, **tables}), inputs, scale)
        plan = plan_of(self.gateway, self.reader, query, inputs, tables)
        if isinstance(plan, Reason):
            raise self._not_planned(query, plan)
        if (why := why_not_carried(self.gateway, plan)) is not None:
            raise self._not_planned(query, why)
        found = relation_of_plan(self.gateway, plan, scale, inputs, tables)
        self.plans[query.span] = plan
        return found.renamed(tuple(as_written.columns))

    def answer(self, query: Query, relations: Mapping[str, DataFrame]) -> DataFrame:
        """The rows of a query at an instant, over its inputs at that instant."""
        return self.gateway.sql(query.text, relations)

    def _not_planned(self, query: Query, reason: Reason) -> NotSupportedError:
        return NotSupportedError(
            f"{reason} over windows of streams is not supported",
            condition="UNSUPPORTED_QUERY",
            sql=self.sql,
            span=query.span if reason.at is None else self.tokens.span(*reason.at),
            hint=reason.hint or "use Session(execution='reference'), which evaluates it instant by instant",
        )

    def named(self, item: NamedRelation, scale: TimeScale) -> TimeVarying:
        """A time-varying view."""
        return self.catalog.relations[item.name.lower()].on(scale)

    def table(self, query: Query) -> DataFrame:
        """The rows of a query that reads no stream."""
        tables = {item.key: self.changelog(item) for item in query.inputs if isinstance(item, ChangelogOf)}
        return self.gateway.sql(query.text, tables)

    def stream(self, query: StreamQuery, scale: TimeScale) -> Stream:
        """The stream of ISTREAM, DSTREAM or RSTREAM, or of changes."""
        relation = self.relation(query.query, scale)
        if query.kind == CHANGELOG:
            with self.gateway.translated():
                return changes_as_stream(relation, self.scale_of(query), query.using)
        known = {name.lower(): column for name, column in zip(relation.names, relation.columns, strict=True)}
        using = []
        for name, span in query.using:
            if name.lower() not in known:
                raise no_column("the query has", name, relation.names, sql=self.sql, span=span)
            using.append(known[name.lower()])
        with self.gateway.translated():
            found = relation.stream(query.kind, using)
        return self._renamed(found, query) if query.names else found

    def _renamed(self, stream: Stream, query: StreamQuery) -> Stream:
        """The stream with the names of its columns in a WITH list."""
        if len(query.names) != len(stream.visible_names):
            first, last = query.names[0][1], query.names[-1][1]
            raise ParseError(
                f"the query has {len(stream.visible_names)} columns, but {len(query.names)} names",
                condition="PARSE_SYNTAX_ERROR",
                sql=self.sql,
                span=Span(first.start, last.stop),
                hint="write one name for each column of the query",
            )
        return stream.renamed(tuple(name for name, _ in query.names))

    def window(self, item: WindowedStream, scale: TimeScale) -> TimeVarying:
        """A window of a stream as a relation."""
        source = item.source
        if isinstance(source, StreamQuery):
            stream = self.stream(source, scale)
        else:
            stream = self.catalog.streams[source.lower()]
        return windowed(self.gateway, stream.on(scale), item, self.sizes(item, scale), self.execution)

    def sizes(self, item: WindowedStream, scale: TimeScale) -> Sizes:
        """The lengths of a window in ticks of a time scale."""
        source = item.source
        # the stream of a query has the query's time scale
        own = (
            self.scale_of(source)
            if isinstance(source, StreamQuery)
            else self.catalog.streams[source.lower()].scale
        )
        granularity = own.nanoseconds // scale.nanoseconds
        window = item.window
        return Sizes(self._ticks(window.range_, scale), self._ticks(window.slide, scale), granularity)

    def changelog(self, item: ChangelogOf) -> DataFrame:
        """The changelog of a query as a table."""
        relation = self.run(item.query)
        assert isinstance(relation, TimeVarying)
        with self.gateway.translated():
            return changelog(relation, key=item.key_columns)

    # -- lengths of time -----------------------------------------------------------------------------

    def _ticks(self, length: Length | None, scale: TimeScale) -> int | None:
        return None if length is None else scale.ticks(self._length(length))

    def _length(self, length: Length) -> Decimal:
        """Nanoseconds."""
        if length.tokens not in self._lengths:
            self._lengths[length.tokens] = nanoseconds_of(self.gateway, self.tokens, length, default="SECOND")
        return self._lengths[length.tokens]

    def scale_of(self, query: Continuous) -> TimeScale:
        """The time unit of a query's instants."""
        return common_scale(*self._scales_and_lengths(query))

    def _scales_and_lengths(self, query: Continuous) -> tuple[list[TimeScale], list[Decimal]]:
        scales, lengths = [], []
        for item in _inputs(query):
            if isinstance(item, NamedRelation):
                scales.append(self.catalog.relations[item.name.lower()].scale)
            elif isinstance(item, WindowedStream):
                if isinstance(item.source, str):
                    scales.append(self.catalog.streams[item.source.lower()].scale)
                lengths += [self._length(part) for part in _durations(item.window)]
        return scales, lengths


def _unrun(frame: DataFrame, scale: TimeScale) -> TimeVarying:
    """A relation with the columns of a query, and without rows."""
    never = {ENTER: F.lit(0).cast("bigint"), LEAVE: F.lit(0).cast("bigint")}
    names = frame.columns
    empty = frame.limit(0).toDF(*columns_of(names)).withColumns(never)
    return TimeVarying.of(empty, scale, []).renamed(tuple(names))


def _inputs(query: Continuous) -> Iterator[WindowedStream | NamedRelation]:
    """The time-varying inputs of a query, and of the queries whose streams it reads."""
    if isinstance(query, StreamQuery):
        query = query.query
    for item in query.inputs:
        if isinstance(item, ChangelogOf):
            continue
        yield item
        if isinstance(item, WindowedStream) and isinstance(item.source, StreamQuery):
            yield from _inputs(item.source)


def _is_temporal(query: Continuous) -> bool:
    return any(True for _ in _inputs(query))


def _durations(window: StreamWindowClause) -> list[Length]:
    return [part for part in (window.range_, window.slide) if part is not None]
