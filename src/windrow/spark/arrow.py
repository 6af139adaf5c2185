"""Values on their way into Python as Arrow: :mod:`windrow.plan.arrow_types` has their types."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    StructType,
    YearMonthIntervalType,
)

from windrow.plan.arrow_types import contains

__all__ = ["decode", "encode"]


def encode(value: Column, kind: DataType) -> Column:
    """The encoded value."""
    match kind:
        case YearMonthIntervalType():
            return value.cast("interval month").cast("int")
        case CalendarIntervalType():
            return value.cast("string")
    return value


def decode(value: Column, kind: DataType) -> Column:
    """The decoded value."""
    match kind:
        case YearMonthIntervalType():
            return F.make_ym_interval(F.lit(0), value).cast(kind)
        case CalendarIntervalType():
            return value.cast("interval")
        case StructType() if any(contains(field.dataType, "months") for field in kind.fields):
            fields = [
                decode(value.getField(field.name), field.dataType).alias(field.name) for field in kind.fields
            ]
            return F.when(value.isNotNull(), F.struct(*fields))
        case ArrayType(elementType=element) if contains(element, "months"):
            return F.transform(value, lambda one: decode(one, element))
        case _:
            return value
