"""Windows of streams as relations: when every row enters and leaves.

Time windows are arithmetic over the rowtime. In windows from which rows push each other out, a row leaves
when the row a number of rows ahead in its partition arrives, or at the END of a WINDOW BY.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra.bind import bind
from windrow.algebra.continuous import WindowedStream
from windrow.algebra.time_scale import NEVER
from windrow.errors import AnalysisError, Span
from windrow.kernels.reference.stream_window_definitions import WindowOfStream, validity
from windrow.plan.arrow_types import is_orderable
from windrow.spark.analysis.collations import ranked
from windrow.spark.clauses.batch import build_window, run_statement
from windrow.spark.errors import raising
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.relations.snapshots import frame_of
from windrow.spark.relations.time_varying_relation import ENTER, LEAVE, TimeVarying, columns_of
from windrow.spark.scan.file_scan import file_scan
from windrow.syntax.sqltext import RelationText, SqlText, quoted
from windrow.syntax.tokens import tokenize

__all__ = ["Sizes", "falls", "partition_keys", "windowed", "wrong_distance"]

_VALUE, _LIMIT = "__value", "__limit"
_FARTHEST = 2**31 - 1
"""The limit of Spark's ``lead``, in rows."""
_MANY, _FEW = 100_000, 8


@dataclass(frozen=True)
class Sizes:
    """A window's lengths in ticks: of `range_` and `slide`, and the stream's own granularity."""

    range_: int | None
    slide: int | None
    granularity: int


def windowed(
    gateway: Gateway, stream: Stream, item: WindowedStream, sizes: Sizes, execution: str
) -> TimeVarying:
    """The relation of a window over a stream."""
    window = item.window
    spec = WindowOfStream(
        granularity=sizes.granularity if window.is_now else None,
        range_=sizes.range_,
        slide=sizes.slide,
        rows=window.rows,
        row_slide=window.row_slide or 1,
        by_value=window.on is not None,
    )
    rows, keys = partition_keys(gateway, stream, item)
    make = _interpreted if execution == "reference" else _planned
    made = make(gateway, stream, rows, spec, keys, falls(item))
    made = made.select(*map(quoted, stream.columns), ENTER, LEAVE)
    instants = made.select(F.explode(F.array(ENTER, LEAVE)).alias("__at")).where(F.col("__at") != NEVER)
    lasting = made.where(F.col(ENTER) < F.col(LEAVE))
    # a row that enters at the instant at which another leaves has a later rowtime
    moved = sizes.slide is not None or (window.row_slide or 1) > 1
    visible = None if moved or stream.rowtime is None else stream.columns.index(stream.rowtime)
    net_by = None if visible is None else frozenset({columns_of(stream.columns)[visible]})
    return TimeVarying.of(lasting, stream.scale, [stream], instants.distinct(), net_by=net_by)


def partition_keys(gateway: Gateway, stream: Stream, item: WindowedStream) -> tuple[DataFrame, list[str]]:
    """The stream's rows with the values of the bracket's expressions, and the columns of the keys."""
    name = item.source if isinstance(item.source, str) else "stream"
    keys = [_column(stream, text) or f"__p{number}" for number, text in enumerate(item.partition_by)]
    parts = [
        SqlText.of(text, f" AS {key}")
        for key, text in zip(keys, item.partition_by, strict=True)
        if key not in stream.columns
    ]
    if item.on is not None and item.distance is not None:
        parts += [
            SqlText.of("(", item.on, f") AS {_VALUE}"),
            SqlText.of("(", item.on, ") + (", item.distance, f") AS {_LIMIT}"),
        ]
    rows = stream.frame
    if parts:
        text = SqlText.of(
            "SELECT *, ", SqlText.join(", ", parts), " FROM ", RelationText("rows"), f" AS {quoted(name)}"
        )
        rows = gateway.sql(text, {"rows": rows})
    for key, written in zip(keys, item.partition_by, strict=True):
        kind = rows.schema[key].dataType
        if not is_orderable(kind):
            sql, span = _place(written)
            raise AnalysisError(
                f"rows cannot be partitioned by a value of type {kind.simpleString().upper()}",
                condition="UNORDERABLE_TYPE",
                sqlstate="42822",
                sql=sql,
                span=span,
                hint="use a field of it, or cast it to a type with an order",
            )
    if item.on is not None and item.distance is not None:
        error = wrong_distance(item)
        wrong = raising(error.condition, error.message, "", error.sql, error.span)
        rows = rows.withColumn(
            _LIMIT,
            F.when(
                ~(F.col(_LIMIT) <= F.col(_VALUE)) | F.isnull(_LIMIT) | F.isnull(_VALUE), F.col(_LIMIT)
            ).otherwise(wrong),
        )
    return rows, keys


