"""Evaluates a CQL query in one micro-batch as Spark jobs, and says which rows it still needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from windrow.algebra.continuous import (
    ChangelogOf,
    Continuous,
    NamedRelation,
    Query,
    Reader,
    StreamQuery,
    WindowedStream,
)
from windrow.algebra.time_scale import NEVER, TimeScale, common_scale
from windrow.errors import NotSupportedError
from windrow.plan.reader.sources import path_of_clause
from windrow.spark.catalog import Catalog, ClauseDefinition
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.known_streams import is_live
from windrow.spark.live.reading.windows_of_query import QueryWindow, windows_of
from windrow.spark.logs.micro_batch import InstantSpan, RetainedRows
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.recorded.continuous_queries import Runner
from windrow.spark.relations.clauses_in_pieces import clause_at_instant, clause_over_time
from windrow.spark.relations.stream_windows import Sizes, partition_keys, windowed
from windrow.spark.relations.time_varying_relation import AT, ENTER, LEAVE, TimeVarying
from windrow.syntax.sqltext import quoted

__all__ = ["LiveRunner", "live_streams", "live_windows", "reads", "sequences_of", "views_of"]


class LiveRunner(Runner):
    """Runs a query over what a micro-batch knows.

    Parameters
    ----------
    gateway, catalog, reader, execution
        As of :class:`windrow.spark.recorded.continuous_queries.Runner`.
    span
        The micro-batch.
    path
        The views in which the query stands.
    """

    def __init__(
        self,
        gateway: Gateway,
        catalog: Catalog,
        reader: Reader,
        execution: str,
        span: InstantSpan,
        path: str = "",
    ) -> None:
        super().__init__(gateway, catalog, reader, execution)
        self.span, self.path = span, path
        self.clause: ClauseDefinition | None = None  # whose rows it evaluates

    def scale_of(self, query: Continuous) -> TimeScale:
        """What instants are counted in.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_STREAM`` for changelogs in several units.
        """
        if isinstance(query, Query) and query.inputs and not query.is_temporal:
            changelogs = [item for item in query.inputs if isinstance(item, ChangelogOf)]
            first, *others = [self.scale_of(item.query) for item in changelogs]
            for item, scale in zip(changelogs[1:], others, strict=True):
                if scale != first:
                    raise self._refused("changelogs of live relations in several units", item)
            return first
        return common_scale(*self._scales_and_lengths(query))

    def relation(self, query: Query, scale: TimeScale) -> TimeVarying:
        """The relation, whose changes in the micro-batch are emitted."""
        return replace(super().relation(query, scale), since=self.span.since)

    def named(self, item: NamedRelation, scale: TimeScale) -> TimeVarying:
        """A view, or a clause over windows, evaluated in the same micro-batch."""
        name = item.name.lower()
        clause = self.catalog.clauses.get(name)
        if clause is not None:
            inner = self._inside(clause.reader, path_of_clause(item.key))
            inner.clause = clause
            rows = inner.relation(clause.query, scale)
            if self.execution == "reference":  # it has been evaluated at each instant
                return rows
            return clause_over_time(self.gateway, clause.clause, rows)[0]
        definition = self.catalog.definitions[name]
        assert isinstance(definition.query, Query)
        inner = self._inside(definition.reader, f"{name}{item.key}")
        return inner.relation(definition.query, scale).renamed(definition.names)

    def answer(self, query: Query, relations: Mapping[str, DataFrame]) -> DataFrame:
        """The rows of a query at an instant; of those of a clause, what the clause returns."""
        rows = super().answer(query, relations)
        clause = self.clause
        is_of_clause = clause is not None and query is clause.query
        return clause_at_instant(self.gateway, clause.clause, rows)[0] if clause and is_of_clause else rows

    def arriving(self, name: str, scale: TimeScale) -> Stream:
        """The rows of a stream that the micro-batch takes, with rowtimes in ticks of the query's time
        scale.
        """
        if name.lower() in self.span.arrived:
            stream = self.span.arrived[name.lower()].on(scale)
            return replace(stream, frame=stream.frame.where(F.col(ROWTIME) < self.span.until))
        definition = self.catalog.definitions.get(name.lower())
        if definition is None:  # it is recorded, and its rows come when their time has come
            stream = self.catalog.streams[name.lower()].on(scale)
            rows = stream.frame.where(F.col(ROWTIME) < self.span.until)
            since = self.span.since
            return replace(stream, frame=rows if since is None else rows.where(F.col(ROWTIME) >= since))
        assert isinstance(definition.query, StreamQuery)
        return (
            self._inside(definition.reader, name.lower())
            .stream(definition.query, scale)
            .renamed(definition.names)
        )

    def windowed(self, stream: Stream, item: WindowedStream, sizes: Sizes) -> TimeVarying:
        """The window over the rows that it still needs and those that the micro-batch takes."""
        name = f"window{self.path}{item.key}"
        span = self.span
        hidden = (ROWTIME, *stream.ties)
        rows = stream.frame.select(*map(quoted, stream.columns), *hidden)
        before = span.before(name)
        whole = rows if before is None else before.frame.unionByName(rows)
        carried = replace(stream, frame=whole, columns=(*stream.columns, *hidden), known_ends=span.ends)
        made = windowed(self.gateway, carried, item, sizes, self.execution)
        if (item.window.row_slide or 1) > 1:
            needed = _last_groups(self.gateway, carried, item)
        else:
            there = made.frame.where(F.col(LEAVE) >= span.until)
            needed = there.select(*made.columns).toDF(*made.names)
        span.to_retain[name] = RetainedRows.of(needed)
        return self._clipped(made, len(stream.columns))

    def _clipped(self, made: TimeVarying, count: int) -> TimeVarying:
        """What the micro-batch knows of a window: the first `count` columns, in its time."""
        span = self.span
        enter, leave = F.col(ENTER), F.col(LEAVE)
        frame = made.frame.where(enter < span.until)
        if span.since is not None:
            frame = frame.where(leave >= span.since).withColumn(
                ENTER, F.greatest(enter, F.lit(span.since - 1).cast("bigint"))
            )
        frame = frame.withColumn(LEAVE, F.when(leave >= span.until, F.lit(NEVER)).otherwise(leave))
        instants = made.instants.where(F.col(AT) < span.until)
        if span.since is not None:
            instants = instants.where(F.col(AT) >= span.since)
        shown = made.columns[:count]
        return replace(
            made, frame=frame.select(*shown, ENTER, LEAVE), names=made.names[:count], instants=instants
        )

    def table(self, query: Query) -> DataFrame:
        """What a query of changelogs alone returns of the changes of the micro-batch."""
        changes = super().changelog
        return self.gateway.sql(
            query.text, {item.key: changes(item) for item in query.inputs if isinstance(item, ChangelogOf)}
        )

    def changelog(self, item: ChangelogOf) -> DataFrame:
        """Refused: of endless input there is no table of all changes."""
        raise self._refused("CHANGELOG OF a live relation beside what varies", item)

    def _refused(self, what: str, item: ChangelogOf) -> NotSupportedError:
        return NotSupportedError(
            f"{what} is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=self.sql,
            span=item.span,
            hint="start the relation itself: its output is its changelog",
        )

    def _inside(self, reader: Reader, path: str) -> LiveRunner:
        return LiveRunner(
            self.gateway, self.catalog, reader, self.execution, self.span, f"{self.path}.{path}"
        )


def _last_groups(gateway: Gateway, stream: Stream, item: WindowedStream) -> DataFrame:
    """Of windows that move by groups of rows, those from which on rows are counted again."""
    rows, keys = partition_keys(gateway, stream, item)
    size, moves = item.window.rows or 0, item.window.row_slide or 1
    partition = Window.partitionBy(*keys)
    place = F.row_number().over(partition.orderBy(ROWTIME, *stream.ties)) - 1
    entered = F.floor(F.count(F.lit(1)).over(partition) / moves) * moves
    first = F.floor(F.greatest(entered - size, F.lit(0)) / moves) * moves
    numbered = rows.withColumns({"__place0": place, "__first0": first})
    return numbered.where("__place0 >= __first0").select(*map(quoted, stream.columns))


def live_streams(catalog: Catalog, query: Continuous) -> frozenset[str]:
    """The names of the live streams that a query reads, also through views."""
    found = {name for name in reads(catalog, query) if is_live(catalog, name)}
    for name in sequences_of(catalog, query):
        found |= catalog.sequences[name].streams
    return frozenset(found)


def views_of(catalog: Catalog, query: Continuous) -> frozenset[str]:
    """The names of the views that a query reads, also through others."""
    found = {name for name in reads(catalog, query) if name in catalog.definitions}
    for name in sequences_of(catalog, query):
        found |= {name, *catalog.sequences[name].views}
    return frozenset(found)


def sequences_of(catalog: Catalog, query: Continuous) -> frozenset[str]:
    """The streams of windows and matches that a query reads, also through views of other queries."""
    return frozenset(name for name in reads(catalog, query) if name in catalog.sequences)


def live_windows(catalog: Catalog, query: Continuous, reader: Reader) -> Iterator[QueryWindow]:
    """The windows in a query of live streams, and of streams that clauses or queries make, also in views."""
    for window in windows_of(catalog, query, reader):
        if window.made is not None or is_live(catalog, str(window.item.source).lower(), with_clauses=True):
            yield window


def reads(catalog: Catalog, query: Continuous) -> Iterator[str]:
    """The names that a query reads, also through views, but for those of windows and matches."""
    inputs = query.query.inputs if isinstance(query, StreamQuery) else query.inputs
    for item in inputs:
        if isinstance(item, ChangelogOf):
            yield from reads(catalog, item.query)
        elif isinstance(item, WindowedStream) and isinstance(item.source, StreamQuery):
            yield from reads(catalog, item.source)
        else:
            name = item.name if isinstance(item, NamedRelation) else str(item.source)
            yield name.lower()
            if name.lower() in catalog.definitions:
                yield from reads(catalog, catalog.definitions[name.lower()].query)
            if name.lower() in catalog.clauses:
                yield from reads(catalog, catalog.clauses[name.lower()].query)
