"""Live queries as streaming DataFrames."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame

from windrow.algebra.continuous import Reader
from windrow.errors import UsageError
from windrow.spark.live.executors.graphs.graph import graph_of, why_not
from windrow.spark.live.input.late_rows import late_columns
from windrow.spark.live.plans.live_plan import ContinuousPlan, LivePlan
from windrow.spark.runtime.settings import STATE_STORE
from windrow.syntax.sqltext import quoted
from windrow.syntax.tokens import tokenize

__all__ = ["streaming", "streaming_late"]


def streaming(plan: LivePlan) -> DataFrame:
    """The changelog of a relation, or the rows of a stream.

    Raises
    ------
    UsageError
        ``LIVE_RELATION``, ``STATE_STORE``.
    """
    _refuse_other(plan)
    graph = graph_of(plan)
    if graph.needs_checkpoint is not None:
        raise UsageError(
            "the relation is live: as a streaming DataFrame it has no checkpoint of its own for the rows of"
            f" {graph.needs_checkpoint}",
            condition="LIVE_RELATION",
            hint="start it: relation.start('folder', checkpoint='folder of its own')",
        )
    if graph.waits:
        raise _waiting()
    return graph.changes(graph.packets())


def streaming_late(plan: LivePlan) -> DataFrame:
    """The late rows of the streams that a query reads, in the form of
    :func:`windrow.spark.live.input.late_rows.late_columns`.

    Raises
    ------
    UsageError
        As :func:`streaming` does.
    """
    _refuse_other(plan)
    return reduce(DataFrame.unionAll, (_late(plan, name) for name in sorted(plan.streams)))


def _late(plan: LivePlan, name: str) -> DataFrame:
    """The late rows of a stream: with EMIT, those of the query; with CQL, those that a query over all rows of
    the stream leaves out.
    """
    whole, place = plan, sorted(plan.streams).index(name)
    if isinstance(plan, ContinuousPlan):
        tokens = tokenize(f"RSTREAM(SELECT * FROM {quoted(name)} [NOW])")
        reader = Reader(tokens, frozenset([name]), frozenset())
        query = reader.read(0, len(tokens))
        whole = ContinuousPlan(plan.gateway, plan.catalog, frozenset([name]), reader, query)
        place = 0
    graph = graph_of(whole)
    if graph.has_idle_producers:
        raise _waiting()
    return late_columns(name, plan.catalog.streams[name], graph.late(graph.packets(), place))


def _waiting() -> UsageError:
    """The error for a query that needs ticks, which a streaming DataFrame does not have."""
    return UsageError(
        "the relation is live and emits changes when their delay is over or a producer becomes idle, even if"
        " no rows arrive: as a streaming DataFrame it would wait for the next row",
        condition="LIVE_RELATION",
        hint="leave AFTER DELAY out, and IDLE of streams; or start it: relation.start('folder',"
        " checkpoint='folder of its own')",
    )


def _refuse_other(plan: LivePlan) -> None:
    """Refuse a query that executors do not support, and another state store."""
    why = why_not(plan)
    if why is not None:
        raise UsageError(
            "the relation is live: it has rows only while a query runs, and Spark's executors cannot run it"
            f" because of {why}",
            condition="LIVE_RELATION",
            hint="start it: relation.start('folder', checkpoint='folder of its own')",
        )
    (name, store), *_ = STATE_STORE.items()
    if plan.gateway.spark.conf.get(name) != store:
        raise UsageError(
            "a streaming DataFrame of a live relation needs RocksDB as Spark's state store",
            condition="STATE_STORE",
            hint=f"call spark.conf.set({name!r}, {store!r})",
        )
