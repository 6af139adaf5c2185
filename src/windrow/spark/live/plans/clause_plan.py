"""Queries with WINDOW BY or MATCH_RECOGNIZE over live streams, and views of them, which are streams again.

A micro-batch processes the rows before the frontier, like every live query, and emits the windows and matches
that are final (:mod:`windrow.spark.live.operators.clause_operator`). SQL around a clause processes each row
alone, so it is evaluated over the output of the micro-batch. A clause over another one, or over a view,
follows it (:mod:`.upstream`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampNTZType

from windrow.algebra.bind import bind
from windrow.algebra.bound_statement import BoundStatement
from windrow.algebra.match_node import Match
from windrow.algebra.names import order_key
from windrow.algebra.rewriting.changing import refuse_changing
from windrow.algebra.time_scale import TimeScale
from windrow.algebra.window_node import Window
from windrow.errors import AnalysisError, NotSupportedError, WindrowError
from windrow.errors import Span as Place
from windrow.kernels.advance import retained_by, retention
from windrow.plan.arrow_types import is_orderable
from windrow.spark.analysis.own_aggregates import own_aggregates
from windrow.spark.catalog import Catalog
from windrow.spark.clauses.batch import (
    build_window,
    explained,
    refuse_streaming,
    run_statement,
)
from windrow.spark.clauses.reference_mode import build_reference
from windrow.spark.errors import raising
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.clause_operator import LiveClause, bind_live
from windrow.spark.live.operators.ended_partitions import may_end
from windrow.spark.live.operators.punctuated.expected_punctuation import bounded
from windrow.spark.live.plans.live_plan import BUFFERED_ROWS, RowtimePlan, texts_of
from windrow.spark.live.plans.planned_views import planned_views
from windrow.spark.live.plans.read_names import live_streams, views_of
from windrow.spark.live.plans.upstream import Upstream
from windrow.spark.live.plans.views_over_windows import (
    reasons_of_views,
    unbounded_of_views,
    windows_of_views,
)
from windrow.spark.live.reading.beside import LiveRelationNode, beside
from windrow.spark.live.reading.origins import origin_of
from windrow.spark.logs.clause_view import ClauseSource, Ends, Feed, Unbounded
from windrow.spark.logs.micro_batch import InstantSpan, MicroBatch, PartOutput
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import subqueries
from windrow.syntax.tokens import TokenList

__all__ = ["ClausePlan", "WhyRelation", "plan_of_clauses"]

_BUILDERS = {"batch": build_window, "reference": build_reference}


def plan_of_clauses(
    gateway: Gateway,
    catalog: Catalog,
    tokens: TokenList,
    query: Range,
    execution: str,
    *,
    recorded: bool = False,
) -> ClausePlan | None:
    """The plan of a query with WINDOW BY or MATCH_RECOGNIZE over live streams, over a view of one, or also
    over `recorded` ones; None for any other.
    """
    behind = {name: _live_behind(catalog, name) for name in catalog.streams}
    found = {name: live for name, live in behind.items() if live or recorded}
    words = {token.name.lower() for token in tokens.tokens if token.is_name}
    if words.isdisjoint(found):
        return None
    names = {name: name for name in found}
    statement = bind(
        tokens,
        query,
        catalog.rowtimes,
        names,
        clauses=words.isdisjoint(catalog.sequences),
        own=own_aggregates(gateway, tokens),
    )
    if statement is None:
        return None
    read = {key for item in statement.windows for key in item.rows.relations() if key in found}
    read |= {key for key in statement.text.relations() if key in found}
    if not read or (not statement.windows and read.isdisjoint(catalog.sequences)):
        return None
    live = frozenset(name for key in read for name in found[key])
    return ClausePlan(gateway, catalog, live, tokens, query, statement, frozenset(read), execution)


def _live_behind(catalog: Catalog, name: str) -> frozenset[str]:
    """The live streams that a stream is, or is derived from."""
    if catalog.streams[name].live is not None:
        return frozenset([name])
    if name in catalog.sequences:
        return catalog.sequences[name].streams
    definition = catalog.definitions.get(name)
    return live_streams(catalog, definition.query) if definition is not None else frozenset()


@dataclass(frozen=True)
class _Bound:
    """The bound clauses, each after its inputs; the whole query over no rows; the rowtime columns; and the
    streams behind the output.
    """

    clauses: tuple[LiveClause, ...]
    outer: DataFrame
    rowtimes: frozenset[str]
    lineage: tuple[Feed, ...]


@dataclass(frozen=True)
class WhyRelation:
    """Why the output of a query is not a stream of windows or matches.

    Attributes
    ----------
    refused
        The error to raise if a stream is required.
    below
        Whether rows are combined below a clause, so that its input is a relation.
    """

    refused: WindrowError
    below: bool = False


@dataclass(frozen=True)
class ClausePlan(RowtimePlan):
    """A query with clauses over live streams.

    Attributes
    ----------
    tokens, query
        The text, and the position of the query in it.
    statement
        Its algebra, in which the streams `read` are relations.
    execution
        As of :class:`windrow.spark.recorded.continuous_queries.Runner`.
    """

    tokens: TokenList
    query: Range
    statement: BoundStatement
    read: frozenset[str]
    execution: str

    @cached_property
    def scale(self) -> TimeScale:
        """The time scale of the streams.

        Raises
        ------
        AnalysisError
            ``MIXED_ROWTIMES``.
        """
        first, *rest = sorted(self.read)
        streams = self.catalog.streams
        for other in rest:
            if streams[other].scale != streams[first].scale:
                kinds = [_scale_text(streams[name].scale) for name in (first, other)]
                raise AnalysisError(
                    f"rowtimes of {first} are {kinds[0]}, but those of {other} are {kinds[1]}",
                    condition="MIXED_ROWTIMES",
                    sql=self.tokens.sql,
                    span=self.span,
                    hint="cast one of them to the type of the other where the stream is declared",
                )
        return streams[first].scale

    @property
    def clause_inputs(self) -> frozenset[str]:
        """The streams that it reads."""
        return self.read

    @property
    def text(self) -> str:
        """The query as written."""
        return self.tokens.sql

    @property
    def span(self) -> Place:
        """Where it stands."""
        return self.tokens.span(*self.query)

    @property
    def clauses(self) -> tuple[LiveClause, ...]:
        """The clauses of the query, each after its inputs."""
        return self.bound.clauses

    @cached_property
    def ends(self) -> dict[str, Ends]:
        """The punctuation that ends the partitions of its clauses, by their keys."""
        return {key: ends for key, ends in self.ends_under("").items() if may_end(ends)}

    def ends_under(self, path: str) -> dict[str, Ends]:
        """The same, also for the views that it reads, by keys that begin with their paths."""
        found = {f"{path}{one.clause.key}": self._ends_of(one.keys) for one in self.clauses}
        for name in self.read & self.catalog.sequences.keys():
            found |= self.catalog.sequences[name].ends()
        return found

    def _ends_of(self, keys: Iterable[Feed]) -> Ends:
        streams = self.catalog.streams
        return tuple(ClauseSource(one.stream, streams[one.stream], one.columns) for one in keys)

    @property
    def outer(self) -> DataFrame:
        """The output of the query, over no rows."""
        return self.bound.outer

    @property
    def columns(self) -> list[str]:
        """The columns of the output."""
        return self.outer.columns

    @property
    def rowtime(self) -> str | None:
        """The first column that has the rowtime of a label row, or of a row of a match."""
        return next((name for name in self.columns if name in self.bound.rowtimes), None)

    def moved(self, place: int) -> None:
        """Refuse a rowtime column that does not have the rowtime of label rows, or of rows of matches."""
        if self.columns[place] not in self.bound.rowtimes:
            raise self.rowtime_differs(place, "it is not the rowtime of its rows")
        if self.columns[place] != self.rowtime:
            other = f"; or select {self.columns[place]} before {self.rowtime}"
            raise self.rowtime_differs(place, f"the rowtime of its rows is {self.rowtime}", other)

    def views(self) -> dict[str, str]:
        """The texts of the views that it reads."""
        names: set[str] = set()
        for name in self.read:
            definition = self.catalog.definitions.get(name)
            if definition is not None:
                names |= views_of(self.catalog, definition.query) | {name}
            elif name in self.catalog.sequences:
                names |= {name, *self.catalog.sequences[name].views}
        return texts_of(self.catalog, frozenset(names))

    def windows(self, path: str = "", prefix: str = "") -> dict[str, str]:
        """The state of its clauses, and of those of the views that it reads."""
        found = windows_of_views(self.gateway, self.catalog, self.read)
        for name in self.read & self.catalog.sequences.keys():
            found |= self.catalog.sequences[name].windows()
        for clause in self.clauses:
            what, name = _written(clause), f"window{path}{clause.clause.key}"
            found |= {name: f"{prefix}{what}", f"{name}.waiting": f"{prefix}{what}, waiting"}
        return found

    def reasons(self, path: str = "") -> dict[str, str]:
        """Which rows these are, and until when they are retained, by the same names."""
        found = reasons_of_views(self.gateway, self.catalog, self.read)
        for name in self.read & self.catalog.sequences.keys():
            found |= self.catalog.sequences[name].reasons()
        for clause in self.clauses:
            name, kernel = f"window{path}{clause.clause.key}", clause.kernel
            _, rows = retention(kernel.growing.plan, kernel.frontier(0))
            found |= {name: rows, f"{name}.waiting": BUFFERED_ROWS}
        return found

    def retained(self, path: str = "") -> dict[str, tuple[str, ...]]:
        """The rows of its clauses, and of those that it follows, which may be in the driver's memory."""
        found: dict[str, tuple[str, ...]] = {}
        for name in self.read & self.catalog.sequences.keys():
            found |= self.catalog.sequences[name].retained()
        for clause in self.clauses:
            name = f"window{path}{clause.clause.key}"
            found[name] = clause.kernel.growing.partition
            found[f"{name}.waiting"] = ()
        return found

    @property
    def rowtimes(self) -> tuple[str, ...]:
        """The columns of retained rows that have rowtimes, and not only their local times."""
        own = self.scale.kind == "timestamp_ntz"
        rising = [item for one in self.clauses for item in one.kernel.rising.items()]
        found = [name for name, kind in rising if own or not isinstance(kind, TimestampNTZType)]
        return (ROWTIME, *found)

    def unbounded(self) -> Sequence[Unbounded]:
        """The clauses, including those of views, that retain rows of partitions that are not expected
        to end.
        """
        found = list(unbounded_of_views(self.gateway, self.catalog, self.read))
        for name in sorted(self.read & self.catalog.sequences.keys()):
            found += self.catalog.sequences[name].unbounded()
        grows = map(self.grows, self.clauses)
        return [*found, *(one for one in grows if one is not None)]

    def grows(self, clause: LiveClause) -> Unbounded | None:
        """The unbounded state of a clause, and what would bound it; None if it is bounded."""
        ends = self.ends.get(clause.clause.key, ())
        is_over = bool(ends) and all(bounded(self.catalog, one.name).within(one.columns) for one in ends)
        kernel = clause.kernel
        kind = retained_by(kernel.growing.plan, kernel.frontier(0))
        if is_over or kind == "time" or (kind == "rows" and not kernel.growing.partition):
            return None
        opens = "matches" if isinstance(clause.clause, Match) else "windows"
        retains = "the last rows of every partition" if kind == "rows" else f"the rows of open {opens}"
        sources = " and ".join(dict.fromkeys(map(str, ends)))
        by = "WITHIN" if isinstance(clause.clause, Match) else "an END by the rowtime"
        needs = by + (f", or punctuations of {sources}," if sources else "") + " would bound it"
        return Unbounded(_written(clause), retains, needs)

    def fingerprint(self) -> dict[str, Any]:
        """The identity of the query, and the columns of its retained rows."""
        columns = [column for clause in self.clauses for column in clause.hoisted]
        return {**super().fingerprint(), "columns": columns}

    @property
    def bound(self) -> _Bound:
        """The query, analysed over no rows.

        Raises
        ------
        WindrowError
            Where it cannot be run live, and as a query over recorded rows does.
        """
        if isinstance(self._analysed, WhyRelation):
            raise self._analysed.refused
        return self._analysed

    @property
    def why_relation(self) -> WhyRelation | None:
        """Why the output is a relation, and not a stream of windows or matches; None if it is one.

        Raises
        ------
        WindrowError
            The errors of a query over recorded rows, and those for a clause that cannot run live.
        """
        return self._analysed if isinstance(self._analysed, WhyRelation) else None

    @cached_property
    def _analysed(self) -> _Bound | WhyRelation:
        """The query over no rows, or why it makes no stream."""
        try:
            return self._bound()
        except WindrowError as error:
            raise error.located(self.tokens.sql) from error.__cause__

    def _bound(self) -> _Bound | WhyRelation:
        refuse_changing(self.tokens, self.query)
        if self.is_endless:  # what no operator does is refused now
            planned_views(self.gateway, self.catalog, self.views_of_rows)
        gateway = Gateway(self.gateway.spark, self.gateway.parameters)
        relations = {name: self._relation(gateway, name) for name in sorted(self.read)}
        for name, known in relations.items():
            gateway.frames[name] = gateway.spark.createDataFrame([], known.schema)
        clauses: list[LiveClause] = []
        for clause in self.statement.windows:
            with explained([one.bound for one in clauses]):
                rows = gateway.sql(clause.rows)
            refuse_streaming(clause, rows)
            if relations.keys().isdisjoint(clause.rows.relations()):
                return WhyRelation(
                    self._unsupported(
                        "a clause over a table together with one over a live stream is not supported",
                        clause.span,
                        "store its result in a table: CREATE TABLE … AS",
                    )
                )
            self._refuse_streams_inside(clause)
            source = beside(gateway, clause.rows, relations)
            refusal = source.why_not_row_by_row(self.tokens, self.span, clause.span)
            if refusal is not None and source.is_relation:
                return WhyRelation(refusal, below=True)
            if refusal is not None:
                raise refusal
            if order_key(0) not in source.rowtimes or clause.order_by[0][1].descending:
                raise self._other_order(clause)

            follows = any(self._waits(key) for key in clause.rows.relations())
            made = bind_live(
                gateway, clause, rows, self.scale, source.rowtimes, source.lineage, follows=follows
            )
            clauses.append(made)
            gateway.frames[clause.key] = gateway.spark.createDataFrame([], made.displayed)
            lineage = made.lineage if may_end(self._ends_of(made.keys)) else ()
            relations = {**relations, clause.key: LiveRelationNode(made.displayed, made.rowtimes, lineage)}
        with explained([one.bound for one in clauses]):
            outer = gateway.sql(self.statement.text)
        place = clauses[-1].clause.span if clauses else None
        found = beside(gateway, self.statement.text, relations)
        why = found.why_not_row_by_row(self.tokens, self.span, place)
        if why is not None and not found.is_relation:
            raise why
        bound = _Bound(tuple(clauses), outer, found.rowtimes, found.lineage)
        return bound if why is None else WhyRelation(why)

    def _relation(self, gateway: Gateway, name: str) -> LiveRelationNode:
        """A relation that is read, and where its rows come from."""
        if name not in self.catalog.sequences:
            return origin_of(gateway, self.catalog, name)
        stream = self.catalog.streams[name]
        columns = StructType([stream.frame.schema[column] for column in stream.columns])
        rowtimes = frozenset([] if stream.rowtime is None else [stream.rowtime])
        return LiveRelationNode(columns, rowtimes, self.catalog.sequences[name].lineage)

    def _waits(self, key: str) -> bool:
        """Whether rows of a relation may arrive that a clause over it must wait for."""
        return key not in self.read or key in self.catalog.sequences

    # -- a micro-batch --------------------------------------------------------------------------------------

    def output(self, span: InstantSpan) -> PartOutput:
        """The final rows of a micro-batch, and the instant before which no more follow."""
        return self.evaluated(Upstream(self.catalog, span, self.scale), "")

    def evaluated(self, batch: MicroBatch, path: str) -> PartOutput:
        """The final rows of a query in a micro-batch; rows are retained under names that begin with a
        path.
        """
        gateway = Gateway(self.gateway.spark, self.gateway.parameters)
        outputs: dict[str, PartOutput] = {}
        for name in self.read:
            one = batch.output(name)
            outputs[name] = one.output
            gateway.frames[name] = one.rows.select(*map(quoted, one.stream.columns))
        for clause in self.clauses:
            key = clause.clause.key
            with explained([one.bound for one in self.clauses]):
                rows = gateway.sql(clause.clause.rows)
            inputs = [outputs[each] for each in clause.clause.rows.relations()]
            until = min(one.until for one in inputs)
            ended = batch.span.ended.get(f"{path}{key}")
            outputs[key] = clause.advance(gateway, rows, batch.span, until, f"window{path}{key}", ended)
            gateway.frames[key] = outputs[key].rows
        with explained([one.bound for one in self.clauses]):
            rows = gateway.sql(self.statement.text)
        ends = [outputs[key] for key in self.statement.text.relations()]
        return PartOutput(rows, lambda: min(one.until for one in ends))

    def as_stream(self, rows: DataFrame | None, names: tuple[str, ...]) -> Stream:
        """The output rows of the query, None for none, as a stream whose columns have these names."""
        if rows is None:
            rows = self.gateway.spark.createDataFrame([], self.outer.schema)
        rowtime = names[self.outer.columns.index(self.rowtime or "")]
        scale = self.scale
        ticks = F.expr(scale.of_column(quoted(rowtime), scale.kind, scale.unit))
        missing = raising(
            "NULL_ROWTIME", f"a row has NULL as its rowtime {rowtime}", "filter out such rows with WHERE"
        )
        named = rows.toDF(*names)
        ordered = [item.name for item in named.schema if is_orderable(item.dataType)]
        ties = {f"__tie{number}": F.col(quoted(name)) for number, name in enumerate(ordered)}
        frame = named.withColumns({ROWTIME: F.coalesce(ticks, missing), **ties})
        return Stream(frame, names, scale, tuple(ties), rowtime=rowtime)

    def recorded(self) -> DataFrame | None:
        """The output of the query over recorded rows; None for streams without any."""
        if self.is_endless:
            return None
        gateway = Gateway(self.gateway.spark, self.gateway.parameters)
        own = own_aggregates(gateway, self.tokens)
        statement = bind(self.tokens, self.query, self.catalog.rowtimes, clauses=False, own=own)
        assert statement is not None
        if not statement.windows:
            return gateway.sql(statement.text)
        return run_statement(gateway, statement, _BUILDERS[self.execution])[0]

    # -- what is refused -----------------------------------------------------------------------------

    def refuse_no_stream(self) -> None:
        """Refuse a query without a rowtime column, or with two columns of the same name.

        Raises
        ------
        AnalysisError
            ``UNKNOWN_ROWTIME``, ``DUPLICATE_COLUMN``.
        """
        self.refuse_twice(self.columns, "a stream")
        if self.rowtime is None:
            raise AnalysisError(
                "the query does not select a rowtime",
                condition="UNKNOWN_ROWTIME",
                sqlstate="42703",
                sql=self.tokens.sql,
                span=self.span,
                hint="select the rowtime of the LABEL row, of the START row if there is no LABEL,"
                " or of a row of the match: s.ts, LAST(ts)",
            )

    def _other_order(self, clause: Window | Match) -> AnalysisError:
        """The error for another order than that of the rowtime."""
        key, _ = clause.order_by[0]
        found = (self.catalog.streams[name].rowtime for name in clause.rows.relations() if name in self.read)
        rowtime = next((name for name in found if name is not None), None)
        hint = "order by the rowtime column; for windows, that of the LABEL row, or else of the START row"
        if rowtime:
            hint = f"write ORDER BY {rowtime}, then the keys that order rows of the same rowtime"
        elif windows_of_views(self.gateway, self.catalog, clause.rows.relations()):
            hint = "read a relation, without STREAM or DSTREAM: FROM (SELECT … FROM s [RANGE 10 MINUTES])"
        return AnalysisError(
            "a clause over a live stream must order rows by the rowtime",
            condition="ORDER_NOT_ROWTIME",
            sql=self.tokens.sql,
            span=key.span,
            hint=hint,
        )

    def _refuse_streams_inside(self, clause: Window | Match) -> None:
        """Refuse subqueries over live streams in conditions and measures: a micro-batch does not have their
        rows.
        """
        found: list[tuple[SqlText, Place | None]] = []
        if isinstance(clause, Match):
            ranges = [item.range for item in (*clause.defines, *clause.measures)]
            queries = [query for within in ranges for query in subqueries(clause.tokens, within)]
            found = [(clause.replace(query, {}), clause.tokens.span(*query)) for query in queries]
        else:
            sides = (side for side in (clause.label, clause.start, clause.end) if side and side.when)
            found = [(side.when.text, side.when.span) for side in sides if side.when]
        for text, span in found:
            if text.relations():
                raise self._unsupported(
                    "a subquery over a live stream in a condition or a measure is not supported",
                    span or clause.span,
                    "store its result in a table: CREATE TABLE … AS",
                )

    def _unsupported(self, message: str, span: Place, hint: str) -> NotSupportedError:
        return NotSupportedError(
            message, condition="UNSUPPORTED_STREAM", sql=self.tokens.sql, span=span, hint=hint
        )


def _written(clause: LiveClause) -> str:
    """The name of a clause for users."""
    written = clause.clause
    return "MATCH_RECOGNIZE" if isinstance(written, Match) else f"WINDOW BY {written.name}"


def _scale_text(scale: TimeScale) -> str:
    unit = f" in {scale.unit.lower()}s" if scale.kind == "bigint" else ""
    return f"of type {scale.kind.upper()}{unit}"
