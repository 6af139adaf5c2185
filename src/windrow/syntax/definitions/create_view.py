"""CREATE VIEW."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.syntax.definitions.create_words import CreateWords, create_words
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["View", "parse_view"]


@dataclass(frozen=True)
class View:
    """CREATE VIEW: its name, the names of its columns, its query, and the words before its name."""

    name: str
    columns: list[str]
    body: Range
    words: CreateWords


def parse_view(tokens: TokenList, start: int, stop: int) -> View | None:
    """CREATE [OR REPLACE] [TEMPORARY] VIEW … AS; None for any other statement."""
    words = create_words(tokens, start, stop, "VIEW")
    if words is None:
        return None
    at, columns = words.name_at + 1, []
    if tokens.is_symbol(at, "("):
        columns = [tokens[first].name for first, _ in tokens.split(at + 1, tokens.partner[at])]
        at = tokens.partner[at] + 1
    if tokens.word(at) != "AS":
        return None
    return View(tokens[words.name_at].name, columns, (at + 1, stop), words)
