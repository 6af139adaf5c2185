"""Which values of some columns are closed: no row with them will come, whatever it holds in the others.

A punctuation that is ``*`` on the other columns closes values by itself. Others may do so together: one up to
an instant and one from it on, or a list of all values. What is closed is told once, as boxes over the
columns, when the punctuation comes that completes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from windrow.punctuations.boxes import NULL, Box, Lines, for_all, is_exact, meet
from windrow.punctuations.cover import Cover
from windrow.punctuations.lines import Place
from windrow.punctuations.pattern import Pattern

__all__ = ["Closing"]


class Closing:
    """What the punctuations of a stream close of some columns. It changes as they are added.

    Parameters
    ----------
    lines
        Those of the stream's columns.
    columns
        The columns whose values are to be closed. Any columns of the stream may be among the others.

    Attributes
    ----------
    closed
        What is closed, over these columns.
    """

    def __init__(self, lines: Lines, columns: Iterable[str]) -> None:
        self.lines = lines
        self.columns = tuple(name for name in columns if name in lines)
        self.closed = Cover({name: lines[name] for name in self.columns})
        self._partial = Cover(lines)
        self._corners = [0, 0, 0]

    def add(self, patterns: Iterable[Pattern]) -> list[Box]:
        """Take in punctuations; what they close that was open before."""
        return [found for pattern in patterns for box in pattern.boxes() for found in self._add(box)]

    def _add(self, box: Box) -> list[Box]:
        own = {name: span for name, span in box.items() if name in self.columns}
        if len(own) == len(box):
            if not self.closed.add_box(box):
                return []
            self._partial.forget(box)
            return [box]
        if self.closed.covers(own) or not self._partial.add_box(box):
            return []
        for at, is_there in enumerate(self._at_corners(box)):
            self._corners[at] += is_there
        if not all(self._corners):
            return []  # whatever the others hold, one row at least may still come
        both = (meet(own, other) for other in self._partial.overlapping(own))
        telling = [other for other in both if other is not None]
        dropped = sorted({name for other in telling for name in other} - {*self.columns})
        found = closed_together(telling, self.columns, dropped, self.lines)
        closed = [each for each in found if self.closed.add_box(each)]
        for each in closed:
            self._partial.forget(each)
        return closed

    def _at_corners(self, box: Box) -> list[bool]:
        """Whether it says something of rows whose other columns are NULL, are least, are greatest."""
        spans = [(self.lines[name], span) for name, span in box.items() if name not in self.columns]
        return [
            all(span is NULL for _, span in spans),
            all(span is not NULL and span[0] == line.first for line, span in spans),
            all(span is not NULL and span[1] == line.end for line, span in spans),
        ]


def closed_together(
    boxes: Sequence[Box], columns: Sequence[str], dropped: Sequence[str], lines: Lines
) -> list[Box]:
    """As :func:`~windrow.punctuations.boxes.for_all`, one value of a column at a time where that is told."""
    if not columns:
        return for_all(boxes, dropped, lines)
    name, *rest = columns
    points: dict[Place | None, list[Box]] = {}
    others: list[Box] = []
    for box in boxes:
        if name in box and is_exact(lines[name], box[name]):
            points.setdefault(box[name], []).append(box)
        else:
            others.append(box)
    found = closed_together(others, rest, dropped, lines)
    for span, own in points.items():
        clipped = (meet({name: span}, box) for box in others)
        whole = [*own, *(box for box in clipped if box is not None)]
        without = [{other: told for other, told in box.items() if other != name} for box in whole]
        found += [{**box, name: span} for box in closed_together(without, rest, dropped, lines)]
    return found
