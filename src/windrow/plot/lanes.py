"""Spans that overlap, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

__all__ = ["lanes"]


def lanes(spans: Sequence[tuple[float, float]], *, shared: bool = True) -> list[int]:
    """The lane of each span, from 0: the least number of lanes, each the first that is free.

    Parameters
    ----------
    spans
        First and last place of each, in order of the first.
    shared
        Whether two of which one ends where the other begins overlap.

    >>> lanes([(1, 3), (2, 4), (3, 5), (4, 4), (6, 7)])
    [0, 1, 2, 0, 0]
    >>> lanes([(1, 3), (2, 4), (3, 5)], shared=False)
    [0, 1, 0]
    """
    occupied: list[tuple[float, int]] = []
    free: list[int] = []
    found = []
    for first, last in spans:
        while occupied and (occupied[0][0] < first or (not shared and occupied[0][0] == first)):
            heappush(free, heappop(occupied)[1])
        lane = heappop(free) if free else len(occupied)
        found.append(lane)
        heappush(occupied, (last, lane))
    return found
