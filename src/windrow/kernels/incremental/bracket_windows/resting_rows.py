"""Rows that stay in a window for a while: a micro-batch looks at those that may leave in it.

Rows rest in blocks, in the order in which they leave. In a window by time, a micro-batch wakes a block when
the first of its rows leaves. In a window by rows, it wakes the rows of partitions that receive rows, which it
finds by hash, and those that leave by time. They rest again in a new block; a block that is not twice as
large as the next is merged with it, up to a million rows. So a micro-batch costs what enters and leaves in
it, and the rows of its partitions, however many rows are in the window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.hash_index import HashIndex, distinct
from windrow.kernels.hashing import hashes
from windrow.kernels.incremental.bracket_windows.window_input import WindowInput
from windrow.kernels.incremental.timed_rows import TimedRows, Times

__all__ = ["BLOCK", "RestingRows", "counted", "levelled", "put_to_rest", "renumbered", "woken_by"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.uint64]

BLOCK = 1 << 16
"""Rows of a block of a window by time; fewer than twice as many do not rest."""
_LARGEST = 1 << 20
"""Rows of a block of a window by rows."""
_MANY = 8
"""Rows rest if they are so many times those that move in a micro-batch."""
_NONE: Marks = np.zeros(0, np.uint64)


@dataclass(frozen=True, eq=False)
class RestingRows:
    """A block of rows that have entered a window and have not left; all are retained.

    Attributes
    ----------
    rows
        The rows, in the order in which they leave.
    there
        Which of them still rest. It changes in place, so that only the last version of a block can be woken.
    first, oldest
        The place of the first of them, and the least rowtime.
    counts
        How many are in each stored chunk.
    index
        In a window by rows, the index of the partitions.
    """

    rows: TimedRows
    there: Bools
    first: int
    oldest: int
    counts: Mapping[int, int]
    index: HashIndex | None = None

    @staticmethod
    def of(rows: TimedRows, side: WindowInput) -> RestingRows:
        """A block of rows of a window, in the order in which they leave."""
        index = HashIndex.of(rows.marks[side.window.partition]) if side.rests_by_key else None
        oldest = pc.min(rows.rows.column(side.window.rowtime)).as_py()
        return RestingRows(rows, np.ones(len(rows), bool), 0, oldest, counted(rows.chunk), index)

    def __len__(self) -> int:
        return sum(self.counts.values())

    @property
    def leave(self) -> int:
        """When the first of them leaves."""
        return int(self.rows.leave[self.first])

    @property
    def remaining(self) -> TimedRows:
        """The rows that rest."""
        return self.rows if len(self) == len(self.rows) else self.rows.where(self.there)

    def woken(
        self, side: WindowInput, until: int, marks: Marks
    ) -> tuple[TimedRows | None, RestingRows | None]:
        """The rows that may leave before an instant: by time, or as their partition has one of these hashes.
        And the block without them. None for no rows.
        """
        if self.index is None:
            return (self.rows, None) if self.leave < until else (None, self)
        stop = int(np.searchsorted(self.rows.leave, until))
        due = self.first + np.flatnonzero(self.there[self.first : stop])
        places = np.union1d(due, self.index.having(marks, self.there))
        if not len(places):
            return None, self
        self.there[places] = False
        rows, counts = self.rows.take(places), Counter(self.counts)
        counts.subtract(counted(rows.chunk))
        if not (counts := +counts):
            return rows, None
        first = self.first + int(self.there[self.first :].argmax())
        oldest = self.rows.rows.column(side.window.rowtime)[first].as_py()
        return rows, replace(self, first=first, oldest=oldest, counts=counts)

    def merged(self, merges: Mapping[int, int]) -> RestingRows:
        """The same rows after chunks have been merged."""
        if not merges.keys() & self.counts.keys():
            return self
        counts = Counter[int]()
        for chunk, count in self.counts.items():
            counts[merges.get(chunk, chunk)] += count
        rows = replace(self.rows, chunk=renumbered(self.rows.chunk, merges))
        return replace(self, rows=rows, counts=counts)


def put_to_rest(rows: TimedRows, side: WindowInput, times: Times) -> tuple[TimedRows, list[RestingRows]]:
    """The rows that a micro-batch looked at: those that the next one looks at, too, and those that rest."""
    if len(rows) < 2 * BLOCK:
        return rows, []
    settled = rows.alive & (rows.enter < times.until) & (rows.leave == side.window.leaving(rows.enter))
    moving = int(times.changed(rows.enter, rows.leave).sum())
    if int(settled.sum()) < max(2 * BLOCK, _MANY * moving):
        return rows, []
    resting = rows.where(settled)
    size = _LARGEST if side.rests_by_key else BLOCK
    order = _order(resting, side)
    parts = [resting.take(order[at : at + size]) for at in range(0, len(order), size)]
    return rows.where(~settled), [RestingRows.of(part, side) for part in parts]


def woken_by(
    blocks: Sequence[RestingRows], arriving: pa.Table, side: WindowInput, until: int
) -> tuple[list[TimedRows], tuple[RestingRows, ...]]:
    """The rows that may leave before an instant, as they leave by time or rows of their partition arrive; and
    the blocks without them.
    """
    marks = distinct(hashes(arriving, side.window.partition)) if blocks and side.rests_by_key else _NONE
    found = [block.woken(side, until, marks) for block in blocks]
    rows, rest = [rows for rows, _ in found], [rest for _, rest in found]
    return [one for one in rows if one is not None], tuple(one for one in rest if one is not None)


def levelled(blocks: Sequence[RestingRows], side: WindowInput) -> tuple[RestingRows, ...]:
    """The blocks; of a window by rows, small ones are merged, and those without most of their rows packed."""
    if not side.rests_by_key:
        return tuple(blocks)
    found = list[RestingRows]()
    for block in blocks:
        found.append(block if 2 * len(block) > len(block.rows) else _together(side, block))
        while len(found) > 1 and len(found[-2]) < min(2 * len(found[-1]), _LARGEST + 1 - len(found[-1])):
            found[-2:] = [_together(side, *found[-2:])]
    return tuple(found)


def _together(side: WindowInput, *blocks: RestingRows) -> RestingRows:
    first, *others = (block.remaining for block in blocks)
    rows = first.with_rows(*others)
    return RestingRows.of(rows.take(_order(rows, side)) if others else rows, side)


def _order(rows: TimedRows, side: WindowInput) -> Ints:
    """The order in which rows leave; in a window by rows also that of time, in which its partitions are."""
    instants = rows.rows.column(side.window.rowtime).to_numpy() if side.rests_by_key else rows.leave
    return np.argsort(instants, kind="stable")


def counted(chunks: np.ndarray) -> dict[int, int]:
    """How often each number occurs."""
    found = pc.value_counts(pa.array(chunks))
    return dict(zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True))


def renumbered(chunks: np.ndarray, merges: Mapping[int, int]) -> np.ndarray:
    """The numbers of chunks after some have been merged into others."""
    found = chunks.copy()
    for chunk, into in merges.items():
        found[chunks == chunk] = into
    return found
