"""Functions of values of several rows, with Spark's exact meaning, for :mod:`windrow.kernels.pairs`.

Numbers, dates, times and intervals are numpy arrays; texts and decimals are arrays of Python objects, whose
dtype is written ``string`` or ``decimal(p,s)``. All functions here return NULL if an operand is NULL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np

from windrow.errors import ExecutionError

__all__ = ["FUNCTIONS", "Arguments", "Found", "blank", "is_object", "storage"]

Array = np.ndarray
Found = tuple[Array, Array | None]
"""The values, and where they are NULL although no operand is (None: nowhere)."""

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_WIDE = Context(prec=400, rounding=ROUND_HALF_UP)
_QUOTIENT = Context(prec=39, rounding=ROUND_DOWN)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a function: its operands, where all of them are valid, its type, and ANSI mode."""

    operands: list[Array]
    used: Array
    dtype: str
    ansi: bool


def is_object(dtype: str) -> bool:
    """Whether values of this dtype are Python objects.

    >>> is_object("string"), is_object("decimal(10,2)"), is_object("int32")
    (True, True, False)
    """
    return dtype == "string" or dtype.startswith("decimal")


def storage(dtype: str) -> np.dtype:
    """The dtype of an array of such values."""
    return np.dtype(object) if is_object(dtype) else np.dtype(dtype)


def blank(count: int, dtype: str) -> Array:
    """An array without valid values yet."""
    if is_object(dtype):
        return np.full(count, "" if dtype == "string" else Decimal(0), object)
    return np.zeros(count, dtype)


def _each(of: Arguments, function: Callable[..., Any]) -> Found:
    """Apply a function to the operands where they are valid; None is NULL."""
    found = blank(len(of.used), of.dtype)
    missing = np.zeros(len(of.used), bool)
    columns = [operand.tolist() for operand in of.operands]
    for at in np.flatnonzero(of.used).tolist():
        value = function(*(column[at] for column in columns))
        if value is None:
            missing[at] = True
        else:
            found[at] = value
    return found, missing if missing.any() else None


def _failed(condition: str, message: str, hint: str) -> ExecutionError:
    sqlstate = "22012" if condition.endswith("BY_ZERO") else "22003"
    return ExecutionError(f"{message} in a condition", condition=condition, sqlstate=sqlstate, hint=hint)


# -- numbers -------------------------------------------------------------------------------------


def _nonzero(of: Arguments, condition: str, message: str, instead: str) -> tuple[Array, Array | None]:
    """The right operand without zeros, and where it was zero; an error in ANSI mode."""
    right = of.operands[1]
    zero = (right == 0) & of.used
    if not zero.any():
        return np.where(of.used, right, 1).astype(right.dtype), None
    if of.ansi:
        raise _failed(condition, message, f"test for zero first, or use {instead}")
    return np.where(right == 0, 1, right).astype(right.dtype), zero


def _divided(of: Arguments) -> Found:
    """DIV: the whole part of a quotient of integers, towards zero."""
    right, missing = _nonzero(of, "DIVIDE_BY_ZERO", "division by zero", "try_divide")
    left = of.operands[0].astype(np.int64)
    right = right.astype(np.int64)
    lowest = np.iinfo(np.int64).min
    wraps = (left == lowest) & (right == -1)
    if of.ansi and (wraps & of.used).any():
        raise _failed("ARITHMETIC_OVERFLOW", "int64 overflow", "test for −1 first")
    left = np.where(wraps, 0, left)
    quotient = left // right
    quotient += (quotient * right != left) & (quotient < 0)
    return np.where(wraps, lowest, quotient), missing


