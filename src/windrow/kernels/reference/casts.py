"""CAST between SQL types, and the text that Spark writes for a value."""

from __future__ import annotations

import datetime
import math
import re
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from windrow.errors import ExecutionError, NotSupportedError, WindrowError
from windrow.kernels.reference.values import DECIMALS, Months, mismatch

__all__ = ["TARGETS", "Type", "as_date", "as_string", "cast", "cast_like"]


@dataclass(frozen=True)
class Type:
    """A type to cast to: one of `TARGETS`; precision and scale are for ``decimal`` only."""

    name: str
    precision: int = 10
    scale: int = 0


def cast(value: Any, to: Type, *, ansi: bool = True, safe: bool = False) -> Any:
    """The value as the type `to`; NULL stays NULL.

    Parameters
    ----------
    value
        A SQL value.
    to
        The target.
    ansi
        Raise for a value outside of the type, as Spark's ANSI mode; else NULL, except that an integer
        out of range wraps and a double out of range saturates.
    safe
        TRY_CAST: NULL for whatever ANSI mode would raise.

    Raises
    ------
    ExecutionError
        ``CAST_INVALID_INPUT``, ``CAST_OVERFLOW`` or ``NUMERIC_VALUE_OUT_OF_RANGE``.
    AnalysisError
        ``DATATYPE_MISMATCH`` if there is no such cast.
    """
    if value is None:
        return None
    try:
        return _cast(value, to, ansi or safe)
    except ExecutionError:
        if ansi and not safe:
            raise
        return None


def cast_like(text: str, model: Any) -> Any:
    """A string cast to the type that Spark assigns to it beside `model` in a comparison or in arithmetic."""
    if isinstance(model, bool):
        return cast(text, Type("boolean"))
    if isinstance(model, int):
        return cast(text, Type("bigint"))
    if isinstance(model, float | Decimal):
        return cast(text, Type("double"))
    if isinstance(model, datetime.datetime):
        return cast(text, Type("timestamp"))
    if isinstance(model, datetime.date):
        return cast(text, Type("date"))
    raise mismatch("a string beside this operand", text, model)


def as_date(value: Any) -> Any:
    """The value as a date, as Spark's date functions convert their arguments; NULL stays NULL."""
    return cast(value, Type("date"))


