"""Patterns as they are given to a producer: columns with values, lists of them, or comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

import pyarrow as pa

from windrow.errors import InputError, UsageError, did_you_mean
from windrow.punctuations import Pattern, Values

__all__ = ["pattern_of"]

_COMPARISONS = ("<", "<=", ">", ">=")


def pattern_of(given: Iterable[tuple[str, object]], columns: pa.Schema) -> Pattern:
    """The pattern of what columns are to have; names are matched whatever their case.

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
    for name, told in given:
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
                f"column {column} is given twice", condition="DUPLICATE_COLUMN", hint="give it once"
            )
        found[column] = _values(column, columns.field(column).type, told)
    if not found:
        raise UsageError(
            "a pattern that tells of no column has all rows",
            condition="INVALID_ARGUMENT",
            hint="finish() promises that no row follows",
        )
    return Pattern.of(found)


def _values(name: str, kind: pa.DataType, told: object) -> Values:
    if isinstance(told, Mapping):
        if not told or not set(told) <= {*_COMPARISONS}:
            wrong = next((each for each in told if each not in _COMPARISONS), "nothing")
            raise UsageError(
                f"{wrong!r} is no comparison of column {name}",
                condition="INVALID_ARGUMENT",
                hint=f"comparisons are {', '.join(_COMPARISONS)}",
            )
        compared = Values.everything(kind)
        for operator, operand in told.items():
            compared &= Values.compared(kind, operator, operand)
        return compared
    several = list(told) if isinstance(told, list | tuple | AbstractSet) else [told]
    found = Values.compared(kind, "in", [value for value in several if value is not None])
    return found | Values.compared(kind, "is null") if None in several else found
