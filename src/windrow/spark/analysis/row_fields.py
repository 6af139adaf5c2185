"""Rows as Spark structs, for duplicate column names and for columns qualified by their relations.

In the row column (:data:`windrow.algebra.names.ROW`) every field has a unique name; users see the names of
FROM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from windrow.algebra.names import QUALIFIED, ROW, twin, visible_field

__all__ = ["as_variable", "row_type", "visible_type", "with_distinct_names", "with_visible_names"]


def with_distinct_names(rows: DataFrame) -> DataFrame:
    """The rows, with unique names for fields that share one."""
    kind = row_type(rows)
    count = Counter(field.name.lower() for field in kind)
    if max(count.values(), default=0) < 2:
        return rows
    names = [
        twin(number, field.name) if count[field.name.lower()] > 1 else field.name
        for number, field in enumerate(kind.fields)
    ]
    apart = [StructField(name, field.dataType) for name, field in zip(names, kind.fields, strict=True)]
    return rows.withColumn(ROW, F.col(ROW).cast(StructType(apart)))


def row_type(rows: DataFrame) -> StructType:
    """The type of the rows."""
    kind = rows.schema[ROW].dataType
    assert isinstance(kind, StructType)
    return kind


def as_variable(row: Column, fields: Iterable[str], name: str) -> list[Column]:
    """A row under the name of a variable, and under the name for qualified fields."""
    names = list(fields)
    if all(visible_field(field) == field for field in names):
        return [row.alias(name)]
    parts = [
        row.getField(field).alias(renamed) for field in names if (renamed := visible_field(field)) is not None
    ]
    variable = F.when(row.isNotNull(), F.struct(*parts)).alias(name)
    return [variable, *([row.alias(QUALIFIED + name)] if len(parts) < len(names) else [])]


def with_visible_names(value: Column, kind: DataType) -> Column:
    """A row, or an array of rows, with the users' names of its fields."""
    renamed = visible_type(kind)
    return value if renamed == kind else value.cast(renamed)


def visible_type(kind: DataType) -> DataType:
    """The type of such a value; qualified fields have the same names."""
    match kind:
        case ArrayType(elementType=StructType() as element):
            return ArrayType(visible_type(element), kind.containsNull)
        case StructType():
            return StructType(
                [
                    StructField(visible_field(field.name) or field.name, field.dataType, field.nullable)
                    for field in kind.fields
                ]
            )
    return kind
