"""The changes of a query with EMIT STREAM as a recorded stream, which another query with EMIT reads.

The rowtime is the first column of event time that completes a group; without one, the processing time of the
change. Changes come in its order, so each row is a bound too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError
from windrow.relation_kinds import TimeVaryingRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import EmittedPlan
from windrow.spark.logs.table_log import TableLog, of_frame
from windrow.syntax.sqltext import quoted

__all__ = ["stream_of_changes"]

_PTIME, _BOUND = "ptime", "__windrow_bound"
_LONGEST = 60  # part of a query in a name


@contextmanager
def stream_of_changes(
    gateway: Gateway, catalog: Catalog, relation: TimeVaryingRelation, text: str
) -> Iterator[str]:
    """The name of the stream in the catalog while a query is read; EXPLAIN prints it.

    Raises
    ------
    AnalysisError
        ``DUPLICATE_COLUMN``.
    """
    known = " ".join(text.split())[:_LONGEST]
    name = quote(f"{known} #{len(catalog.streams)}".lower(), safe=" '#,()*=<>+-").lower()
    query = relation._query
    plan = EmittedPlan(gateway, catalog, frozenset(query.streams), text, query, "one-sql")
    rowtime, scale = _rowtime(plan)
    with gateway.translated():
        frame = relation.df
        _refuse_duplicates(frame.columns)
        log = TableLog(rowtime, scale.unit if scale.kind == "bigint" else None, _PTIME, bound=_BOUND)
        stream = of_frame(frame.withColumn(_BOUND, F.col(quoted(rowtime))), log)
        stream.frame.createOrReplaceTempView(quoted(name))
    catalog.streams[name] = stream
    try:
        yield name
    finally:
        del catalog.streams[name]
        gateway.spark.catalog.dropTempView(name)


def _rowtime(plan: EmittedPlan) -> tuple[str, TimeScale]:
    """The column of rowtimes, which never decrease.

    Rows that are no groups are never late, and punctuation may complete groups in another order.
    """
    if plan.rowtime is None or plan.appends or plan.query.timed.lineage:
        return _PTIME, plan.query.scale
    return plan.rowtime, plan.rowtime_scale


def _refuse_duplicates(columns: list[str]) -> None:
    names = [name.lower() for name in columns]
    double = next((name for name in columns if names.count(name.lower()) > 1), None)
    if double is not None:
        raise AnalysisError(
            f"the changes have two columns {double}",
            condition="DUPLICATE_COLUMN",
            hint="select the columns by name; undo, ptime and ver are those of EMIT STREAM",
        )
