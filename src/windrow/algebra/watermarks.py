"""Watermarks of recorded logs: up to which rowtime a log was complete, as processing time advanced.

Instants of processing time and of rowtime are ints. A watermark is a list of changes (ptime, rowtime): from
the ptime on, no row below the rowtime is expected. It never decreases. Before its first change it is unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby

from windrow.streams.entries import FOREVER

__all__ = ["WatermarkHistory", "least_watermark", "of_producers", "value_at"]

WatermarkHistory = list[tuple[int, int]]

_NONE = -(2**63)
"""The bound of a producer without one."""


def of_producers(
    entries: Iterable[tuple[int, Hashable, int | None, int | None]], idle: int | None = None
) -> WatermarkHistory:
    """The watermark of a log: the least bound of the producers that have appeared so far.

    Before the first row there is none, unless all producers have finished. The first row of a producer does
    not delay the watermark if it is below it.

    Parameters
    ----------
    entries
        (ptime, producer, promised, rowtime) in any order; None for entries without a bound or a row. Entries
        of one ptime come at once.
    idle
        The processing time after which a producer without an entry is idle, and delays the others no more;
        None for never. When it comes back, the watermark is its bound, as for a new producer.

    >>> of_producers([(1, "a", 5, None), (2, "b", None, 4), (3, "b", 4, 4), (4, "b", 9, 6), (4, "a", 6, 8)])
    [(3, 4), (4, 6)]
    >>> of_producers([(1, "a", 5, 6), (1, "b", 2, 2), (4, "a", 8, 8), (5, "b", 3, 1)], idle=2)
    [(1, 2), (3, 5), (4, 8)]
    """
    running = _Running(idle)
    waiting = sorted(entries, key=lambda entry: entry[0])
    for ptime, together in groupby(waiting, key=lambda entry: entry[0]):
        running.expire(ptime)
        for _, producer, bound, rowtime in together:
            running.take(ptime, producer, bound, rowtime)
        running.advance(ptime)
    running.expire(None)
    return running.history


class _Running:
    """A watermark that advances as producers send entries, and as they become idle."""

    def __init__(self, idle: int | None) -> None:
        self.idle = idle
        self.history: WatermarkHistory = []
        self._heard: dict[Hashable, int] = {}
        self._bounds: dict[Hashable, int] = {}
        self._seen: dict[Hashable, int] = {}
        self._left = _NONE
        self._has_begun = False

    def take(self, ptime: int, producer: Hashable, bound: int | None, rowtime: int | None) -> None:
        """An entry of a producer."""
        own = self._bounds.get(producer, _NONE)
        if producer not in self._heard:
            if own <= self._at:  # nothing of it matters any more
                self._seen.pop(producer, None)
            own = max(own, self._at)
            if bound is None and rowtime is not None and rowtime < own:
                return
        if rowtime is not None and rowtime >= own:
            self._seen[producer] = max(self._seen.get(producer, _NONE), rowtime)
            self._has_begun = True
        self._heard[producer] = ptime
        self._bounds[producer] = own if bound is None else max(own, bound)

    def expire(self, until: int | None) -> None:
        """Let producers without an entry be idle, until a processing time."""
        if self.idle is None:
            return
        for producer, last in sorted(self._heard.items(), key=lambda one: one[1]):
            if until is not None and last + self.idle >= until:
                return
            del self._heard[producer]
            self._left = max(self._left, min(self._bounds[producer], self._seen.get(producer, _NONE)))
            self.advance(last + self.idle)

    def advance(self, ptime: int) -> None:
        """Advance as far as the producers allow that are not idle; all producers, once all are."""
        value = min((self._bounds[each] for each in self._heard), default=self._left)
        if value > self._at and (self._has_begun or value == FOREVER):
            if self.history and self.history[-1][0] == ptime:
                self.history.pop()
            self.history.append((ptime, value))

    @property
    def _at(self) -> int:
        return self.history[-1][1] if self.history else _NONE


def least_watermark(watermarks: Sequence[WatermarkHistory]) -> WatermarkHistory:
    """The watermark of a combination of logs: the least one, from when all are known.

    >>> least_watermark([[(1, 5), (3, 8)], [(2, 6)]])
    [(2, 5), (3, 6)]
    """
    if len(watermarks) == 1:
        return watermarks[0]
    history: WatermarkHistory = []
    for ptime in sorted({ptime for watermark in watermarks for ptime, _ in watermark}):
        values = [value_at(watermark, ptime) for watermark in watermarks]
        known = [value for value in values if value is not None]
        if known and len(known) == len(values) and (not history or min(known) > history[-1][1]):
            history.append((ptime, min(known)))
    return history


def value_at(watermark: WatermarkHistory, ptime: int) -> int | None:
    """The watermark at a processing time, including its entries; None before it is known."""
    place = bisect_right(watermark, ptime, key=lambda entry: entry[0])
    return watermark[place - 1][1] if place else None
