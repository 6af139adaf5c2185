"""The relations of clauses over time windows, as statements and views read them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from windrow.algebra.continuous import (
    Query,
)
from windrow.explain.explained import explain_clause, explain_continuous
from windrow.spark.catalog import Catalog, ClauseDefinition
from windrow.spark.clauses.batch import Bound
from windrow.spark.gateway import Gateway
from windrow.spark.live.plans.read_names import live_streams
from windrow.spark.recorded.continuous_queries import Runner
from windrow.spark.relations.clauses_in_pieces import clause_at_instant, clause_over_time
from windrow.spark.relations.time_varying_relation import TimeVarying

__all__ = ["is_endless", "relation_of_clause"]

_HOW = {
    "batch": "each partition once for each piece of time in which it is the same",
    "reference": "all rows at each instant: the reference",
}


def relation_of_clause(
    gateway: Gateway, catalog: Catalog, definition: ClauseDefinition, execution: str
) -> tuple[TimeVarying, Bound, str]:
    """The relation of a clause over recorded streams, the bound clause, and its plan."""
    if execution == "reference" and not gateway.plan_only:
        by_instants = _ByInstants(gateway, catalog, definition)
        found = by_instants.run(definition.query)
        assert isinstance(found, TimeVarying)
        assert by_instants.bound is not None
        return found, by_instants.bound, _plan(gateway, catalog, definition, by_instants, by_instants.bound)
    runner = Runner(gateway, catalog, definition.reader, execution)
    rows = runner.run(definition.query)
    assert isinstance(rows, TimeVarying)
    relation, bound = clause_over_time(gateway, definition.clause, rows)
    return relation, bound, _plan(gateway, catalog, definition, runner, bound)


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
        """The result of the clause at an instant; for queries that it reads, their rows."""
        rows = super().answer(query, relations)
        if query is self.definition.query:
            rows, self.bound = clause_at_instant(self.gateway, self.definition.clause, rows)
        return rows


def _plan(
    gateway: Gateway, catalog: Catalog, definition: ClauseDefinition, runner: Runner, bound: Bound
) -> str:
    only_live = is_endless(gateway, catalog, live_streams(catalog, definition.query))
    of_rows = explain_continuous(gateway, definition.query, runner.plans, only_live=only_live)
    return f"{of_rows}\n\n{explain_clause(bound, _HOW[runner.execution])}"


def is_endless(gateway: Gateway, catalog: Catalog, live: frozenset[str]) -> bool:
    """Whether some of these live streams have no recorded rows, or a live query is requested."""
    return bool(live) and (gateway.prefers_live or not live <= set(catalog.named))
