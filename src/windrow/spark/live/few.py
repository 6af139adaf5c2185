"""Rows that are few enough to be on the driver, where they need no job of Spark's to be read or written."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

__all__ = ["FEW", "few", "frame_of_few"]

FEW = 20_000


def few(frame: DataFrame) -> pa.Table | None:
    """The rows; None if they are many."""
    rows = frame.limit(FEW + 1).toArrow()
    return rows if rows.num_rows <= FEW else None


def frame_of_few(spark: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Those rows as a DataFrame again."""
    if not rows.num_rows:
        return spark.createDataFrame([], schema)
    return spark.createDataFrame(rows, schema)
