"""Columns of Spark as places along an axis."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.algebra.time_scale import TimeScale

__all__ = ["as_place", "is_time"]

_CLOCK = TimeScale("timestamp_ntz", "MICROSECOND")


def is_time(kind: T.DataType) -> bool:
    """Whether values of a type are times."""
    return isinstance(kind, T.DateType | T.TimestampType | T.TimestampNTZType)


def as_place(column: str, kind: T.DataType) -> Column | None:
    """A column of numbers or times as a place; None for other types. `column` is SQL.

    Times are milliseconds since the epoch of the local time in the session's zone, for an axis in UTC.
    """
    if isinstance(kind, T.NumericType):
        return F.expr(f"CAST({column} AS DOUBLE)")
    if isinstance(kind, T.DateType):
        return F.expr(f"CAST(unix_date({column}) AS DOUBLE) * 86400000")
    if is_time(kind):
        local = f"CAST({column} AS TIMESTAMP_NTZ)"
        return F.expr(f"CAST({_CLOCK.of_column(local, 'timestamp_ntz', 'MICROSECOND')} AS DOUBLE) / 1000")
    return None
