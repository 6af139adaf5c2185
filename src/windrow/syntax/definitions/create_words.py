"""The words before the name of what CREATE makes, and its lists of names with types."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["CreateWords", "column_items", "create_words"]


@dataclass(frozen=True, slots=True)
class CreateWords:
    """``CREATE [OR REPLACE] [TEMPORARY] kind [IF NOT EXISTS]``.

    Attributes
    ----------
    name_at
        The token of the name.
    """

    replaces: bool
    is_temporary: bool
    if_not_exists: bool
    name_at: int


def create_words(tokens: TokenList, start: int, stop: int, kind: str) -> CreateWords | None:
    """These words before a name; None for any other statement."""
    at = start
    if tokens.word(at) != "CREATE":
        return None
    replaces = [tokens.word(at + 1), tokens.word(at + 2)] == ["OR", "REPLACE"]
    at += 3 if replaces else 1
    is_temporary = tokens.word(at) in ("TEMP", "TEMPORARY")
    at += is_temporary
    if tokens.word(at) != kind:
        return None
    if_not_exists = [tokens.word(at + place) for place in (1, 2, 3)] == ["IF", "NOT", "EXISTS"]
    at += 4 if if_not_exists else 1
    if at >= stop or not tokens[at].is_name:
        return None
    return CreateWords(replaces, is_temporary, if_not_exists, at)


def column_items(tokens: TokenList, start: int, stop: int) -> list[Range]:
    """The ranges between commas, but for those in MAP<INT, STRING>."""
    items: list[Range] = []
    for first, last in tokens.split(start, stop):
        depth = 0
        if items:
            before = [tokens[at].text for at in range(*items[-1])]
            depth = sum(text.count("<") - text.count(">") for text in before)
        if depth > 0:
            items[-1] = (items[-1][0], last)
        else:
            items.append((first, last))
    return items
