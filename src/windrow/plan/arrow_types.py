"""Which Spark types are transferred to Python as Arrow, and as which Arrow types.

Year-month intervals are transferred as their number of months. Calendar intervals have no form in Arrow: a
live query has them in a column as the text that Spark makes of them. `spark/arrow.py` casts values.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    IntegerType,
    MapType,
    NullType,
    StringType,
    StructType,
    YearMonthIntervalType,
)

__all__ = [
    "arrow_type",
    "can_travel",
    "contains",
    "is_carried",
    "is_orderable",
    "pattern_schema",
    "travelling_type",
    "travels_as_it_is",
]

_NO_ORDER = {"map", "variant", "interval", "geometry", "geography"}
# PySpark before 4.2 has times in UTC by default, and no argument for it
_IN_UTC: Any = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}


def arrow_type(kind: DataType) -> pa.DataType | None:
    """The Arrow type of a value of this type in the kernel; None if it cannot be transferred."""
    return to_arrow_type(travelling_type(kind), **_IN_UTC) if can_travel(kind) else None


def can_travel(kind: DataType) -> bool:
    """Whether values of this type can be transferred to Python and back."""
    if isinstance(kind, YearMonthIntervalType):
        return True
    return not any(
        isinstance(part, YearMonthIntervalType) or part.typeName() == "interval" for part in _parts(kind)
    )


def is_carried(kind: DataType) -> bool:
    """Whether operators support values of a type; they compare strings by their bytes."""
    return can_travel(kind) and not contains(kind, "collated")


def travelling_type(kind: DataType) -> DataType:
    """The type that encodes this one."""
    match kind:
        case YearMonthIntervalType():
            return IntegerType()
        case CalendarIntervalType():
            return StringType()
    return kind


def travels_as_it_is(kind: DataType) -> bool:
    """Whether values are transferred without encoding."""
    return not contains(kind, "months")


def contains(kind: DataType, what: str) -> bool:
    """Whether the type or a part of it is of a kind: ``months``, ``collated``, ``variant`` or ``void``."""
    if what == "variant":
        return any(part.typeName() == "variant" for part in _parts(kind))
    if what == "void":
        return any(isinstance(part, NullType) for part in _parts(kind))
    if what == "months":
        return any(isinstance(part, YearMonthIntervalType) for part in _parts(kind))
    return any(isinstance(part, StringType) and part.simpleString() != "string" for part in _parts(kind))


def pattern_schema(kinds: StructType) -> pa.Schema:
    """The columns that patterns may name, with their Arrow types."""
    fields = [(field.name, arrow_type(field.dataType)) for field in kinds]
    return pa.schema([pa.field(name, kind) for name, kind in fields if kind is not None])


def is_orderable(kind: DataType) -> bool:
    """Whether values of this type have an order in Spark."""
    return not any(part.typeName() in _NO_ORDER for part in _parts(kind))


def _parts(kind: DataType) -> Iterator[DataType]:
    yield kind
    match kind:
        case StructType():
            for field in kind.fields:
                yield from _parts(field.dataType)
        case ArrayType(elementType=element):
            yield from _parts(element)
        case MapType(keyType=key, valueType=value):
            yield from _parts(key)
            yield from _parts(value)
