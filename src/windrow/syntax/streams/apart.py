"""Separate queries in brackets: they precede a window of a stream, so they are streams themselves."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.syntax.cql_clauses import begins_relation, window_at
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["clauses_apart"]


def clauses_apart(tokens: TokenList, statement: Range) -> Iterator[tuple[int, Range]]:
    """The queries in ``(SELECT …) [RANGE …]`` that contain no windows, and the tokens at which their brackets
    open.
    """
    at, stop = statement
    while at < stop:
        inside = _query_at(tokens, at)
        if inside is not None:
            yield at, inside
            at = inside[1]
        at += 1


def _query_at(tokens: TokenList, at: int) -> Range | None:
    is_before_window = (
        tokens.is_symbol(at, "(")
        and begins_relation(tokens, at)
        and window_at(tokens, tokens.partner[at] + 1)
    )
    if not is_before_window:
        return None
    inside = at + 1, tokens.partner[at]
    while tokens.is_symbol(inside[0], "(") and tokens.partner[inside[0]] == inside[1] - 1:
        inside = inside[0] + 1, inside[1] - 1
    is_query = tokens.word(inside[0]) in ("SELECT", "WITH")
    return None if not is_query or any(window_at(tokens, each) for each in range(*inside)) else inside
