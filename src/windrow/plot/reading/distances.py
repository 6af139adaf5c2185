"""Distances between rows along the x axis: where rows overlap, and where gaps are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from windrow.plot.scene import Gap

__all__ = ["gaps_of", "touch"]

_APART = 120
"""So many rows side by side can be distinguished."""
_WIDE = 5
"""A gap is so many times as long as the usual distance between rows,"""
_GAPS = 12
"""and so many of a sequence are marked: the longest."""

_UNITS = (("day", 86_400_000.0), ("h", 3_600_000.0), ("min", 60_000.0), ("s", 1_000.0), ("ms", 1.0))


def touch(axis: Sequence[Sequence[float]]) -> bool:
    """Whether many rows would overlap along an axis, and would not by their positions."""
    places = [place for own in axis for place in own]
    distances = [later - one for own in axis for one, later in pairwise(own)]
    if not distances or max(map(len, axis)) > _APART:
        return False
    least = (max(places) - min(places)) / _APART
    return sum(distance < least for distance in distances) * 4 > len(distances)


def gaps_of(places: Sequence[float | None], *, is_time: bool) -> tuple[Gap, ...]:
    """The long gaps between rows that are drawn side by side, each with its length.

    >>> gaps_of([0.0, 60000.0, 120000.0, 5400000.0], is_time=True)
    (Gap(after=2, text='1 h 28 min'),)
    >>> gaps_of([1.0, 2.0, 3.0, 900.0], is_time=False)
    (Gap(after=2, text='897'),)
    """
    distances = {
        at: later - one
        for at, (one, later) in enumerate(pairwise(places))
        if one is not None and later is not None and later > one
    }
    if len(distances) < 2:
        return ()
    usual = median(distances.values())
    wide = sorted((at for at in distances if distances[at] > _WIDE * usual), key=lambda at: -distances[at])
    return tuple(Gap(at, _length(distances[at], is_time=is_time)) for at in sorted(wide[:_GAPS]))


def _length(distance: float, *, is_time: bool) -> str:
    """A distance in its two largest units.

    >>> _length(90_000_000.0, is_time=True), _length(2 * 86_400_000.0, is_time=True)
    ('1 day 1 h', '2 days')
    """
    if not is_time:
        return f"{distance:,.6g}"
    found: list[str] = []
    left = distance
    for unit, size in _UNITS:
        count = int(left // size)
        if count and len(found) < 2:
            found.append(f"{count:,} {unit}{'s' if unit == 'day' and count > 1 else ''}")
            left -= count * size
        elif found:
            break
    return " ".join(found)
