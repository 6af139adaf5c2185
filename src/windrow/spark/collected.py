"""Collected rows: small results on the driver, which are read and written without a Spark job."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from windrow.plan.arrow_types import travelling_type
from windrow.spark.arrow import decode
from windrow.spark.runtime.settings import setting
from windrow.syntax.sqltext import quoted

__all__ = ["MOST_COLLECTED", "collected", "frame_of_collected", "is_plain"]

MOST_COLLECTED = 20_000


def collected(frame: DataFrame) -> pa.Table | None:
    """The rows; None if there are too many."""
    rows = frame.limit(MOST_COLLECTED + 1).toArrow()
    return rows if rows.num_rows <= MOST_COLLECTED else None


def frame_of_collected(spark: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Collected rows as a DataFrame; for large ones, tasks create it."""
    if not rows.num_rows:
        return spark.createDataFrame([], schema)
    kinds = StructType([StructField(one.name, travelling_type(one.dataType)) for one in schema])
    if kinds.simpleString() != schema.simpleString():
        columns = [decode(F.col(quoted(one.name)), one.dataType).alias(one.name) for one in schema]
        return frame_of_collected(spark, rows, kinds).select(*columns)
    # in one chunk: Spark returns nothing of some tables that begin with an empty one
    whole = rows.combine_chunks()
    if rows.num_rows <= MOST_COLLECTED:
        return spark.createDataFrame(whole, schema)
    # not rows that Spark's driver computes with, row by row and uncompiled
    with setting(spark, _LOCAL, "0"):
        return spark.createDataFrame(whole, schema)


_LOCAL = "spark.sql.execution.arrow.localRelationThreshold"


def is_plain(schema: StructType) -> bool:
    """Whether all columns have the same form in files and in memory as Spark would write."""
    return all(isinstance(field.dataType, _PLAIN) for field in schema)


_PLAIN = (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
