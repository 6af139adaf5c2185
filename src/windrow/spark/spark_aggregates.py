"""Aggregates over a window that the kernel does not have: Spark computes them over the exploded windows.

The kernel gives every window's rows as an array; each window is exploded, grouped back by a number of its
own, and aggregated with the call as the user wrote it, in which the window's name is one row. The rows of
a window reach the aggregate in no particular order, as in any GROUP BY of Spark.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.algebra.nodes import AggregateCall, Window
from windrow.rules.kernel_plan import ROWS
from windrow.spark.gateway import Gateway
from windrow.syntax.sqltext import Relation, SqlText, quoted

__all__ = ["aggregate_in_spark"]


def aggregate_in_spark(
    gateway: Gateway, window: Window, calls: tuple[AggregateCall, ...], windows: DataFrame, keys: list[str]
) -> DataFrame:
    """Adds a column for each call to the windows, whose rows are in column `__rows`."""
    whole = "__window_itself"
    numbered = windows.withColumn("__number", F.monotonically_increasing_id())
    if window.name in keys:
        numbered = numbered.withColumnRenamed(window.name, whole)
    exploded = numbered.select("*", F.explode_outer(ROWS).alias(window.name)).drop(ROWS)
    carried = []
    for name in keys:
        inside = whole if name == window.name else name
        carried.append(f"any_value({quoted(inside)}) AS {quoted('__kept_' + name)}")
    results = SqlText.join(", ", (SqlText.of(call.text, f" AS {quoted(call.name)}") for call in calls))
    kept = "".join(f"{item}, " for item in carried)
    query = SqlText.of(
        window.prefix, "SELECT ", kept, results, " FROM ", Relation("exploded"), " GROUP BY __number"
    )
    frame = gateway.sql(query, {"exploded": exploded})
    for name in keys:
        frame = frame.withColumnRenamed("__kept_" + name, name)
    return frame
