"""Values with a collation: memory and Python compare bytes, so ranks replace such values there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, StringType, StructType

from windrow.algebra.names import ROW
from windrow.plan.arrow_types import contains, is_orderable
from windrow.spark.collected import frame_of_collected

__all__ = ["collated", "ranked", "with_compared", "with_ranks"]

_PLACE, _VALUE = "place", "value"


def collated(schema: StructType) -> list[str]:
    """The columns whose values a collation compares."""
    return [one.name for one in schema if contains(one.dataType, "collated") and is_orderable(one.dataType)]


def ranked(spark: SparkSession, rows: pa.Table, schema: StructType) -> pa.Table:
    """Rows in which ranks replace the values of columns with a collation.

    A rank is the position of the value among those of the rows, in the order of the collation; equal values
    have the same rank, and NULL the first. Spark computes them, by a job for each column that has several
    values.
    """
    for name in collated(schema):
        ranks = _ranks(spark, rows.column(name), schema[name].dataType)
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(ranks))
    return rows


def with_ranks(frame: DataFrame) -> DataFrame:
    """Keys of rows with ranks for values with a collation; the rows themselves are unchanged."""
    keys = StructType([one for one in frame.schema if one.name != ROW])
    ranks = {name: F.dense_rank().over(Window.orderBy(name)) for name in collated(keys)}
    return frame.withColumns({name: F.when(F.isnotnull(name), rank) for name, rank in ranks.items()})


def with_compared(frame: DataFrame, schema: StructType) -> tuple[DataFrame, tuple[tuple[str, str], ...]]:
    """Rows, and for each of these columns with a collation a column of bytes that are equal for equal values.

    The pairs are the names of both columns.
    """
    pairs = tuple((name, f"__compared{number}") for number, name in enumerate(collated(schema)))
    texts = {
        other: F.min(F.to_json(F.struct(name)).cast("binary")).over(Window.partitionBy(name))
        for name, other in pairs
    }
    return frame.withColumns(texts), pairs


def _ranks(spark: SparkSession, values: pa.ChunkedArray, kind: DataType) -> np.ndarray:
    ranks = np.zeros(len(values), np.int64)
    if len(values) < 2 or (
        isinstance(kind, StringType) and pc.count_distinct(values, mode="all").as_py() < 2
    ):
        return ranks
    table = pa.table({_PLACE: pa.array(np.arange(len(values))), _VALUE: values})
    frame = frame_of_collected(spark, table, StructType().add(_PLACE, LongType()).add(_VALUE, kind))
    equal = frame.groupBy(_VALUE).agg(F.collect_list(_PLACE).alias(_PLACE))
    places = equal.orderBy(F.col(_VALUE).asc_nulls_first()).select(_PLACE).toArrow().column(0)
    counts = np.asarray(pc.list_value_length(places).to_numpy())
    ranks[pc.list_flatten(places).to_numpy()] = np.repeat(np.arange(len(counts)), counts)
    return ranks
