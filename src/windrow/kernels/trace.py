"""A trace: the rows that an operator keeps from step to step, found by their key and by patterns.

Rows are in runs, each at least twice as long as the next, so there are few. A run never changes but for marks
on the rows that are gone and for counts beside the rows. It is put in order by a column when a pattern
first asks for it; from then on the rows that a punctuation closes are found by bisection, however many
others there are. So a step costs what it brings and finds, not what is kept; `looked_at` counts that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.hashing import hashes
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.sorting import comparable, one_array, ordered_integers
from windrow.punctuations.boxes import NULL, Box, Lines
from windrow.punctuations.index import Columns, Index, Places
from windrow.punctuations.lines import Line, Place, Span

__all__ = ["Found", "Trace", "equal"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Marks = npt.NDArray[np.uint64]

_RUN = 40  # a place is the number of a run and, in so many bits, of a row there
_SEVERAL = 64  # rows to look at for each box, where all boxes are looked up together


class Found:
    """Pairs of rows with equal keys: the row that is asked for, and the place of the one that is kept."""

    def __init__(self, asked: Ints, places: Ints) -> None:
        self.asked, self.places = asked, places


class Trace:
    """Rows of a table, each with an int64 for some names beside it.

    Parameters
    ----------
    schema
        The rows' columns.
    key
        Those by which rows are found.
    lines
        Of the columns that patterns may tell of.
    notes
        The names of the numbers beside each row.

    Attributes
    ----------
    looked_at
        How many kept rows have been looked at so far, to find others or to give them.
    """

    def __init__(
        self, schema: pa.Schema, key: Sequence[str], lines: Lines | None = None, notes: Sequence[str] = ()
    ) -> None:
        self.schema, self.key, self.lines, self.notes = schema, tuple(key), lines or {}, tuple(notes)
        self.looked_at = 0
        self._runs: list[_Run] = []
        self._stored: list[tuple[pa.Table, dict[str, Ints]]] = []

    def __len__(self) -> int:
        return sum(run.count for run in self._runs)

    def kept(self) -> dict[str, Any]:
        """What :mod:`windrow.kernels.stored` has of it: the rows that are there, with their numbers."""
        return {
            **{name: value for name, value in vars(self).items() if name != "_runs"},
            "_stored": [_there(self, self._runs)] if self._runs else [],
        }

    def remake(self) -> None:
        """Find rows again, when :meth:`kept` has been read."""
        self._runs, self._stored = [_Run(self, *each) for each in self._stored], []

    def add(self, rows: pa.Table, **notes: Ints) -> None:
        """Keep rows. Places that were found before hold no longer."""
        if not rows.num_rows:
            return
        self._runs = [run.packed(self) for run in self._runs if run.count]
        self._runs.append(_Run(self, rows.select(self.schema.names), dict(notes)))
        while len(self._runs) > 1 and self._runs[-2].size < 2 * self._runs[-1].size:
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(_together(self, before, last))

    def find(self, asked: pa.Table) -> Found:
        """The kept rows with the key of each asked row, NULL being equal to NULL."""
        none = np.zeros(0, np.int64)
        if not asked.num_rows:
            return Found(none, none)
        hashed = hashes(asked, self.key)
        pairs = [run.find(asked, hashed, self.key) for run in self._runs]
        places = [slots | np.int64(at << _RUN) for at, (_, slots) in enumerate(pairs)]
        found = Found(np.concatenate([none, *(rows for rows, _ in pairs)]), np.concatenate([none, *places]))
        self.looked_at += len(found.places)
        return found

    def having(self, marks: Marks) -> Ints:
        """The places of the rows whose keys have one of these hashes, in the order in which the rows came."""
        wanted = np.unique(marks)
        found = [run.having(wanted) | np.int64(at << _RUN) for at, run in enumerate(self._runs)]
        places = np.concatenate([np.zeros(0, np.int64), *found])
        self.looked_at += len(places)
        return places

    def equals(self, rows: pa.Table) -> tuple[Ints, Bools]:
        """For each of some rows the place of an equal one that is kept, and which of them have one.

        Of equal ones each has its own. The places are of those that have one, in their order.
        """
        candidates = self.having(hashes(rows, self.key))
        kept = self.rows(candidates)
        both = pa.concat_tables([rows.select(self.schema.names).cast(self.schema), kept]).combine_chunks()
        group = numbered(both, both.column_names)
        wanted, offered = group[: rows.num_rows], group[rows.num_rows :]
        order, offers = np.argsort(wanted, kind="stable"), np.argsort(offered, kind="stable")
        wanted, offered = wanted[order], offered[offers]
        rank = np.arange(len(wanted)) - np.searchsorted(wanted, wanted, "left")
        place = np.searchsorted(offered, wanted, "left") + rank
        has_one = place < np.searchsorted(offered, wanted, "right")
        found = np.zeros(len(order), bool)
        found[order] = has_one
        places = np.zeros(len(order), np.int64)
        places[order[has_one]] = candidates[offers[place[has_one]]]
        return places[found], found

    def runs(self) -> Iterator[tuple[pa.Table, Mapping[str, Ints], Ints, Ints]]:
        """All rows, in a few tables, with the numbers beside them; which of them are kept, and their places.

        Rows that are gone may be in the tables still.
        """
        for at, run in enumerate(self._runs):
            self.looked_at += run.size
            slots = np.flatnonzero(run.alive)
            yield run.rows, run.notes, slots, slots | np.int64(at << _RUN)

    def matching(self, boxes: Sequence[Box]) -> Ints:
        """The places of the rows that some box holds, in no order."""
        found = [run.matching(boxes) | np.int64(at << _RUN) for at, run in enumerate(self._runs)]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def everything(self) -> Ints:
        """The places of all rows."""
        return self.matching([{}])

    def where(self, test: Callable[[pa.Table], Bools]) -> Ints:
        """The places of the rows that a test finds; it looks at all."""
        found = [np.zeros(0, np.int64)]
        for rows, _, slots, places in self.runs():
            found.append(places[test(rows)[slots]])
        return np.concatenate(found)

    def rows(self, places: Ints) -> pa.Table:
        """The rows at places, in their order."""
        if not len(self._runs):
            return self.schema.empty_table()
        runs, slots = places >> _RUN, places & ((1 << _RUN) - 1)
        parts, back = [self.schema.empty_table()], [np.zeros(0, np.int64)]
        for at, run in enumerate(self._runs):
            own = np.flatnonzero(runs == at)
            if len(own):
                parts.append(run.rows.take(pa.array(slots[own])))
                back.append(own)
        order, found = np.concatenate(back), pa.concat_tables(parts)
        is_in_order = not len(order) or (np.diff(order) > 0).all()
        return found if is_in_order else found.take(pa.array(np.argsort(order, kind="stable")))

    def note(self, name: str, places: Ints) -> Ints:
        """The numbers beside the rows at places."""
        found = np.zeros(len(places), np.int64)
        for own, run, slots in self._by_run(places):
            found[own] = run.notes[name][slots]
        return found

    def set_note(self, name: str, places: Ints, values: Ints) -> None:
        """Change the numbers beside the rows at places."""
        for own, run, slots in self._by_run(places):
            run.notes[name][slots] = values[own]

    def remove(self, places: Ints) -> None:
        """Forget the rows at places; each is there once."""
        for _, run, slots in self._by_run(places):
            run.alive[slots] = False
            run.count -= len(slots)

    def _by_run(self, places: Ints) -> Iterable[tuple[Ints, _Run, Ints]]:
        runs, slots = places >> _RUN, places & ((1 << _RUN) - 1)
        for at in np.unique(runs).tolist():
            own = np.flatnonzero(runs == at)
            yield own, self._runs[at], slots[own]


class _Run:
    """Rows that came together, or were put together since."""

    def __init__(self, trace: Trace, rows: pa.Table, notes: dict[str, Ints]) -> None:
        self.rows = rows.combine_chunks()
        self.notes = {name: np.array(notes[name], np.int64) for name in trace.notes}
        self.size = self.count = rows.num_rows
        self.alive = np.ones(self.size, bool)
        self._columns = Columns(self.rows, trace.lines)
        self._orders: dict[str, _Order] = {}
        hashed = hashes(self.rows, trace.key)
        self._by_hash = np.argsort(hashed, kind="stable")
        self._hashes = hashed[self._by_hash]

    def packed(self, trace: Trace) -> _Run:
        """Without the rows that are gone, if they are most."""
        return _together(trace, self) if 2 * self.count < self.size else self

    def find(self, asked: pa.Table, hashed: Marks, key: Sequence[str]) -> tuple[Ints, Ints]:
        first = np.searchsorted(self._hashes, hashed, side="left")
        counts = np.searchsorted(self._hashes, hashed, side="right") - first
        rows = np.repeat(np.arange(len(hashed)), counts)
        begins = np.cumsum(counts) - counts
        slots = self._by_hash[np.arange(len(rows)) - np.repeat(begins - first, counts)]
        is_there = self.alive[slots]
        rows, slots = rows[is_there], slots[is_there]
        if not len(rows):
            return rows, slots
        mine, theirs = self.rows.take(pa.array(slots)), asked.take(pa.array(rows))
        same = np.ones(len(rows), bool)
        for name in key:
            same &= equal(theirs.column(name), mine.column(name))
        return rows[same], slots[same]

    def having(self, wanted: Marks) -> Ints:
        first = np.searchsorted(self._hashes, wanted, side="left")
        counts = np.searchsorted(self._hashes, wanted, side="right") - first
        begins = np.cumsum(counts) - counts
        slots = self._by_hash[np.arange(int(counts.sum())) - np.repeat(begins - first, counts)]
        return np.sort(slots[self.alive[slots]])

    def matching(self, boxes: Sequence[Box]) -> Ints:
        if not self.count or not boxes:
            return np.zeros(0, np.int64)
        if len(boxes) * _SEVERAL > self.size:
            lines = self._columns.lines
            return np.flatnonzero(Index(boxes, lines).matches(self._columns) & self.alive)
        found = [self._within(box) for box in boxes]
        return np.unique(np.concatenate(found))

    def _within(self, box: Box) -> Ints:
        """The rows of a box: those that one column allows are looked up, the others tried."""
        if not box:
            return np.flatnonzero(self.alive)
        stretches = {name: self._order(name).stretch(span) for name, span in box.items()}
        name = min(stretches, key=lambda each: stretches[each][1] - stretches[each][0])
        first, stop = stretches[name]
        slots = self._order(name).order[first:stop]
        slots = slots[self.alive[slots]]
        for other, span in box.items():
            if other != name:
                slots = slots[_is_within(self._columns[other], slots, span)]
        return slots

    def _order(self, name: str) -> _Order:
        if name not in self._orders:
            self._orders[name] = _Order(self._columns[name], self._columns.lines[name])
        return self._orders[name]


class _Order:
    """The rows in the order of a column, those where it is NULL last."""

    def __init__(self, column: Places, line: Line) -> None:
        self.line = line
        self.places = column.places
        ranks = column.places
        if column.which is not None:
            self.places, ranks = np.unique(column.places, return_inverse=True)
            ranks = ranks[column.which]
        count = len(ranks)
        if column.is_null is None:
            self.order, self.nulls = np.argsort(ranks, kind="stable"), count
        else:
            self.order = np.lexsort((ranks, column.is_null))
            self.nulls = count - int(column.is_null.sum())
        self.ranks = ranks[self.order[: self.nulls]]
        self.is_ranked = column.which is not None

    def stretch(self, span: Span | None) -> tuple[int, int]:
        """Where the rows are whose value is in a span."""
        if span is NULL:
            return self.nulls, len(self.order)
        first, stop = (self._before(place) for place in span)
        return first, stop

    def _before(self, place: Place) -> int:
        """How many rows are before a place."""
        if place == self.line.end:
            return self.nulls
        if not self.is_ranked:
            return int(np.searchsorted(self.ranks, place))
        return int(np.searchsorted(self.ranks, np.searchsorted(self.places, place)))


def _is_within(column: Places, slots: Ints, span: Span | None) -> Bools:
    is_null = np.zeros(len(slots), bool) if column.is_null is None else column.is_null[slots]
    if span is NULL:
        return is_null
    places = column.places[slots if column.which is None else column.which[slots]]
    first, stop = span
    found: Bools = ~is_null & (places >= first).astype(bool) & (places < stop).astype(bool)
    return found


def _together(trace: Trace, *runs: _Run) -> _Run:
    return _Run(trace, *_there(trace, runs))


def _there(trace: Trace, runs: Sequence[_Run]) -> tuple[pa.Table, dict[str, Ints]]:
    """The rows of runs that are there, and the numbers beside them."""
    alive = [np.flatnonzero(run.alive) for run in runs]
    rows = pa.concat_tables([run.rows.take(pa.array(own)) for run, own in zip(runs, alive, strict=True)])
    notes = {
        name: np.concatenate([run.notes[name][own] for run, own in zip(runs, alive, strict=True)])
        for name in trace.notes
    }
    return rows, notes


def equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Bools:
    """Whether values group together, row by row: NULL with NULL, NaN with NaN, −0.0 with 0.0."""
    one, other = one_array(left), one_array(right)
    nulls = [np.asarray(pc.is_null(array)) for array in (one, other)]
    kind = one.type
    if pa.types.is_nested(kind):
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.array([comparable(mine) == comparable(theirs) for mine, theirs in pairs], bool)
    if pa.types.is_floating(kind):
        same = ordered_integers(one) == ordered_integers(other)
    elif pa.types.is_null(kind):
        same = np.ones(len(one), bool)
    else:
        same = np.asarray(pc.fill_null(pc.equal(one, other), False))
    found: Bools = np.where(nulls[0] | nulls[1], nulls[0] & nulls[1], same)
    return found
