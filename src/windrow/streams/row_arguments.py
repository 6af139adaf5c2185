"""Rows as they are given to a producer, in the columns of the stream."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from windrow.errors import InputError, UsageError, did_you_mean

if TYPE_CHECKING:
    # not needed to read a stream, and half of the time that a worker takes to start
    import pandas as pd

__all__ = ["Rows", "to_table"]

Rows: TypeAlias = "pa.Table | pa.RecordBatch | pd.DataFrame | Mapping[str, Any] | Iterable[Mapping[str, Any]]"


def to_table(rows: Rows, columns: pa.Schema) -> pa.Table:
    """The rows as a table of these columns; a column that is not given is NULL.

    Names are matched whatever their case. Values keep what they say: numbers are converted where nothing is
    lost, and a timestamp has a zone where its column has one.

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
    forms: dict[tuple[str, ...], dict[str, str]] = {}  # rows that name the same columns in the same way
    given = []
    for row in rows:
        names = tuple(row)
        if names not in forms:
            forms[names] = _matched(names, columns)
        given.append(forms[names])
    arrays = []
    for field in columns:
        values = [
            row[names[field.name]] if field.name in names else None
            for row, names in zip(rows, given, strict=True)
        ]
        arrays.append(_converted(values, field))
    return pa.table(arrays, schema=columns)


def _converted(values: list[Any], field: pa.Field) -> pa.Array:
    """Values as an array, if nothing is lost: Arrow makes 1 of 1.5, and a date of a datetime."""
    try:
        array = pa.array(values, field.type)
    except _FAILURES:
        array = None
    if array is not None and all(map(_says_as_much, array.to_pylist(), values)):
        return array
    raise next(error for row, value in enumerate(values) if (error := _wrong(row, value, field)))


def _wrong(row: int, value: object, field: pa.Field) -> InputError | None:
    """What is wrong with a value; None if it is of the type."""
    try:
        if _says_as_much(pa.array([value], field.type)[0].as_py(), value):
            return None
    except _FAILURES:
        pass
    return _invalid(field, f"row {row} has {value!r}")


_FAILURES = (pa.ArrowException, TypeError, ValueError, OverflowError)


def _says_as_much(kept: Any, value: Any) -> bool:
    """Whether a value that was converted is the one given; floats may have been rounded."""
    if isinstance(kept, dict) and isinstance(value, Mapping):
        return set(value) <= set(kept) and all(_says_as_much(kept[name], value.get(name)) for name in kept)
    if isinstance(kept, list):
        return all(map(_says_as_much, kept, value))
    if isinstance(kept, float):
        return not math.isinf(kept) or kept == value
    return bool(kept is value or kept == value)


def _matched(names: Sequence[str], columns: pa.Schema) -> dict[str, str]:
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
        return (given.tz is None) == (wanted.tz is None)
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
    hint = "nothing was inserted; convert the values first"
    if pa.types.is_timestamp(field.type) and field.type.tz is not None:
        hint += ": times say their zone, as datetime(…, tzinfo=timezone.utc)"
    return InputError(
        f"a value of column {field.name} is not {field.type}: {reason}",
        condition="INVALID_VALUE",
        hint=hint,
    )
