"""Which columns a live query in memory supports, and which types it does not."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import CalendarIntervalType, DataType, StringType, StructType

from windrow.plan.arrow_types import arrow_type, can_travel, travelling_type
from windrow.spark.arrow import encode
from windrow.syntax.sqltext import quoted

__all__ = ["in_memory", "not_in_memory", "travelling"]


def not_in_memory(schema: StructType) -> str | None:
    """The column whose type has no form in memory; None if all have one.

    >>> from pyspark.sql.types import ArrayType, DateType
    >>> not_in_memory(StructType().add("day", DateType()).add("v", CalendarIntervalType()))
    >>> not_in_memory(StructType().add("v", ArrayType(CalendarIntervalType())))
    'a column of type array<interval>'
    """
    for column in schema:
        if _kind(column.dataType) is None:
            return f"a column of type {column.dataType.simpleString()}"
    return None


def in_memory(schema: StructType) -> pa.Schema:
    """The columns of a schema in memory, except those without a form there."""
    kinds = [(column.name, _kind(column.dataType)) for column in schema]
    return pa.schema([(name, kind) for name, kind in kinds if kind is not None])


def travelling(frame: DataFrame) -> DataFrame:
    """The columns in their form in memory."""
    if all(travelling_type(column.dataType) == column.dataType for column in frame.schema):
        return frame
    return frame.select(
        *(encode(F.col(quoted(column.name)), column.dataType).alias(column.name) for column in frame.schema)
    )


def _kind(kind: DataType) -> pa.DataType | None:
    if isinstance(kind, CalendarIntervalType):
        return arrow_type(StringType())
    return arrow_type(kind) if can_travel(kind) else None
