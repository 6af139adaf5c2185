"""The columns of a query's result by which its own ORDER BY sorts."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.algebra.qualified import is_same, relations_of
from windrow.algebra.scopes import parts_of_from
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.order_by import order_at, order_item
from windrow.syntax.select_list import without_alias
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["output_order"]

_AFTER_ORDER = ("LIMIT", "OFFSET")


def output_order(
    tokens: TokenList, start: int, stop: int, names: Sequence[str]
) -> tuple[tuple[int, OrderItem], ...]:
    """The columns of a query's result by which its own ORDER BY sorts, from 0 on.

    An element is a column of the result if it is its name, its number, or an item of SELECT, whose column may
    have its relation in one of the places. From the first other element on, the result cannot be sorted: such
    keys are left out.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("SELECT a.k, MAX(v) AS best FROM t GROUP BY a.k ORDER BY best DESC, a.k, v LIMIT 3")
    >>> found = output_order(tokens, 0, len(tokens.tokens), ["k", "best"])
    >>> [(place, item.descending) for place, item in found]
    [(1, True), (0, False)]
    >>> tokens = tokenize("SELECT v, t.k AS x, s.a AS y FROM t ORDER BY k, t.v, a")
    >>> [place for place, _ in output_order(tokens, 0, len(tokens.tokens), ["v", "x", "y"])]
    [1, 0]
    """
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    order = order_at(tokens, start, stop)
    if order is None:
        return ()
    level = tokens.level(order + 2, stop)
    end = next((at for at in level if tokens.word(at) in _AFTER_ORDER), stop)
    items = [order_item(tokens, item) for item in tokens.split(order + 2, end)]
    is_all = len(items) == 1 and tokens.text(*items[0].expression).upper() == "ALL"
    if is_all and "all" not in map(str.lower, names):
        return tuple((place, items[0]) for place in range(len(names)))
    selected = _selected(tokens, start, order)
    if len(selected) != len(names):  # a star stands for several columns
        selected = []
    parts = parts_of_from(tokens, (start, order)) if selected else None
    relations = set[str]() if parts is None else set(relations_of(tokens, (parts[0][0] - 1, parts[0][1])))
    found = []
    for item in items:
        place = _named(tokens, item.expression, names)
        if place is None:
            same = [is_same(tokens, one, item.expression, relations) for one in selected]
            place = same.index(True) if True in same else len(names)
        if place >= len(names):
            break
        found.append((place, item))
    return tuple(found)


def _named(tokens: TokenList, expression: Range, names: Sequence[str]) -> int | None:
    """The place of the column with this number or name; as many as there are if none, or several, have it.

    None for other expressions, and for names of no column.
    """
    token = tokens[expression[0]]
    if expression[1] - expression[0] != 1:
        return None
    if token.kind is TokenKind.NUMBER and token.text.isdigit():
        return int(token.text) - 1 if 0 < int(token.text) <= len(names) else len(names)
    found = [at for at, name in enumerate(names) if token.is_name and name.lower() == token.name.lower()]
    if not found:
        return None
    return found[0] if len(found) == 1 else len(names)


def _selected(tokens: TokenList, start: int, stop: int) -> list[Range]:
    """The items of SELECT without aliases, for a single query without brackets."""
    level = tokens.level(start, stop)
    words = [tokens.word(at) for at in level]
    if tokens.word(start) not in ("SELECT", "WITH") or words.count("SELECT") != 1:
        return []
    first = level[words.index("SELECT")] + 1
    first += tokens.word(first) in ("DISTINCT", "ALL")
    last = next((at for at in level if tokens.word(at) == "FROM"), stop)
    return [without_alias(tokens, item) for item in tokens.split(first, last)]
