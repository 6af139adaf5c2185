"""The arithmetic operators: numbers, dates, timestamps and intervals.

Integers are 64 bits wide: a narrower declared type cannot be seen from a value. Decimals are exact, a
quotient to 38 significant digits, because Spark's scale of a quotient follows from the declared types.
"""

from __future__ import annotations

import calendar
import datetime
import math
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from windrow.errors import ExecutionError
from windrow.kernels.reference.casts import Type, cast, cast_like
from windrow.kernels.reference.values import DECIMALS, Months, mismatch, numbers

__all__ = [
    "Operator",
    "add",
    "divide",
    "integral_divide",
    "multiply",
    "negate",
    "pmod",
    "remainder",
    "subtract",
]

Operator = Callable[[Any, Any, bool], Any]
"""left, right (neither NULL) and whether ANSI mode is on, to the result."""


def add(left: Any, right: Any, ansi: bool) -> Any:
    """`left + right`: numbers, a date and days, a date or timestamp and an interval, two intervals."""
    if _is_amount(left) and isinstance(right, datetime.date):
        left, right = right, left
    if isinstance(left, datetime.date):
        return _shifted(left, right)
    if isinstance(left, datetime.timedelta) and isinstance(right, datetime.timedelta):
        return left + right
    if isinstance(left, Months) and isinstance(right, Months):
        return Months(left.count + right.count)
    left, right = _operands("+", left, right)
    if isinstance(left, Decimal):
        return DECIMALS.add(left, right)
    return _checked(left + right, ansi)


def subtract(left: Any, right: Any, ansi: bool) -> Any:
    """`left - right`; the difference of two dates or timestamps is a day-time interval."""
    if isinstance(left, datetime.date) or isinstance(right, datetime.date):
        if isinstance(left, str):
            left = cast_like(left, right)
        if isinstance(right, str):
            right = cast_like(right, left)
        if isinstance(left, datetime.date) and isinstance(right, datetime.date):
            return cast(left, Type("timestamp")) - cast(right, Type("timestamp"))
    if isinstance(right, str):
        left, right = _operands("-", left, right)
    return add(left, negate(right, ansi), ansi)


def multiply(left: Any, right: Any, ansi: bool) -> Any:
    """`left * right`; an interval may be multiplied by a number."""
    if isinstance(right, datetime.timedelta | Months):
        left, right = right, left
    if isinstance(left, datetime.timedelta | Months):
        return _scaled("*", left, right)
    left, right = _operands("*", left, right)
    if isinstance(left, Decimal):
        return DECIMALS.multiply(left, right)
    return _checked(left * right, ansi)


def divide(left: Any, right: Any, ansi: bool) -> Any:
    """`left / right`: a double of two integers; an interval may be divided by a number."""
    if isinstance(left, datetime.timedelta | Months):
        if right == 0:
            # Spark raises for an interval in either mode.
            raise _by_zero("INTERVAL_DIVIDED_BY_ZERO")
        return _scaled("/", left, right)
    left, right = _operands("/", left, right)
    if right == 0:
        return _zero_divisor("DIVIDE_BY_ZERO", ansi)
    if isinstance(left, Decimal):
        return Context(prec=38, rounding=DECIMALS.rounding).divide(left, right)
    return float(left) / float(right)


def integral_divide(left: Any, right: Any, ansi: bool) -> Any:
    """`left DIV right`: the quotient cut off towards zero."""
    left, right = _operands("DIV", left, right)
    if isinstance(left, float):
        raise mismatch("DIV", left, right)
    if right == 0:
        return _zero_divisor("DIVIDE_BY_ZERO", ansi)
    if isinstance(left, Decimal):
        return _checked(int(DECIMALS.divide_int(left, right)), ansi)
    quotient = abs(left) // abs(right)
    return _checked(quotient if (left < 0) == (right < 0) else -quotient, ansi)