def _positive_remainder(of: Arguments) -> Found:
    """PMOD: the remainder, and where that is negative the divisor is added first."""
    right, missing = _nonzero(of, "REMAINDER_BY_ZERO", "remainder by zero", "try_mod")
    dtype = np.dtype(of.dtype)
    left, right = of.operands[0].astype(dtype), right.astype(dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        rest = np.fmod(left, right)
        return np.where(rest < 0, np.fmod(rest + right, right), rest).astype(dtype), missing


def _sign(of: Arguments) -> Found:
    return _each(of, lambda value: math.nan if value != value else float((value > 0) - (value < 0)))


def _whole(rounded: Callable[[float], int]) -> Callable[[Arguments], Found]:
    """FLOOR and CEIL."""

    def function(of: Arguments) -> Found:
        if of.operands[0].dtype.kind == "i":
            return of.operands[0].astype(of.dtype), None
        return _each(of, lambda value: _long(value, rounded, of.ansi))

    return function


def _long(value: Any, rounded: Callable[[float], int], ansi: bool) -> int:
    if not isinstance(value, float):
        return rounded(value)
    if value != value:
        return 0
    whole = rounded(value) if math.isfinite(value) else (1 << 63) * (1 if value > 0 else -1)
    if ansi and not -(1 << 63) <= whole < 1 << 63:
        raise _failed("ARITHMETIC_OVERFLOW", "int64 overflow", "test the range first")
    return min(max(whole, -(1 << 63)), (1 << 63) - 1)


def _rounded(of: Arguments) -> Found:
    """ROUND to a number of digits, half away from zero; a double is rounded by its shortest text."""
    digits = int(of.operands[1][0])
    numbers = Arguments(of.operands[:1], of.used, of.dtype, of.ansi)

    def round_one(value: Any) -> Any:
        if isinstance(value, float):
            exact = Decimal(repr(value))
            return float(_at_scale(exact, digits)) if math.isfinite(value) else value
        if isinstance(value, Decimal):
            scale = int(_DECIMAL.fullmatch(of.dtype)[2])  # type: ignore[index]
            return _fitting(_at_scale(value, min(digits, scale)), of.dtype, of.ansi)
        whole = int(_at_scale(Decimal(value), min(digits, 0)))
        limits = np.iinfo(of.dtype)
        if not limits.min <= whole <= limits.max:
            if of.ansi:
                raise _failed("ARITHMETIC_OVERFLOW", f"{of.dtype} overflow", "cast to a wider type")
            size = int(limits.max) - int(limits.min) + 1
            whole = (whole - int(limits.min)) % size + int(limits.min)
        return whole

    return _each(numbers, round_one)


def _at_scale(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), context=_WIDE)


def _root(of: Arguments) -> Found:
    with np.errstate(invalid="ignore"):
        return np.sqrt(of.operands[0].astype(np.float64)), None


def _square(of: Arguments) -> Found:
    with np.errstate(over="ignore"):
        number = of.operands[0].astype(np.float64)
        return number * number, None


# -- casts ---------------------------------------------------------------------------------------


def _cast(of: Arguments) -> Found:
    """CAST between numbers, Booleans and decimals, and of whole numbers to texts."""
    value, to = of.operands[0], of.dtype
    if is_object(to):
        if to == "string":
            return _each(of, _text)
        return _each(of, lambda one: _fitting(Decimal(one), to, of.ansi))
    target = np.dtype(to)
    if value.dtype.kind == "O":
        if target.kind == "f":
            return _each(of, float)
        if target.kind == "b":
            return _each(of, bool)
        return _each(of, lambda one: _in_range(int(one), one, target, of.ansi))
    if target.kind == "b":
        return value != 0, None
    if target.kind == "i" and value.dtype.kind == "f":
        return _each(of, lambda one: _from_float(one, target, of.ansi))
    if target.kind == "i" and value.dtype.itemsize > target.itemsize:
        return _each(of, lambda one: _in_range(one, one, target, of.ansi))
    with np.errstate(over="ignore"):
        return value.astype(target), None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _in_range(whole: int, value: Any, target: np.dtype, ansi: bool) -> int:
    limits = np.iinfo(target)
    if limits.min <= whole <= limits.max:
        return whole
    if ansi:
        raise _overflow(value, target)
    size = 1 << (8 * target.itemsize)
    return (whole - int(limits.min)) % size + int(limits.min)


def _from_float(value: float, target: np.dtype, ansi: bool) -> int:
    limits = np.iinfo(target)
    if value == value and limits.min - 1 < value < limits.max + 1:
        return int(value)
    if ansi:
        raise _overflow(value, target)
    if value != value:
        return 0
    # Java makes an int of it first, and then cuts that
    wide = np.iinfo(np.int64 if target.itemsize == 8 else np.int32)
    whole = int(min(max(value, float(wide.min)), float(wide.max)))
    return _in_range(min(max(whole, int(wide.min)), int(wide.max)), value, target, ansi=False)


def _overflow(value: Any, target: np.dtype) -> ExecutionError:
    return _failed(
        "CAST_OVERFLOW", f"{value} does not fit into {target.name}", "use try_cast, or a wider type"
    )


# -- decimals ------------------------------------------------------------------------------------


