"""The data between operators: rows, and the punctuations after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from windrow.punctuations import Cover, Pattern
from windrow.punctuations.regions import Lines, Region

__all__ = ["Announced", "Delta", "renamed"]


@dataclass(frozen=True)
class Delta:
    """The rows of a micro-batch, and the punctuations after them.

    No row matches a punctuation of an earlier delta: such rows are late, and are removed at the source.
    """

    rows: pa.Table
    punctuations: tuple[Pattern, ...] = ()


class Announced:
    """The punctuations of an output: each is emitted once, and only if earlier ones do not cover it."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self._covered = Cover(lines)

    def news(self, regions: Iterable[Region]) -> tuple[Pattern, ...]:
        """The regions that earlier punctuations do not cover, as punctuations."""
        return tuple(
            Pattern.of_region(region, self.lines) for region in regions if self._covered.add_region(region)
        )


def renamed(region: Region, names: Mapping[str, str]) -> Region:
    """A region under other column names; columns without one are left out."""
    return {names[name]: span for name, span in region.items() if name in names}
