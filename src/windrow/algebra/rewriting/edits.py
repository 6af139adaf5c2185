"""Edits of a text: insertions before tokens, and replacements."""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow.algebra.names import piece_of
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["Edits"]


@dataclass(frozen=True)
class Edits:
    """The edits of a text, by the positions of tokens.

    Attributes
    ----------
    tokens
        The text.
    instead
        What stands for a token.
    """

    tokens: TokenList
    instead: dict[int, SqlText] = field(default_factory=dict)
    _before: dict[int, list[SqlText]] = field(default_factory=dict)

    @property
    def is_changed(self) -> bool:
        """Whether there are any changes."""
        return bool(self.instead or self._before)

    def text(self, start: int, stop: int) -> SqlText:
        """A part of the text with the edits."""
        parts: list[SqlText] = []
        at = start
        for index in range(start, stop + 1):
            if index in self._before:
                parts += [self.piece(at, index), *self._before[index]]
                at = index
            if index in self.instead and index < stop:
                parts += [self.piece(at, index), self.instead[index]]
                at = index + 1
        parts.append(self.piece(at, stop))
        return SqlText.of(*parts)

    def piece(self, start: int, stop: int) -> SqlText:
        """A part of the original text."""
        return piece_of(self.tokens, start, stop, " ")

    def put(self, index: int, *text: str | SqlText) -> None:
        """Insert a text before a token."""
        self._before.setdefault(index, []).append(SqlText.of(" ", *text, " "))