def as_string(value: Any) -> str:
    """The text that CAST(… AS STRING) returns."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        text = value.isoformat(" ", "microseconds" if value.microsecond else "seconds")
        return text.rstrip("0") if value.microsecond else text
    if isinstance(value, int | datetime.date):
        return str(value)
    raise mismatch("CAST to STRING", value)


_WIDTHS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}

TARGETS = frozenset({*_WIDTHS, "float", "double", "decimal", "string", "boolean", "date", "timestamp"})
"""The types that can be cast to."""


def _cast(value: Any, to: Type, ansi: bool) -> Any:
    match to.name:
        case "float":
            return _to_float(value, to)
        case "double":
            return _to_double(value, to)
        case "decimal":
            return _to_decimal(value, to)
        case "string":
            return as_string(value)
        case "boolean":
            return _to_boolean(value, to)
        case "date":
            return _to_date(value, to)
        case "timestamp":
            return _to_timestamp(value, to)
        case _:
            return _to_integer(value, to, ansi)


_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


def _to_integer(value: Any, to: Type, ansi: bool) -> int:
    if isinstance(value, str):
        return _fit(_parsed_integer(value, to, ansi), to, ansi)
    if isinstance(value, float):
        half: int = 2 ** (_WIDTHS[to.name] - 1)
        if -half - 1 < value < half:
            return int(value)
        if ansi:
            raise _overflow(value, to)
        if math.isnan(value):
            return 0
        return half - 1 if value > 0 else -half
    if isinstance(value, bool | int | Decimal):
        return _fit(int(value), to, ansi)
    raise _no_cast(value, to)


def _parsed_integer(text: str, to: Type, ansi: bool) -> int:
    # Outside ANSI mode a fraction is cut off.
    pattern = r"\s*([+-]?\d+)\s*" if ansi else r"\s*([+-]?\d+)(\.\d*)?\s*"
    match = re.fullmatch(pattern, text)
    if match is None:
        raise _invalid(text, to)
    return int(match[1])


def _fit(value: int, to: Type, ansi: bool) -> int:
    half: int = 2 ** (_WIDTHS[to.name] - 1)
    if -half <= value < half:
        return value
    if ansi:
        raise _overflow(value, to)
    return (value + half) % (2 * half) - half


def _to_double(value: Any, to: Type) -> float:
    if isinstance(value, str):
        match = re.fullmatch(rf"\s*(?:({_NUMBER})[dDfF]?|((?i:[+-]?inf(?:inity)?|nan)))\s*", value)
        if match is None:
            raise _invalid(value, to)
        return float(match[1] or match[2])
    if isinstance(value, bool | int | float | Decimal):
        return float(value)
    raise _no_cast(value, to)


def _to_float(value: Any, to: Type) -> float:
    double = _to_double(value, to)
    try:
        return float(struct.unpack("f", struct.pack("f", double))[0])
    except OverflowError:
        return math.copysign(math.inf, double)


def _to_decimal(value: Any, to: Type) -> Decimal:
    if isinstance(value, str):
        if not re.fullmatch(rf"\s*{_NUMBER}\s*", value):
            raise _invalid(value, to)
        number = Decimal(value.strip())
    elif isinstance(value, float):
        # Spark goes through the shortest text of the double, so 1.005 rounds up to 1.01.
        number = Decimal(repr(value))
    elif isinstance(value, bool | int | Decimal):
        number = Decimal(value)
    else:
        raise _no_cast(value, to)
    if not number.is_finite():
        raise _out_of_range(value, to)
    number = number.quantize(Decimal(1).scaleb(-to.scale), context=DECIMALS)
    if number.adjusted() >= to.precision - to.scale and number:
        raise _out_of_range(value, to)
    return number


def _to_boolean(value: Any, to: Type) -> bool:
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("t", "true", "y", "yes", "1"):
            return True
        if text in ("f", "false", "n", "no", "0"):
            return False
        raise _invalid(value, to)
    if isinstance(value, bool | int | float | Decimal):
        return value != 0
    raise _no_cast(value, to)


def _to_date(value: Any, to: Type) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\s*", value)
        try:
            if match:
                return datetime.date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
        except ValueError:
            pass
        raise _invalid(value, to)
    raise _no_cast(value, to)


def _to_timestamp(value: Any, to: Type) -> datetime.datetime:
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    if isinstance(value, str):
        time = r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d*)?)?"
        match = re.fullmatch(rf"\s*([\d-]+)(?:[ T]{time})?\s*", value)
        try:
            if match:
                hour, minute, second = (int(match[part] or 0) for part in (2, 3, 4))
                micros = int((match[5] or "").ljust(6, "0"))
                return datetime.datetime.combine(
                    _to_date(match[1], to), datetime.time(hour, minute, second, micros)
                )
        except ValueError:
            pass
        raise _invalid(value, to)
    raise _no_cast(value, to)


def _float_text(value: float) -> str:
    """As Java's Double.toString: plain from 1e-3 up to 1e7, else d.dddE±n."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(Decimal(repr(value)), "f")
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def _invalid(value: Any, to: Type) -> ExecutionError:
    return ExecutionError(
        f"value {value!r} cannot be cast to {to.name.upper()}",
        condition="CAST_INVALID_INPUT",
        sqlstate="22018",
    )


def _overflow(value: Any, to: Type) -> ExecutionError:
    return ExecutionError(
        f"value {value} does not fit into {to.name.upper()}", condition="CAST_OVERFLOW", sqlstate="22003"
    )


def _out_of_range(value: Any, to: Type) -> ExecutionError:
    return ExecutionError(
        f"value {value} does not fit into DECIMAL({to.precision}, {to.scale})",
        condition="NUMERIC_VALUE_OUT_OF_RANGE",
        sqlstate="22003",
    )


def _no_cast(value: Any, to: Type) -> WindrowError:
    if isinstance(value, datetime.datetime | datetime.timedelta | Months | int | float):
        # Spark has these casts, but they need the session's time zone or the interval's declared unit.
        return NotSupportedError(
            f"the reference interpreter does not support CAST of {type(value).__name__} to {to.name.upper()}",
            condition="REFERENCE_EXPRESSION",
        )
    return mismatch(f"CAST to {to.name.upper()}", value)
