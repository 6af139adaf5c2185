"""Scalar functions that return NULL for a NULL argument. The others are in ``expressions``."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from windrow.errors import ExecutionError
from windrow.kernels.reference import arithmetic
from windrow.kernels.reference.casts import Type, as_date, as_string, cast
from windrow.kernels.reference.values import DECIMALS, mismatch, numbers

__all__ = [
    "absolute",
    "ceiling",
    "concat",
    "date_add",
    "date_diff",
    "date_part",
    "floor",
    "length",
    "lower",
    "rounded",
    "sign",
    "substring",
    "upper",
]


def absolute(value: Any, ansi: bool) -> Any:
    """ABS of a number or of a day-time interval."""
    value = _number(value, "ABS") if not isinstance(value, datetime.timedelta) else value
    if isinstance(value, float):
        return math.fabs(value)
    if isinstance(value, Decimal):
        return DECIMALS.abs(value)
    return value if value >= type(value)(0) else arithmetic.negate(value, ansi)


def sign(value: Any) -> float:
    """SIGN: -1.0, 0.0 or 1.0; NaN for NaN."""
    number = float(_number(value, "SIGN"))
    return number if math.isnan(number) else float((number > 0) - (number < 0))


def floor(value: Any, ansi: bool) -> Any:
    """FLOOR: a BIGINT; for a decimal, a decimal of scale 0."""
    return _whole(value, ansi, "FLOOR", ROUND_FLOOR)


def ceiling(value: Any, ansi: bool) -> Any:
    """CEIL: a BIGINT; for a decimal, a decimal of scale 0."""
    return _whole(value, ansi, "CEIL", ROUND_CEILING)


def rounded(value: Any, digits: int = 0) -> Any:
    """ROUND to `digits` decimals, half away from zero; the type stays."""
    value = _number(value, "ROUND")
    if isinstance(value, float):
        if not math.isfinite(value):
            return value
        # Spark rounds the shortest decimal text of the double: 1.005 becomes 1.01.
        return float(Decimal(repr(value)).quantize(_unit(digits), context=DECIMALS))
    if isinstance(value, Decimal):
        scale = -int(value.as_tuple().exponent)
        number = value.quantize(_unit(min(digits, scale)), context=DECIMALS)
        return number.quantize(_unit(max(0, min(digits, scale))), context=DECIMALS)
    return int(Decimal(value).quantize(_unit(min(digits, 0)), context=DECIMALS))


def length(value: Any) -> int:
    """LENGTH in characters (bytes of a binary)."""
    return len(value) if isinstance(value, bytes) else len(as_string(value))


def upper(value: Any) -> str:
    """UPPER."""
    return as_string(value).upper()


def lower(value: Any) -> str:
    """LOWER."""
    return as_string(value).lower()


def concat(*values: Any) -> str:
    """CONCAT and `||`: the texts of the values one after the other."""
    return "".join(as_string(value) for value in values)


def substring(value: Any, start: int, count: int | None = None) -> str:
    """SUBSTRING: `start` counts from 1, from the end if negative; 0 is 1."""
    text = as_string(value)
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = len(text) if count is None else first + count
    # A start before the text uses up part of the count.
    return text[max(first, 0) : max(last, 0)] if last > first else ""


def date_add(value: Any, days: Any) -> datetime.date:
    """DATE_ADD: `days` may be negative."""
    if isinstance(days, bool) or not isinstance(days, int | str):
        raise mismatch("DATE_ADD", value, days)
    moved: datetime.date = as_date(value) + datetime.timedelta(days=cast(days, Type("int")))
    return moved


def date_diff(end: Any, start: Any) -> int:
    """DATEDIFF in days."""
    days: int = (as_date(end) - as_date(start)).days
    return days


def date_part(part: Callable[[datetime.date], int]) -> Callable[[Any], int]:
    """YEAR, MONTH, …: a function of the value as a date."""

    @functools.wraps(part)
    def function(value: Any) -> int:
        return part(as_date(value))

    return function


def _whole(value: Any, ansi: bool, name: str, rounding: str) -> Any:
    value = _number(value, name)
    if isinstance(value, Decimal):
        return value.to_integral_value(rounding, DECIMALS)
    if isinstance(value, int):
        return value
    if math.isnan(value):
        return 0
    if math.isfinite(value):
        whole = math.floor(value) if rounding == ROUND_FLOOR else math.ceil(value)
        if -(2**63) <= whole < 2**63:
            return whole
    if ansi:
        raise ExecutionError(
            f"{name} of {value} does not fit into BIGINT", condition="ARITHMETIC_OVERFLOW", sqlstate="22003"
        )
    return 2**63 - 1 if value > 0 else -(2**63)


def _number(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return cast(value, Type("double"))
    if numbers(value, value) is None:
        raise mismatch(name, value)
    return value


def _unit(digits: int) -> Decimal:
    return Decimal(1).scaleb(-digits)