def _column(stream: Stream, written: SqlText) -> str | None:
    """The column of a stream that a key names; None for other expressions."""
    tokens = tokenize(written.render())
    if len(tokens) != 1 or not tokens[0].is_name:
        return None
    return next((name for name in stream.columns if name.lower() == tokens[0].name.lower()), None)


def _place(written: SqlText) -> tuple[str | None, Span | None]:
    """The position of a user's text."""
    place = written.written(0, len(written.render()))
    return place if place is not None else (None, None)


def wrong_distance(item: WindowedStream) -> AnalysisError:
    """The error for a distance of RANGE … ON that is not greater than zero."""
    sql, span = _place(item.distance) if item.distance is not None else (None, None)
    return AnalysisError(
        "the distance of RANGE … ON must be greater than zero",
        condition="INVALID_WINDOW_SIZE",
        sqlstate="22000",
        sql=sql,
        span=span,
    )


def falls(item: WindowedStream) -> AnalysisError:
    """The error for values of RANGE … ON that decrease."""
    sql, span = _place(item.on) if item.on is not None else (None, None)
    return AnalysisError(
        "the values of RANGE … ON decrease from one row to a later one",
        condition="FALLING_VALUE",
        sqlstate="22000",
        sql=sql,
        span=span,
        hint="use an expression that never decreases along the stream",
    )


# -- by the definitions ------------------------------------------------------------------------------


def _interpreted(
    gateway: Gateway,
    stream: Stream,
    rows: DataFrame,
    spec: WindowOfStream,
    keys: list[str],
    falls: AnalysisError,
) -> DataFrame:
    with gateway.translated():
        table = rows.orderBy(ROWTIME, *stream.ties).toArrow()

    def column(name: str) -> list[object]:
        values: list[object] = table.column(name).to_pylist()
        return values

    compared = ranked(gateway.spark, table.select(keys), StructType([rows.schema[key] for key in keys]))
    values_of = (map(_hashable, one.to_pylist()) for one in compared.columns)
    partitions = list(zip(*values_of, strict=True)) if keys else None
    values, limits = (column(_VALUE), column(_LIMIT)) if spec.by_value else (None, None)
    if values is not None:
        present = [value for value in values if value is not None]
        if any(later < earlier for earlier, later in pairwise(present)):  # type: ignore[operator]
            raise falls
    found = validity(spec, column(ROWTIME), partitions, values, limits)  # type: ignore[arg-type]
    enter = [None if at is None else at[0] for at in found]
    leave = [None if at is None else NEVER if at[1] is None else at[1] for at in found]
    table = table.append_column(ENTER, pa.array(enter, pa.int64())).append_column(
        LEAVE, pa.array(leave, pa.int64())
    )
    return frame_of(gateway, table, rows.schema).where(f"{ENTER} IS NOT NULL")


def _hashable(value: object) -> object:
    if isinstance(value, float) and value != value:
        return "NaN"
    return repr(value) if isinstance(value, list | dict) else value


# -- by Spark and WINDOW BY --------------------------------------------------------------------------


