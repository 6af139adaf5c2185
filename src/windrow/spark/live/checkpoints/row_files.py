"""Rows in a checkpoint: a file of Arrow for collected rows, else a folder of Parquet that tasks write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from windrow.spark.collected import frame_of_collected
from windrow.spark.live.sinks.sink import uri, written_to

__all__ = ["read_rows", "write_collected", "write_many"]


def write_collected(path: Path, rows: pa.Table) -> None:
    """Write rows that are in memory."""
    with pa.ipc.new_file(path, rows.schema) as file:
        file.write_table(rows)


def write_many(path: Path, rows: DataFrame) -> None:
    """Let tasks write rows.

    Raises
    ------
    ExecutionError
        ``NOT_SHARED``.
    """
    rows.write.parquet(uri(path))
    written_to(path)


def read_rows(spark: SparkSession, path: Path, schema: StructType) -> DataFrame:
    """Rows written by one of these two functions."""
    if path.is_dir():
        return spark.read.schema(schema).parquet(uri(path))
    with pa.ipc.open_file(path) as file:
        return frame_of_collected(spark, file.read_all(), schema)
