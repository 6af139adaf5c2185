"""Live queries as streaming DataFrames."""

from __future__ import annotations

from pyspark.sql import DataFrame

from windrow.errors import UsageError
from windrow.spark.live.executors.graph import graph_of, why_not
from windrow.spark.live.plan import LivePlan
from windrow.spark.settings import STATE_STORE

__all__ = ["streaming"]


def streaming(plan: LivePlan) -> DataFrame:
    """The changelog of a relation, or the rows of a stream.

    Raises
    ------
    UsageError
        ``LIVE_RELATION``, ``STATE_STORE``.
    """
    why = why_not(plan)
    if why is not None:
        raise UsageError(
            "this relation is live: its rows come as long as it runs, and on Spark's executors it does not"
            f" run yet, because of {why}",
            condition="LIVE_RELATION",
            hint="relation.start('folder', checkpoint='folder of its own') starts it",
        )
    (name, store), *_ = STATE_STORE.items()
    if plan.gateway.spark.conf.get(name) != store:
        raise UsageError(
            "a streaming DataFrame of a live relation needs RocksDB as Spark's state store",
            condition="STATE_STORE",
            hint=f"spark.conf.set({name!r}, {store!r})",
        )
    graph = graph_of(plan)
    return graph.changes(graph.packets(), plan.envelope)
