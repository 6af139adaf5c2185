"""A query with EMIT in another query with EMIT, as a stream.

Changes come in the order of their rowtimes, so each row is a bound too. The watermark of a table is an
estimate, because a row that is no group counts whenever it comes. Rows of a table leave it when the query
retracts them.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import functions as F

from windrow.algebra.time_scale import NEVER
from windrow.errors import AnalysisError
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.spark.logs.session_streams import LEFT, Stream
from windrow.spark.logs.table_log import TableLog
from windrow.spark.logs.table_streams import of_frame
from windrow.spark.recorded.emission import EmittedInside
from windrow.syntax.sqltext import quoted

__all__ = ["stream_inside"]

_TIMES = {"one-sql": "ptime", "delta": "_commit_timestamp", "op": "_at", "diff": "_at"}
"""The columns of changes that have their processing times, by envelope."""

_BOUND, _AT, _SINCE = "__windrow_bound", "__windrow_at", "__windrow_since"


def stream_inside(inside: EmittedInside) -> Stream:
    """The changes as a stream; or the table, as a stream whose rows leave.

    Raises
    ------
    AnalysisError
        ``DUPLICATE_COLUMN``.
    """
    return _table(inside) if inside.envelope is None else _changes(inside, inside.envelope)


def _changes(inside: EmittedInside, envelope: str) -> Stream:
    frame, time = inside.query.emitted(envelope), _TIMES[envelope]
    _refuse_duplicates(frame.columns, "the changes have", f"; {time} is a column of changes")
    rowtime = inside.rowtime or time
    log = TableLog(rowtime, _unit(inside), time, bound=_BOUND)
    return of_frame(frame.withColumn(_BOUND, F.col(quoted(rowtime))), log)


def _table(inside: EmittedInside) -> Stream:
    query, rowtime = inside.query, inside.rowtime
    rows = query.changes("delta")
    names = list(rows.names)
    _refuse_duplicates(names, "the table has", "")
    frame = rows.visible(ENTER, LEAVE)
    at, left = (F.expr(query.scale.to_column(name)) for name in (ENTER, LEAVE))
    bound = (at if rowtime is None else F.col(quoted(rowtime))).alias(_BOUND)
    own = [F.col(quoted(name)) for name in names]
    since = [] if rowtime is not None else [at.alias(_SINCE)]
    entering = frame.select(*own, F.col(LEAVE).alias(LEFT), *since, at.alias(_AT), bound)
    leaving = frame.where(F.col(LEAVE) != NEVER).select(
        left.alias(_AT), bound
    )  # no rowtime: these are no rows
    log = TableLog(rowtime or _SINCE, _unit(inside), _AT, watermark=_BOUND)
    stream = of_frame(entering.unionByName(leaving, allowMissingColumns=True), log)
    return replace(stream, columns=tuple(names), rowtime=rowtime)


def _unit(inside: EmittedInside) -> str | None:
    return inside.scale.unit if inside.scale.kind == "bigint" else None


def _refuse_duplicates(columns: list[str], what: str, also: str) -> None:
    names = [name.lower() for name in columns]
    double = next((name for name in columns if names.count(name.lower()) > 1), None)
    if double is not None:
        raise AnalysisError(
            f"{what} two columns {double}",
            condition="DUPLICATE_COLUMN",
            hint=f"select the columns by name{also}",
        )
