"""Which columns hold a stream's rowtime, or a column of it: marks in metadata, which Spark carries along."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType, TimestampNTZType

from windrow.algebra.names import ROW
from windrow.algebra.physical import Hoisted, field_of, is_field
from windrow.syntax.rising import STEADY

__all__ = [
    "MARK",
    "columns_of",
    "first_marked",
    "is_marked",
    "marked_fields",
    "marks",
    "rises",
    "rowtimes_in",
    "says_missing",
    "stub",
]

MARK = "windrow.rowtime"
_RELATION = "windrow.relation"
_COLUMN = "windrow.column"
_SHOWN = re.compile(r"CAST\(\(?([^.()]+)\.([^.()]+)\)? AS TIMESTAMP_NTZ\)", re.IGNORECASE)


def stub(
    spark: SparkSession, schema: StructType, rowtime: str | None = None, *, relation: str | None = None
) -> DataFrame:
    """A streaming DataFrame of these columns, which is only analysed; `rowtime` is marked, and what is marked
    in the schema. The columns of a `relation` are marked with its name and theirs, as are fields of structs.
    """
    columns = []
    for item in schema:
        marks: dict[str, bool | str] = {MARK: True} if item.name == rowtime or is_marked(item) else {}
        kind = item.dataType
        if relation is not None:
            marks |= {_RELATION: relation, _COLUMN: item.name}
            kind = _marked_inside(item, relation)
        columns.append(F.lit(None).cast(kind).alias(item.name, metadata=marks))
    return spark.readStream.format("rate").load().select(*columns)


def _marked_inside(item: StructField, relation: str) -> DataType:
    """The type of a column, in whose structs all fields that have marks name the relation."""
    if not isinstance(item.dataType, StructType):
        return item.dataType
    fields = []
    for inner in item.dataType:
        marks = dict(inner.metadata or {})
        if _COLUMN in marks:
            marks |= {_RELATION: relation, _COLUMN: f"{item.name}.{inner.name}"}
        fields.append(StructField(inner.name, inner.dataType, inner.nullable, marks))
    return StructType(fields)


def columns_of(schema: StructType) -> Iterator[tuple[str, DataType, str, str]]:
    """Of columns that are columns of relations, and of fields of structs: the name, as `row.field`, the type,
    the relation and its column.
    """
    for item in schema:
        whole = [(item.name, item)]
        if isinstance(item.dataType, StructType):
            whole += [(f"{item.name}.{inner.name}", inner) for inner in item.dataType]
        for name, one in whole:
            marks = one.metadata or {}
            if _COLUMN in marks:
                yield name, one.dataType, marks[_RELATION], marks[_COLUMN]


def is_marked(item: StructField) -> bool:
    """Whether a column holds a rowtime."""
    return bool((item.metadata or {}).get(MARK, False))


def first_marked(schema: StructType) -> str | None:
    """The first column that holds a rowtime."""
    return next((item.name for item in schema if is_marked(item)), None)


def marks(*, is_rowtime: bool, source: str | None) -> dict[str, bool | str]:
    """What is marked of a column: that it holds a rowtime, which column of the rows it is."""
    found: dict[str, bool | str] = {MARK: True} if is_rowtime else {}
    return found if source is None else {**found, _RELATION: "", _COLUMN: source}


def marked_fields(item: StructField, marked: Mapping[str, dict[str, bool | str]]) -> StructField:
    """A column whose values are structs, of which these fields are marked."""
    if not marked:
        return item
    assert isinstance(item.dataType, StructType)
    fields = [
        StructField(inner.name, inner.dataType, inner.nullable, marked.get(inner.name, {}))
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
    if shown is None or zone not in STEADY or shown[1].strip("`") != item.variable.strip("`"):
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
