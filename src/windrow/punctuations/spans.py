"""Spans in order, of which none touches another: a list in blocks, so that a change costs one block."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from windrow.punctuations.lines import Place, Span

__all__ = ["Spans"]

_BLOCK = 512  # spans; one with more is split


class Spans:
    """A set of places as spans. It changes as they are added."""

    def __init__(self) -> None:
        self._blocks: list[tuple[list[Place], list[Place]]] = []  # where spans begin, where they stop
        self._heads: list[Place] = []  # where the first of each block begins

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __iter__(self) -> Iterator[Span]:
        for firsts, stops in self._blocks:
            yield from zip(firsts, stops, strict=True)

    def add(self, first: Place, stop: Place) -> None:
        """Take in the places of a span; those that it touches become one with it."""
        while (found := self._touching(first, stop)) is not None:
            own = self._pop(*found)
            first, stop = min(first, own[0]), max(stop, own[1])
        if not self._blocks:
            self._blocks, self._heads = [([first], [stop])], [first]
            return
        block = max(bisect_right(self._heads, first) - 1, 0)
        firsts, stops = self._blocks[block]
        at = bisect_right(firsts, first)
        firsts.insert(at, first)
        stops.insert(at, stop)
        self._heads[block] = firsts[0]
        if len(firsts) > _BLOCK:
            middle = len(firsts) // 2
            self._blocks[block : block + 1] = [
                (firsts[:middle], stops[:middle]),
                (firsts[middle:], stops[middle:]),
            ]
            self._heads[block : block + 1] = [firsts[0], firsts[middle]]

    def overlapping(self, first: Place, stop: Place) -> Iterator[Span]:
        """The spans that have places in common with one."""
        for block, at in self._from(first):
            firsts, stops = self._blocks[block]
            if not firsts[at] < stop:
                return
            if first < stops[at]:
                yield firsts[at], stops[at]

    def forget(self, first: Place, stop: Place) -> None:
        """Forget the spans within one."""
        within = [span for span in self.overlapping(first, stop) if first <= span[0] and span[1] <= stop]
        for span in within:
            block = bisect_right(self._heads, span[0]) - 1
            self._pop(block, bisect_right(self._blocks[block][0], span[0]) - 1)

    def _touching(self, first: Place, stop: Place) -> tuple[int, int] | None:
        """Where the first span is that a span overlaps or touches."""
        for block, at in self._from(first):
            firsts, stops = self._blocks[block]
            if stop < firsts[at]:
                return None
            if first <= stops[at]:
                return block, at
        return None

    def _from(self, place: Place) -> Iterator[tuple[int, int]]:
        """Where the spans are from the last on that begins at a place or before it."""
        block = max(bisect_right(self._heads, place) - 1, 0)
        at = max(bisect_right(self._blocks[block][0], place) - 1, 0) if self._blocks else 0
        for number in range(block, len(self._blocks)):
            yield from ((number, each) for each in range(at, len(self._blocks[number][0])))
            at = 0

    def _pop(self, block: int, at: int) -> Span:
        firsts, stops = self._blocks[block]
        span = firsts.pop(at), stops.pop(at)
        if firsts:
            self._heads[block] = firsts[0]
        else:
            del self._blocks[block], self._heads[block]
        return span
