"""The words before the name of what CREATE makes."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.syntax.tokens import TokenList

__all__ = ["CreateWords", "create_words"]


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
