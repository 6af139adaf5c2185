"""Values as SQL on Spark Connect, which does not show the SQL of what it analyses."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from windrow.spark.gateway import Gateway
from windrow.statements.definitions.stored_text import ddl, literal
from windrow.syntax.sqltext import SqlText, quoted

__all__ = ["read_value", "values_on_connect", "written_value"]

_LITERALS: dict[type[DataType], str] = {
    BooleanType: "{}",
    ByteType: "{}Y",
    ShortType: "{}S",
    IntegerType: "{}",
    LongType: "{}L",
    DateType: "DATE '{}'",
    TimestampNTZType: "TIMESTAMP_NTZ '{}'",
    DayTimeIntervalType: "{}",
    YearMonthIntervalType: "{}",
}
"""The literals of types, which Spark shows as names of columns, around the texts of their values."""


def values_on_connect(gateway: Gateway, marks: Sequence[str], frame: DataFrame, using: SqlText) -> list[str]:
    """The SQL of the values of parameters, of which `frame` has the types."""
    kinds = [one.dataType for one in frame.schema.fields]
    named = ", ".join(f"{mark} AS c{place}" for place, mark in enumerate(marks))
    items = ", ".join(read_value(f"c{place}", kind) for place, kind in enumerate(kinds))
    text = literal(f"SELECT {items} FROM (SELECT {named})")
    found = gateway.sql(SqlText.of("EXECUTE IMMEDIATE ", text, " ", using))
    with gateway.translated():
        values = found.collect()[0]
    return [written_value(value, kind) for value, kind in zip(values, kinds, strict=True)]


def read_value(item: str, kind: DataType, depth: int = 0) -> str:
    """What is selected of an item: texts that have all of its value.

    >>> read_value("c", ArrayType(IntegerType()))
    'transform(c, x0 -> CAST(x0 AS STRING))'
    """
    one = f"x{depth}"
    match kind:
        case ArrayType():
            return f"transform({item}, {one} -> {read_value(one, kind.elementType, depth + 1)})"
        case MapType():
            key = read_value(f"{one}.key", kind.keyType, depth + 1)
            value = read_value(f"{one}.value", kind.valueType, depth + 1)
            return f"transform(map_entries({item}), {one} -> struct({key} AS k, {value} AS v))"
        case StructType():
            fields = (read_value(f"{item}.{quoted(one.name)}", one.dataType, depth) for one in kind.fields)
            whole = ", ".join(f"{text} AS c{place}" for place, text in enumerate(fields))
            return f"if({item} IS NULL, NULL, struct({whole}))"
        case TimestampType():  # an hour may come twice
            return f"CAST(unix_micros({item}) AS STRING)"
        case BinaryType():
            return f"hex({item})"
        case VariantType():
            return f"to_json({item})"
        case _:
            return f"CAST({item} AS STRING)"


def written_value(value: Any, kind: DataType) -> str:
    """The SQL of a value that was read.

    >>> written_value("5", LongType()), written_value(None, BinaryType()), written_value("4F", BinaryType())
    ('5L', 'CAST(NULL AS binary)', "X'4F'")
    >>> written_value([("a", ["1", None])], MapType(StringType(), ArrayType(IntegerType())))
    "map('a', array(1, CAST(NULL AS int)))"
    """
    if isinstance(kind, NullType):
        return "NULL"
    if value is None or (isinstance(kind, ArrayType | MapType) and not value):
        empty = "NULL" if value is None else "array()" if isinstance(kind, ArrayType) else "map()"
        return f"CAST({empty} AS {ddl(kind)})"
    match kind:
        case ArrayType():
            return f"array({', '.join(written_value(one, kind.elementType) for one in value)})"
        case MapType():
            kinds = kind.keyType, kind.valueType
            entries = (written_value(*one) for pair in value for one in zip(pair, kinds, strict=True))
            return f"map({', '.join(entries)})"
        case StructType():
            fields = zip(value, kind.fields, strict=True)
            items = (f"{literal(one.name)}, {written_value(part, one.dataType)}" for part, one in fields)
            return f"named_struct({', '.join(items)})"
        case TimestampType():
            return f"timestamp_micros({value})"
        case BinaryType():
            return f"X'{value}'"
        case VariantType():
            return f"parse_json({literal(value)})"
        case StringType() if ddl(kind) == "string":
            return literal(value)
        case DoubleType() if value[-1].isdigit():
            return f"{value}D"
        case DecimalType() if _digits(value) == (kind.precision, kind.scale):
            return f"{value}BD"
        case _ if type(kind) in _LITERALS:
            return _LITERALS[type(kind)].format(value)
        case _:
            return f"CAST({literal(value)} AS {ddl(kind)})"


def _digits(text: str) -> tuple[int, int]:
    """The precision and scale of a decimal literal."""
    number = Decimal(text).as_tuple()
    scale = -int(number.exponent)
    return max(len(number.digits), scale), scale
