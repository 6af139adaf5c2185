"""What Columns say that are given from Python: an order's direction, and functions that change."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame

from windrow.algebra.predicates import refuse_changing_condition
from windrow.errors import NotSupportedError, ParseError
from windrow.syntax.tokens import tokenize

__all__ = ["changes_by_run", "refuse_changing_column", "sort_order"]


def sort_order(column: Column) -> tuple[Column, str]:
    """A Column without its direction, and that as SQL; nothing for a Column that has none.

    ``F.col("t").desc()`` is ``t`` and ``DESC NULLS LAST``.
    """
    given: Any = column
    if hasattr(given, "_jc"):
        node = given._jc.node()
        if node.getClass().getSimpleName() != "SortOrder":
            return column, ""
        of_node = SparkContext._active_spark_context._jvm.org.apache.spark.sql.Column  # type: ignore[union-attr]
        return type(given)(of_node(node.child())), f"{node.sortDirection().sql()} {node.nullOrdering().sql()}"
    order = given._expr
    if type(order).__name__ != "SortOrder":
        return column, ""
    direction = "ASC" if order._ascending else "DESC"
    return type(given)(order._child), f"{direction} NULLS {'FIRST' if order._nullsFirst else 'LAST'}"


def refuse_changing_column(column: Column) -> None:
    """Refuse a predicate that would be another one in each run.

    Raises
    ------
    NotSupportedError
        ``NONDETERMINISTIC_PREDICATE``, ``SYSTEM_CLOCK_IN_PREDICATE``.
    """
    shown = str(column).removeprefix("Column<'").removesuffix("'>")
    try:
        tokens = tokenize(shown)
    except ParseError:
        return  # a text or a name in it has a quote, which Spark shows as it is; the plan tells of it
    try:
        refuse_changing_condition(tokens, (0, len(tokens)))
    except NotSupportedError as error:
        error.sql = error.span = None  # the place would be one in Spark's words
        raise


def changes_by_run(frame: DataFrame) -> bool:
    """Whether what a DataFrame selects may be other values in each run; Spark Connect does not say."""
    plan: Any = getattr(frame, "_jdf", None)
    if plan is None:
        return False
    selected = plan.queryExecution().analyzed().expressions()
    return not all(selected.apply(at).deterministic() for at in range(selected.size()))
