"""Shared by the parsers of Windrow's clauses: a cursor over the tokens between a clause's parentheses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn

from windrow.errors import Span
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["Cursor"]


class Cursor(ABC):
    """The tokens from `at` on, up to the parenthesis `stop`."""

    def __init__(self, tokens: TokenList, at: int, stop: int) -> None:
        self.tokens, self.at, self.stop = tokens, at, stop

    def word(self) -> str:
        """The word at the cursor, in capitals; empty for anything else."""
        return self.tokens.word(self.at) if self.at < self.stop else ""

    def words(self, *expected: str) -> bool:
        """Whether these words are at the cursor."""
        return self.at + len(expected) <= self.stop and all(
            self.tokens.word(self.at + offset) == word for offset, word in enumerate(expected)
        )

    def here(self) -> Span:
        """The position of the cursor."""
        return self.tokens[self.at].span

    def listed(self, after: str, end: int) -> list[Range]:
        """The items between commas up to token `end`, to which the cursor moves.

        Raises
        ------
        ParseError
            ``PARSE_SYNTAX_ERROR`` for an empty list or item, in words of what it stands `after`.
        """
        start, self.at = self.at, end
        items = self.tokens.split(start, end)
        for first, last in items or [(start, start)]:
            if first >= last:
                self.at = first
                self.fail([f"an expression after {after}"])
        return items

    @abstractmethod
    def fail(self, expected: list[str], hint: str | None = None) -> NoReturn:
        """Raise an error: something else was expected here."""
