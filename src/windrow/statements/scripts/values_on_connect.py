"""The values of parameters as SQL on Spark Connect, which does not show the SQL of what it analyses."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampType,
    VariantType,
)

from windrow.spark.gateway import Gateway
from windrow.statements.definitions.stored_text import ddl, literal
from windrow.syntax.sqltext import SqlText

__all__ = ["values_on_connect"]


def values_on_connect(
    gateway: Gateway, marks: Sequence[str], kinds: Sequence[DataType], using: SqlText
) -> list[str] | None:
    """The SQL of the values of parameters, of these types; None if one is nested.

    >>> from pyspark.sql.types import IntegerType
    >>> _written("5", IntegerType()), _written(None, BinaryType()), _written("4F", BinaryType())
    ("CAST('5' AS int)", 'CAST(NULL AS binary)', "X'4F'")
    """
    if any(isinstance(kind, ArrayType | MapType | StructType | VariantType) for kind in kinds):
        return None
    items = ", ".join(_read(mark, kind) for mark, kind in zip(marks, kinds, strict=True))
    frame = gateway.sql(SqlText.of("EXECUTE IMMEDIATE ", literal(f"SELECT {items}"), " ", using))
    with gateway.translated():
        values = frame.collect()[0]
    return [_written(value, kind) for value, kind in zip(values, kinds, strict=True)]


def _read(mark: str, kind: DataType) -> str:
    """What is selected of a parameter: a text that has all of its value."""
    if isinstance(kind, TimestampType):  # which hours may have twice
        return f"CAST(unix_micros({mark}) AS STRING)"
    return f"hex({mark})" if isinstance(kind, BinaryType) else f"CAST({mark} AS STRING)"


def _written(value: str | None, kind: DataType) -> str:
    if isinstance(kind, NullType):
        return "NULL"
    if value is None:
        return f"CAST(NULL AS {ddl(kind)})"
    if isinstance(kind, TimestampType):
        return f"timestamp_micros({value})"
    if isinstance(kind, BinaryType):
        return f"X'{value}'"
    return literal(value) if isinstance(kind, StringType) else f"CAST({literal(value)} AS {ddl(kind)})"
