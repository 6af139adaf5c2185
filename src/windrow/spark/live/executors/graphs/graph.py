"""Which queries run on executors, and the graph of one that does."""

from __future__ import annotations

from windrow.errors import NotSupportedError
from windrow.spark.live.executors.graphs.clause_graph import ClauseGraph
from windrow.spark.live.executors.graphs.emit_graph import EmitGraph
from windrow.spark.live.executors.graphs.window_graph import WindowGraph
from windrow.spark.live.executors.packets import Graph
from windrow.spark.live.micro_batches.around_clause import why_not_one_clause
from windrow.spark.live.operators.incremental_plan import BY_SPARK
from windrow.spark.live.plans.clause_plan import ClausePlan
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.live.plans.live_plan import ContinuousPlan, LivePlan
from windrow.spark.logs.session_streams import Stream

__all__ = ["BUCKETS_SETTING", "graph_of", "why_not"]

BUCKETS_SETTING = "spark.windrow.live.buckets"
"""The setting with the number of buckets into which the keys of a query are divided."""


def why_not(plan: LivePlan, envelope: str | None = None) -> str | None:
    """The part of a query that executors do not support; None if there is none.

    `envelope` is the form of the changes, if it is not the plan's own.
    """
    found = _graph(plan, envelope or plan.envelope, 1)
    return found if isinstance(found, str) else None


def _graph(plan: LivePlan, envelope: str, buckets: int) -> Graph | str:
    """The graph of a query, or the part that executors do not support."""
    if plan.gateway.is_connect:
        return "Spark Connect"
    if not isinstance(plan, (ContinuousPlan, EmittedPlan, ClausePlan)):
        return "operators over whole streams"
    for name in sorted(plan.streams):
        why = _why_not_stream(plan.catalog.streams[name])
        if why is not None:
            return f"{why} ({name})"
    if isinstance(plan, EmittedPlan):
        graph = EmitGraph(plan, buckets, envelope)
        return graph.why_not or graph
    if isinstance(plan, ClausePlan):
        clause = ClauseGraph(plan, buckets, envelope)
        return why_not_one_clause(plan) or clause.why_not or clause
    if plan.follows:
        return "upstream windows or matches"
    windows = WindowGraph(plan, buckets, envelope, plan.windowed)
    return windows.why_not or windows


def _why_not_stream(stream: Stream) -> str | None:
    live = stream.live
    assert live is not None
    if live.identity:
        return "a named stream"
    return None


def graph_of(plan: LivePlan, buckets: int | None = None, envelope: str | None = None) -> Graph:
    """The graph of a query.

    Parameters
    ----------
    buckets
        The number of buckets; by default that of `BUCKETS_SETTING`, or the number of Spark's shuffle
        partitions.
    envelope
        The form of its changes; without, the plan's own.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_ON_EXECUTORS``.
    """
    if buckets is None:
        conf = plan.gateway.spark.conf
        buckets = int(conf.get(BUCKETS_SETTING, None) or conf.get("spark.sql.shuffle.partitions") or 1)
    found = _graph(plan, envelope or plan.envelope, buckets)
    if not isinstance(found, str):
        return found
    on_driver = "SET spark.windrow.live.host = driver, then call relation.start(…)"
    before = "let Spark compute them before, as in session.stream(name, df.withColumn(…), …); or "
    raise NotSupportedError(
        f"executors cannot run the query because of {found}",
        condition="UNSUPPORTED_ON_EXECUTORS",
        sql=plan.text,
        span=plan.span,
        hint=before + on_driver if found.startswith(BY_SPARK) else on_driver,
    )
