"""Which columns a live query in memory can have, and which types are not there."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import DataType, StructType

from windrow.spark.arrow import arrow_type, can_travel, contains

__all__ = ["in_memory", "not_in_memory"]


def not_in_memory(schema: StructType) -> str | None:
    """Which column is of a type that has no form in memory; None if all have one.

    >>> from pyspark.sql.types import CalendarIntervalType, DateType
    >>> not_in_memory(StructType().add("day", DateType()))
    >>> not_in_memory(StructType().add("v", CalendarIntervalType()))
    'a column of type interval'
    """
    for column in schema:
        if _kind(column.dataType) is None:
            return f"a column of type {column.dataType.simpleString()}"
    return None


def in_memory(schema: StructType) -> pa.Schema:
    """The columns of a schema as they are in memory, without those that have no form there."""
    kinds = [(column.name, _kind(column.dataType)) for column in schema]
    return pa.schema([(name, kind) for name, kind in kinds if kind is not None])


def _kind(kind: DataType) -> pa.DataType | None:
    return None if not can_travel(kind) or contains(kind, "collated") else arrow_type(kind)
