"""Expressions that rise with a time in them: shifts, truncations and casts to coarser types."""

from __future__ import annotations

from windrow.syntax.nodes import Range
from windrow.syntax.tokens import Kind, TokenList

__all__ = ["rising"]

_CALLS_OF_TIME = {"DATE_TRUNC": 1, "TO_DATE": 0, "DATE": 0}  # and which argument is the time
_COARSER = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")


def rising(tokens: TokenList, start: int, stop: int) -> Range | None:
    """The part of an expression with which it rises: of shifts, truncations and casts of times."""
    if tokens.is_symbol(start + 1, "(") and tokens.partner[start + 1] == stop - 1:
        word = tokens.word(start)
        if word in _CALLS_OF_TIME:
            parts = tokens.split(start + 2, stop - 1)
            place = _CALLS_OF_TIME[word]
            return parts[place] if len(parts) == place + 1 else None
        is_cast = word == "CAST" and tokens.word(stop - 2) in _COARSER and tokens.word(stop - 3) == "AS"
        return (start + 2, stop - 3) if is_cast else None
    for at in tokens.level(start, stop):
        if (tokens.is_symbol(at, "+") or tokens.is_symbol(at, "-")) and tokens.word(at + 1) == "INTERVAL":
            rest = [
                each for each in tokens.level(at + 1, stop)
                if tokens[each].kind is Kind.SYMBOL and tokens[each].text not in ("(", ")")
            ]  # fmt: skip
            names = [each for each in range(at + 2, stop) if tokens.is_symbol(each, ".")]
            return (start, at) if not rest and not names else None
    return None
