"""Items of a SELECT list: their expressions and the names that they are given."""

from __future__ import annotations

from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["alias_of", "without_alias"]

_OPERATORS = {
    "AND",
    "OR",
    "NOT",
    "IS",
    "LIKE",
    "ILIKE",
    "RLIKE",
    "IN",
    "BETWEEN",
    "DIV",
    "THEN",
    "ELSE",
    "WHEN",
}


def alias_of(tokens: TokenList, item: Range) -> str | None:
    """The name that an item of SELECT is given, in lower case."""
    start, stop = item
    if stop - start == 1 or not tokens[stop - 1].is_name or tokens.is_symbol(stop - 2, "."):
        return None
    before = tokens[stop - 2]
    named = tokens.word(stop - 2) == "AS" or before.is_symbol(")") or before.is_symbol("]")
    plain = before.kind.name in ("QUOTED", "NUMBER", "STRING") or (
        before.kind.name == "WORD" and before.word not in _OPERATORS
    )
    return tokens[stop - 1].name.lower() if named or plain else None


def without_alias(tokens: TokenList, item: Range) -> Range:
    """The expression of an item of SELECT."""
    if alias_of(tokens, item) is None or tokens.word(item[1] - 1) == "END":
        return item
    start, stop = item
    return start, stop - (2 if tokens.word(stop - 2) == "AS" else 1)
