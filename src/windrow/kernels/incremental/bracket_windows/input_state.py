"""The state of one window: in memory between micro-batches, and in chunks from which a restart reads it.

The new rows of a micro-batch are a chunk (:mod:`..chunking`). A chunk without rows that are still in the
window, or buffered for it, is dropped. Where chunks are merged, rows that have left are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.chosen import chosen
from windrow.kernels.incremental.bracket_windows.resting_rows import (
    RestingRows,
    counted,
    levelled,
    put_to_rest,
    renumbered,
    woken_by,
)
from windrow.kernels.incremental.bracket_windows.window_input import WindowInput
from windrow.kernels.incremental.chunking import PER_MICRO_BATCH, Chunks, merging
from windrow.kernels.incremental.timed_rows import TimedRows, Times

__all__ = ["InputState"]


@dataclass(frozen=True, eq=False)
class InputState:
    """The rows of one side: those in its window, and those buffered until the frontier.

    Attributes
    ----------
    retained
        The rows in the window that a micro-batch looks at.
    waiting, of
        The buffered rows, and the chunk of each.
    chunks
        In which they are stored.
    resting
        The other rows in the window.
    """

    retained: TimedRows
    waiting: pa.Table
    of: np.ndarray
    chunks: Chunks = field(default_factory=dict)
    resting: tuple[RestingRows, ...] = ()

    @property
    def count(self) -> int:
        """How many rows are retained in the window."""
        return int(self.retained.alive.sum()) + sum(map(len, self.resting))

    def oldest(self, rowtime: str) -> int | None:
        """The least rowtime of these rows."""
        alive = self.retained.rows.column(rowtime).filter(pa.array(self.retained.alive))
        firsts = [pc.min(alive).as_py(), *(block.oldest for block in self.resting)]
        return min((first for first in firsts if first is not None), default=None)

    def awake(self) -> InputState:
        """The state in which a micro-batch looks at all rows."""
        retained = self.retained.with_rows(*(block.remaining for block in self.resting))
        return replace(self, retained=retained, resting=())

    @staticmethod
    def nothing(side: WindowInput) -> InputState:
        """No rows."""
        empty = side.schema.empty_table()
        none = np.zeros(0, np.int64)
        return InputState(TimedRows.of(empty, none, none, none, side.marked), empty, none)

    @staticmethod
    def read(
        side: WindowInput, chunks: Chunks, tables: Iterator[pa.Table], frontier: int | None
    ) -> InputState:
        """The rows in stored chunks, at the frontier that was reached."""
        start = InputState.nothing(side)
        for number, table in zip(chunks, tables, strict=True):
            start = start.with_arrivals(table, number)
        whole = replace(start, chunks=dict(chunks))
        if frontier is None:
            return whole
        times = Times(None, frontier)
        return whole.advanced(side, times).after(side, times)

    def with_arrivals(self, rows: pa.Table, chunk: int) -> InputState:
        """The state with more buffered rows."""
        if not rows.num_rows:
            return self
        waiting = pa.concat_tables([self.waiting, rows.select(self.waiting.column_names)]).combine_chunks()
        of = np.concatenate([self.of, np.full(rows.num_rows, chunk)])
        return replace(self, waiting=waiting, of=of, chunks={**self.chunks, chunk: rows.num_rows})

    def advanced(self, side: WindowInput, times: Times) -> InputState:
        """The state with the rows before the frontier in the window.

        It looks at the resting rows that these may push out, or that leave; only it has them from then on.
        """
        now = self.waiting.column(side.window.rowtime).to_numpy() < times.until
        rows = self.waiting if now.all() else self.waiting.filter(pa.array(now)).combine_chunks()
        woken, resting = woken_by(self.resting, rows, side, times.until)
        retained = self.retained.with_rows(*woken)
        if not now.any():
            return replace(self, retained=retained, resting=resting)
        retained = side.window.with_new(retained, rows, self.of[now], side.marked)
        rest = self.waiting.filter(pa.array(~now)).combine_chunks()
        return replace(self, retained=retained, resting=resting, waiting=rest, of=self.of[~now])

    def passing(
        self, side: WindowInput, rows: pa.Table, chunk: int, until: int
    ) -> tuple[InputState, pa.Table]:
        """The state with more buffered rows, if none are retained, and the rows before the frontier."""
        gone, left, of = [], [], []
        for table, chunks in ((self.waiting, self.of), (rows, np.full(rows.num_rows, chunk))):
            now = table.column(side.window.rowtime).to_numpy() < until
            gone.append(chosen(table, now))
            left.append(chosen(table, ~now))
            of.append(chunks[~now])
        retained = {**self.chunks, chunk: left[1].num_rows} if left[1].num_rows else self.chunks
        waiting = pa.concat_tables(left).combine_chunks()
        return InputState(self.retained, waiting, np.concatenate(of), retained), pa.concat_tables(gone)

    def after(self, side: WindowInput, times: Times) -> InputState:
        """The state without the rows that have left; those that stay may rest."""
        retained = side.window.left(self.retained, times)
        if not side.rests or times.since is None:
            return replace(self, retained=retained)
        retained, resting = put_to_rest(retained, side, times)
        return replace(self, retained=retained, resting=levelled((*self.resting, *resting), side))

    def merged(self, number: int) -> tuple[InputState, dict[int, pa.Table]]:
        """The state to store after a micro-batch, and the new chunks."""
        awake = counted(np.concatenate([self.retained.chunk[self.retained.alive], self.of]))
        alive = sum((Counter(block.counts) for block in self.resting), Counter(awake))
        remaining = [(chunk, rows) for chunk, rows in self.chunks.items() if chunk in alive]
        remaining, merges = merging(remaining, alive, number)
        state = replace(self, chunks=dict(remaining))
        if merges:
            retained = replace(self.retained, chunk=renumbered(self.retained.chunk, merges))
            resting = tuple(block.merged(merges) for block in self.resting)
            state = replace(state, retained=retained, of=renumbered(self.of, merges), resting=resting)
        new = [chunk for chunk, _ in remaining if chunk // PER_MICRO_BATCH == number]
        return state, {chunk: state.rows_of(chunk) for chunk in new}

    def rows_of(self, chunk: int) -> pa.Table:
        """The rows stored in a chunk, those in the window first."""
        retained = (self.retained.chunk == chunk) & self.retained.alive
        parts = [(self.retained.rows, retained), (self.waiting, self.of == chunk)]
        blocks = [block for block in self.resting if chunk in block.counts]
        parts += [(block.rows.rows, (block.rows.chunk == chunk) & block.there) for block in blocks]
        return pa.concat_tables([chosen(rows, which) for rows, which in parts])
