"""Which streams a part of a query reads."""

from __future__ import annotations

from collections.abc import Collection

from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select
from windrow.syntax.tokens import TokenList

__all__ = ["reads_stream", "streams_beneath"]


def streams_beneath(tokens: TokenList, streams: Collection[str], select: Select) -> list[str]:
    """The streams that are read in FROM."""
    found = []
    for item in select.source:
        for at in range(*item.source):
            token = tokens[at]
            if token.is_name and token.name.lower() in streams and _stands_as_relation(tokens, at):
                found.append(token.name.lower())
    return found


def reads_stream(tokens: TokenList, streams: Collection[str], source: Range) -> bool:
    """Whether a stream is read in a range."""
    return any(
        tokens[at].is_name and tokens[at].name.lower() in streams and _stands_as_relation(tokens, at)
        for at in range(*source)
    )


def _stands_as_relation(tokens: TokenList, at: int) -> bool:
    if tokens.is_symbol(at - 1, ".") or tokens.is_symbol(at + 1, "."):
        return False
    before = at - 1
    while tokens.is_symbol(before, "("):
        before -= 1
    return tokens.word(before) in ("FROM", "JOIN", "TABLE") or tokens.is_symbol(before, ",")
