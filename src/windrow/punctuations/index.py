"""Which rows match which of many patterns: all rows at once, for each by searching rather than trying.

Each column's values become *atoms*: which of the stretches between the ends of the boxes' spans they lie in,
0 for NULL. Boxes of one shape, with the same columns exact and the same column a range, are then keys and
stretches of integers, found by bisection. Boxes with several ranges are tried one after the other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.punctuations.boxes import NULL, Box, Lines, is_exact
from windrow.punctuations.lines import Line

__all__ = ["NEVER", "Columns", "Index"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NEVER = 2**63 - 1
"""Since when a row matches, if it matches nothing."""

_FEW = 8
"""With so many ends texts are compared one by one."""


@dataclass(frozen=True, eq=False)
class Places:
    """A column's values: the places of the different ones, which of them each row has, where it is NULL."""

    places: npt.NDArray[Any]
    which: Ints | None
    is_null: Bools | None


class Columns:
    """The places of a table's columns, each made when it is first asked for."""

    def __init__(self, table: pa.Table, lines: Lines) -> None:
        self.table, self.lines = table, lines
        self._made: dict[str, Places] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, name: str) -> Places:
        if name not in self._made:
            self._made[name] = _placed(self.table.column(name), self.lines[name])
        return self._made[name]

    def atoms(self, name: str, ends: npt.NDArray[Any]) -> Ints:
        """Of each row 1 for what is before the first end, one more after each; 0 for NULL."""
        column = self.table.column(name)
        is_text = self.lines[name].is_of_bytes and not pa.types.is_dictionary(column.type)
        if is_text and len(ends) <= _FEW and name not in self._made:
            return _atoms_of_texts(column, ends)
        return _atoms(self[name], ends)


def _placed(column: pa.ChunkedArray, line: Line) -> Places:
    is_null = np.asarray(pc.is_null(column)) if column.null_count else None
    if not line.is_wide:
        return Places(line.places(column), None, is_null)
    coded = column.combine_chunks().dictionary_encode() if not pa.types.is_dictionary(column.type) else None
    if coded is None:
        coded = column.unify_dictionaries().combine_chunks()
    which = np.asarray(coded.indices.fill_null(0)).astype(np.int64)
    dictionary = coded.dictionary
    if not len(dictionary):  # all are NULL
        anything = np.full(len(column), line.first, object)
        return Places(anything, None, np.ones(len(column), bool))
    return Places(line.places(dictionary), which, is_null)


class Index:
    """Boxes, each since an instant, by which rows are looked up.

    Parameters
    ----------
    boxes
        What to look for.
    since
        An int for each box, by default 0 for all.
    lines
        Those of the columns.
    """

    def __init__(self, boxes: Sequence[Box], lines: Lines, since: Sequence[int] | None = None) -> None:
        self.boxes, self.lines = boxes, lines
        self.since = [0] * len(boxes) if since is None else list(since)
        shapes: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
        for at, box in enumerate(boxes):
            exact = tuple(sorted(name for name in box if is_exact(lines[name], box[name])))
            ranges = tuple(sorted(box.keys() - set(exact)))
            shapes.setdefault((exact, ranges), []).append(at)
        self._shapes = [
            _Shape(
                [boxes[at] for at in members],
                np.array([self.since[at] for at in members], np.int64),
                exact,
                ranges,
                lines,
            )
            for (exact, ranges), members in shapes.items()
        ]

    def __len__(self) -> int:
        return len(self.boxes)

    def matches(self, columns: Columns) -> Bools:
        """Of each row whether a box holds it."""
        found: Bools = self.earliest(columns) != NEVER
        return found

    def earliest(self, columns: Columns) -> Ints:
        """Of each row the least `since` of the boxes that hold it; `NEVER` if none does."""
        found = np.full(len(columns), NEVER, np.int64)
        for shape in self._shapes:
            np.minimum(found, shape.earliest(columns), out=found)
        return found


