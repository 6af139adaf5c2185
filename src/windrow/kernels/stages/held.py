"""The rows in a window of a live stream, and the instants of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.hashing import among, hashes
from windrow.kernels.zset.relation import NEVER

__all__ = ["Held", "Times"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.uint64]

_SPARE = 8


@dataclass(frozen=True)
class Times:
    """The instants of a step: it gives changes at ``since <= at < until``, the first all before `until`."""

    since: int | None
    until: int

    def clipped(self, enter: Ints, leave: Ints) -> tuple[Ints, Ints]:
        """When rows are there, as far as the step knows: what was there before enters a tick before it."""
        if self.since is not None:
            enter = np.maximum(enter, self.since - 1)
        return enter, np.where(leave >= self.until, NEVER, leave)

    def changed(self, enter: Ints, leave: Ints) -> Bools:
        """Which rows enter or leave in the step."""
        if self.since is None:
            first: Bools = (enter < self.until) & (enter < leave)
            return first
        enters = (enter >= self.since) & (enter < self.until)
        leaves = (leave >= self.since) & (leave < self.until) & (enter < self.until)
        changed: Bools = (enters | leaves) & (enter < leave)
        return changed

    def seen(self, enter: Ints, leave: Ints) -> Bools:
        """Which rows are there at some instant of the step, or just before it."""
        seen = (enter < self.until) & (enter < leave)
        if self.since is not None:
            seen &= leave >= self.since
        return seen


@dataclass(frozen=True, eq=False)
class Held:
    """Rows, the instants at which they enter and leave, and where they are kept.

    Attributes
    ----------
    rows
        Their columns, among them the rowtime.
    enter, leave
        int64; `leave` is `NEVER` for those that nothing has pushed out so far.
    chunk
        int64, the number of the file that keeps each row.
    marks
        By the columns of a key, a hash of each row's: equal keys have equal marks.
    reached
        The frontier: rows that left before it are no longer held, though some may still be in the table.
    """

    rows: pa.Table
    enter: Ints
    leave: Ints
    chunk: Ints
    marks: Mapping[tuple[str, ...], Marks] = field(default_factory=dict)
    reached: int = -NEVER

    @staticmethod
    def of(
        rows: pa.Table, enter: Ints, leave: Ints, chunk: Ints, keys: tuple[tuple[str, ...], ...] = ()
    ) -> Held:
        """Rows with the marks of these keys."""
        return Held(rows, enter, leave, chunk, {key: hashes(rows, key) for key in keys})

    def __len__(self) -> int:
        return len(self.enter)

    @property
    def alive(self) -> Bools:
        """Which rows are held."""
        alive: Bools = self.leave >= self.reached
        return alive

    @property
    def stays(self) -> Bools:
        """Which rows nothing has pushed out so far."""
        stays: Bools = self.leave == NEVER
        return stays

    def at(self, frontier: int) -> Held:
        """What is held at a frontier; the table is only made anew when an eighth of its rows have left."""
        there = replace(self, reached=frontier)
        kept = there.alive
        return there.where(kept) if _SPARE * int(kept.sum()) < (_SPARE - 1) * len(kept) else there

    def with_rows(self, more: Held) -> Held:
        """These rows, and then more."""
        if not len(more):
            return self
        rows = pa.concat_tables([self.rows, more.rows]).combine_chunks()
        marks = {key: np.concatenate([mark, more.marks[key]]) for key, mark in self.marks.items()}
        enter, leave, chunk = (
            np.concatenate([one, other])
            for one, other in ((self.enter, more.enter), (self.leave, more.leave), (self.chunk, more.chunk))
        )
        return Held(rows, enter, leave, chunk, marks, self.reached)

    def where(self, kept: Bools) -> Held:
        """Some of the rows."""
        marks = {key: mark[kept] for key, mark in self.marks.items()}
        rows = self.rows.filter(pa.array(kept)).combine_chunks()
        times = self.enter[kept], self.leave[kept]
        return Held(rows, *times, self.chunk[kept], marks, self.reached)

    def pushed(self, places: Ints, leave: Ints) -> Held:
        """The same with other instants at which the rows at these places leave."""
        changed = self.leave.copy()
        changed[places] = leave
        return replace(self, leave=changed)

    def alike(self, key: tuple[str, ...], some: Bools) -> Bools:
        """The rows that have a key of `some` of them, and perhaps a few more."""
        if not key:
            return np.full(len(self), bool(some.any()))
        return self.having(key, self.marks[key][some])

    def having(self, key: tuple[str, ...], marks: Marks) -> Bools:
        """The rows that have a key with one of these marks, and perhaps a few more."""
        if not key:
            return np.full(len(self), bool(len(marks)))
        return among(self.marks[key], marks)