def remainder(left: Any, right: Any, ansi: bool) -> Any:
    """`left % right`: has the sign of `left`."""
    left, right = _operands("%", left, right)
    if right == 0:
        return _zero_divisor("REMAINDER_BY_ZERO", ansi)
    if isinstance(left, Decimal):
        return DECIMALS.remainder(left, right)
    if isinstance(left, float):
        return math.nan if math.isinf(left) else math.fmod(left, right)
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def pmod(left: Any, right: Any, ansi: bool) -> Any:
    """Spark's pmod: the divisor is added once to a negative remainder."""
    rest = remainder(left, right, ansi)
    if rest is None or rest >= 0 or rest != rest:
        return rest
    return remainder(add(rest, right, ansi), right, ansi)


def negate(value: Any, ansi: bool) -> Any:
    """`-value`."""
    if isinstance(value, Months):
        return Months(-value.count)
    if isinstance(value, str):
        value = cast(value, Type("double"))
    if isinstance(value, Decimal):
        return DECIMALS.minus(value)
    if isinstance(value, float | datetime.timedelta):
        return -value
    if isinstance(value, int) and not isinstance(value, bool):
        return _checked(-value, ansi)
    raise mismatch("unary -", value)


def _operands(operator: str, left: Any, right: Any) -> tuple[Any, Any]:
    if isinstance(left, str):
        left = cast_like(left, right)
    if isinstance(right, str):
        right = cast_like(right, left)
    pair = numbers(left, right)
    if pair is None:
        raise mismatch(operator, left, right)
    return pair


def _shifted(when: datetime.date, by: Any) -> datetime.date:
    """A date moved by whole days stays a date; by a part of a day it becomes a timestamp."""
    if isinstance(by, Months):
        months = when.year * 12 + when.month - 1 + by.count
        year, month = months // 12, months % 12 + 1
        return when.replace(year=year, month=month, day=min(when.day, calendar.monthrange(year, month)[1]))
    if isinstance(by, int) and not isinstance(by, bool | datetime.datetime):
        if isinstance(when, datetime.datetime):
            raise mismatch("+", when, by)
        return when + datetime.timedelta(days=by)
    if isinstance(by, datetime.timedelta):
        if by % datetime.timedelta(days=1) or isinstance(when, datetime.datetime):
            shifted: datetime.datetime = cast(when, Type("timestamp")) + by
            return shifted
        return when + by
    raise mismatch("+", when, by)


def _is_amount(value: Any) -> bool:
    return isinstance(value, datetime.timedelta | Months | int)


def _scaled(operator: str, interval: Any, by: Any) -> Any:
    """An interval times or over a number, rounded half up to its unit as Spark does."""
    if isinstance(by, str):
        by = cast(by, Type("double"))
    if numbers(by, by) is None:
        raise mismatch(operator, interval, by)
    units = interval.count if isinstance(interval, Months) else interval // datetime.timedelta(microseconds=1)
    number = Decimal(repr(by)) if isinstance(by, float) else Decimal(by)
    exact = DECIMALS.multiply(units, number) if operator == "*" else DECIMALS.divide(Decimal(units), number)
    rounded = int(exact.to_integral_value(context=DECIMALS))
    return Months(rounded) if isinstance(interval, Months) else datetime.timedelta(microseconds=rounded)


def _checked(value: Any, ansi: bool) -> Any:
    if isinstance(value, float) or -(2**63) <= value < 2**63:
        return value
    if ansi:
        raise ExecutionError("integer overflow", condition="ARITHMETIC_OVERFLOW", sqlstate="22003")
    return (value + 2**63) % 2**64 - 2**63


def _zero_divisor(condition: str, ansi: bool) -> None:
    if ansi:
        raise _by_zero(condition)


def _by_zero(condition: str) -> ExecutionError:
    return ExecutionError(
        "division by zero",
        condition=condition,
        hint="write NULLIF(divisor, 0), which returns NULL for zero",
        sqlstate="22012",
    )
