"""ORDER BY: its elements, and the order of a result's columns that it implies."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.select_list import without_alias
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["order_at", "order_item", "output_order"]

_AFTER_ORDER = ("LIMIT", "OFFSET")


def order_at(tokens: TokenList, start: int, stop: int) -> int | None:
    """The position of the ORDER BY of a whole query."""
    level = [at for at in tokens.level(start, stop) if not tokens.is_symbol(at - 1, ".")]
    return next((at for at in level if tokens.word(at) == "ORDER" and tokens.word(at + 1) == "BY"), None)


def order_item(tokens: TokenList, item: Range) -> OrderItem:
    """The expression, direction and place of NULLs of an element; NULLs are first where values ascend."""
    start, stop = item
    nulls_first: bool | None = None
    if stop - start > 2 and tokens.word(stop - 2) == "NULLS" and tokens.word(stop - 1) in ("FIRST", "LAST"):
        nulls_first = tokens.word(stop - 1) == "FIRST"
        stop -= 2
    descending = stop - start > 1 and tokens.word(stop - 1) == "DESC"
    if stop - start > 1 and tokens.word(stop - 1) in ("ASC", "DESC"):
        stop -= 1
    return OrderItem((start, stop), descending, not descending if nulls_first is None else nulls_first)


def output_order(
    tokens: TokenList, start: int, stop: int, names: Sequence[str]
) -> tuple[tuple[int, OrderItem], ...]:
    """The columns of a query's result by which its own ORDER BY sorts, from 0 on.

    An element is a column of the result if it is its name, its number, or the text of an item of SELECT. From
    the first other element on, the result cannot be sorted: such keys are left out.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("SELECT a.k, MAX(v) AS best FROM t GROUP BY a.k ORDER BY best DESC, a.k, v LIMIT 3")
    >>> found = output_order(tokens, 0, len(tokens.tokens), ["k", "best"])
    >>> [(place, item.descending) for place, item in found]
    [(1, True), (0, False)]
    >>> tokens = tokenize("SELECT v, t.k AS x FROM t ORDER BY k, t.v")
    >>> [place for place, _ in output_order(tokens, 0, len(tokens.tokens), ["v", "x"])]
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
    if (
        len(items) == 1
        and _text(tokens, items[0].expression) == ["ALL"]
        and "all" not in map(str.lower, names)
    ):
        return tuple((place, items[0]) for place in range(len(names)))
    selected = _selected(tokens, start, order)
    if len(selected) != len(names):  # a star stands for several columns
        selected = []
    found = []
    for item in items:
        place = _place(tokens, item.expression, names, selected)
        if place is None:
            break
        found.append((place, item))
    return tuple(found)


def _place(
    tokens: TokenList, expression: Range, names: Sequence[str], selected: Sequence[list[str]]
) -> int | None:
    token = tokens[expression[0]]
    if expression[1] - expression[0] == 1:
        if token.kind is TokenKind.NUMBER and token.text.isdigit():
            return int(token.text) - 1 if 0 < int(token.text) <= len(names) else None
        found = [at for at, name in enumerate(names) if token.is_name and name.lower() == token.name.lower()]
        if found:
            return found[0] if len(found) == 1 else None
    text = _text(tokens, expression)
    same = next((at for at, one in enumerate(selected) if one == text), None)
    # a column has one name without its relation, or that name is an error
    alike = (at for at, one in enumerate(selected) if _is_one_column(one, text) or _is_one_column(text, one))
    return same if same is not None else next(alike, None)


def _is_one_column(bare: Sequence[str], qualified: Sequence[str]) -> bool:
    """Whether ``v`` and ``s.v`` are these two texts."""
    return len(bare) == 1 and len(qualified) == 3 and qualified[1:] == [".", *bare]


def _selected(tokens: TokenList, start: int, stop: int) -> list[list[str]]:
    """The texts of the items of SELECT, for a single query without brackets."""
    level = tokens.level(start, stop)
    words = [tokens.word(at) for at in level]
    if tokens.word(start) not in ("SELECT", "WITH") or words.count("SELECT") != 1:
        return []
    first = level[words.index("SELECT")] + 1
    first += tokens.word(first) in ("DISTINCT", "ALL")
    last = next((at for at in level if tokens.word(at) == "FROM"), stop)
    return [_text(tokens, without_alias(tokens, item)) for item in tokens.split(first, last)]


def _text(tokens: TokenList, stretch: Range) -> list[str]:
    return [tokens[at].word or tokens[at].text for at in range(*stretch)]
