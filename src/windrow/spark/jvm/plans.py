"""Spark's plans, as data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from windrow.spark.jvm.bridge import class_of, items_of
from windrow.spark.jvm.connect import (
    estimated_by_connect,
    explained_by_connect,
    of_connect,
    relations_of_connect,
)

__all__ = [
    "PlanPart",
    "bytes_of_sources",
    "changes_by_run",
    "estimated_bytes",
    "explained",
    "function_number",
    "hidden_columns",
    "in_session",
    "most_broadcast",
    "optimized_json",
    "optimized_of",
    "retains_all_rows",
    "rows_change_by_run",
    "selected_texts",
    "small_part",
    "without_views",
    "zoned_times",
]


_UNKNOWN = float(1 << 62)
"""Spark's largest possible size, which it reports for rows of unknown size."""

_OF_EACH_ROW = ("Project", "SubqueryAlias", "View")
"""Operators with one output row for each input row."""


def explained(frame: DataFrame, mode: str) -> str:
    """The text of ``frame.explain``, captured from Java; on Connect the same text."""
    if of_connect(frame):
        return explained_by_connect(frame, mode)
    java: Any = frame.sparkSession._jvm
    return str(java.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode))


def optimized_json(frame: DataFrame) -> str | None:
    """The tree of the optimized plan, in Spark's JSON; None on Connect."""
    return None if of_connect(frame) else str(optimized_of(frame).toJSON())


def estimated_bytes(frame: DataFrame) -> float:
    """Spark's estimate of the size of the rows; infinite if it has none."""
    if of_connect(frame):
        return estimated_by_connect(frame)
    return float(str(optimized_of(frame).stats().sizeInBytes()))


def bytes_of_sources(frame: DataFrame) -> float:
    """Spark's estimate of the size of a DataFrame's sources; infinite if it has none, and on Connect.

    For a join, Spark's own estimate is the product of its sides.
    """
    if of_connect(frame):
        return math.inf
    sources = items_of(optimized_of(frame).collectLeaves())
    sizes = [float(str(source.stats().sizeInBytes())) for source in sources]
    return math.inf if any(size >= _UNKNOWN for size in sizes) else sum(sizes)


def function_number(frame: DataFrame) -> int:
    """The id by which plans identify the function of `mapInArrow`'s result."""
    if of_connect(frame):
        return next(relations_of_connect(frame))
    return int(frame._jdf.queryExecution().analyzed().functionExpr().resultId().id())


def zoned_times(frame: DataFrame) -> list[int | None]:
    """The values of literals of the optimized plan that are times with a zone, in its order."""
    return list(_zoned_times(optimized_of(frame)))


def _zoned_times(plan: Any) -> Iterator[int | None]:
    for expression in items_of(plan.expressions()):
        for leaf in items_of(expression.collectLeaves()):
            if class_of(leaf) == "Literal" and leaf.dataType().typeName() == "timestamp":
                yield leaf.value()
    for child in items_of(plan.children()):
        yield from _zoned_times(child)


def selected_texts(frame: DataFrame) -> list[str]:
    """The SQL of the values that a DataFrame selects; not on Connect."""
    return [str(one.child().sql()) for one in items_of(frame._jdf.queryExecution().analyzed().expressions())]


def changes_by_run(frame: DataFrame) -> bool:
    """Whether the values that a DataFrame selects may differ between runs; False on Connect, which does not
    show it.
    """
    if of_connect(frame):
        return False
    return not all(
        one.deterministic() for one in items_of(frame._jdf.queryExecution().analyzed().expressions())
    )


def rows_change_by_run(frame: DataFrame) -> bool:
    """Whether any row of a DataFrame may differ between runs; False on Connect, which does not show it."""
    return not of_connect(frame) and not frame._jdf.queryExecution().analyzed().deterministic()


def retains_all_rows(frame: DataFrame) -> bool:
    """Whether a DataFrame has each row of one source; False if it may filter some, and on Connect."""
    return not of_connect(frame) and _retains_all_rows(frame._jdf.queryExecution().analyzed())


def _retains_all_rows(plan: Any) -> bool:
    children = list(items_of(plan.children()))
    return not children or (class_of(plan) in _OF_EACH_ROW and _retains_all_rows(children[0]))


def hidden_columns(frame: DataFrame) -> dict[str, str]:
    """The types of the metadata columns that sources add on request; none on Connect."""
    if of_connect(frame):
        return {}
    hidden = items_of(frame._jdf.queryExecution().analyzed().metadataOutput())
    return {str(one.name()): str(one.dataType().simpleString()) for one in hidden}


def without_views(frame: DataFrame) -> DataFrame:
    """The same rows, read from the queries of views: a view hides the metadata columns of its files."""
    if of_connect(frame):
        return frame
    plan = frame._jdf.queryExecution().analyzed()
    spark = frame.sparkSession
    views: Any = spark._jvm.org.apache.spark.sql.catalyst.analysis.EliminateView  # type: ignore[union-attr]
    found = views.apply(plan)
    return frame if found.fastEquals(plan) else _frame(spark, found)


def in_session(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """A DataFrame in another session of the same Spark; on Connect unchanged: micro-batches share the
    session.
    """
    if frame.sparkSession is spark or of_connect(spark):
        return frame
    return _frame(spark, frame._jdf.queryExecution().analyzed())


@dataclass(frozen=True)
class PlanPart:
    """A part of an optimized plan.

    Attributes
    ----------
    frame
        Its rows.
    numbers
        By which the plan identifies its columns.
    sources
        The classes of the operators that its rows come from, or of the lists of their files.
    is_deterministic
        Whether it returns the same rows each time.
    """

    frame: DataFrame
    numbers: list[int]
    sources: frozenset[str]
    is_deterministic: bool


def small_part(frame: DataFrame, path: Sequence[int]) -> PlanPart | None:
    """A part of the optimized plan, if Spark would send it to every task; None on Connect.

    Parameters
    ----------
    path
        For each operator from the top, the number of the input.
    """
    if of_connect(frame):
        return None
    spark, plan = frame.sparkSession, optimized_of(frame)
    for at in path:
        plan = plan.children().apply(at)
    if int(str(plan.stats().sizeInBytes())) > most_broadcast(spark):
        return None
    numbers = [column.exprId().id() for column in items_of(plan.output())]
    sources = frozenset(map(_source, items_of(plan.collectLeaves())))
    return PlanPart(_frame(spark, plan), numbers, sources, bool(plan.deterministic()))


def _source(leaf: Any) -> str:
    if class_of(leaf) != "LogicalRelation":
        return class_of(leaf)
    relation = leaf.relation()
    return class_of(relation.location()) if class_of(relation) == "HadoopFsRelation" else class_of(relation)


def most_broadcast(spark: SparkSession) -> int:
    """The size in bytes up to which Spark sends one side of a join to every task."""
    return int(str(spark._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold()))


def optimized_of(frame: DataFrame) -> Any:
    """The optimized plan of a classic session's DataFrame, as a Java object: for this package."""
    return frame._jdf.queryExecution().optimizedPlan()


def _frame(spark: SparkSession, plan: Any) -> DataFrame:
    datasets: Any = spark._jvm.org.apache.spark.sql.classic.Dataset  # type: ignore[union-attr]
    return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)
