"""The cases as Spark Structured Streaming has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.live import nexmark

__all__ = ["QUERIES", "UPDATING"]


def _tumbling(readings: DataFrame, length: str = "7 days") -> DataFrame:
    grouped = readings.withWatermark("ts", "0 seconds").groupBy("key", F.window("ts", length))
    return grouped.agg(F.max("ts").alias("latest"), F.avg("value").alias("mean")).drop("window")


def _join(readings: DataFrame, others: DataFrame) -> DataFrame:
    one = readings.withWatermark("ts", "0 seconds").alias("r")
    other = others.withWatermark("ts", "0 seconds").alias("o")
    near = F.expr("r.key = o.key AND o.ts > r.ts - INTERVAL 1 DAY AND o.ts < r.ts + INTERVAL 1 DAY")
    shown = ("r.key", "r.ts", "r.value", F.col("o.ts").alias("other"), F.col("o.value").alias("compared"))
    return one.join(other, near).select(*shown)


QUERIES: Mapping[str, Callable[..., DataFrame]] = MappingProxyType(
    {
        "tumbling": _tumbling,
        "five-minutes": partial(_tumbling, length="5 minutes"),
        "join": _join,
        **{f"nexmark-q{number}": made for number, made in nexmark.NATIVE.items()},
    }
)
"""By name; each is given the streams of its case in their order."""

UPDATING = frozenset(f"nexmark-q{number}" for number in nexmark.UPDATING)
"""Those that give what has changed; the others give rows that stay."""
