"""Spark's types, by their simple strings, as far as the rules must distinguish them."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["FLOATS", "INTEGERS", "NUMPY", "common_decimal", "is_day_interval", "is_decimal"]

NUMPY = {
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
}
"""Numeric types that the kernel computes with, and numpy's names for them."""

INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
FLOATS = frozenset({"float", "double"})
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def is_decimal(kind: str) -> bool:
    """Whether it is DECIMAL(p, s)."""
    return _DECIMAL.fullmatch(kind) is not None


def is_day_interval(kind: str) -> bool:
    """Whether it is an interval of days to seconds, which is a number of microseconds.

    >>> is_day_interval("interval day to second"), is_day_interval("interval month")
    (True, False)
    """
    return kind.startswith("interval ") and "year" not in kind and "month" not in kind


def common_decimal(kinds: Iterable[str]) -> str | None:
    """The DECIMAL that represents every value of these decimals and integers exactly, if 38 digits suffice.

    >>> common_decimal(["decimal(10,2)", "int"])
    'DECIMAL(12,2)'
    >>> common_decimal(["decimal(38,10)", "decimal(38,0)"]) is None
    True
    """
    whole = scale = 0
    for kind in kinds:
        found = _DECIMAL.fullmatch(kind)
        if found:
            digits, places = int(found[1]), int(found[2])
        elif kind in _DIGITS:
            digits, places = _DIGITS[kind], 0
        else:
            return None
        whole, scale = max(whole, digits - places), max(scale, places)
    return f"DECIMAL({whole + scale},{scale})" if whole + scale <= 38 else None
