"""Reads the rows of a time-varying relation with their validity."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.algebra.time_scale import NEVER
from windrow.errors import UsageError, no_column
from windrow.plot.reading.chart_options import Options
from windrow.plot.reading.places import as_place, is_time
from windrow.plot.scene import Axis, Interval, VaryingScene
from windrow.relation import Changes
from windrow.spark.gateway import Gateway
from windrow.spark.relations.time_varying_relation import ENTER, LEAVE, TimeVarying

__all__ = ["read_changes", "read_validity"]

_NULL = "NULL"
_KINDS: dict[str, T.DataType] = {
    "bigint": T.LongType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
    "timestamp_ntz": T.TimestampNTZType(),
}


def read_validity(relation: TimeVarying, options: Options) -> VaryingScene:
    """The rows with their validity, in order of insertion.

    Raises
    ------
    WindrowError
        As the query does, and ``UNRESOLVED_COLUMN`` or ``INVALID_ARGUMENT`` of the options.
    """
    return _read(relation, options, tuple(map(str, options.keys)), "rows and when they are in the relation")


def read_changes(changes: Changes, options: Options) -> VaryingScene:
    """The rows for the staircase of inserts and deletes."""
    key = tuple(map(str, options.keys)) or changes.key
    return _read(changes.relation, options, key, "what enters and leaves")


def _read(relation: TimeVarying, options: Options, key: tuple[str, ...], title: str) -> VaryingScene:
    numeric = [name for name in relation.names if isinstance(_kind(relation, name), T.NumericType)]
    for name in (*key, *([options.value] if options.value is not None else [])):
        if name.lower() not in {known.lower() for known in relation.names}:
            raise no_column("the relation has", name, relation.names)
    lower = {name.lower() for name in key}
    value = options.value or next((name for name in numeric if name.lower() not in lower), None)
    if value is not None and value.lower() not in {name.lower() for name in numeric}:
        raise UsageError(
            f"column {value} is not numeric, so it cannot be drawn",
            condition="INVALID_ARGUMENT",
            hint=f"name a column of numbers: {', '.join(numeric)}"
            if numeric
            else "select a column of numbers",
        )
    by = [name for name in relation.names if name.lower() in lower] if key else _words(relation, numeric)
    rows = relation.frame.select(
        _joined(relation, by).alias("key"),
        _joined(relation, list(relation.names)).alias("text"),
        _joined(relation, [name for name in relation.names if name not in by]).alias("rest"),
        _amount(relation, value).alias("amount"),
        _place(relation, ENTER).alias("enter"),
        F.when(F.col(LEAVE) != NEVER, _place(relation, LEAVE)).alias("leave"),
        F.col(ENTER).alias("at"),
    )
    gateway = Gateway(relation.frame.sparkSession)
    with gateway.translated():
        found = rows.orderBy("at", "text").limit(options.rows).collect()
        count = relation.frame.count()
        first, last = _ends(relation)
    intervals = tuple(
        Interval(row["key"], row["text"], row["rest"], row["enter"], row["leave"], row["amount"])
        for row in found
    )
    y = None
    if value is not None:
        y = Axis(value, is_whole=isinstance(_kind(relation, value), T.IntegralType))
    unit = f", {relation.scale.unit.lower()}s" if relation.scale.kind == "bigint" else ""
    x = Axis(f"rowtime{unit}", relation.scale.kind != "bigint", relation.scale.kind == "bigint")
    return VaryingScene(title, x, y, intervals, first, last, count)


def _kind(relation: TimeVarying, name: str) -> T.DataType:
    lower = [known.lower() for known in relation.names]
    return relation.frame.schema[relation.columns[lower.index(name.lower())]].dataType


def _words(relation: TimeVarying, numeric: list[str]) -> list[str]:
    """The default key: the columns that are neither numbers nor times."""
    return [name for name in relation.names if name not in numeric and not is_time(_kind(relation, name))]


def _joined(relation: TimeVarying, names: list[str]) -> Column:
    lower = [known.lower() for known in relation.names]
    texts = []
    for name in names:
        column = relation.columns[lower.index(name.lower())]
        kind = relation.frame.schema[column].dataType
        is_nested = isinstance(kind, T.StructType | T.ArrayType | T.MapType)
        text = F.to_json(column) if is_nested else F.col(column).cast("string")
        texts.append(F.coalesce(text, F.lit(_NULL)))
    return F.concat_ws(", ", *texts) if texts else F.lit("")


def _amount(relation: TimeVarying, value: str | None) -> Column:
    if value is None:
        return F.lit(None).cast("double")
    lower = [known.lower() for known in relation.names]
    return F.col(relation.columns[lower.index(value.lower())]).cast("double")


def _place(relation: TimeVarying, ticks: str) -> Column:
    """The place of an instant; `ticks` is SQL."""
    scale = relation.scale
    found = as_place(scale.to_column(ticks), _KINDS[scale.kind])
    assert found is not None
    return found


def _ends(relation: TimeVarying) -> tuple[float, float]:
    """The places of the logs' first and last instants."""
    ends = relation.ends or (0, 0)
    one = relation.frame.sparkSession.range(1)
    row = one.select(*(_place(relation, f"{tick}L") for tick in ends)).collect()[0]
    return row[0], row[1]
