"""Queries with EMIT STREAM as streams of other queries: their changes are the rows.

The rowtime is the column of event time that makes a row complete; without one, the processing time of the
change. Rows come in its order, so each row is a bound too.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from urllib.parse import quote

from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation, TimeVaryingRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import EmittedPlan
from windrow.spark.live.input.source import live_stream
from windrow.spark.logs.table_log import TableLog, of_frame
from windrow.syntax.sqltext import quoted

__all__ = ["is_stream_of_changes", "stream_of_changes"]

_PTIME, _BOUND = "ptime", "__windrow_bound"
_LONGEST = 60  # part of a query in a name


def is_stream_of_changes(relation: Relation) -> bool:
    """Whether a query returns changes, with their processing times."""
    if isinstance(relation, LiveRelation):
        plan = relation._live
        return isinstance(plan, EmittedPlan) and plan.emit_envelope == "one-sql"
    return isinstance(relation, TimeVaryingRelation) and relation.is_stream_of("one-sql")


def stream_of_changes(gateway: Gateway, catalog: Catalog, relation: Relation, text: str) -> str:
    """Register the changes of a query as a stream, and return its name, by which EXPLAIN prints it.

    Raises
    ------
    WindrowError
        Of a live query that cannot run on executors, as ``relation.df``.
    """
    name = f"{' '.join(text.lower().split())[:_LONGEST]} {sha256(text.encode()).hexdigest()[:8]}"
    name = quote(name, safe=" ',()*=<>+-")
    frame = relation.df
    if isinstance(relation, LiveRelation):
        plan = relation._live
        assert isinstance(plan, EmittedPlan)
        rowtime, scale = _rowtime(plan)
        stream = live_stream(gateway.spark, frame, TableLog(rowtime, _unit(scale)))
        assert stream.live is not None
        stream = replace(stream, live=replace(stream.live, sorts=True))
    else:
        assert isinstance(relation, TimeVaryingRelation)
        query = relation._query
        rowtime, scale = _rowtime(EmittedPlan(gateway, catalog, frozenset(), text, query, "one-sql"))
        log = TableLog(rowtime, _unit(scale), _PTIME, bound=_BOUND)
        stream = of_frame(frame.withColumn(_BOUND, F.col(quoted(rowtime))), log)
    catalog.streams[name] = stream
    stream.frame.createOrReplaceTempView(quoted(name))
    return name


def _rowtime(plan: EmittedPlan) -> tuple[str, TimeScale]:
    """The column of rowtimes, which never decrease; punctuation may complete rows in another order."""
    if plan.rowtime is None or plan.query.timed.lineage:
        return _PTIME, plan.query.scale
    return plan.rowtime, plan.rowtime_scale


def _unit(scale: TimeScale) -> str | None:
    """The unit of integers; other types have their own."""
    return scale.unit if scale.kind == "bigint" else None
