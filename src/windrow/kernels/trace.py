"""A trace: the rows that an operator retains between micro-batches, found by key and by patterns.

Rows are in runs. A run that is not twice as long as the next is merged with it, up to a million rows; so the
number of runs is logarithmic, with another for each half million rows, and a row is copied several times at
most. A run is immutable, except for marks on removed rows and numbers beside the rows; so its rows are stored
once. It is sorted by a column when a pattern first needs that; then the rows that a punctuation closes are
found by bisection. So a micro-batch costs in proportion to its rows and the rows it finds, not to all
retained rows; `looked_at` counts that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.hash_index import HashIndex, distinct
from windrow.kernels.hashing import hashes
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.sorting import comparable, one_array, ordered_integers
from windrow.kernels.stored import Fixed
from windrow.punctuations.index import Columns, Index, Places
from windrow.punctuations.lines import Line, Place, Span
from windrow.punctuations.regions import NULL, Lines, Region

__all__ = ["Found", "Trace", "equal"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Marks = npt.NDArray[np.uint64]
_StoredRun = tuple[Fixed, Fixed, npt.NDArray[np.uint8] | None]

_RUN = 40  # a place is the number of a run and, in its low bits, of a row there
_MOST_MERGED = 1 << 20  # rows of runs that are merged
_SEVERAL = 64  # rows for each region, up to which all regions are looked up together


class Found:
    """Pairs of rows with equal keys: the index of the probe row, and the place of the retained one."""

    def __init__(self, probe: Ints, places: Ints) -> None:
        self.probed, self.places = probe, places


class Trace:
    """Rows of a table, each with named int64 numbers beside it.

    Parameters
    ----------
    schema
        The rows' columns.
    key
        The columns of the key.
    lines
        The lines of the columns that patterns may restrict.
    notes
        The names of the numbers beside each row.

    Attributes
    ----------
    looked_at
        How many retained rows have been read so far.
    """

    def __init__(
        self, schema: pa.Schema, key: Sequence[str], lines: Lines | None = None, notes: Sequence[str] = ()
    ) -> None:
        self.schema, self.key, self.lines, self.notes = schema, tuple(key), lines or {}, tuple(notes)
        self.looked_at = 0
        self._runs: list[_Run] = []
        self._stored: list[_StoredRun] = []

    def __len__(self) -> int:
        return sum(run.count for run in self._runs)

    def stored_attributes(self) -> dict[str, Any]:
        """The state for :mod:`windrow.kernels.stored`: the runs, whose rows need not be written again.

        This invalidates places that were found before.
        """
        self._pack()
        return {
            **{name: value for name, value in vars(self).items() if name != "_runs"},
            "_stored": [run.stored() for run in self._runs],
        }

    def remake(self) -> None:
        """Rebuild the runs after :meth:`stored_attributes` has been read back."""
        self._runs, self._stored = [_Run.of_stored(self, *each) for each in self._stored], []

    def add(self, rows: pa.Table, **notes: Ints) -> None:
        """Add rows. This invalidates places that were found before."""
        if not rows.num_rows:
            return
        self._pack()
        self._runs.append(_Run(self, rows.select(self.schema.names), dict(notes)))
        while len(self._runs) > 1:
            before, last = self._runs[-2:]
            if before.size >= 2 * last.size or before.count + last.count > _MOST_MERGED:
                break
            self._runs[-2:] = [_together(self, before, last)]

    def _pack(self) -> None:
        """Drop removed rows, where most are removed."""
        self._runs = [run.packed(self) for run in self._runs if run.count]

    def find(self, probe: pa.Table) -> Found:
        """The retained rows with the key of each probe row; NULL equals NULL."""
        none = np.zeros(0, np.int64)
        if not probe.num_rows:
            return Found(none, none)
        hashed, keys = hashes(probe, self.key), probe.select(self.key)
        pairs = [run.find(keys, hashed) for run in self._runs]
        places = [slots | np.int64(at << _RUN) for at, (_, slots) in enumerate(pairs)]
        found = Found(np.concatenate([none, *(rows for rows, _ in pairs)]), np.concatenate([none, *places]))
        self.looked_at += len(found.places)
        return found

    def having(self, marks: Marks) -> Ints:
        """The places of the rows whose keys have one of these hashes, in the order of arrival."""
        wanted = distinct(marks)
        found = [run.having(wanted) | np.int64(at << _RUN) for at, run in enumerate(self._runs)]
        places = np.concatenate([np.zeros(0, np.int64), *found])
        self.looked_at += len(places)
        return places

    def equals(self, rows: pa.Table) -> tuple[Ints, Bools]:
        """Match rows one to one with equal retained rows; return the places, and which rows have a match.

        The places are those of the rows with a match, in their order.
        """
        candidates = self.having(hashes(rows, self.key))
        candidate_rows = self.rows(candidates)
        both = pa.concat_tables(
            [rows.select(self.schema.names).cast(self.schema), candidate_rows]
        ).combine_chunks()
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
        """All runs: the rows, the numbers beside them, the indices of retained rows, and their places.

        The tables may still have removed rows.
        """
        for at, run in enumerate(self._runs):
            self.looked_at += run.size
            slots = np.flatnonzero(run.alive)
            yield run.rows, run.notes, slots, slots | np.int64(at << _RUN)

    def matching(self, regions: Sequence[Region]) -> Ints:
        """The places of the rows that some region contains, in no order."""
        found = [run.matching(regions) | np.int64(at << _RUN) for at, run in enumerate(self._runs)]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def witness(self, region: Region) -> Ints:
        """The place of one of the rows that a region contains; none if there is none."""
        for at, run in enumerate(self._runs):
            if (slot := run.witness(region)) is not None:
                return np.array([slot | at << _RUN])
        return np.zeros(0, np.int64)

    def least(self, name: str) -> int | None:
        """The least number in an int64 column with a line; None without rows. It looks at none of them."""
        return min((run.least(name) for run in self._runs if run.count), default=None)

    def everything(self) -> Ints:
        """The places of all rows."""
        return self.matching([{}])

    def where(self, test: Callable[[pa.Table], Bools]) -> Ints:
        """The places of the rows for which a test is true; it reads all rows."""
        found = [np.zeros(0, np.int64)]
        for rows, _, slots, places in self.runs():
            found.append(places[test(rows)[slots]])
        return np.concatenate(found)

    def rows(self, places: Ints, names: Sequence[str] | None = None) -> pa.Table:
        """The rows at places, in their order; all columns, or these."""
        schema = self.schema if names is None else pa.schema([self.schema.field(name) for name in names])
        parts, back = [schema.empty_table()], [np.zeros(0, np.int64)]
        for own, run, slots in self._by_run(places):
            rows, is_whole = run.rows.select(schema.names), len(slots) == run.size and _rises(slots)
            parts.append(rows if is_whole else rows.take(pa.array(slots)))
            back.append(own)
        order, found = np.concatenate(back), pa.concat_tables(parts)
        return found if _rises(order) else found.take(pa.array(np.argsort(order, kind="stable")))

    def note(self, name: str, places: Ints) -> Ints:
        """The numbers beside the rows at places."""
        found = np.zeros(len(places), np.int64)
        for own, run, slots in self._by_run(places):
            found[own] = run.notes[name][slots]
        return found

    def set_note(self, name: str, places: Ints, values: Ints) -> None:
        """Change the numbers beside the rows at places."""
        for own, run, slots in self._by_run(places):
            run.set_note(name, slots, values[own])

    def remove(self, places: Ints) -> None:
        """Remove the rows at places, which are distinct."""
        for _, run, slots in self._by_run(places):
            run.alive[slots] = False
            run.count -= len(slots)

    def _by_run(self, places: Ints) -> Iterable[tuple[Ints, _Run, Ints]]:
        runs, slots = places >> _RUN, places & ((1 << _RUN) - 1)
        there = np.flatnonzero(np.bincount(runs)).tolist()
        if len(there) == 1:
            yield np.arange(len(places)), self._runs[there[0]], slots
            return
        for at in there:
            own = np.flatnonzero(runs == at)
            yield own, self._runs[at], slots[own]


class _Run:
    """Rows that arrived together, or were merged since, and the index of their keys."""

    def __init__(
        self,
        trace: Trace,
        rows: pa.Table,
        notes: Mapping[str, Ints],
        index: HashIndex | None = None,
    ) -> None:
        self.rows = rows.combine_chunks()
        self.notes = {name: np.array(notes[name], np.int64) for name in trace.notes}
        self._fixed = Fixed(self.rows)
        self._fixed_notes: Fixed | None = None  # as they were stored; None if a number has changed since
        self.size = self.count = rows.num_rows
        self.alive = np.ones(self.size, bool)
        self.keys = self.rows.select(trace.key)
        self._columns = Columns(self.rows, trace.lines)
        self._orders: dict[str, _Order] = {}
        self._index = index or HashIndex.of(hashes(self.keys, trace.key))

    @staticmethod
    def of_stored(
        trace: Trace,
        rows: Fixed | pa.Table,
        notes: Fixed | Mapping[str, Ints],
        alive: npt.NDArray[np.uint8] | None = None,
    ) -> _Run:
        """A run as :meth:`stored` has it; earlier versions stored tables, and arrays of numbers."""
        if not isinstance(notes, Fixed):
            return _Run(trace, rows, notes)
        run = _Run(trace, rows.table, {name: notes.table.column(name).to_numpy() for name in trace.notes})
        run._fixed, run._fixed_notes = rows, notes
        if alive is not None:
            run.alive = np.unpackbits(alive, count=run.size).astype(bool)
            run.count = int(run.alive.sum())
        return run

    def stored(self) -> _StoredRun:
        """The rows, the numbers beside them, and bits of those that are not removed; None for all."""
        if self._fixed_notes is None:
            self._fixed_notes = Fixed(pa.table(self.notes))
        return self._fixed, self._fixed_notes, None if self.count == self.size else np.packbits(self.alive)

    def set_note(self, name: str, slots: Ints, values: Ints) -> None:
        """Change numbers beside rows."""
        self.notes[name][slots] = values
        self._fixed_notes = None

    def packed(self, trace: Trace) -> _Run:
        """The run without removed rows, if most are removed."""
        return _together(trace, self) if 2 * self.count < self.size else self

    def index(self) -> HashIndex:
        """The index of the rows without removed ones."""
        return self._index if self.count == self.size else self._index.where(self.alive)

    def find(self, keys: pa.Table, hashed: Marks) -> tuple[Ints, Ints]:
        rows, slots = self._index.pairs(hashed)
        is_there = self.alive[slots]
        rows, slots = rows[is_there], slots[is_there]
        if not len(rows):
            return rows, slots
        mine, theirs = self.keys.take(pa.array(slots)), keys.take(pa.array(rows))
        same = np.ones(len(rows), bool)
        for name in keys.column_names:
            same &= equal(theirs.column(name), mine.column(name))
        return rows[same], slots[same]

    def having(self, wanted: Marks) -> Ints:
        return self._index.having(wanted, self.alive)

    def matching(self, regions: Sequence[Region]) -> Ints:
        if not self.count or not regions:
            return np.zeros(0, np.int64)
        if len(regions) * _SEVERAL > self.size:
            lines = self._columns.lines
            return np.flatnonzero(Index(regions, lines).matches(self._columns) & self.alive)
        found = [self._within(region) for region in regions]
        return found[0] if len(found) == 1 else np.unique(np.concatenate(found))

    def least(self, name: str) -> int:
        order = self._order(name).order
        found: int = self.rows.column(name)[order[self.alive[order].argmax()]].as_py()
        return found

    def witness(self, region: Region) -> int | None:
        """A slot in a region, looked for from the end, in more and more slots at once."""
        if not self.count:
            return None
        if not region:
            return int(self.alive.argmax())
        name, slots = self._narrowest(region)
        stop, size = len(slots), _SEVERAL
        while stop > 0:
            found = self._filtered(slots[max(0, stop - size) : stop], region, name)
            if len(found):
                return int(found[-1])
            stop, size = stop - size, 2 * size
        return None

    def _within(self, region: Region) -> Ints:
        """The rows of a region: looked up by the most selective column, then filtered by the others."""
        if not region:
            return np.flatnonzero(self.alive)
        name, slots = self._narrowest(region)
        return self._filtered(slots, region, name)

    def _narrowest(self, region: Region) -> tuple[str, Ints]:
        """The most selective column, and the slots that it leaves, in its order."""
        stretches = {name: self._order(name).stretch(span) for name, span in region.items()}
        name = min(stretches, key=lambda each: stretches[each][1] - stretches[each][0])
        first, stop = stretches[name]
        return name, self._order(name).order[first:stop]

    def _filtered(self, slots: Ints, region: Region, name: str) -> Ints:
        """Those slots of a column that the other columns leave and that are not removed."""
        slots = slots[self.alive[slots]]
        for other, span in region.items():
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
        """The number of rows before a place."""
        if place == self.line.end:
            return self.nulls
        if not self.is_ranked:
            return int(np.searchsorted(self.ranks, place))
        return int(np.searchsorted(self.ranks, np.searchsorted(self.places, place)))


def _rises(places: Ints) -> bool:
    return bool((places[1:] > places[:-1]).all())


def _is_within(column: Places, slots: Ints, span: Span | None) -> Bools:
    is_null = np.zeros(len(slots), bool) if column.is_null is None else column.is_null[slots]
    if span is NULL:
        return is_null
    places = column.places[slots if column.which is None else column.which[slots]]
    # NumPy would leave out the zero byte at the end of the first place after a text
    first, stop = (np.array(place, object) if isinstance(place, bytes) else place for place in span)
    found: Bools = ~is_null & (places >= first).astype(bool) & (places < stop).astype(bool)
    return found


def _together(trace: Trace, *runs: _Run) -> _Run:
    """The rows of runs in one; their orders are merged."""
    return _Run(trace, *_there(trace, runs), HashIndex.joined([run.index() for run in runs]))


def _there(trace: Trace, runs: Sequence[_Run]) -> tuple[pa.Table, dict[str, Ints]]:
    """The rows of runs without removed ones, and the numbers beside them."""
    rows, notes = [], []
    for run in runs:
        if run.count == run.size:
            rows.append(run.rows)
            notes.append(run.notes)
        else:
            alive = np.flatnonzero(run.alive)
            rows.append(run.rows.take(pa.array(alive)))
            notes.append({name: values[alive] for name, values in run.notes.items()})
    beside = {name: np.concatenate([own[name] for own in notes]) for name in trace.notes}
    return pa.concat_tables(rows), beside


def equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Bools:
    """Whether values are equal as group keys, row by row: NULL with NULL, NaN with NaN, −0.0 with 0.0."""
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
