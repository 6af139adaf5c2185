"""What columns are in the memory of a query that goes on step by step, and what is not evaluated so."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import StructType

from windrow.spark.arrow import arrow_type, can_travel, contains

__all__ = ["NotIncremental", "in_memory"]


class NotIncremental(Exception):  # noqa: N818 - it is no error: another way is taken
    """What is in a query that is not evaluated step by step in memory."""


def in_memory(schema: StructType) -> pa.Schema:
    """The columns of a schema as they are in memory."""
    fields = []
    for column in schema:
        kind = arrow_type(column.dataType)
        if kind is None or not can_travel(column.dataType) or contains(column.dataType, "collated"):
            raise NotIncremental(f"a column of type {column.dataType.simpleString()}")
        fields.append(pa.field(column.name, kind))
    return pa.schema(fields)
