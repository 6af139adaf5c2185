"""Columns looked up among the steps of a watermark: its value at a time, and when it was above a value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from windrow.kernels.stages import first_above
from windrow.kernels.zset.relation import NEVER
from windrow.spark.runtime.interpreter import series_function

__all__ = ["looked_up", "when_above"]

_FEW = 256  # steps of a watermark that are an expression of SQL


def looked_up(spark: SparkSession, column: str, since: Sequence[int], values: Sequence[int]) -> Column:
    """The value of the last step that is not after a tick; NULL before the first."""
    if not since:
        return F.lit(None).cast("bigint")
    if len(since) <= _FEW:
        cases = [
            f"WHEN {column} >= {at}L THEN {value}L"
            for at, value in zip(reversed(since), reversed(values), strict=True)
        ]
        return F.expr(f"CASE {' '.join(cases)} END")
    keys, found = np.asarray(since, np.int64), np.asarray(values, np.int64)

    def look_up(ticks: pd.Series) -> pd.Series:
        place = np.searchsorted(keys, ticks.to_numpy(), side="right")
        return pd.Series(found[place - 1]).where(place > 0).astype("Int64")

    return series_function(spark, look_up, LongType())(F.col(column))


def when_above(spark: SparkSession, ticks: Column, values: Sequence[int], whens: Sequence[int]) -> Column:
    """When the first of the values is above a tick; never, if none is or it is NULL."""
    never = F.lit(NEVER).cast("bigint")
    if len(values) <= _FEW:
        found: Column | None = None
        for value, when in zip(values, whens, strict=True):
            condition, then = ticks < F.lit(value), F.lit(when).cast("bigint")
            found = F.when(condition, then) if found is None else found.when(condition, then)
        return never if found is None else found.otherwise(never)
    keys, results = np.asarray(values, np.int64), np.asarray(whens, np.int64)

    def look_up(ticks: pd.Series) -> pd.Series:
        return pd.Series(first_above(keys, results, ticks.fillna(NEVER).to_numpy().astype("int64")))

    return series_function(spark, look_up, LongType())(ticks)
