"""SESSION: rows with their session, emitted when no row can join the session any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.punctuated.delta import Announced, Delta
from windrow.kernels.punctuated.prefix import Prefixes, prefix
from windrow.kernels.punctuated.watch import Watched
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.punctuations import Closing, Cover, Pattern, Values, lines_of
from windrow.punctuations.regions import Region

__all__ = ["SessionCarry", "SessionOperator"]

Ints = npt.NDArray[np.int64]


@dataclass
class SessionCarry:
    """The state.

    Attributes
    ----------
    waiting
        The rows of open sessions.
    closing, time
        The closed keys, and the times that are closed for all keys.
    prefixes
        The complete prefix of each key.
    announced
        The punctuations of the output so far.
    least_announced
        The least begin and end of later sessions, as last announced by a punctuation.
    is_begun
        Whether there was a micro-batch.
    """

    waiting: Watched
    closing: Closing
    time: Closing
    prefixes: Prefixes
    announced: Announced
    least_announced: tuple[int, int] | None = None
    is_begun: bool = False

    @property
    def retained(self) -> tuple[int, ...]:
        """The number of buffered rows."""
        return (len(self.waiting),)


@dataclass(frozen=True)
class SessionOperator:
    """Rows with the begin and end of their session: the rows of a key without a longer gap, up to a duration.

    Output: the rows with two further columns, once no row can arrive up to the end of the session, or the key
    is closed. A punctuation is passed on when no buffered row matches it. A further punctuation excludes
    sessions that begin or end before all that are open or may still begin.

    Attributes
    ----------
    keys
        The key columns of sessions.
    time
        A column of int64 ticks without NULLs.
    gap
        The greatest number of ticks between rows of a session, and from its last row to its end.
    bounds
        The output's names of begin and end.
    compute
        Computes these, and maybe more, for each row of whole sessions, in order.
    longest
        The greatest number of ticks from a session's first row to its exclusive end; None for no limit.
    """

    keys: tuple[str, ...]
    time: str
    gap: int
    bounds: tuple[str, str]
    compute: Callable[[pa.Table], pa.Table]
    longest: int | None = None

    def advance(self, carry: SessionCarry | None, delta: Delta) -> tuple[Delta, SessionCarry]:
        """Process a micro-batch; consumes the carry."""
        schema = delta.rows.schema
        if carry is None:
            carry = self._begun(schema)
        carry.waiting.add(delta.rows)
        incoming = delta.punctuations
        if not carry.is_begun:
            carry.is_begun = True
            null = Values(carry.time.lines[self.time], null=True, spans=())
            incoming = (Pattern.of({self.time: null}), *incoming)
        if not incoming:
            return Delta(self._with_sessions(schema.empty_table())), carry
        store = carry.waiting.store
        closed = carry.closing.add(incoming)
        carry.time.add(incoming)
        regions = [region for pattern in incoming for region in pattern.regions()]
        known = carry.prefixes.add(regions, closed, store)
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
        free = carry.waiting.free(regions)
        free += self._least(carry, schema, first[~is_over], ends[~is_over])
        return Delta(self._with_sessions(rows.filter(pa.array(is_over))), carry.announced.news(free)), carry

    def _begun(self, schema: pa.Schema) -> SessionCarry:
        lines = lines_of(schema)
        output = self._with_sessions(schema.empty_table()).schema
        by = SortKey(self.time)
        return SessionCarry(
            Watched(schema, self.keys, lines),
            Closing(lines, self.keys),
            Closing(lines, [self.time]),
            Prefixes(lines, self.keys, [by]),
            Announced(lines_of(output)),
        )

    def _with_sessions(self, rows: pa.Table) -> pa.Table:
        found = self.compute(rows)
        return pa.table([*rows.columns, *found.columns], schema=pa.schema([*rows.schema, *found.schema]))

    def _sessions(self, rows: pa.Table) -> tuple[Ints, Ints, Ints]:
        """The order of the rows, and for each the times of the first and last row of its session."""
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
        """The first rows of sessions, for runs of rows without a longer gap."""
        if self.longest is None:
            return first
        stops = np.append(first[1:], len(ticks))
        is_longer = ticks[stops - 1] - ticks[first] >= self.longest
        further = []
        for at, stop in zip(first[is_longer].tolist(), stops[is_longer].tolist(), strict=True):
            while (at := at + int(np.searchsorted(ticks[at:stop], ticks[at] + self.longest))) < stop:
                further.append(at)
        return np.sort(np.append(first, np.array(further, first.dtype)))

    def _among(self, rows: pa.Table, times: Ints, regions: list[Region]) -> npt.NDArray[np.bool_]:
        """Which rows would be in some regions if they had these times."""
        moved = rows.select(self.keys).append_column(self.time, pa.array(times, pa.int64()))
        cover = Cover(lines_of(moved.schema))
        for region in regions:
            cover.add_region(region)
        return cover.matches(moved)

    def _least(self, carry: SessionCarry, schema: pa.Schema, first: Ints, ends: Ints) -> Iterator[Region]:
        """The punctuation before all sessions that are open or may still begin."""
        _, open_ = prefix([SortKey(self.time)], carry.time.closed, {}, carry.time.closed)
        span = None if open_ is None else open_[self.time]
        if span is None or span[0] == carry.time.lines[self.time].first:
            return
        reached = int(span[0])
        shortest = self.gap if self.longest is None else min(self.gap, self.longest)
        least = (min([reached, *first.tolist()]), min([reached, *(ends - shortest).tolist()]))
        if least == carry.least_announced:
            return
        carry.least_announced = least
        lines = carry.announced.lines
        for name, tick in zip(self.bounds, least, strict=True):
            made = self.compute(self._one(schema, tick)).column(name)
            yield {name: (lines[name].first, lines[name].places(made)[0])}

    def _one(self, schema: pa.Schema, tick: int) -> pa.Table:
        """A row with a time."""
        arrays = [pa.array([tick if field.name == self.time else None], field.type) for field in schema]
        return pa.table(arrays, schema=schema)