def _fitting(value: Decimal, dtype: str, ansi: bool) -> Decimal | None:
    """The value as DECIMAL(p, s), rounded half up; without ANSI NULL where it has too many digits."""
    found = _DECIMAL.fullmatch(dtype)
    assert found is not None
    rounded = _at_scale(value, int(found[2]))
    if len(rounded.as_tuple().digits) <= int(found[1]) or not rounded:
        return rounded
    if ansi:
        raise _failed(
            "NUMERIC_VALUE_OUT_OF_RANGE", f"{value} does not fit into {dtype}", "cast to a wider type"
        )
    return None


def _computed(operation: Callable[[Decimal, Decimal], Decimal]) -> Callable[[Arguments], Found]:
    """An operation on decimals, exact and then rounded to the type that Spark assigns to it."""

    def function(of: Arguments) -> Found:
        def one(left: Any, right: Any) -> Decimal | None:
            return _fitting(operation(Decimal(left), Decimal(right)), of.dtype, of.ansi)

        return _each(of, one)

    return function


def _quotient(condition: str, message: str, instead: str, operation: Callable[..., Decimal]) -> Any:
    def function(of: Arguments) -> Found:
        def one(left: Any, right: Any) -> Decimal | None:
            if right == 0:
                if of.ansi:
                    raise _failed(condition, message, f"test for zero first, or use {instead}")
                return None
            return _fitting(operation(Decimal(left), Decimal(right)), of.dtype, of.ansi)

        return _each(of, one)

    return function


# -- texts ---------------------------------------------------------------------------------------


def _strings(function: Callable[..., Any]) -> Callable[[Arguments], Found]:
    return lambda of: _each(of, function)


def _substring(text: str, start: int, count: int = 1 << 31) -> str:
    """`start` counts from 1, from the end if negative; 0 is 1."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = first + count
    return text[max(first, 0) : max(last, 0)] if last > first else ""


def _right(text: str, count: int) -> str:
    return text[max(len(text) - count, 0) :] if count > 0 else ""


def _distance(left: str, right: str) -> int:
    """The Levenshtein distance."""
    costs = list(range(len(right) + 1))
    for row, one in enumerate(left, 1):
        before, costs[0] = costs[0], row
        for column, other in enumerate(right, 1):
            before, costs[column] = (
                costs[column],
                min(costs[column] + 1, costs[column - 1] + 1, before + (one != other)),
            )
    return costs[-1]


def _like(text: str, pattern: str) -> bool:
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("%", "_", "\\"):
                raise ExecutionError(
                    f"pattern {pattern!r} in a condition has the escape character before {escaped!r}",
                    condition="INVALID_FORMAT",
                    sqlstate="42601",
                    hint="double the escape character",
                )
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


_BY_ZERO = {
    "/": ("DIVIDE_BY_ZERO", "division by zero", "try_divide"),
    "%": ("REMAINDER_BY_ZERO", "remainder by zero", "try_mod"),
}

FUNCTIONS: dict[str, Callable[[Arguments], Found]] = {
    "DIV": _divided,
    "PMOD": _positive_remainder,
    "SIGN": _sign,
    "FLOOR": _whole(math.floor),
    "CEIL": _whole(math.ceil),
    "ROUND": _rounded,
    "SQRT": _root,
    "SQUARE": _square,
    "CAST": _cast,
    "DECIMAL +": _computed(_WIDE.add),
    "DECIMAL -": _computed(_WIDE.subtract),
    "DECIMAL *": _computed(_WIDE.multiply),
    "DECIMAL /": _quotient(*_BY_ZERO["/"], _QUOTIENT.divide),
    "DECIMAL %": _quotient(*_BY_ZERO["%"], _WIDE.remainder),
    "DECIMAL NEG": lambda of: _each(of, lambda value: _WIDE.minus(value)),
    "DECIMAL ABS": lambda of: _each(of, lambda value: _WIDE.abs(value)),
    "CONCAT": _strings(lambda *parts: "".join(parts)),
    "LENGTH": _strings(len),
    "SUBSTRING": _strings(_substring),
    "LEFT": _strings(lambda text, count: text[: max(count, 0)]),
    "RIGHT": _strings(_right),
    "INSTR": _strings(lambda text, part: text.find(part) + 1),
    "STARTSWITH": _strings(str.startswith),
    "ENDSWITH": _strings(str.endswith),
    "CONTAINS": _strings(lambda text, part: part in text),
    "LEVENSHTEIN": _strings(_distance),
    "LIKE": _strings(_like),
}
"""The functions by the operators that stand for them."""
