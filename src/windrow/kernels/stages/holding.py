"""The state of one window: in memory between steps, and in chunks from which a restart reads it.

The new rows of a step are a chunk (:mod:`.chunking`). A chunk without rows that are still in the window, or
buffered for it, is dropped. Where chunks are merged, rows that have left are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.stages.block import WindowInput
from windrow.kernels.stages.chunking import PER_STEP, Chunks, merging
from windrow.kernels.stages.held import Held, Times

__all__ = ["Holding"]


@dataclass(frozen=True, eq=False)
class Holding:
    """The rows of one side: those in its window, and those that wait for the frontier.

    Attributes
    ----------
    held
        Those in the window.
    waiting, of
        Those that wait, and the chunk of each.
    chunks
        In which they are kept.
    """

    held: Held
    waiting: pa.Table
    of: np.ndarray
    chunks: Chunks = field(default_factory=dict)

    @staticmethod
    def nothing(side: WindowInput) -> Holding:
        """No rows."""
        empty = side.schema.empty_table()
        none = np.zeros(0, np.int64)
        return Holding(Held.of(empty, none, none, none, side.marked), empty, none)

    @staticmethod
    def read(side: WindowInput, chunks: Chunks, tables: Iterator[pa.Table], frontier: int | None) -> Holding:
        """What is in chunks, at the frontier that was reached."""
        start = Holding.nothing(side)
        for number, table in zip(chunks, tables, strict=True):
            start = start.with_arrivals(table, number)
        whole = replace(start, chunks=dict(chunks))
        if frontier is None:
            return whole
        times = Times(None, frontier)
        return whole.taken(side, times).after(side, times)

    def with_arrivals(self, rows: pa.Table, chunk: int) -> Holding:
        """With more rows that wait."""
        if not rows.num_rows:
            return self
        waiting = pa.concat_tables([self.waiting, rows.select(self.waiting.column_names)]).combine_chunks()
        of = np.concatenate([self.of, np.full(rows.num_rows, chunk)])
        return Holding(self.held, waiting, of, {**self.chunks, chunk: rows.num_rows})

    def taken(self, side: WindowInput, times: Times) -> Holding:
        """With the rows before the frontier in the window."""
        now = self.waiting.column(side.window.rowtime).to_numpy() < times.until
        if not now.any():
            return self
        rows = self.waiting if now.all() else self.waiting.filter(pa.array(now)).combine_chunks()
        held = side.window.taken(self.held, rows, self.of[now], side.marked)
        rest = self.waiting.filter(pa.array(~now)).combine_chunks()
        return replace(self, held=held, waiting=rest, of=self.of[~now])

    def passing(self, side: WindowInput, rows: pa.Table, chunk: int, until: int) -> tuple[Holding, pa.Table]:
        """With more rows that wait, where rows are not held, and those before the frontier."""
        gone, left, of = [], [], []
        for table, chunks in ((self.waiting, self.of), (rows, np.full(rows.num_rows, chunk))):
            now = table.column(side.window.rowtime).to_numpy() < until
            gone.append(_chosen(table, now))
            left.append(_chosen(table, ~now))
            of.append(chunks[~now])
        held = {**self.chunks, chunk: left[1].num_rows} if left[1].num_rows else self.chunks
        waiting = pa.concat_tables(left).combine_chunks()
        return Holding(self.held, waiting, np.concatenate(of), held), pa.concat_tables(gone)

    def after(self, side: WindowInput, times: Times) -> Holding:
        """Without the rows that have left."""
        return replace(self, held=side.window.left(self.held, times))

    def merged(self, number: int) -> tuple[Holding, dict[int, pa.Table]]:
        """As it is to be kept after a step, and the chunks that are new."""
        alive = _counted(np.concatenate([self.held.chunk[self.held.alive], self.of]))
        kept = [(chunk, rows) for chunk, rows in self.chunks.items() if chunk in alive]
        kept, merges = merging(kept, alive, number)
        holding = replace(self, chunks=dict(kept))
        if merges:
            held = replace(self.held, chunk=_renumbered(self.held.chunk, merges))
            holding = replace(holding, held=held, of=_renumbered(self.of, merges))
        new = [chunk for chunk, _ in kept if chunk // PER_STEP == number]
        return holding, {chunk: holding.rows_of(chunk) for chunk in new}

    def rows_of(self, chunk: int) -> pa.Table:
        """The rows that are kept in a chunk, those in the window first."""
        held = (self.held.chunk == chunk) & self.held.alive
        parts = ((self.held.rows, held), (self.waiting, self.of == chunk))
        return pa.concat_tables(
            [rows if chosen.all() else rows.filter(pa.array(chosen)) for rows, chosen in parts]
        )


def _chosen(table: pa.Table, which: np.ndarray) -> pa.Table:
    """The rows for which it holds; not copied where they are next to each other."""
    places = np.flatnonzero(which)
    if not len(places):
        return table.slice(0, 0)
    first, stop = int(places[0]), int(places[-1]) + 1
    return table.slice(first, stop - first) if stop - first == len(places) else table.take(pa.array(places))


def _counted(chunks: np.ndarray) -> dict[int, int]:
    found = pc.value_counts(pa.array(chunks))
    return dict(zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True))


def _renumbered(chunks: np.ndarray, merges: Mapping[int, int]) -> np.ndarray:
    renumbered = chunks.copy()
    for chunk, into in merges.items():
        renumbered[chunks == chunk] = into
    return renumbered
