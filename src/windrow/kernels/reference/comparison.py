"""Equality and order of SQL values, as in Spark."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any

from windrow.kernels.reference.casts import Type, cast, cast_like
from windrow.kernels.reference.values import BoundRow, Months, mismatch, numbers

__all__ = ["compare", "equals", "identical"]


def equals(left: Any, right: Any) -> bool | None:
    """SQL's `=`: NULL if either side is; for two row variables, whether they are the same row."""
    if left is None or right is None:
        return None
    if isinstance(left, BoundRow) and isinstance(right, BoundRow):
        return left is right
    return compare(left, right) == 0


def identical(left: Any, right: Any) -> bool:
    """SQL's `<=>` (IS NOT DISTINCT FROM): as `=`, with NULL equal to NULL and to nothing else."""
    if left is None or right is None:
        return left is None and right is None
    return equals(left, right) is True


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1 as `left` is less than, equal to or greater than `right`, neither of them NULL.

    NaN equals NaN and is greater than any number, -0.0 equals 0.0. A number against a double is compared
    as a double, a date against a timestamp as a timestamp, a string against anything else as that.
    Lists and structs compare element by element, NULLs first.

    Raises
    ------
    AnalysisError
        ``DATATYPE_MISMATCH`` if Spark would not compare the two.
    ExecutionError
        ``CAST_INVALID_INPUT`` if a string is none of the other side's type.
    """
    left, right = _comparable(left, right)
    if isinstance(left, float):
        return _sign(_float_rank(left), _float_rank(right))
    if isinstance(left, list):
        for one, other in zip(left, right, strict=False):
            if order := _nulls_first(one, other):
                return order
        return _sign(len(left), len(right))
    return _sign(left, right)


_SCALARS = (bool, str, bytes, datetime.date, datetime.timedelta, Months)


def _comparable(left: Any, right: Any) -> tuple[Any, Any]:
    pair = numbers(left, right)
    if pair is not None:
        return pair
    if isinstance(left, str) != isinstance(right, str):
        if isinstance(left, str):
            return _comparable(cast_like(left, right), right)
        return _comparable(left, cast_like(right, left))
    if isinstance(left, datetime.date) and isinstance(right, datetime.date) and type(left) is not type(right):
        return cast(left, Type("timestamp")), cast(right, Type("timestamp"))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return list(left.values()), list(right.values())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return list(left), list(right)
    if type(left) is type(right) and isinstance(left, _SCALARS):
        return left, right
    raise mismatch("a comparison", left, right)


def _nulls_first(left: Any, right: Any) -> int:
    if left is None or right is None:
        return _sign(left is not None, right is not None)
    return compare(left, right)


def _float_rank(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)


def _sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)
