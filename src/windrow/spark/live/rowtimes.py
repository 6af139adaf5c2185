"""Which columns hold a stream's rowtime, or a column of it: marks in metadata, which Spark carries along."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType, TimestampNTZType

from windrow.algebra.names import ROW
from windrow.algebra.physical import Hoisted, field_of, is_field
from windrow.syntax.sqltext import quoted

__all__ = [
    "MARK",
    "column_of",
    "first_marked",
    "is_marked",
    "marked",
    "marked_fields",
    "rises",
    "rowtimes_in",
    "says_missing",
    "stub",
]

MARK = "windrow.rowtime"
_COLUMN = "windrow.column"
_SHOWN = re.compile(r"CAST\(\(?([^.()]+)\.([^.()]+)\)? AS TIMESTAMP_NTZ\)", re.IGNORECASE)
_WITHOUT_CHANGES = frozenset(["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z"])


def stub(
    spark: SparkSession, schema: StructType, rowtime: str | None = None, *, is_source: bool = False
) -> DataFrame:
    """A streaming DataFrame of these columns, which is only analysed; `rowtime` is marked, and what is marked
    in the schema. The columns of a source are marked with their names.
    """
    columns = []
    for item in schema:
        marks: dict[str, bool | str] = {MARK: True} if item.name == rowtime or is_marked(item) else {}
        if is_source:
            marks[_COLUMN] = item.name
        columns.append(F.lit(None).cast(item.dataType).alias(item.name, metadata=marks))
    return spark.readStream.format("rate").load().select(*columns)


def column_of(item: StructField) -> str | None:
    """The column of a source that is passed on; None if it is computed."""
    found: str | None = (item.metadata or {}).get(_COLUMN)
    return found


def is_marked(item: StructField) -> bool:
    """Whether a column holds a rowtime."""
    return bool((item.metadata or {}).get(MARK, False))


def first_marked(schema: StructType) -> str | None:
    """The first column that holds a rowtime."""
    return next((item.name for item in schema if is_marked(item)), None)


def marked(name: str) -> Column:
    """A column, marked."""
    return F.col(quoted(name)).alias(name, metadata={MARK: True})


def marked_fields(item: StructField, names: Collection[str]) -> StructField:
    """A column whose values are structs, in which these fields are marked."""
    if not names:
        return item
    assert isinstance(item.dataType, StructType)
    fields = [
        StructField(inner.name, inner.dataType, inner.nullable, {MARK: True} if inner.name in names else {})
        for inner in item.dataType
    ]
    return StructField(item.name, StructType(fields), item.nullable)


def rises(item: Hoisted, rows: DataFrame, zone: str) -> DataType | None:
    """The type of a column that holds the rowtime of a row of a clause; None for other columns.

    A TIMESTAMP is subtracted as the session's clock shows it, which only rises in a `zone` where that is
    never changed.
    """
    rowtimes = _of_row(rows)
    if is_field(item):
        return rowtimes.get(field_of(item))
    shown = _SHOWN.fullmatch(item.text.render())
    if shown is None or zone not in _WITHOUT_CHANGES or shown[1].strip("`") != item.variable.strip("`"):
        return None
    kind = rowtimes.get(shown[2].strip("`"))
    return TimestampNTZType() if kind is not None and kind.typeName() == "timestamp" else None


def rowtimes_in(items: Iterable[Hoisted], rows: DataFrame) -> frozenset[str]:
    """The columns of a clause that hold the rowtime itself."""
    rowtimes = _of_row(rows)
    return frozenset(item.name for item in items if is_field(item) and field_of(item) in rowtimes)


def says_missing(item: Hoisted) -> bool:
    """Whether a column says that there is no row: it is FALSE of every row that comes."""
    return item.text.render().strip("()").upper() == f"{item.variable} IS NULL".upper()


def _of_row(rows: DataFrame) -> dict[str, DataType]:
    row = rows.schema[ROW].dataType
    assert isinstance(row, StructType)
    return {found.name: found.dataType for found in row if is_marked(found)}
