"""Aggregates that groups update from their state; :func:`running` says which need all rows instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates import FUNCTIONS, AggregateSpec, state
from windrow.kernels.aggregates.order_codes import encode
from windrow.kernels.aggregates.windows import expanded
from windrow.kernels.hashing import hashes
from windrow.kernels.incremental.tally import Numbers, Tally
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.trace import Trace

__all__ = [
    "Added",
    "DistinctCount",
    "Events",
    "Extreme",
    "Gathering",
    "Merged",
    "MismatchError",
    "Running",
    "merged_so_far",
    "running",
]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_REFERENCES = 1 << 22
_PLACE = "place"
_MANY = 8
"""To find more than one in so many rows, all are read."""


class MismatchError(Exception):
    """More rows leave than are in the group."""


@dataclass(frozen=True)
class Events:
    """The rows that enter and leave in a micro-batch, in order of the intervals that begin with them.

    Attributes
    ----------
    rows
        The rows that enter or leave.
    piece, sign
        For each row: the interval that it begins, and 1 or -1; for several rows at once, how many they are.
    group
        The group of each interval, in order: numbers from 0 on.
    places
        The place of each group's numbers.
    """

    rows: pa.Table
    piece: Ints
    sign: Ints
    group: Ints
    places: Ints

    @property
    def leaves(self) -> Bools:
        """Which rows leave."""
        return self.sign < 0

    @property
    def first(self) -> Ints:
        """The first interval of each group."""
        return np.searchsorted(self.group, np.arange(len(self.places)))

    def states(self, spec: AggregateSpec, which: Ints | None = None) -> pa.Table:
        """The partial state of the rows of each interval; of these, or of all."""
        rows, piece = self.rows, self.piece
        if which is not None and len(which) < len(piece):
            rows = rows.take(pa.array(which)) if rows.num_columns else rows
            piece = piece[which]
        bounds = np.searchsorted(piece, np.arange(len(self.group) + 1))
        found = state(spec, rows, bounds[:-1], bounds[1:])
        assert found is not None
        return found

    def summed(self, changes: Ints, base: Ints) -> Ints:
        """The totals in each interval, from those of the groups before and the changes of the intervals."""
        total = np.cumsum(changes, axis=0)
        first = self.first
        before = base - (total[first] - changes[first])
        result: Ints = total + before[self.group]
        return result


class Running(Protocol):
    """An aggregate of groups."""

    def advance(self, events: Events) -> pa.Array:
        """Its value in each interval."""

    def forget(self, places: Ints) -> None:
        """Drop groups; others will be at their places."""

    @property
    def retained(self) -> int:
        """How many values are retained besides one for each group."""

    @property
    def looked_at(self) -> int:
        """How many of these it has read so far."""


@runtime_checkable
class Gathering(Running, Protocol):
    """An aggregate that is read once its groups are whole; no row leaves these."""

    def add(self, events: Events) -> None:
        """Add rows; the values of their groups so far need not fit."""

    def values_of(self, places: Ints) -> pa.Array:
        """The values of groups."""


@dataclass
class Added:
    """Counts, and exact sums: their states are added and subtracted."""

    spec: AggregateSpec
    kind: pa.DataType
    numbers: Numbers | None = None

    def advance(self, events: Events) -> pa.Array:
        """As :meth:`Running.advance`."""
        return self._final(*self._added(events))

    def add(self, events: Events) -> None:
        """As :meth:`Gathering.add`."""
        self._added(events)

    def _added(self, events: Events) -> tuple[Ints, list[str]]:
        """The state in each interval, and the names of its columns."""
        changes = None
        for leaves in (False, True):
            which = np.flatnonzero(events.leaves == leaves)
            if leaves and not len(which):
                continue
            states = events.states(self.spec, which)
            names = states.column_names
            part = np.stack([column.to_numpy() for column in states.columns], axis=1).astype(np.int64)
            changes = part if changes is None else changes - part
        assert changes is not None
        if self.numbers is None:
            self.numbers = Numbers(changes.shape[1])
        self.numbers.grow(int(events.places.max(initial=-1)) + 1)
        values = self.numbers.values
        total = events.summed(changes, values[events.places])
        values[events.places[events.group]] = total  # the last piece of each group is written last
        return total, names

    def values_of(self, places: Ints) -> pa.Array:
        """As :meth:`Gathering.values_of`."""
        nothing = _no_state(self.spec, self.kind)
        assert self.numbers is not None
        return self._final(self.numbers.values[places], nothing.column_names)

    def _final(self, total: Ints, names: list[str]) -> pa.Array:
        partial = FUNCTIONS[self.spec.function].partial
        assert partial is not None
        return _as_array(partial.final(self.spec, self.kind, pa.table(list(total.T), names)))

    def forget(self, places: Ints) -> None:
        """As :meth:`Running.forget`."""
        if self.numbers is not None:
            self.numbers.clear(places)

    @property
    def retained(self) -> int:
        """As :attr:`Running.retained`."""
        return 0

    @property
    def looked_at(self) -> int:
        """As :attr:`Running.looked_at`."""
        return 0


@dataclass
class _Values:
    """How often groups have each value."""

    kind: pa.DataType
    tally: Tally = field(init=False)
    _by_group: Trace = field(init=False)

    def __post_init__(self) -> None:
        schema = pa.schema([("group", pa.int64()), ("value", self.kind)])
        self.tally, self._by_group = Tally(schema, 1), Trace(schema, ("group",), notes=[_PLACE])

    @property
    def looked_at(self) -> int:
        """How many values it has read so far."""
        return self.tally.looked_at + self._by_group.looked_at

    def changes(self, events: Events, column: pa.Array, piece: Ints, sign: Ints) -> tuple[Ints, Ints, Ints]:
        """When groups gain a value, or lose it.

        Returns
        -------
        place, piece, change
            For each change: the value's place, in order of these and of the intervals; and 1 or -1.
        """
        place, of = self.places(events.places[events.group[piece]], column)
        values = self.tally.values[:, 0]
        width = len(events.group)
        word = of * width + piece
        order = np.argsort(word, kind="stable")
        word, sign = word[order], sign[order]
        begins = np.flatnonzero(np.diff(word, prepend=-1))
        if not len(begins):
            none = np.zeros(0, np.int64)
            return none, none, none
        change = np.add.reduceat(sign, begins)
        of, piece = word[begins] // width, word[begins] % width
        total = np.cumsum(change)
        first = np.searchsorted(of, np.arange(len(place)))
        count = total + (values[place] - (total[first] - change[first]))[of]
        if (count < 0).any():
            raise MismatchError
        before = count - change
        values[place[of]] = count  # the last of each value is written last
        affected = np.flatnonzero((count > 0) != (before > 0))
        return place[of[affected]], piece[affected], np.where(count[affected] > 0, 1, -1)

    def places(self, group: Ints, column: pa.Array) -> tuple[Ints, Ints]:
        """The places of the values in these rows, each once, and which of them each row has."""
        codes = numbered(pa.table({"value": column}), ("value",))
        width = int(codes.max(initial=0)) + 1
        _, first, of = np.unique(group * width + codes, return_index=True, return_inverse=True)
        affected = pa.table({"group": group[first], "value": column.take(pa.array(first))})
        found = self.tally.find(affected)
        self._by_group.add(
            affected.filter(pa.array(found.is_new)).cast(self._by_group.schema),
            **{_PLACE: found.places[found.is_new]},
        )
        return found.places, of

    def forget(self, groups: Ints) -> None:
        """Drop what groups have."""
        found = self._by_group.having(hashes(pa.table({"group": groups}), ("group",)))
        found = found[np.isin(self._by_group.rows(found).column("group").to_numpy(), groups)]
        self.tally.forget(self._by_group.rows(found))
        self._by_group.remove(found)

    def of_groups(self, groups: Ints) -> tuple[Ints, Ints, Ints]:
        """The places of the values that groups have had, in order; the groups, and the values, as numbers."""
        found = self._by_group.having(hashes(pa.table({"group": groups}), ("group",)))
        rows, places = self._by_group.rows(found), self._by_group.note(_PLACE, found)
        group = rows.column("group").to_numpy()
        own = np.isin(group, groups)
        order = np.flatnonzero(own)[np.argsort(places[own])]
        return places[order], group[order], rows.column("value").to_numpy()[order]


@dataclass
class DistinctCount:
    """The number of distinct values of groups."""

    spec: AggregateSpec
    kind: pa.DataType
    counts: Numbers = field(default_factory=lambda: Numbers(1))
    values: _Values = field(init=False)

    def __post_init__(self) -> None:
        self.values = _Values(self.kind)

    def advance(self, events: Events) -> pa.Array:
        """As :meth:`Running.advance`."""
        assert self.spec.argument is not None
        column = events.rows.column(self.spec.argument).combine_chunks()
        column, piece, sign = _valid(column, events)
        _, piece, change = self.values.changes(events, column, piece, sign)
        changes = np.zeros(len(events.group), np.int64)
        np.add.at(changes, piece, change)
        self.counts.grow(int(events.places.max(initial=-1)) + 1)
        counts = self.counts.values[:, 0]
        total = events.summed(changes, counts[events.places])
        counts[events.places[events.group]] = total
        return pa.array(total)

    def add(self, events: Events) -> None:
        """As :meth:`Gathering.add`."""
        self.advance(events)

    def values_of(self, places: Ints) -> pa.Array:
        """As :meth:`Gathering.values_of`."""
        return pa.array(self.counts.values[places, 0])

    def forget(self, places: Ints) -> None:
        """As :meth:`Running.forget`."""
        self.counts.clear(places)
        self.values.forget(places)

    @property
    def retained(self) -> int:
        """As :attr:`Running.retained`."""
        return len(self.values.tally)

    @property
    def looked_at(self) -> int:
        """As :attr:`Running.looked_at`."""
        return self.values.looked_at


@dataclass
class Extreme:
    """The least or the greatest value of groups.

    While no row leaves, its state is that value alone. All values of the groups are collected when a row
    first leaves.
    """

    spec: AggregateSpec
    kind: pa.DataType
    best: Numbers = field(default_factory=lambda: Numbers(2))
    waiting: list[tuple[Ints, Ints]] = field(default_factory=list)
    values: _Values = field(init=False)

    def __post_init__(self) -> None:
        self.values = _Values(pa.int64())

    def advance(self, events: Events) -> pa.Array:
        """As :meth:`Running.advance`."""
        assert self.spec.argument is not None
        column = events.rows.column(self.spec.argument).combine_chunks()
        column, piece, sign = _valid(column, events)
        ordered = encode(pa.chunked_array([column]))
        codes = ordered.codes.astype(np.int64)
        self.best.grow(int(events.places.max(initial=-1)) + 1)
        if events.leaves.any():
            found, known = self._affected(events, codes, piece, sign)
        else:
            self.waiting.append((events.places[events.group[piece]], codes))
            found, known = self._grown(events, codes, piece)
        self.best.values[events.places[events.group]] = np.stack([found, known], axis=1)
        return ordered.decode(np.where(known, found, 0).astype(ordered.codes.dtype), ~known)

    def forget(self, places: Ints) -> None:
        """As :meth:`Running.forget`."""
        self.best.clear(places)
        stay = [~np.isin(group, places) for group, _ in self.waiting]
        self.waiting = [
            (group[own], codes[own]) for (group, codes), own in zip(self.waiting, stay, strict=True)
        ]
        self.values.forget(places)

    def _grown(self, events: Events, codes: Ints, piece: Ints) -> tuple[Ints, Bools]:
        """If no row leaves: the best of the earlier value and the new ones."""
        best, known = self._best(codes, piece, len(events.group))
        first = events.first
        was, is_known = self.best.values[events.places].T
        is_known = is_known.astype(bool)
        better = is_known & (~known[first] | self._is_better(was, best[first]))
        best[first[better]] = was[better]
        known[first] |= is_known
        # the best so far of each group, by ranks that rise from group to group
        affected, rank = np.unique(best[known], return_inverse=True)
        place = np.zeros(len(best), np.int64)
        place[known] = rank + 1 if self.spec.function == "max" else len(affected) - rank
        width = len(affected) + 1
        place = np.maximum.accumulate(place + events.group * width) - events.group * width
        known = place > 0
        if len(affected):
            at = place - 1 if self.spec.function == "max" else len(affected) - place
            best = affected[np.where(known, at, 0)]
        return best, known

    def _affected(self, events: Events, codes: Ints, piece: Ints, sign: Ints) -> tuple[Ints, Bools]:
        """If a row leaves: the best of all values of the groups in each interval."""
        for group, waiting in self.waiting:
            place, of = self.values.places(group, pa.array(waiting))
            np.add.at(self.values.tally.values[:, 0], place, np.bincount(of, minlength=len(place)))
        self.waiting = []
        was_there, _, _ = self.values.of_groups(events.places)
        was_there = was_there[self.values.tally.values[was_there, 0] > 0]
        place, at, change = self.values.changes(events, pa.array(codes), piece, sign)
        own, group, values = self.values.of_groups(events.places)
        place = np.searchsorted(own, place)  # from here on among those of the groups
        there = np.searchsorted(own, was_there)
        order = np.argsort(events.places)
        of = order[np.searchsorted(events.places, group, sorter=order)]
        first, stop = events.first, np.append(events.first[1:], len(events.group))
        # earlier values stay until they leave; new ones are present from when they enter
        begins = np.concatenate([first[of[there]], at[change > 0]])
        owner = np.concatenate([there, place[change > 0]])
        ends, ender = at[change < 0], place[change < 0]
        order, by = np.lexsort((begins, owner)), np.lexsort((ends, ender))
        begins, owner, ends, ender = begins[order], owner[order], ends[by], ender[by]
        last = stop[of[owner]]
        # the k-th end of a value is that of its k-th stretch
        rank = np.arange(len(owner)) - np.searchsorted(owner, owner)
        end = np.searchsorted(ender, owner) + rank
        has_end = end < np.searchsorted(ender, owner, side="right")
        last[has_end] = ends[end[has_end]]
        values = values[owner]
        best, known = self._best(np.zeros(0, np.int64), np.zeros(0, np.int64), len(events.group))
        cut = np.append(np.cumsum(last - begins) // _REFERENCES, -1)
        for start, until in zip(*_stretches(cut[:-1]), strict=True):
            row, into = expanded(begins[start:until], last[start:until])
            some, is_some = self._best(values[row + start], into, len(events.group))
            better = is_some & (~known | self._is_better(some, best))
            best[better], known = some[better], known | is_some
        return best, known

    def _best(self, codes: Ints, piece: Ints, count: int) -> tuple[Ints, Bools]:
        """The best in each interval, and whether there is one."""
        least, greatest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        is_max = self.spec.function == "max"
        best = np.full(count, least if is_max else greatest)
        (np.maximum if is_max else np.minimum).at(best, piece, codes)
        known = np.zeros(count, bool)
        known[piece] = True
        return best, known

    def _is_better(self, one: Ints, other: Ints) -> Bools:
        better: Bools = one > other if self.spec.function == "max" else one < other
        return better

    @property
    def retained(self) -> int:
        """As :attr:`Running.retained`."""
        return len(self.values.tally) + sum(len(codes) for _, codes in self.waiting)

    @property
    def looked_at(self) -> int:
        """As :attr:`Running.looked_at`."""
        return self.values.looked_at


@dataclass
class Merged:
    """An aggregate that no row leaves: the state of new rows is merged into the earlier state.

    Parameters
    ----------
    spec, kind
        The aggregate, and the type of its argument.
    """

    spec: AggregateSpec
    kind: pa.DataType
    states: Trace | None = None

    def advance(self, events: Events) -> pa.Array:
        """As :meth:`Running.advance`."""
        return self._final(self._merged(events))

    def add(self, events: Events) -> None:
        """As :meth:`Gathering.add`."""
        self._merged(events)

    def _merged(self, events: Events) -> pa.Table:
        """The state in each interval."""
        if events.leaves.any():
            raise MismatchError
        partial = FUNCTIONS[self.spec.function].partial
        assert partial is not None
        pieces = events.states(self.spec)
        if self.states is None:
            self.states = Trace(pa.schema([(_PLACE, pa.int64()), *pieces.schema]), (_PLACE,))
        groups = pa.table({_PLACE: events.places})
        found = self.states.find(groups)
        before = self.states.rows(found.places).drop_columns([_PLACE])
        # of each piece, what all pieces of its group up to it come to
        whole = merged_so_far(self.spec, pieces, np.arange(len(events.group)) - events.first[events.group])
        of = np.full(len(events.places), -1)
        of[found.probed] = np.arange(len(found.probed))
        known = np.flatnonzero(of[events.group] >= 0)
        if len(known):
            were = _at(before, of[events.group[known]])
            whole = _put_at(whole, known, partial.merge(self.spec, were, _at(whole, known)))
        self.states.remove(found.places)
        ends = np.append(events.first[1:], len(events.group)) - 1
        now = whole.take(pa.array(ends))
        self.states.add(pa.table([groups.column(_PLACE), *now.columns], self.states.schema))
        return whole

    def _final(self, states: pa.Table) -> pa.Array:
        partial = FUNCTIONS[self.spec.function].partial
        assert partial is not None
        return _as_array(partial.final(self.spec, self.kind, states))

    def values_of(self, places: Ints) -> pa.Array:
        """As :meth:`Gathering.values_of`."""
        assert self.states is not None
        states = self.states.rows(self.states.everything())
        row = np.zeros(int(places.max(initial=-1)) + 1, np.int64)
        row[states.column(_PLACE).to_numpy()] = np.arange(states.num_rows)
        return self._final(states.drop_columns([_PLACE]).take(pa.array(row[places])))

    def forget(self, places: Ints) -> None:
        """As :meth:`Running.forget`."""
        if self.states is None:
            return
        if len(places) < len(self.states) // _MANY:
            found = self.states.find(pa.table({_PLACE: places})).places
        else:
            found = self.states.where(lambda rows: np.isin(rows.column(_PLACE).to_numpy(), places))
        self.states.remove(found)

    @property
    def retained(self) -> int:
        """As :attr:`Running.retained`."""
        return 0

    @property
    def looked_at(self) -> int:
        """As :attr:`Running.looked_at`."""
        return 0 if self.states is None else self.states.looked_at


def _as_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _no_state(spec: AggregateSpec, kind: pa.DataType) -> pa.Table:
    """The table of partial states, without any."""
    columns = {} if spec.argument is None else {spec.argument: pa.array([], kind)}
    found = state(spec, pa.table(columns), *np.zeros((2, 0), np.int64))
    assert found is not None
    return found


def merged_so_far(spec: AggregateSpec, states: pa.Table, rank: Ints) -> pa.Table:
    """Each state, merged with those before it in its group, which are as many as its rank."""
    partial = FUNCTIONS[spec.function].partial
    assert partial is not None
    whole, reach = states, 1
    while reach <= int(rank.max(initial=0)):  # of twice as many in each round
        later = np.flatnonzero(rank >= reach)
        whole = _put_at(whole, later, partial.merge(spec, _at(whole, later - reach), _at(whole, later)))
        reach *= 2
    return whole


def _at(states: pa.Table, places: Ints) -> pa.Table:
    return states.take(pa.array(places))


def _put_at(states: pa.Table, places: Ints, put: pa.Table) -> pa.Table:
    """The states, with others at some places."""
    source = np.arange(len(states))
    source[places] = len(states) + np.arange(len(places))
    return pa.concat_tables([states, put.cast(states.schema)]).take(pa.array(source))


def running(spec: AggregateSpec, kind: pa.DataType, *, appends: bool) -> Running | None:
    """The form of an aggregate that is updated from state; None for those that need their rows.

    `appends` says that no row of the groups ever leaves.
    """
    function = FUNCTIONS[spec.function]
    if not function.is_incremental(kind, appends=appends):
        return None
    if function.retracts(kind):
        return Added(spec, kind)
    if appends and function.merges:
        return Merged(replace(spec, any_order=True), kind)
    return _BY_VALUES[spec.function](spec, kind)


_BY_VALUES: Mapping[str, Callable[[AggregateSpec, pa.DataType], Running]] = {
    "count_distinct": DistinctCount,
    "min": Extreme,
    "max": Extreme,
}
"""The aggregates with `counts_values`."""


def _valid(column: pa.Array, events: Events) -> tuple[pa.Array, Ints, Ints]:
    if not column.null_count:
        return column, events.piece, events.sign
    valid = np.asarray(pc.is_valid(column))
    return column.filter(pa.array(valid)), events.piece[valid], events.sign[valid]


def _stretches(numbers: Ints) -> tuple[list[int], list[int]]:
    """The runs of equal numbers in a sequence that never decreases: begins and ends."""
    begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    return begins, [*begins[1:], len(numbers)] if begins else []