def _planned(
    gateway: Gateway,
    stream: Stream,
    rows: DataFrame,
    spec: WindowOfStream,
    keys: list[str],
    falls: AnalysisError,
) -> DataFrame:
    entry = ROWTIME if spec.slide is None else f"{ROWTIME} + pmod(-{ROWTIME}, {spec.slide}L)"
    rows = rows.withColumn(ENTER, F.expr(entry))
    length = spec.granularity if spec.granularity is not None else spec.range_
    expires = f"{ENTER} + {length}L" if length is not None else f"{NEVER}L"
    by_partition = f"PARTITION BY {', '.join(map(quoted, keys))}" if keys else ""
    order = f"{by_partition} ORDER BY {', '.join([ROWTIME, *stream.ties])}"
    if spec.by_value:
        # a row without a value pushes none out and stays
        missing = rows.where(F.isnull(_VALUE)).withColumn(LEAVE, F.lit(NEVER))
        made = _window_by(
            gateway,
            rows.where(~F.isnull(_VALUE)),
            order,
            "START AS s PREV AS p",
            f"END AS e WHEN e.{_VALUE} >= s.{_LIMIT}",
            f"p.{_VALUE} AS __before, e.{ROWTIME} AS {LEAVE}",
        )
        failed = raising(falls.condition, falls.message, falls.hint or "", falls.sql, falls.span)
        leave = F.when(F.col("__before") > F.col(_VALUE), failed).otherwise(F.coalesce(LEAVE, F.lit(NEVER)))
        return made.withColumn(LEAVE, leave).drop("__before").unionByName(missing)
    if spec.rows is None:
        return rows.withColumn(LEAVE, F.expr(expires))
    moved = spec.slide is not None or spec.row_slide > 1  # whether rows enter later than they arrive
    entered = ENTER if moved else ROWTIME
    rows = rows if spec.slide is not None else rows.drop(ENTER)
    if spec.row_slide > 1:
        rows = _window_by(
            gateway,
            rows,
            order,
            "START AS s AT p",
            f"ONLY END AS e AT q WHEN q % {spec.row_slide} = 0",
            f"e.{ROWTIME} AS {ENTER}",
        )
    if keys and spec.rows <= _FARTHEST and not _is_for_tasks(gateway, rows, keys):
        following = Window.partitionBy(*map(quoted, keys)).orderBy(ROWTIME, *stream.ties)
        rows = rows.withColumn(LEAVE, F.lead(entered, spec.rows).over(following))
    else:  # WINDOW BY also cuts one sequence into slices
        rows = _window_by(
            gateway,
            rows,
            order,
            "START AS s AT p",
            f"END AS e AT q WHEN q - p = {spec.rows}",
            f"e.{entered} AS {LEAVE}",
        )
    rows = rows if moved else rows.withColumn(ENTER, F.col(ROWTIME))
    return rows.withColumn(LEAVE, F.expr(f"least({expires}, coalesce({LEAVE}, {NEVER}L))"))


def _is_for_tasks(gateway: Gateway, rows: DataFrame, keys: list[str]) -> bool:
    """Whether WINDOW BY is faster than OVER: over many rows of few columns, which tasks read from files.

    All columns travel, whichever the query reads.
    """
    if len(rows.columns) > _FEW:
        return False
    scan = file_scan(gateway, rows, keys).scan
    return scan is not None and scan.rows >= _MANY


def _window_by(
    gateway: Gateway, rows: DataFrame, order: str, start: str, end: str, outputs: str
) -> DataFrame:
    """The rows with the outputs of the WINDOW BY window that begins at each."""
    with gateway.views({"rows": rows}) as names:
        text = (
            f"SELECT s.*, {outputs} FROM {names['rows']} WINDOW BY w AS (TYPE SLIDING {order} {start} {end})"
        )
        tokens = tokenize(text)
        statement = bind(tokens, (0, len(tokens)))
        assert statement is not None
        inner = Gateway(gateway.spark)
        inner.plan_only = gateway.plan_only
        frame, _ = run_statement(inner, statement, build_window)
    return frame
