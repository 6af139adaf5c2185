"""Interval literals: day-time ones are timedeltas, year-month ones :class:`Months`."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation

from windrow.kernels.reference.values import Months

__all__ = ["UNITS", "interval"]

_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 10**3,
    "SECOND": 10**6,
    "MINUTE": 60 * 10**6,
    "HOUR": 3600 * 10**6,
    "DAY": 86400 * 10**6,
    "WEEK": 7 * 86400 * 10**6,
}
_MONTHS = {"MONTH": 1, "YEAR": 12}
_FIELDS = ["DAY", "HOUR", "MINUTE", "SECOND"]
_SPANS = {f"{first} TO {last}" for n, first in enumerate(_FIELDS) for last in _FIELDS[n + 1 :]}
_SINGLE = _MICROSECONDS.keys() | _MONTHS.keys()

UNITS = _SINGLE | {f"{name}S" for name in _SINGLE} | _SPANS | {"YEAR TO MONTH"}
"""The units of interval literals, in capitals."""


def interval(amount: str, unit: str) -> datetime.timedelta | Months | None:
    """The interval ``INTERVAL 'amount' unit``, or None if the amount does not fit the unit.

    >>> interval("1 02:30", "DAY TO MINUTE")
    datetime.timedelta(days=1, seconds=9000)
    """
    if unit == "YEAR TO MONTH":
        match = re.fullmatch(r"([+-]?)(\d+)-(\d+)", amount.strip())
        count = int(match[2]) * 12 + int(match[3]) if match else 0
        return Months(-count if match[1] == "-" else count) if match else None
    if unit in _SPANS:
        return _span(amount.strip(), *unit.split(" TO "))
    name = unit if unit in _SINGLE else unit.removesuffix("S")
    try:
        number = Decimal(amount.strip())
    except InvalidOperation:
        return None
    if name != "SECOND" and number != number.to_integral_value():
        return None
    if name in _MONTHS:
        return Months(int(number) * _MONTHS[name])
    return datetime.timedelta(microseconds=int(number * _MICROSECONDS[name]))


def _span(amount: str, first: str, last: str) -> datetime.timedelta | None:
    """``[-]d hh:mm:ss.ffffff`` from the first field to the last."""
    fields = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
    sign, text = (-1, amount[1:]) if amount.startswith("-") else (1, amount.removeprefix("+"))
    parts = re.split(r"[ :]", text)
    separators = "".join(" " if field == "DAY" else ":" for field in fields[:-1])
    numeric = all(re.fullmatch(r"\d+(\.\d+)?", part) for part in parts)
    if "".join(re.findall(r"[ :]", text)) != separators or not numeric:
        return None
    micros = sum(int(Decimal(part) * _MICROSECONDS[field]) for part, field in zip(parts, fields, strict=True))
    return sign * datetime.timedelta(microseconds=micros)
