"""What goes from one operator to the next: rows, and then what is promised of those that follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from windrow.punctuations import Cover, Pattern
from windrow.punctuations.boxes import Box, Lines

__all__ = ["Promises", "Step", "renamed"]


@dataclass(frozen=True)
class Step:
    """Rows, and the punctuations that come after them.

    None of the rows matches a punctuation of an earlier step: those that do are late, and have been taken out
    where the stream began.
    """

    rows: pa.Table
    punctuations: tuple[Pattern, ...] = ()


class Promises:
    """The punctuations of an output: each is told once, and not if those before say as much."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self._told = Cover(lines)

    def news(self, boxes: Iterable[Box]) -> tuple[Pattern, ...]:
        """The boxes that say what had not been said."""
        return tuple(Pattern.of_box(box, self.lines) for box in boxes if self._told.add_box(box))


def renamed(box: Box, names: Mapping[str, str]) -> Box:
    """A box over columns of other names; columns without one are left out."""
    return {names[name]: span for name, span in box.items() if name in names}
