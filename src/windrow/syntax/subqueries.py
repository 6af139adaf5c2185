"""Finds the subqueries of an expression, and the names that their own relations have."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["opens_query", "own_relations", "subqueries"]

_QUERIES = ("SELECT", "WITH")
_ALSO_NAMES = ("VALUES", "FROM", "TABLE")


def opens_query(tokens: TokenList, at: int) -> bool:
    """Whether the parentheses that open at a token contain a query.

    >>> from windrow.syntax.tokens import tokenize
    >>> [opens_query(tokenize(sql), 0) for sql in ("(SELECT 1)", "(VALUES 1)", "((SELECT 1))", "(values)")]
    [True, True, False, False]
    """
    if not tokens.is_symbol(at, "(") or tokens.word(at + 1) not in (*_QUERIES, *_ALSO_NAMES):
        return False
    is_operand = tokens[at + 2].kind is TokenKind.SYMBOL and not tokens.is_symbol(at + 2, "(")
    return tokens.word(at + 1) in _QUERIES or not is_operand


def subqueries(tokens: TokenList, within: Range) -> Iterator[Range]:
    """The outermost subqueries of a range, each with its parentheses."""
    at, stop = within
    while at < stop:
        if opens_query(tokens, at):
            yield at, tokens.partner[at] + 1
            at = tokens.partner[at]
        at += 1


def own_relations(tokens: TokenList, query: Range) -> frozenset[str]:
    """The names, in upper case, by which columns of a query's own relations are qualified."""
    start, stop = query
    found = set()
    for first in range(start + 1, stop):
        if not begins_relation(tokens, first) or opens_query(tokens, first - 1):
            continue
        last = first
        while tokens.is_symbol(last + 1, ".") and last + 2 < stop:
            last += 2
        name = tokens[last].name if tokens[last].is_name else ""
        end = last + 1 if name else last
        if tokens.is_symbol(end, "("):
            end = tokens.partner[end] + 1
        alias = alias_after(tokens, end, stop)
        found.add((tokens[alias].name if alias is not None else name).upper())
    return frozenset(found)
