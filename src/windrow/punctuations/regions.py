"""Regions: patterns with at most one span for each column, and the rows that several of them cover together.

A region maps columns to a span, or to `NULL`; the other columns may have any value or NULL. All functions are
exact: a set of regions covers a row if one of them contains it, and covers a region if it covers every row
of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from windrow.punctuations.lines import Line, Span

__all__ = ["NULL", "Lines", "Region", "contains", "for_all", "is_exact", "meet", "outside", "without"]

NULL: Final = None
"""The value of a region for a column that is NULL in all its rows."""

Region: TypeAlias = Mapping[str, Span | None]
Lines: TypeAlias = Mapping[str, Line]


def meet(one: Region, other: Region) -> Region | None:
    """The intersection; None if it is empty."""
    found = dict(one)
    for name, span in other.items():
        if name not in found:
            found[name] = span
            continue
        mine = found[name]
        if mine is NULL or span is NULL:
            if mine is not span:
                return None
            continue
        first, stop = max(mine[0], span[0]), min(mine[1], span[1])
        if not first < stop:
            return None
        found[name] = (first, stop)
    return found


def contains(outer: Region, inner: Region) -> bool:
    """Whether `outer` contains every row of `inner`."""
    for name, span in outer.items():
        if name not in inner:
            return False
        mine = inner[name]
        if span is NULL or mine is NULL:
            if span is not mine:
                return False
        elif mine[0] < span[0] or span[1] < mine[1]:
            return False
    return True


def is_exact(line: Line, span: Span | None) -> bool:
    """Whether a span is a single value, or NULL."""
    return span is NULL or line.is_point(span)


def without(region: Region, cut: Region, lines: Lines) -> list[Region]:
    """The difference of two regions, as disjoint regions."""
    if meet(region, cut) is None:
        return [region]
    found: list[Region] = []
    rest = dict(region)
    for name, span in cut.items():
        line = lines[name]
        if name not in rest:
            outer: list[Span | None] = [(line.first, line.end)]
            if span is not NULL:
                outer = [NULL, (line.first, span[0]), (span[1], line.end)]
        elif span is NULL:
            continue
        else:
            mine = rest[name]
            assert mine is not NULL
            outer = [(mine[0], span[0]), (span[1], mine[1])]
        found += [{**rest, name: part} for part in outer if part is NULL or part[0] < part[1]]
        both = meet({name: rest[name]} if name in rest else {}, {name: span})
        assert both is not None
        rest[name] = both[name]
    return found


def outside(regions: Iterable[Region], cover: Iterable[Region], lines: Lines) -> list[Region]:
    """The rows of some regions that no region of the cover contains."""
    left = list(regions)
    for cut in cover:
        if not left:
            break
        left = [part for region in left for part in without(region, cut, lines)]
    return left


def for_all(regions: Iterable[Region], dropped: Sequence[str], lines: Lines) -> list[Region]:
    """The regions over the other columns that are covered for all values of the dropped columns.

    Columns are dropped one after the other: a row is covered if, for each value of the column and for NULL,
    some region contains it.
    """
    current = pruned(regions)
    for name in dropped:
        free = [region for region in current if name not in region]
        restricting = [region for region in current if name in region]
        current = pruned([*free, *_for_each(restricting, name, lines)])
    return current


def pruned(regions: Iterable[Region]) -> list[Region]:
    """The regions that no other contains."""
    found: list[Region] = []
    for region in regions:
        if any(contains(other, region) for other in found):
            continue
        found = [other for other in found if not contains(region, other)]
        found.append(region)
    return found


def _for_each(regions: Sequence[Region], name: str, lines: Lines) -> list[Region]:
    """The regions that are covered for each value of a column that all these regions restrict."""
    line = lines[name]
    rest = [{other: span for other, span in region.items() if other != name} for region in regions]
    spans = [region[name] for region in regions]
    edges = sorted({edge for span in spans if span is not NULL for edge in span} | {line.first})
    pieces = [[at for at, span in enumerate(spans) if span is NULL]]
    for first in edges:
        if first == line.end:
            continue
        pieces.append(
            [at for at, span in enumerate(spans) if span is not NULL and span[0] <= first < span[1]]
        )
    if not all(pieces):
        return []
    found: list[Region] = [{}]
    for piece in sorted({tuple(piece) for piece in pieces}, key=len):
        both = (meet(region, rest[at]) for region in found for at in piece)
        found = pruned(region for region in both if region is not None)
        if not found:
            return []
    return found
