"""Watermarks of recorded logs: up to which rowtime a log was complete, as processing time advanced.

Instants of processing time and of rowtime are ints. A watermark is a list of changes (ptime, rowtime): from
the ptime on, no row below the rowtime is expected. It never decreases. Before its first change it is unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence

__all__ = ["WatermarkHistory", "least_watermark", "of_producers", "value_at"]

WatermarkHistory = list[tuple[int, int]]


def of_producers(entries: Iterable[tuple[int, Hashable, int | None]]) -> WatermarkHistory:
    """The watermark of a log: the least bound of the producers that have appeared so far.

    Parameters
    ----------
    entries
        (ptime, producer, promised) in any order; None for entries without a bound. Entries of one ptime
        come at once.

    >>> of_producers([(1, "a", 5), (2, "b", None), (3, "b", 4), (4, "b", 9), (4, "a", 6)])
    [(1, 5), (4, 6)]
    """
    bounds: dict[Hashable, int | None] = {}
    history: WatermarkHistory = []
    waiting = sorted(entries, key=lambda entry: entry[0])
    for number, (ptime, producer, bound) in enumerate(waiting):
        before = bounds.get(producer)
        bounds[producer] = bound if before is None else before if bound is None else max(before, bound)
        if number + 1 < len(waiting) and waiting[number + 1][0] == ptime:
            continue
        known = [value for value in bounds.values() if value is not None]
        # a producer without a bound delays the others
        if len(known) == len(bounds) and (not history or min(known) > history[-1][1]):
            history.append((ptime, min(known)))
    return history


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
