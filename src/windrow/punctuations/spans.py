"""A sorted set of disjoint spans, stored in chunks so that a change touches one chunk only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from windrow.punctuations.lines import Place, Span

__all__ = ["Spans"]

_CHUNK = 512  # spans; one with more is split


class Spans:
    """A set of places, as spans. It is mutable."""

    def __init__(self) -> None:
        self._blocks: list[tuple[list[Place], list[Place]]] = []  # where spans begin, where they stop
        self._heads: list[Place] = []  # where the first span of each chunk begins

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __iter__(self) -> Iterator[Span]:
        for firsts, stops in self._blocks:
            yield from zip(firsts, stops, strict=True)

    def add(self, first: Place, stop: Place) -> None:
        """Add a span, merged with those that it overlaps or touches."""
        while (found := self._touching(first, stop)) is not None:
            own = self._pop(*found)
            first, stop = min(first, own[0]), max(stop, own[1])
        if not self._blocks:
            self._blocks, self._heads = [([first], [stop])], [first]
            return
        chunk = max(bisect_right(self._heads, first) - 1, 0)
        firsts, stops = self._blocks[chunk]
        at = bisect_right(firsts, first)
        firsts.insert(at, first)
        stops.insert(at, stop)
        self._heads[chunk] = firsts[0]
        if len(firsts) > _CHUNK:
            middle = len(firsts) // 2
            self._blocks[chunk : chunk + 1] = [
                (firsts[:middle], stops[:middle]),
                (firsts[middle:], stops[middle:]),
            ]
            self._heads[chunk : chunk + 1] = [firsts[0], firsts[middle]]

    def overlapping(self, first: Place, stop: Place) -> Iterator[Span]:
        """The spans that overlap one."""
        for chunk, at in self._from(first):
            firsts, stops = self._blocks[chunk]
            if not firsts[at] < stop:
                return
            if first < stops[at]:
                yield firsts[at], stops[at]

    def forget(self, first: Place, stop: Place) -> None:
        """Remove the spans within one."""
        within = [span for span in self.overlapping(first, stop) if first <= span[0] and span[1] <= stop]
        for span in within:
            chunk = bisect_right(self._heads, span[0]) - 1
            self._pop(chunk, bisect_right(self._blocks[chunk][0], span[0]) - 1)

    def _touching(self, first: Place, stop: Place) -> tuple[int, int] | None:
        """The position of the first span that a span overlaps or touches."""
        for chunk, at in self._from(first):
            firsts, stops = self._blocks[chunk]
            if stop < firsts[at]:
                return None
            if first <= stops[at]:
                return chunk, at
        return None

    def _from(self, place: Place) -> Iterator[tuple[int, int]]:
        """The positions of the spans, from the last one that begins at or before a place."""
        chunk = max(bisect_right(self._heads, place) - 1, 0)
        at = max(bisect_right(self._blocks[chunk][0], place) - 1, 0) if self._blocks else 0
        for number in range(chunk, len(self._blocks)):
            yield from ((number, each) for each in range(at, len(self._blocks[number][0])))
            at = 0

    def _pop(self, chunk: int, at: int) -> Span:
        firsts, stops = self._blocks[chunk]
        span = firsts.pop(at), stops.pop(at)
        if firsts:
            self._heads[chunk] = firsts[0]
        else:
            del self._blocks[chunk], self._heads[chunk]
        return span
