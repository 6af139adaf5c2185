"""Rows as they are given to a producer, in the columns of the stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa

from windrow.errors import InputError, UsageError, did_you_mean

__all__ = ["Rows", "to_table"]

Rows: TypeAlias = pa.Table | pa.RecordBatch | pd.DataFrame | Mapping[str, Any] | Iterable[Mapping[str, Any]]


def to_table(rows: Rows, columns: pa.Schema) -> pa.Table:
    """The rows as a table of these columns; a column that is not given is NULL.

    Names are matched whatever their case. Values keep what they say: numbers are converted where nothing is
    lost, timestamps without a zone are in UTC.

    Raises
    ------
    InputError
        ``UNKNOWN_COLUMN``; ``INVALID_VALUE``: a value is not of its column's type.
    UsageError
        ``NOT_ROWS``.
    """
    if isinstance(rows, pd.DataFrame):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        return _of_table(rows, columns)
    if isinstance(rows, Mapping):
        rows = [rows]
    if not isinstance(rows, Iterable):
        raise _no_rows(rows)
    items = list(rows)
    for item in items:
        if not isinstance(item, Mapping):
            raise _no_rows(item)
    return _of_mappings(items, columns)


def _no_rows(found: object) -> UsageError:
    return UsageError(
        f"{type(found).__name__} is no row",
        condition="NOT_ROWS",
        hint="give mappings of columns to values, a DataFrame of pandas, or an Arrow table",
    )


def _of_table(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    given = _matched(rows.column_names, columns)
    arrays = []
    for field in columns:
        if field.name not in given:
            arrays.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows.column(given[field.name])
        if not _is_alike(column.type, field.type):
            raise _invalid(field, f"its values are {column.type}")
        try:
            arrays.append(column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise _invalid(field, str(error)) from None
    return pa.table(arrays, schema=columns)


def _of_mappings(rows: Sequence[Mapping[str, Any]], columns: pa.Schema) -> pa.Table:
    names = {name: None for row in rows for name in row}
    given = _matched(list(names), columns)
    arrays = []
    for field in columns:
        name = given.get(field.name)
        values = [row.get(name) for row in rows] if name is not None else [None] * len(rows)
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise _culprit(values, field) or _invalid(field, str(error)) from None
    return pa.table(arrays, schema=columns)


def _culprit(values: list[Any], field: pa.Field) -> InputError | None:
    """What is wrong with the first value that is not of the type."""
    for row, value in enumerate(values):
        try:
            pa.array([value], field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return _invalid(field, f"row {row} has {value!r}")
    return None


def _matched(names: list[str], columns: pa.Schema) -> dict[str, str]:
    """The name given for each column."""
    known = {name.lower(): name for name in columns.names}
    found: dict[str, str] = {}
    for name in names:
        column = known.get(str(name).lower())
        if column is None:
            raise InputError(
                f"the stream has no column {name}",
                condition="UNKNOWN_COLUMN",
                sqlstate="42703",
                hint=did_you_mean(str(name), columns.names) or f"columns are {', '.join(columns.names)}",
            )
        if column in found:
            raise InputError(
                f"column {column} is given twice, as {found[column]} and as {name}",
                condition="DUPLICATE_COLUMN",
                hint="give one of them",
            )
        found[column] = name
    return found


def _is_alike(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a conversion between the types changes no meaning, only maybe a value that does not fit."""
    if pa.types.is_dictionary(given):
        given = given.value_type
    if given == wanted or pa.types.is_null(given):
        return True
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        return given.tz is None or wanted.tz is not None
    return any(kind(given) and kind(wanted) for kind in (_is_number, _is_text, _is_bytes, pa.types.is_nested))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    )


def _invalid(field: pa.Field, reason: str) -> InputError:
    return InputError(
        f"a value of column {field.name} is not {field.type}: {reason}",
        condition="INVALID_VALUE",
        hint="nothing was inserted; convert the values first",
    )
