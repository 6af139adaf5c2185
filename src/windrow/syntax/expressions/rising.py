"""Expressions that increase with a time in them: shifts, truncations and casts to coarser types.

Shifts by months are excluded: months end on different days, so the evening of 30 January moves to after the
morning of 31 January.
"""

from __future__ import annotations

import re

from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["STEADY", "goes_by_zone", "rising"]

_CALLS_OF_TIME = {"DATE_TRUNC": 1, "TO_DATE": 0, "DATE": 0}  # and which argument is the time
_OF_MONTHS = re.compile(r"MON|YEAR|QUARTER", re.IGNORECASE)
_UNITS = {
    "YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MM", "MON", "WEEK", "DAY", "DD", "HOUR", "MINUTE", "SECOND",
    "MILLISECOND", "MICROSECOND",
}  # fmt: skip
_OF_DAYS = re.compile(r"DAY|WEEK", re.IGNORECASE)
_COARSER = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")


def rising(tokens: TokenList, start: int, stop: int) -> Range | None:
    """The part of an expression with which it increases: for shifts, truncations and casts of times."""
    if tokens.is_symbol(start + 1, "(") and tokens.partner[start + 1] == stop - 1:
        word = tokens.word(start)
        if word in _CALLS_OF_TIME:
            parts = tokens.split(start + 2, stop - 1)
            place = _CALLS_OF_TIME[word]
            if len(parts) != place + 1 or (place and not _is_unit(tokens, parts[0])):
                return None
            return parts[place]
        is_cast = word == "CAST" and tokens.word(stop - 2) in _COARSER and tokens.word(stop - 3) == "AS"
        return (start + 2, stop - 3) if is_cast else None
    for at in tokens.level(start, stop):
        if (tokens.is_symbol(at, "+") or tokens.is_symbol(at, "-")) and tokens.word(at + 1) == "INTERVAL":
            by_months = _OF_MONTHS.search(tokens.text(at + 1, stop))
            is_length = all(_is_of_length(tokens, each) for each in range(at + 2, stop))
            return (start, at) if is_length and not by_months else None
    return None


def _is_of_length(tokens: TokenList, at: int) -> bool:
    """Whether a token may be in a length of time after INTERVAL: a value, a unit, TO."""
    return tokens[at].kind in (TokenKind.NUMBER, TokenKind.STRING) or tokens.word(at).rstrip("S") in (
        *_UNITS,
        "TO",
    )


def _is_unit(tokens: TokenList, stretch: Range) -> bool:
    """Whether the range is a unit of time; other units have no time."""
    start, stop = stretch
    is_text = stop - start == 1 and tokens[start].kind is TokenKind.STRING
    return is_text and tokens[start].text[1:-1].upper() in _UNITS


STEADY = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z")
"""Time zones without daylight saving time."""


def goes_by_zone(tokens: TokenList, start: int, stop: int, *, is_local: bool = False) -> bool:
    """Whether there is a shift or a cast by local time, which can go back while time advances.

    For times that are `is_local`, such as TIMESTAMP_NTZ, only a cast is one.
    """
    for at in range(start, stop):
        if not is_local and tokens.word(at) == "INTERVAL" and _OF_DAYS.search(tokens.text(at + 1, stop)):
            return True
        if tokens.word(at) in _COARSER[1:] and tokens.word(at - 1) == "AS":
            return True
    return False
