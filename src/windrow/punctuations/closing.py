"""Closed keys: values of some columns with which no row will arrive, whatever its other columns.

A punctuation that is ``*`` on the other columns closes keys by itself. Several may close keys together: one
up to an instant and one from it on, or a list of all values. Each closed key is reported once, as a region
over the columns, when the punctuation that completes it arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from windrow.punctuations.cover import Cover
from windrow.punctuations.lines import Place
from windrow.punctuations.pattern import Pattern
from windrow.punctuations.regions import NULL, Lines, Region, for_all, is_exact, meet

__all__ = ["Closing"]


class Closing:
    """The keys that the punctuations of a stream close. It is mutable.

    Parameters
    ----------
    lines
        Those of the stream's columns.
    columns
        The key's columns.

    Attributes
    ----------
    closed
        The closed keys.
    """

    def __init__(self, lines: Lines, columns: Iterable[str]) -> None:
        self.lines = lines
        self.columns = tuple(name for name in columns if name in lines)
        self.closed = Cover({name: lines[name] for name in self.columns})
        self._partial = Cover(lines)
        self._corners = [0, 0, 0]

    def add(self, patterns: Iterable[Pattern]) -> list[Region]:
        """Add punctuations; return the keys that they close and that were open before."""
        return [found for pattern in patterns for region in pattern.regions() for found in self._add(region)]

    def _add(self, region: Region) -> list[Region]:
        own = {name: span for name, span in region.items() if name in self.columns}
        if len(own) == len(region):
            if not self.closed.add_region(region):
                return []
            self._partial.forget(region)
            return [region]
        if self.closed.covers(own) or not self._partial.add_region(region):
            return []
        for at, is_there in enumerate(self._at_corners(region)):
            self._corners[at] += is_there
        if not all(self._corners):
            return []  # for some values of the other columns a row may still arrive
        both = (meet(own, other) for other in self._partial.overlapping(own))
        overlapping = [other for other in both if other is not None]
        dropped = sorted({name for other in overlapping for name in other} - {*self.columns})
        found = closed_together(overlapping, self.columns, dropped, self.lines)
        closed = [each for each in found if self.closed.add_region(each)]
        for each in closed:
            self._partial.forget(each)
        return closed

    def _at_corners(self, region: Region) -> list[bool]:
        """Whether it covers rows whose other columns are all NULL, all least, all greatest."""
        spans = [(self.lines[name], span) for name, span in region.items() if name not in self.columns]
        return [
            all(span is NULL for _, span in spans),
            all(span is not NULL and span[0] == line.first for line, span in spans),
            all(span is not NULL and span[1] == line.end for line, span in spans),
        ]


def closed_together(
    regions: Sequence[Region], columns: Sequence[str], dropped: Sequence[str], lines: Lines
) -> list[Region]:
    """As :func:`~windrow.punctuations.regions.for_all`, with single values of a column one at a time."""
    if not columns:
        return for_all(regions, dropped, lines)
    name, *rest = columns
    points: dict[Place | None, list[Region]] = {}
    others: list[Region] = []
    for region in regions:
        if name in region and is_exact(lines[name], region[name]):
            points.setdefault(region[name], []).append(region)
        else:
            others.append(region)
    found = closed_together(others, rest, dropped, lines)
    for span, own in points.items():
        clipped = (meet({name: span}, region) for region in others)
        whole = [*own, *(region for region in clipped if region is not None)]
        without = [{other: each for other, each in region.items() if other != name} for region in whole]
        found += [{**region, name: span} for region in closed_together(without, rest, dropped, lines)]
    return found
