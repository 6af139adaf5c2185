"""ORDER BY: where it stands, and its elements."""

from __future__ import annotations

from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.tokens import TokenList

__all__ = ["order_at", "order_item"]


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
