"""Boxes: patterns with at most one span a column, and what several of them cover together.

A box maps the columns that it tells of to a span, or to `NULL`; every other column may have any value or
NULL. All functions are exact: a set of boxes covers a row if one of them holds it, and covers a box if every
row of it is covered, by whichever of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from windrow.punctuations.lines import Line, Span

__all__ = ["NULL", "Box", "Lines", "contains", "for_all", "is_exact", "meet", "outside", "without"]

NULL: Final = None
"""What a box says of a column that is NULL in all its rows."""

Box: TypeAlias = Mapping[str, Span | None]
Lines: TypeAlias = Mapping[str, Line]


def meet(one: Box, other: Box) -> Box | None:
    """The rows of both; None if there are none."""
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


def contains(outer: Box, inner: Box) -> bool:
    """Whether every row of `inner` is one of `outer`."""
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
    """Whether a column has one value, or is NULL."""
    return span is NULL or line.is_point(span)


def without(box: Box, cut: Box, lines: Lines) -> list[Box]:
    """The rows of a box that are not in another, as boxes that have none in common."""
    if meet(box, cut) is None:
        return [box]
    found: list[Box] = []
    rest = dict(box)
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


def outside(boxes: Iterable[Box], cover: Iterable[Box], lines: Lines) -> list[Box]:
    """The rows of boxes that no box of the cover holds."""
    left = list(boxes)
    for cut in cover:
        if not left:
            break
        left = [part for box in left for part in without(box, cut, lines)]
    return left


def for_all(boxes: Iterable[Box], dropped: Sequence[str], lines: Lines) -> list[Box]:
    """The boxes over the other columns whose every row is covered whatever the dropped columns hold.

    One column after the other is taken away: the boxes that tell of it must, for each of its values and for
    NULL, together hold the row.
    """
    current = pruned(boxes)
    for name in dropped:
        free = [box for box in current if name not in box]
        telling = [box for box in current if name in box]
        current = pruned([*free, *_for_each(telling, name, lines)])
    return current


def pruned(boxes: Iterable[Box]) -> list[Box]:
    """The boxes that no other contains."""
    kept: list[Box] = []
    for box in boxes:
        if any(contains(other, box) for other in kept):
            continue
        kept = [other for other in kept if not contains(box, other)]
        kept.append(box)
    return kept


def _for_each(boxes: Sequence[Box], name: str, lines: Lines) -> list[Box]:
    """The boxes without a column, of which all tell, whose rows are covered for each of its values."""
    line = lines[name]
    rest = [{other: span for other, span in box.items() if other != name} for box in boxes]
    spans = [box[name] for box in boxes]
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
    found: list[Box] = [{}]
    for piece in sorted({tuple(piece) for piece in pieces}, key=len):
        both = (meet(box, rest[at]) for box in found for at in piece)
        found = pruned(box for box in both if box is not None)
        if not found:
            return []
    return found
