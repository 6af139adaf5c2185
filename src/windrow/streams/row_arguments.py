"""Rows as Python arguments, converted to the columns of the stream."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from windrow.errors import InputError, UsageError, no_column

if TYPE_CHECKING:
    # reading a stream does not need it, and it takes half of a worker's start
    import pandas as pd

__all__ = ["Rows", "to_table"]

Rows: TypeAlias = "pa.Table | pa.RecordBatch | pd.DataFrame | Mapping[str, Any] | Iterable[Mapping[str, Any]]"


def to_table(rows: Rows, columns: pa.Schema) -> pa.Table:
    """The rows as a table of these columns; a missing column is NULL.

    The case of names does not matter. Conversions are exact: numbers are converted if nothing is lost, and a
    timestamp must have a zone if its column has one.

    Raises
    ------
    InputError
        ``UNKNOWN_COLUMN``; ``INVALID_VALUE``: a value is not of its column's type.
    UsageError
        ``NOT_ROWS``.
    """
    if "pandas" in sys.modules and isinstance(rows, sys.modules["pandas"].DataFrame):
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
        f"{type(found).__name__} is not a row",
        condition="NOT_ROWS",
        hint="pass mappings of columns to values, a pandas DataFrame, or an Arrow table",
    )


def _of_table(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    found_names = _matched(rows.column_names, columns)
    arrays = []
    for field in columns:
        if field.name not in found_names:
            arrays.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows.column(found_names[field.name])
        if not _is_alike(column.type, field.type):
            raise _invalid(field, f"its values are {column.type}")
        try:
            arrays.append(column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise _invalid(field, str(error)) from None
    return pa.table(arrays, schema=columns)


def _of_mappings(rows: Sequence[Mapping[str, Any]], columns: pa.Schema) -> pa.Table:
    forms: dict[tuple[str, ...], dict[str, str]] = {}  # one for all rows with the same names
    found_names = []
    for row in rows:
        names = tuple(row)
        if names not in forms:
            forms[names] = _matched(names, columns)
        found_names.append(forms[names])
    arrays = []
    for field in columns:
        values = [
            row[names[field.name]] if field.name in names else None
            for row, names in zip(rows, found_names, strict=True)
        ]
        arrays.append(_converted(values, field))
    return pa.table(arrays, schema=columns)


def _converted(values: list[Any], field: pa.Field) -> pa.Array:
    """Convert values exactly. Arrow alone would convert 1.5 to 1, and a datetime to a date."""
    try:
        array = pa.array(values, field.type)
    except _FAILURES:
        array = None
    if array is not None and all(map(_is_same, array.to_pylist(), values)):
        return array
    raise next(error for row, value in enumerate(values) if (error := _wrong(row, value, field)))


def _wrong(row: int, value: object, field: pa.Field) -> InputError | None:
    """The error for a value; None if it is of the type."""
    try:
        if _is_same(pa.array([value], field.type)[0].as_py(), value):
            return None
    except _FAILURES:
        pass
    return _invalid(field, f"row {row} has {value!r}")


_FAILURES = (pa.ArrowException, TypeError, ValueError, OverflowError)


def _is_same(converted: Any, value: Any) -> bool:
    """Whether a converted value equals the original; floats may be rounded."""
    if isinstance(converted, dict) and isinstance(value, Mapping):
        return set(value) <= set(converted) and all(
            _is_same(converted[name], value.get(name)) for name in converted
        )
    if isinstance(converted, list):
        return all(map(_is_same, converted, value))
    if isinstance(converted, float):
        return not math.isinf(converted) or converted == value
    return bool(converted is value or converted == value)


def _matched(names: Sequence[str], columns: pa.Schema) -> dict[str, str]:
    """The argument's name for each column."""
    known = {name.lower(): name for name in columns.names}
    found: dict[str, str] = {}
    for name in names:
        column = known.get(str(name).lower())
        if column is None:
            raise no_column(
                "the stream has", str(name), columns.names, InputError, condition="UNKNOWN_COLUMN"
            )
        if column in found:
            raise InputError(
                f"column {column} appears twice, as {found[column]} and as {name}",
                condition="DUPLICATE_COLUMN",
                hint="leave one of them out",
            )
        found[column] = name
    return found


def _is_alike(found_names: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type mean the same in the other, if they fit."""
    if pa.types.is_dictionary(found_names):
        found_names = found_names.value_type
    if found_names == wanted or pa.types.is_null(found_names):
        return True
    if pa.types.is_timestamp(found_names) and pa.types.is_timestamp(wanted):
        return (found_names.tz is None) == (wanted.tz is None)
    return any(
        kind(found_names) and kind(wanted) for kind in (_is_number, _is_text, _is_bytes, pa.types.is_nested)
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    )


def _invalid(field: pa.Field, reason: str) -> InputError:
    hint = "convert the values first; nothing was inserted"
    if pa.types.is_timestamp(field.type) and field.type.tz is not None:
        hint += ": give times a zone, as datetime(…, tzinfo=timezone.utc)"
    return InputError(
        f"a value of column {field.name} is not {field.type}: {reason}",
        condition="INVALID_VALUE",
        hint=hint,
    )
