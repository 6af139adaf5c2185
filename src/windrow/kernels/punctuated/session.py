"""SESSION: rows with the session that they are in, given when none can come that would be in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.punctuated.prefix import Prefixes, prefix
from windrow.kernels.punctuated.step import Promises, Step
from windrow.kernels.punctuated.watch import Watched
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.punctuations import Closing, Cover, Pattern, Values, lines_of
from windrow.punctuations.boxes import Box

__all__ = ["Session", "SessionCarry"]

Ints = npt.NDArray[np.int64]


@dataclass
class SessionCarry:
    """The rows of open sessions, and what has been promised.

    Attributes
    ----------
    waiting
        The rows.
    closing, time
        Which keys are closed, and which times whatever the key.
    prefixes
        What comes of each key before all that may still come.
    promises
        What has been promised of the output.
    told
        The least begin, and the end that a row alone then would have, of sessions that were promised last.
    came
        Whether there was a step.
    """

    waiting: Watched
    closing: Closing
    time: Closing
    prefixes: Prefixes
    promises: Promises
    told: tuple[int, int] | None = None
    came: bool = False

    @property
    def kept(self) -> tuple[int, ...]:
        """How many rows wait."""
        return (len(self.waiting),)


@dataclass(frozen=True)
class Session:
    """Rows with the begin and end of their session: rows of a key without a longer gap, up to a duration.

    Output: the rows with two further columns, when no row can come up to the end of the session, or the key
    is closed. What is promised of the rows holds of the output when no row that waits matches it; and none
    comes of a session that begins or ends before all those that are open or may still begin.

    Attributes
    ----------
    keys
        The columns that sessions have in common.
    time
        A column of int64 ticks, nowhere NULL.
    gap
        How many ticks there are at most between rows of a session, and from its last row to its end.
    bounds
        The output's names of the begin and of the end.
    compute
        These, and maybe more, of the session of each row of whole sessions, in order.
    longest
        How many ticks there are at most from its first row to its end, before which all its rows are.
    """

    keys: tuple[str, ...]
    time: str
    gap: int
    bounds: tuple[str, str]
    compute: Callable[[pa.Table], pa.Table]
    longest: int | None = None

    def advance(self, carry: SessionCarry | None, step: Step) -> tuple[Step, SessionCarry]:
        """Take a step; the carry that is given is used up."""
        schema = step.rows.schema
        if carry is None:
            carry = self._begun(schema)
        carry.waiting.add(step.rows)
        told = step.punctuations
        if not carry.came:
            carry.came = True
            told = (Pattern.of({self.time: Values(carry.time.lines[self.time], null=True, spans=())}), *told)
        if not told:
            return Step(self._with_sessions(schema.empty_table())), carry
        store = carry.waiting.store
        closed = carry.closing.add(told)
        carry.time.add(told)
        boxes = [box for pattern in told for box in pattern.boxes()]
        known = carry.prefixes.add(boxes, closed, store)
        places = store.everything()
        rows = store.rows(places)
        order, first, last = self._sessions(rows)
        rows, places = rows.take(pa.array(order)), places[order]
        until, ends = last + self.gap, last + self.gap
        if self.longest is not None:
            until = np.minimum(until, first + (self.longest - 1))
            ends = np.minimum(ends, first + self.longest)
        is_over = self._among(rows, until, known) | self._among(rows, last, closed)
        carry.waiting.remove(places[is_over])
        free = carry.waiting.free(boxes)
        free += self._least(carry, schema, first[~is_over], ends[~is_over])
        return Step(self._with_sessions(rows.filter(pa.array(is_over))), carry.promises.news(free)), carry

    def _begun(self, schema: pa.Schema) -> SessionCarry:
        lines = lines_of(schema)
        output = self._with_sessions(schema.empty_table()).schema
        by = SortKey(self.time)
        return SessionCarry(
            Watched(schema, self.keys, lines),
            Closing(lines, self.keys),
            Closing(lines, [self.time]),
            Prefixes(lines, self.keys, [by]),
            Promises(lines_of(output)),
        )

    def _with_sessions(self, rows: pa.Table) -> pa.Table:
        found = self.compute(rows)
        return pa.table([*rows.columns, *found.columns], schema=pa.schema([*rows.schema, *found.schema]))

    def _sessions(self, rows: pa.Table) -> tuple[Ints, Ints, Ints]:
        """The rows in order, and of each there the times of the first and last row of its session."""
        none = np.zeros(0, np.int64)
        if not rows.num_rows:
            return none, none, none
        order, bounds = sorted_partitions(rows, self.keys, (SortKey(self.time),))
        order = np.arange(rows.num_rows) if order is None else order
        ticks = np.asarray(rows.column(self.time).combine_chunks()).astype(np.int64)[order]
        begins = np.zeros(len(ticks), bool)
        begins[1:] = np.diff(ticks) > self.gap
        begins[bounds[:-1]] = True
        first = self._cut(ticks, np.flatnonzero(begins))
        lengths = np.diff(np.append(first, len(ticks)))
        return order, np.repeat(ticks[first], lengths), np.repeat(ticks[first + lengths - 1], lengths)

    def _cut(self, ticks: Ints, first: Ints) -> Ints:
        """Where sessions begin, of runs of rows without a longer gap that begin there."""
        if self.longest is None:
            return first
        stops = np.append(first[1:], len(ticks))
        is_longer = ticks[stops - 1] - ticks[first] >= self.longest
        further = []
        for at, stop in zip(first[is_longer].tolist(), stops[is_longer].tolist(), strict=True):
            while (at := at + int(np.searchsorted(ticks[at:stop], ticks[at] + self.longest))) < stop:
                further.append(at)
        return np.sort(np.append(first, np.array(further, first.dtype)))

    def _among(self, rows: pa.Table, times: Ints, boxes: list[Box]) -> npt.NDArray[np.bool_]:
        """Which rows would be in some boxes if they had these times."""
        moved = rows.select(self.keys).append_column(self.time, pa.array(times, pa.int64()))
        cover = Cover(lines_of(moved.schema))
        for box in boxes:
            cover.add_box(box)
        return cover.matches(moved)

    def _least(self, carry: SessionCarry, schema: pa.Schema, first: Ints, ends: Ints) -> Iterator[Box]:
        """What comes before the sessions that are open or may still begin."""
        _, open_ = prefix([SortKey(self.time)], carry.time.closed, {}, carry.time.closed)
        span = None if open_ is None else open_[self.time]
        if span is None or span[0] == carry.time.lines[self.time].first:
            return
        reached = int(span[0])
        shortest = self.gap if self.longest is None else min(self.gap, self.longest)
        least = (min([reached, *first.tolist()]), min([reached, *(ends - shortest).tolist()]))
        if least == carry.told:
            return
        carry.told = least
        lines = carry.promises.lines
        for name, tick in zip(self.bounds, least, strict=True):
            made = self.compute(self._one(schema, tick)).column(name)
            yield {name: (lines[name].first, lines[name].places(made)[0])}

    def _one(self, schema: pa.Schema, tick: int) -> pa.Table:
        """A row with a time."""
        arrays = [pa.array([tick if field.name == self.time else None], field.type) for field in schema]
        return pa.table(arrays, schema=schema)
