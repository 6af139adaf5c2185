"""Rows for a kernel: their keys, their types in the exchange, and the schema that Spark expects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from windrow.algebra.match_node import Match
from windrow.algebra.names import order_key, partition_key
from windrow.algebra.window_node import Window
from windrow.errors import AnalysisError, NotSupportedError
from windrow.kernels.sorting import SortKey
from windrow.plan.arrow_types import (
    arrow_type,
    can_travel,
    contains,
    is_orderable,
    travelling_type,
    travels_as_it_is,
)
from windrow.spark.arrow import encode
from windrow.syntax.nodes import OrderItem

__all__ = ["KeyedRows", "arrow_of", "refuse_unorderable", "sort_key", "sorted_rows", "travelling_schema"]


_KNOWN = "__known"
_TIME = "yyyy-MM-dd'T'HH:mm:ss"
# in UTC: in other zones times before 1900 have offsets of seconds, which texts leave out
_WRITTEN = {"timeZone": "UTC", "timestampFormat": f"{_TIME}.SSSSSS", "timestampNTZFormat": f"{_TIME}.SSSSSS"}
# checkpoints may have texts of earlier versions, with milliseconds and an offset
_READ = {"timeZone": "UTC"} | dict.fromkeys(
    ("timestampFormat", "timestampNTZFormat"), f"{_TIME}[.SSSSSS][.SSS][XXX]"
)


class KeyedRows:
    """Rows for a kernel, and the keys by which they are distributed and sorted.

    `shared` are the keys that are also among the columns.
    """

    def __init__(self, window: Window | Match, rows: DataFrame, shared: Iterable[tuple[str, str]]) -> None:
        self.window, self.rows = window, rows
        self.shared = {key: column for key, column in shared if not contains(self.type_of(key), "collated")}
        self.partition = tuple(map(self.key, map(partition_key, range(len(window.partition_by)))))
        self.order = tuple(
            SortKey(self.key(order_key(number)), item.descending, item.nulls_first)
            for number, (_, item) in enumerate(window.order_by)
        )

    def keyed(self, wide: DataFrame, known: DataFrame | None = None, *, is_ranked: bool = True) -> DataFrame:
        """The keys and columns in their form for the exchange; Spark resolves collations, which Arrow does
        not support.

        The partition keys of `known` rows have this form already: new rows with equal keys get the same
        values. Keys of the order are ranks among these rows or, as long as other rows may come between,
        values for :meth:`ranked`.
        """
        collated = self.collated(wide)
        for name in self.partition:
            if name in collated:
                wide = _with_one_of_equals(wide, name, known)
        for key in self.order:
            if key.column in collated:
                found = _rank(F.col(key.column), self.partition) if is_ranked else _text(key.column)
                wide = wide.withColumn(key.column, found)
        kinds = {name: wide.schema[name].dataType for name in wide.columns}
        for kind in kinds.values():
            self.refuse_staying(kind)
        if all(map(travels_as_it_is, kinds.values())):
            return wide
        return wide.select(*(encode(F.col(name), kind).alias(name) for name, kind in kinds.items()))

    def ranked(self, keyed: DataFrame) -> DataFrame:
        """Keyed rows in which ranks replace order keys that have a collation."""
        collated = self.collated(self.rows)
        for key in self.order:
            if key.column in collated:
                value = _value(key.column, self.type_of(key.column))
                keyed = keyed.withColumn(key.column, _rank(value, self.partition))
        return keyed

    def collated(self, rows: DataFrame) -> frozenset[str]:
        """The keys among these columns that have a collation."""
        names = {*self.partition, *(key.column for key in self.order)}
        return frozenset(
            item.name for item in rows.schema if item.name in names and contains(item.dataType, "collated")
        )

    def refuse_staying(self, kind: DataType) -> None:
        """Refuse values of a type that cannot be exchanged."""
        if not can_travel(kind):
            raise NotSupportedError(
                f"a value of type {kind.simpleString()} cannot be carried through a window",
                condition="UNSUPPORTED_TYPE",
                sql=self.window.sql,
                span=self.window.span,
                hint="cast it to a string or to a number in a subquery in FROM",
            )

    def key(self, name: str) -> str:
        """The column of a key."""
        return self.shared.get(name, name)

    def type_of(self, key: str) -> DataType:
        """The type of a key."""
        return self.rows.schema[key].dataType


def refuse_unorderable(clause: Window | Match, rows: DataFrame) -> None:
    """Refuse keys whose type has no order, or cannot be grouped by.

    Raises
    ------
    AnalysisError
        ``UNORDERABLE_TYPE``.
    """
    partition = [("partitioned", partition_key(at), key) for at, key in enumerate(clause.partition_by)]
    order = [("ordered", order_key(at), key) for at, (key, _) in enumerate(clause.order_by)]
    for verb, name, key in [*partition, *order]:
        kind = rows.schema[name].dataType
        if not is_orderable(kind):
            raise AnalysisError(
                f"rows cannot be {verb} by a value of type {kind.simpleString()}",
                condition="UNORDERABLE_TYPE",
                sqlstate="42822",
                sql=clause.sql,
                span=key.span,
                hint="use a field of it, or cast it to a type with an order",
            )


def arrow_of(kind: DataType) -> pa.DataType:
    """The Arrow type of values that can be exchanged."""
    found = arrow_type(kind)
    assert found is not None, f"{kind.simpleString()} was refused before"
    return found


def travelling_schema(kind: StructType) -> StructType:
    """The schema that represents this one between Python and Spark."""
    return StructType([StructField(field.name, _on_the_way(field.dataType)) for field in kind.fields])


def _on_the_way(kind: DataType) -> DataType:
    match kind:
        case StructType():
            return StructType(
                [StructField(field.name, travelling_type(field.dataType)) for field in kind.fields]
            )
        case ArrayType(elementType=StructType() as element):
            return ArrayType(_on_the_way(element))
        case _:
            return travelling_type(kind)


def _rank(key: Column, partition: tuple[str, ...]) -> Column:
    """Integers in the order of a key within its partition; NULL for NULL."""
    rank = F.dense_rank().over(SparkWindow.partitionBy(*partition).orderBy(key.asc_nulls_first()))
    return F.when(key.isNotNull(), rank)


def _text(name: str) -> Column:
    """The value of a column as bytes, which :func:`_value` converts back."""
    return F.to_json(F.struct(F.col(name).alias("x")), _WRITTEN).cast("binary")


def _value(name: str, kind: DataType) -> Column:
    """The value of the bytes in a column."""
    schema = StructType([StructField("x", kind)])
    return F.from_json(F.col(name).cast("string"), schema, _READ).getField("x")


def _with_one_of_equals(rows: DataFrame, name: str, known: DataFrame | None) -> DataFrame:
    """The rows in which values that are equal under a collation have the same bytes in a column.

    These are the bytes of a known row, if one has an equal value.
    """
    equals, text = SparkWindow.partitionBy(name), _text(name)
    if known is None:
        return rows.withColumn(name, F.min(text).over(equals))
    value = _value(name, rows.schema[name].dataType)
    theirs = known.select(F.col(name).alias(_KNOWN), value.alias(name)).distinct()
    both = rows.unionByName(theirs, allowMissingColumns=True)
    found = F.coalesce(F.min(_KNOWN).over(equals), F.min(text).over(equals))
    return both.withColumn(name, found).where(F.isnull(_KNOWN)).drop(_KNOWN)


def sorted_rows(frame: DataFrame, order: Sequence[tuple[int, OrderItem]]) -> DataFrame:
    """The rows, sorted by the columns at these places, whose names may repeat."""
    if not order:
        return frame
    names = frame.columns
    inside = frame.toDF(*(f"c{place}" for place in range(len(names))))
    keys = (sort_key(f"c{place}", item.descending, item.nulls_first) for place, item in order)
    return inside.orderBy(*keys).toDF(*names)


def sort_key(name: str, descending: bool, nulls_first: bool) -> Column:
    """The column as a sort key."""
    column = F.col(name)
    if descending:
        return column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if nulls_first else column.asc_nulls_last()
