"""Match many rows against many patterns at once, by searching instead of a loop over patterns.

Each column's values become *atoms*: the number of the interval between ends of the regions' spans, 0 for
NULL. Regions of one shape, with single values in the same columns and a range in the same column, are then
integer keys with integer intervals, found by bisection. Regions with several ranges are tested one after the
other.
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

from windrow.punctuations.lines import Line
from windrow.punctuations.regions import NULL, Lines, Region, is_exact

__all__ = ["NEVER", "Columns", "Index"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NEVER = 2**63 - 1
"""The result for a row that matches nothing."""

_MOST_COMPARED = 8
"""Up to so many ends, texts are compared with each end."""


@dataclass(frozen=True, eq=False)
class Places:
    """A column's values: the places of the distinct values, each row's index in them, and the NULLs."""

    places: npt.NDArray[Any]
    which: Ints | None
    is_null: Bools | None


class Columns:
    """The places of a table's columns, computed on demand."""

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
        """Each row's atom: 1 before the first end, one more after each end; 0 for NULL."""
        column = self.table.column(name)
        is_text = self.lines[name].is_of_bytes and not pa.types.is_dictionary(column.type)
        if is_text and len(ends) <= _MOST_COMPARED and name not in self._made:
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
    """An index of regions, each with the instant since which it applies.

    Parameters
    ----------
    boxes
        The regions.
    since
        An int for each region, by default 0 for all.
    lines
        Those of the columns.
    """

    def __init__(self, regions: Sequence[Region], lines: Lines, since: Sequence[int] | None = None) -> None:
        self.boxes, self.lines = regions, lines
        self.since = [0] * len(regions) if since is None else list(since)
        shapes: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
        for at, region in enumerate(regions):
            exact = tuple(sorted(name for name in region if is_exact(lines[name], region[name])))
            ranges = tuple(sorted(region.keys() - set(exact)))
            shapes.setdefault((exact, ranges), []).append(at)
        self._shapes = [
            _Shape(
                [regions[at] for at in members],
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
        """Whether a region contains each row."""
        found: Bools = self.earliest(columns) != NEVER
        return found

    def earliest(self, columns: Columns) -> Ints:
        """The least `since` of the regions that contain each row; `NEVER` if none does."""
        found = np.full(len(columns), NEVER, np.int64)
        for shape in self._shapes:
            np.minimum(found, shape.earliest(columns), out=found)
        return found


class _Shape:
    """Regions with single values in the same columns, and ranges in the same others."""

    def __init__(
        self,
        regions: Sequence[Region],
        since: Ints,
        exact: Sequence[str],
        ranges: Sequence[str],
        lines: Lines,
    ) -> None:
        self.exact, self.ranges = exact, ranges
        self.ends = {
            name: _ends((region[name] for region in regions), lines[name]) for name in (*exact, *ranges)
        }
        first = {name: _firsts(regions, name, self.ends[name]) for name in (*exact, *ranges)}
        stop = {name: _stops(regions, name, self.ends[name], lines[name]) for name in ranges}
        number = np.zeros(len(regions), np.int64)
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
        for region in range(len(self.number)):
            matching = is_in & (number == self.number[region])
            for name, (begins, stops) in zip(self.ranges, self.spans, strict=True):
                matching &= (begins[region] <= atoms[name]) & (atoms[name] < stops[region])
            found[matching] = np.minimum(found[matching], self.since[region])
        return found


def _ends(spans: Iterable[Any], line: Line) -> npt.NDArray[Any]:
    """The sorted places at which spans begin and stop, without the end of the line."""
    places = sorted({place for span in spans if span is not NULL for place in span if place != line.end})
    if not line.is_wide:
        return np.array(places, np.int64)
    found = np.empty(len(places), object)
    found[:] = places
    return found


def _firsts(regions: Sequence[Region], name: str, ends: npt.NDArray[Any]) -> Ints:
    number = {place: at for at, place in enumerate(ends.tolist())}
    spans = (region[name] for region in regions)
    return np.array([0 if span is NULL else number[span[0]] + 2 for span in spans], np.int64)


def _stops(regions: Sequence[Region], name: str, ends: npt.NDArray[Any], line: Line) -> Ints:
    number = {place: at + 2 for at, place in enumerate(ends.tolist())}
    number[line.end] = len(ends) + 2
    return np.array([number[span[1]] for region in regions if (span := region[name]) is not NULL], np.int64)


def _atoms(places: Places, ends: npt.NDArray[Any]) -> Ints:
    found: Ints = np.searchsorted(ends, places.places, side="right").astype(np.int64) + 1
    if places.which is not None:
        found = found[places.which]
    return found if places.is_null is None else np.where(places.is_null, 0, found)


def _atoms_of_texts(column: pa.ChunkedArray, ends: npt.NDArray[Any]) -> Ints:
    """The same, by comparison with each end: faster for many texts than converting them to Python."""
    texts = column.cast(pa.large_binary())
    found = np.ones(len(texts), np.int64)
    for end in ends:
        found += np.asarray(pc.greater_equal(texts, pa.scalar(end, pa.large_binary())).fill_null(False))
    return np.where(np.asarray(pc.is_null(texts)), 0, found) if texts.null_count else found


def _stretches(begins: Ints, stops: Ints, since: Ints) -> tuple[Ints, Ints, Ints]:
    """Split intervals into disjoint ones, in order, each with the least `since` of its sources."""
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
