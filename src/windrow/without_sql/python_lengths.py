"""Durations as arguments of the Python API: timedeltas, or texts such as ``"10 seconds"``."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

from windrow.errors import UsageError, did_you_mean
from windrow.syntax.lengths import LENGTH_UNITS

__all__ = ["duration_of"]

_TEXT = re.compile(r"\s*(?:INTERVAL\s+)?(?P<parts>'?\d.*)", re.IGNORECASE)
_PART = re.compile(r"'?(\d+(?:\.\d+)?)'?\s*([a-z]+)\s*", re.IGNORECASE)


def duration_of(length: object, option: str) -> datetime.timedelta:
    """The duration that an argument of the Python API says.

    Parameters
    ----------
    length
        A timedelta, or a text of numbers and units: ``10 seconds``, ``1 hour 30 minutes``.
    option
        The name of the argument, for errors.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT``.

    >>> duration_of("1 hour 30 minutes", "lag")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(length, str):
        found = _micros(length, option)
        length = None if found is None else datetime.timedelta(microseconds=found)
    if not isinstance(length, datetime.timedelta):
        raise _invalid(option, "is not a length of time", f"write {option}='10 seconds', or a timedelta")
    if length < datetime.timedelta(0):
        raise _invalid(option, "is negative", "write a length of 0 or more")
    return length


def _micros(text: str, option: str) -> int | None:
    """The microseconds in a text; None if it is no length of time."""
    whole = _TEXT.fullmatch(text)
    if whole is None or re.fullmatch(f"(?:{_PART.pattern})+", whole["parts"], re.IGNORECASE) is None:
        return None
    nanoseconds = Decimal(0)
    for number, written in _PART.findall(whole["parts"]):
        unit = written.upper().removesuffix("S")
        if unit not in LENGTH_UNITS:
            names = [f"{each.lower()}s" for each in LENGTH_UNITS]
            hint = did_you_mean(written.lower(), names) or f"use one of {', '.join(names)}"
            raise _invalid(option, f"has {written}, which is not a unit of time", hint)
        nanoseconds += Decimal(number) * LENGTH_UNITS[unit]
    return int(nanoseconds // 1000)


def _invalid(option: str, message: str, hint: str) -> UsageError:
    return UsageError(f"{option} {message}", condition="INVALID_ARGUMENT", hint=hint)
