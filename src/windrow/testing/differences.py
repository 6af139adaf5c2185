"""The differences of two bags of rows, as text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from windrow.errors import UsageError

__all__ = ["Row", "assert_same_rows", "differences"]

Row: TypeAlias = "Mapping[str, Any] | Sequence[Any]"
_MOST_LINES = 20


def assert_same_rows(expected: Iterable[Row], found: Iterable[Row], when: str = "") -> None:
    """Fail unless both have the same rows equally often, in any order.

    Parameters
    ----------
    expected, found
        Mappings of columns to values, or the values in the order of the columns.
    when
        A description of the found rows, for the message.

    Raises
    ------
    AssertionError
        With a line for each difference: ``-`` for a missing row, ``+`` for an unexpected one.
    """
    lines = differences(expected, found)
    if lines:
        raise AssertionError("\n".join([f"different rows{' ' if when else ''}{when}:", *lines]))


def differences(expected: Iterable[Row], found: Iterable[Row]) -> list[str]:
    """A line for each row that one of the two has more often than the other.

    >>> differences([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 2}])
    ['- a=1', '+ a=2']
    >>> differences([(1, 0.1 + 0.2)], [{"a": 1, "b": 0.3}])
    ['- 1, 0.30000000000000004', '+ a=1, b=0.3']
    >>> differences([(1, float("nan"))], [{"a": 1, "b": float("nan")}])
    []
    """
    wanted, there = list(expected), list(found)
    counts = Counter(map(_values, wanted))
    counts.subtract(map(_values, there))
    lines = _lines("-", wanted, counts, 1) + _lines("+", there, counts, -1)
    return lines[:_MOST_LINES] + [f"… and {len(lines) - _MOST_LINES} more"] * (len(lines) > _MOST_LINES)


def _lines(sign: str, rows: Sequence[Row], counts: Counter[tuple[Any, ...]], side: int) -> list[str]:
    left = {key: side * count for key, count in counts.items() if side * count > 0}
    lines = []
    for row in rows:
        key = _values(row)
        if left.get(key, 0):
            left[key] -= 1
            lines.append(f"{sign} {_text(row)}")
    return lines


def _text(row: Row) -> str:
    if isinstance(row, Mapping):
        return ", ".join(f"{name}={value!r}" for name, value in row.items())
    return ", ".join(map(repr, row))


def _values(row: Row) -> tuple[Any, ...]:
    if isinstance(row, str | bytes):
        raise UsageError(
            f"{row!r} is not a row",
            condition="INVALID_ARGUMENT",
            hint="write a tuple of values, or a mapping",
        )
    return tuple(map(_comparable, row.values() if isinstance(row, Mapping) else row))


def _comparable(value: object) -> object:
    """The value in a hashable form, in which NaN is equal to NaN, as in SQL."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN", None
    if isinstance(value, Mapping):
        return tuple((name, _comparable(part)) for name, part in value.items())
    return tuple(map(_comparable, value)) if isinstance(value, list | tuple) else value
