"""Patterns as Python arguments: columns with values, lists of values, or comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

import pyarrow as pa

from windrow.errors import InputError, UsageError, no_column
from windrow.punctuations import Pattern, Values

__all__ = ["pattern_of"]

_COMPARISONS = ("<", "<=", ">", ">=")


def pattern_of(conditions: Iterable[tuple[str, object]], columns: pa.Schema) -> Pattern:
    """The pattern of columns and the values that they match; the case of names does not matter.

    Raises
    ------
    InputError
        ``UNKNOWN_COLUMN``, ``DUPLICATE_COLUMN``, ``INVALID_VALUE``.
    NotSupportedError
        ``UNSUPPORTED_TYPE``.
    UsageError
        ``INVALID_ARGUMENT``.
    """
    known = {name.lower(): name for name in columns.names}
    found: dict[str, Values] = {}
    for name, condition in conditions:
        column = known.get(str(name).lower())
        if column is None:
            raise no_column(
                "the stream has", str(name), columns.names, InputError, condition="UNKNOWN_COLUMN"
            )
        if column in found:
            raise InputError(
                f"column {column} is listed twice", condition="DUPLICATE_COLUMN", hint="name each column once"
            )
        found[column] = _values(column, columns.field(column).type, condition)
    if not found:
        raise UsageError(
            "a pattern without a column matches all rows",
            condition="INVALID_ARGUMENT",
            hint="name a column, or call finish() if no rows follow",
        )
    return Pattern.of(found)


def _values(name: str, kind: pa.DataType, condition: object) -> Values:
    if isinstance(condition, Mapping):
        if not condition or not set(condition) <= {*_COMPARISONS}:
            wrong = next((each for each in condition if each not in _COMPARISONS), "nothing")
            raise UsageError(
                f"{wrong!r} is not a comparison for column {name}",
                condition="INVALID_ARGUMENT",
                hint=f"use one of {', '.join(_COMPARISONS)}",
            )
        compared = Values.everything(kind)
        for operator, operand in condition.items():
            compared &= Values.compared(kind, operator, operand)
        return compared
    several = list(condition) if isinstance(condition, list | tuple | AbstractSet) else [condition]
    found = Values.compared(kind, "in", [value for value in several if value is not None])
    return found | Values.compared(kind, "is null") if None in several else found
