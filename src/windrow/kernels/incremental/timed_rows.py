"""The rows in a window of a live stream, and the instants of a micro-batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.hashing import among, hashes
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

__all__ = ["TimedRows", "Times"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.uint64]

_SPARE = 8


@dataclass(frozen=True)
class Times:
    """The instants of a micro-batch: changes ``since <= at < until``; in the first, all before `until`."""

    since: int | None
    until: int

    def clipped(self, enter: Ints, leave: Ints) -> tuple[Ints, Ints]:
        """When rows are present, as far as is known: earlier rows enter a tick before the micro-batch."""
        if self.since is not None:
            enter = np.maximum(enter, self.since - 1)
        return enter, np.where(leave >= self.until, NEVER, leave)

    def changed(self, enter: Ints, leave: Ints) -> Bools:
        """Which rows enter or leave in the micro-batch."""
        if self.since is None:
            first: Bools = (enter < self.until) & (enter < leave)
            return first
        enters = (enter >= self.since) & (enter < self.until)
        leaves = (leave >= self.since) & (leave < self.until) & (enter < self.until)
        changed: Bools = (enters | leaves) & (enter < leave)
        return changed

    def seen(self, enter: Ints, leave: Ints) -> Bools:
        """Which rows are present at some instant of the micro-batch, or just before it."""
        seen = (enter < self.until) & (enter < leave)
        if self.since is not None:
            seen &= leave >= self.since
        return seen


@dataclass(frozen=True, eq=False)
class TimedRows:
    """Rows, the instants at which they enter and leave, and where they are stored.

    Attributes
    ----------
    rows
        Their columns, including the rowtime.
    enter, leave
        int64; `leave` is `NEVER` for rows that nothing has pushed out so far.
    chunk
        int64, the number of the file that contains each row.
    marks
        By the columns of a key, a hash of each row's: equal keys have equal marks.
    reached
        The frontier: rows that left before it are no longer retained, though some may still be in the table.
    needed
        Until when rows are retained, if that is longer than they stay.
    """

    rows: pa.Table
    enter: Ints
    leave: Ints
    chunk: Ints
    marks: Mapping[tuple[str, ...], Marks] = field(default_factory=dict)
    reached: int = -NEVER
    needed: Ints | None = None

    @staticmethod
    def of(
        rows: pa.Table, enter: Ints, leave: Ints, chunk: Ints, keys: tuple[tuple[str, ...], ...] = ()
    ) -> TimedRows:
        """Rows with the hashes of these keys."""
        return TimedRows(rows, enter, leave, chunk, {key: hashes(rows, key) for key in keys})

    def __len__(self) -> int:
        return len(self.enter)

    @property
    def alive(self) -> Bools:
        """Which rows are retained."""
        alive: Bools = (self.leave if self.needed is None else self.needed) >= self.reached
        return alive

    @property
    def stays(self) -> Bools:
        """Which rows have not been pushed out so far."""
        stays: Bools = self.leave == NEVER
        return stays

    def at(self, frontier: int) -> TimedRows:
        """The rows retained at a frontier; the table is only rebuilt when an eighth of it has left."""
        there = replace(self, reached=frontier)
        mask = there.alive
        return there.where(mask) if _SPARE * int(mask.sum()) < (_SPARE - 1) * len(mask) else there

    def with_rows(self, *more: TimedRows) -> TimedRows:
        """These rows, followed by others."""
        parts = [self, *(one for one in more if len(one))]
        if len(parts) == 1:
            return self
        rows = pa.concat_tables([one.rows for one in parts]).combine_chunks()
        marks = {key: np.concatenate([one.marks[key] for one in parts]) for key in self.marks}
        enter, leave, chunk = (
            np.concatenate([getattr(one, name) for one in parts]) for name in ("enter", "leave", "chunk")
        )
        needed = None
        if self.needed is not None:
            needed = np.concatenate([self.needed, *(one.leave for one in parts[1:])])
        return TimedRows(rows, enter, leave, chunk, marks, self.reached, needed)

    def where(self, mask: Bools) -> TimedRows:
        """Some of the rows."""
        marks = {key: mark[mask] for key, mark in self.marks.items()}
        rows = self.rows.filter(pa.array(mask)).combine_chunks()
        times = self.enter[mask], self.leave[mask]
        needed = None if self.needed is None else self.needed[mask]
        return TimedRows(rows, *times, self.chunk[mask], marks, self.reached, needed)

    def take(self, places: Ints) -> TimedRows:
        """The rows at these places, in their order."""
        marks = {key: mark[places] for key, mark in self.marks.items()}
        rows = self.rows.take(pa.array(places)).combine_chunks()
        times = self.enter[places], self.leave[places]
        needed = None if self.needed is None else self.needed[places]
        return TimedRows(rows, *times, self.chunk[places], marks, self.reached, needed)

    def pushed(self, places: Ints, leave: Ints) -> TimedRows:
        """The rows, where those at these places leave at other instants."""
        changed = self.leave.copy()
        changed[places] = leave
        return replace(self, leave=changed)

    def entering(self, places: Ints, enter: Ints) -> TimedRows:
        """The rows, where those at these places enter at other instants."""
        changed = self.enter.copy()
        changed[places] = enter
        return replace(self, enter=changed)

    def needed_until(self, places: Ints, until: Ints) -> TimedRows:
        """The rows, where those at these places are retained until then."""
        changed = (self.leave if self.needed is None else self.needed).copy()
        changed[places] = until
        return replace(self, needed=changed)

    def moving(self, times: Times, columns: Sequence[str]) -> pa.Table:
        """These columns of the rows that enter or leave in a micro-batch, with `ENTER` and `LEAVE`."""
        return self._timed(np.flatnonzero(times.changed(self.enter, self.leave)), times, columns)

    def arriving(self, times: Times, columns: Sequence[str], rowtime: str) -> pa.Table:
        """These columns of the rows that arrive in a micro-batch, with all of `ENTER` and `LEAVE`."""
        at = self.rows.column(rowtime).to_numpy()
        places = np.flatnonzero((at < times.until) & (True if times.since is None else at >= times.since))
        rows = self.rows.select(list(columns)).take(pa.array(places))
        enter, leave = pa.array(self.enter[places]), pa.array(self.leave[places])
        return pa.Table.from_arrays([*rows.columns, enter, leave], names=[*columns, ENTER, LEAVE])

    def entered(self, which: Bools, times: Times, columns: Sequence[str]) -> pa.Table:
        """The same of these rows, which entered before the micro-batch and have not left."""
        return self._timed(np.flatnonzero(which), times, columns)

    def _timed(self, places: Ints, times: Times, columns: Sequence[str]) -> pa.Table:
        enter, leave = times.clipped(self.enter[places], self.leave[places])
        rows = self.rows.select(list(columns))
        is_range = len(places) > 0 and int(places[-1]) - int(places[0]) == len(places) - 1
        if rows.num_columns:
            rows = rows.slice(int(places[0]), len(places)) if is_range else rows.take(pa.array(places))
        return pa.Table.from_arrays(
            [*rows.columns, pa.array(enter), pa.array(leave)], names=[*columns, ENTER, LEAVE]
        )

    def alike(self, key: tuple[str, ...], some: Bools) -> Bools:
        """The rows that have the key of `some` row, with possible false positives."""
        if not key:
            return np.full(len(self), bool(some.any()))
        return self.having(key, self.marks[key][some])

    def having(self, key: tuple[str, ...], marks: Marks) -> Bools:
        """The rows that have a key with one of these hashes, with possible false positives."""
        if not key:
            return np.full(len(self), bool(len(marks)))
        return among(self.marks[key], marks)