class _Shape:
    """Boxes with the same columns exact, and others ranges."""

    def __init__(
        self, boxes: Sequence[Box], since: Ints, exact: Sequence[str], ranges: Sequence[str], lines: Lines
    ) -> None:
        self.exact, self.ranges = exact, ranges
        self.ends = {name: _ends((box[name] for box in boxes), lines[name]) for name in (*exact, *ranges)}
        first = {name: _firsts(boxes, name, self.ends[name]) for name in (*exact, *ranges)}
        stop = {name: _stops(boxes, name, self.ends[name], lines[name]) for name in ranges}
        number = np.zeros(len(boxes), np.int64)
        self.keys: list[Ints] = []
        for name in exact:
            keys = number * self._width(name) + first[name]
            distinct, number = np.unique(keys, return_inverse=True)
            self.keys.append(distinct)
        self.number, self.since = number, since
        self.spans = [(first[name], stop[name]) for name in ranges]
        if len(ranges) < 2:
            width = self._width(ranges[0]) if ranges else 1
            begins, stops = self.spans[0] if ranges else (0, 1)
            self.stretches = _stretches(number * width + begins, number * width + stops, since)

    def _width(self, name: str) -> int:
        return len(self.ends[name]) + 3

    def earliest(self, columns: Columns) -> Ints:
        atoms = {name: columns.atoms(name, ends) for name, ends in self.ends.items()}
        number = np.zeros(len(columns), np.int64)
        is_in = np.ones(len(columns), bool)
        for name, keys in zip(self.exact, self.keys, strict=True):
            wanted = number * self._width(name) + atoms[name]
            number = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            is_in &= keys[number] == wanted
        if len(self.ranges) < 2:
            key = number * self._width(self.ranges[0]) + atoms[self.ranges[0]] if self.ranges else number
            begins, stops, since = self.stretches
            at = np.searchsorted(begins, key, side="right") - 1
            is_in &= (at >= 0) & (key < stops[at])
            return np.where(is_in, since[at], NEVER)
        found = np.full(len(columns), NEVER, np.int64)
        for box in range(len(self.number)):
            holds = is_in & (number == self.number[box])
            for name, (begins, stops) in zip(self.ranges, self.spans, strict=True):
                holds &= (begins[box] <= atoms[name]) & (atoms[name] < stops[box])
            found[holds] = np.minimum(found[holds], self.since[box])
        return found


def _ends(spans: Iterable[Any], line: Line) -> npt.NDArray[Any]:
    """The places at which spans begin and stop, but for the end of the line, in order."""
    places = sorted({place for span in spans if span is not NULL for place in span if place != line.end})
    if not line.is_wide:
        return np.array(places, np.int64)
    found = np.empty(len(places), object)
    found[:] = places
    return found


def _firsts(boxes: Sequence[Box], name: str, ends: npt.NDArray[Any]) -> Ints:
    number = {place: at for at, place in enumerate(ends.tolist())}
    spans = (box[name] for box in boxes)
    return np.array([0 if span is NULL else number[span[0]] + 2 for span in spans], np.int64)


def _stops(boxes: Sequence[Box], name: str, ends: npt.NDArray[Any], line: Line) -> Ints:
    number = {place: at + 2 for at, place in enumerate(ends.tolist())}
    number[line.end] = len(ends) + 2
    return np.array([number[span[1]] for box in boxes if (span := box[name]) is not NULL], np.int64)


def _atoms(places: Places, ends: npt.NDArray[Any]) -> Ints:
    found: Ints = np.searchsorted(ends, places.places, side="right").astype(np.int64) + 1
    if places.which is not None:
        found = found[places.which]
    return found if places.is_null is None else np.where(places.is_null, 0, found)


def _atoms_of_texts(column: pa.ChunkedArray, ends: npt.NDArray[Any]) -> Ints:
    """The same, by comparing with each end: of many texts that is faster than to make Python's of them."""
    texts = column.cast(pa.large_binary())
    found = np.ones(len(texts), np.int64)
    for end in ends:
        found += np.asarray(pc.greater_equal(texts, pa.scalar(end, pa.large_binary())).fill_null(False))
    return np.where(np.asarray(pc.is_null(texts)), 0, found) if texts.null_count else found


def _stretches(begins: Ints, stops: Ints, since: Ints) -> tuple[Ints, Ints, Ints]:
    """Stretches that have none in common, in order, with the least `since` of those that they were."""
    order = np.argsort(begins, kind="stable")
    begins, stops, since = begins[order], stops[order], since[order]
    reached = np.maximum.accumulate(stops)
    if (since == since[0]).all():
        is_new = np.append(True, begins[1:] > reached[:-1])
        last = np.append(np.flatnonzero(is_new)[1:] - 1, len(begins) - 1)
        return begins[is_new], reached[last], since[is_new]
    if (begins[1:] >= reached[:-1]).all():
        return begins, stops, since
    return _least_of_all(begins.tolist(), stops.tolist(), since.tolist())


def _least_of_all(begins: list[int], stops: list[int], since: list[int]) -> tuple[Ints, Ints, Ints]:
    edges = sorted({*begins, *stops})
    heap: list[tuple[int, int]] = []
    found: list[tuple[int, int, int]] = []
    at = 0
    for first, stop in pairwise(edges):
        while at < len(begins) and begins[at] <= first:
            heapq.heappush(heap, (since[at], stops[at]))
            at += 1
        while heap and heap[0][1] <= first:
            heapq.heappop(heap)
        if heap:
            found.append((first, stop, heap[0][0]))
    columns = np.array(found, np.int64)
    return columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy()
