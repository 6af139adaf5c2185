"""The relations of clauses over windows of time, as statements and views of them read them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from windrow.algebra.continuous import (
    Continuous,
    Input,
    NamedRelation,
    Query,
    StreamQuery,
    WindowedStream,
)
from windrow.errors import NotSupportedError, Span
from windrow.explain.explained import explain_clause, explain_continuous
from windrow.spark.catalog import Catalog, ClauseDefinition
from windrow.spark.clauses.batch import Bound
from windrow.spark.gateway import Gateway
from windrow.spark.live import live_streams
from windrow.spark.live.plans.runner import reads
from windrow.spark.recorded.continuous_queries import Runner
from windrow.spark.relations.clauses_in_pieces import clause_at_instant, clause_over_time
from windrow.spark.relations.time_varying_relation import TimeVarying
from windrow.syntax.tokens import TokenList

__all__ = ["live_beside_clauses", "refuse_live_clauses", "relation_of_clause"]

_HOW = {
    "batch": "each partition once for each piece of time in which it is the same",
    "reference": "all rows at each instant: the reference",
}


def relation_of_clause(
    gateway: Gateway, catalog: Catalog, definition: ClauseDefinition, execution: str
) -> tuple[TimeVarying, Bound, str]:
    """The relation of a clause over the streams as they are recorded, the bound clause, and its plan."""
    if execution == "reference" and not gateway.plan_only:
        by_instants = _ByInstants(gateway, catalog, definition)
        found = by_instants.run(definition.query)
        assert isinstance(found, TimeVarying)
        assert by_instants.bound is not None
        return found, by_instants.bound, _plan(gateway, definition, by_instants, by_instants.bound)
    runner = Runner(gateway, catalog, definition.reader, execution)
    rows = runner.run(definition.query)
    assert isinstance(rows, TimeVarying)
    relation, bound = clause_over_time(gateway, definition.clause, rows)
    return relation, bound, _plan(gateway, definition, runner, bound)


class _ByInstants(Runner):
    """Runs a clause over its rows at each instant: the definition.

    Attributes
    ----------
    bound
        The bound clause, from the first instant on.
    """

    def __init__(self, gateway: Gateway, catalog: Catalog, definition: ClauseDefinition) -> None:
        super().__init__(gateway, catalog, definition.reader, "reference")
        self.definition = definition
        self.bound: Bound | None = None

    def answer(self, query: Query, relations: Mapping[str, DataFrame]) -> DataFrame:
        """What the clause gives at an instant; of queries that it reads, their rows."""
        rows = super().answer(query, relations)
        if query is self.definition.query:
            rows, self.bound = clause_at_instant(self.gateway, self.definition.clause, rows)
        return rows


def _plan(gateway: Gateway, definition: ClauseDefinition, runner: Runner, bound: Bound) -> str:
    of_rows = explain_continuous(gateway, definition.query, runner.plans)
    return f"{of_rows}\n\n{explain_clause(bound, _HOW[runner.execution])}"


def refuse_live_clauses(
    gateway: Gateway,
    catalog: Catalog,
    live: frozenset[str],
    tokens: TokenList,
    span: Span,
    what: tuple[str, str],
) -> None:
    """Refuse a clause over windows of time with streams of which nothing is recorded, or in a live query.

    `what` says what is refused, and what to write instead.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM``.
    """
    if live and (gateway.prefers_live or not live <= set(catalog.named)):
        raise NotSupportedError(
            f"{what[0]} is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=tokens.sql,
            span=span,
            hint=what[1],
        )


def live_beside_clauses(
    gateway: Gateway, catalog: Catalog, query: Continuous, tokens: TokenList
) -> frozenset[str]:
    """The live streams that a query reads; none where it reads clauses over windows of time too.

    These are evaluated over what is recorded, and so is what reads them.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` for such clauses beside streams of which nothing is recorded.
    """
    live = live_streams(catalog, query)
    if not live or catalog.clauses.keys().isdisjoint(reads(catalog, query)):
        return live
    inner = query.query if isinstance(query, StreamQuery) else query
    spans = [item.span for item in inner.inputs if _name(item) in live]
    span = spans[0] if spans else query.span
    what = "a live stream beside WINDOW BY or MATCH_RECOGNIZE over windows of time"
    instead = "store what the clause gives: CREATE TABLE t AS SELECT …, and read t beside the stream"
    refuse_live_clauses(gateway, catalog, live, tokens, span, (what, instead))
    return frozenset()


def _name(item: Input) -> str:
    match item:
        case WindowedStream(source=str() as name) | NamedRelation(name=name):
            return name.lower()
    return ""
