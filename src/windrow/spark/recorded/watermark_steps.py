"""Watermarks as columns: the value of a watermark at a time, and the time when it passed a value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from windrow.kernels.incremental import first_above
from windrow.kernels.zset.relation import NEVER
from windrow.spark.runtime.interpreter import series_function

__all__ = ["looked_up", "when_above"]

_IN_SQL = 256  # up to so many changes of a watermark are a CASE expression


def looked_up(spark: SparkSession, column: str, since: Sequence[int], values: Sequence[int]) -> Column:
    """The value of the last change that is not after a tick; NULL before the first."""
    if not since:
        return F.lit(None).cast("bigint")
    if len(since) <= _IN_SQL:
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
    """The time of the first value above a tick; `NEVER` if there is none, or the tick is NULL."""
    never = F.lit(NEVER).cast("bigint")
    if len(values) <= _IN_SQL:
        found: Column | None = None
        for value, when in zip(values, whens, strict=True):
            condition, then = ticks < F.lit(value), F.lit(when).cast("bigint")
            found = F.when(condition, then) if found is None else found.when(condition, then)
        return never if found is None else found.otherwise(never)
    keys, results = np.asarray(values, np.int64), np.asarray(whens, np.int64)

    def look_up(ticks: pd.Series) -> pd.Series:
        return pd.Series(first_above(keys, results, ticks.fillna(NEVER).to_numpy().astype("int64")))

    return series_function(spark, look_up, LongType())(ticks)
