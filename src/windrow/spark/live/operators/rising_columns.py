"""Which columns of a kernel increase with the rowtime of rows."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql.types import DataType, TimestampNTZType

from windrow.algebra.physical import Hoisted, field_of, is_field
from windrow.syntax.expressions.rising import STEADY

__all__ = ["rises", "says_missing"]

_SHOWN = re.compile(r"CAST\(\(?([^.()]+)\.([^.()]+)\)? AS TIMESTAMP_NTZ\)", re.IGNORECASE)


def rises(item: Hoisted, rowtimes: Mapping[str, DataType], zone: str) -> DataType | None:
    """The type of a column that has the rowtime of a row of a clause; None for other columns.

    A TIMESTAMP is subtracted as the local time of the session, which only increases in a `zone` without
    changes of local time. `rowtimes` are the fields of rows that have it.
    """
    if is_field(item):
        return rowtimes.get(field_of(item))
    columns = _SHOWN.fullmatch(item.text.render())
    if columns is None or zone not in STEADY or columns[1].strip("`") != item.variable.strip("`"):
        return None
    kind = rowtimes.get(columns[2].strip("`"))
    return TimestampNTZType() if kind is not None and kind.typeName() == "timestamp" else None


def says_missing(item: Hoisted) -> bool:
    """Whether a column says that there is no row: it is FALSE for every row."""
    return item.text.render().strip("()").upper() == f"{item.variable} IS NULL".upper()
