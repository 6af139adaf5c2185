"""Compound statements, ``BEGIN … END``, whose statements run one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["CompoundPart", "parse_compound"]

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_COMMANDS = (
    "INSERT", "CREATE", "DROP", "ALTER", "DELETE", "UPDATE", "MERGE", "TRUNCATE", "USE", "CACHE", "UNCACHE",
    "REFRESH", "ANALYZE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CompoundPart:
    """A statement of a compound statement.

    Attributes
    ----------
    range
        Its tokens.
    declares
        The names of the variables that it declares.
    sets
        Whether it is SET of variables that the compound statement declares.
    is_query
        Whether the compound statement may return its rows.
    """

    range: Range
    declares: tuple[str, ...] = ()
    sets: bool = False
    is_query: bool = False


def parse_compound(tokens: TokenList) -> list[CompoundPart] | None:
    """The statements of a compound statement; None for other texts, and where there is more than statements.

    That is conditions, loops, handlers, blocks in blocks.

    >>> from windrow.syntax.tokens import tokenize
    >>> [one.range for one in parse_compound(tokenize("BEGIN DECLARE x = 1; SET x = 2; SELECT x; END"))]
    [(1, 5), (6, 10), (11, 13)]
    >>> parse_compound(tokenize("BEGIN IF x THEN SELECT 1; END IF; END"))
    """
    end = len(tokens) - tokens.is_symbol(len(tokens) - 1, ";")
    if tokens.word(0) != "BEGIN" or tokens.word(end - 1) != "END":
        return None
    cuts = [at for at in tokens.semicolons if at < end - 1]
    if not cuts or cuts[-1] != end - 2:
        return None
    found: list[CompoundPart] = []
    declared: set[str] = set()
    for start, stop in zip([1, *(cut + 1 for cut in cuts)], cuts, strict=False):
        statement = _statement(tokens, (start, stop), declared)
        if statement is None:
            return None
        declared |= {name.lower() for name in statement.declares}
        found.append(statement)
    return found


def _statement(tokens: TokenList, part: Range, declared: set[str]) -> CompoundPart | None:
    start, stop = part
    word = tokens.word(start) if start < stop else ""
    if tokens.is_symbol(start, "(") or word in _QUERIES:
        return CompoundPart(part, is_query=True)
    if word in _COMMANDS:
        return CompoundPart(part)
    if word == "DECLARE":
        return _declaration(tokens, part)
    first = start + 1 + (tokens.word(start + 1) in ("VAR", "VARIABLE"))
    first += tokens.is_symbol(first, "(")
    name = tokens[first].name.lower() if first < stop and tokens[first].is_name else ""
    return CompoundPart(part, sets=True) if word == "SET" and name in declared else None


def _declaration(tokens: TokenList, part: Range) -> CompoundPart | None:
    """DECLARE of variables; None of conditions and handlers."""
    start, stop = part
    first = start + 1 + (tokens.word(start + 1) in ("VAR", "VARIABLE"))
    words = {tokens.word(at) for at in tokens.level(first, stop)}
    if words & {"HANDLER", "CONDITION"} or tokens.word(first) == "OR" or not tokens[first].is_name:
        return None
    names = [tokens[first].name]
    while tokens.is_symbol(first + 1, ",") and first + 2 < stop:
        first += 2
        names.append(tokens[first].name)
    return CompoundPart(part, declares=tuple(names))
