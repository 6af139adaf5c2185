"""Rows that stay in a window for a while: a micro-batch does not look at them until the first of them leaves.

Rows of a window by time are put to rest in blocks, in the order in which they leave. So a micro-batch costs
what enters and leaves in it, however many rows are in the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.incremental.timed_rows import TimedRows, Times

__all__ = ["BLOCK", "RestingRows", "counted", "put_to_rest", "renumbered"]

BLOCK = 1 << 16
"""Rows of a block; fewer than twice as many do not rest."""
_MANY = 8
"""Rows rest if they are so many times those that move in a micro-batch."""


@dataclass(frozen=True, eq=False)
class RestingRows:
    """A block of rows that have entered a window and have not left; all are retained.

    Attributes
    ----------
    rows
        The rows.
    leave
        When the first of them leaves.
    """

    rows: TimedRows
    leave: int

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def counts(self) -> Mapping[int, int]:
        """How many are in each stored chunk."""
        return counted(self.rows.chunk)

    def oldest(self, rowtime: str) -> int | None:
        """The least of their rowtimes."""
        if rowtime not in self._oldest:
            self._oldest[rowtime] = pc.min(self.rows.rows.column(rowtime)).as_py()
        return self._oldest[rowtime]

    @cached_property
    def _oldest(self) -> dict[str, int | None]:
        return {}

    def merged(self, merges: Mapping[int, int]) -> RestingRows:
        """The same rows after chunks have been merged."""
        if not merges.keys() & self.counts.keys():
            return self
        return RestingRows(replace(self.rows, chunk=renumbered(self.rows.chunk, merges)), self.leave)


def put_to_rest(rows: TimedRows, times: Times) -> tuple[TimedRows, list[RestingRows]]:
    """The rows that a micro-batch looked at: those that the next one looks at, too, and those that rest."""
    if len(rows) < 2 * BLOCK:
        return rows, []
    settled = rows.alive & (rows.enter < times.until)
    moving = int(times.changed(rows.enter, rows.leave).sum())
    if int(settled.sum()) < max(2 * BLOCK, _MANY * moving):
        return rows, []
    places = np.flatnonzero(settled)
    places = places[np.argsort(rows.leave[places], kind="stable")]
    parts = [rows.take(places[at : at + BLOCK]) for at in range(0, len(places), BLOCK)]
    return rows.where(~settled), [RestingRows(part, int(part.leave[0])) for part in parts]


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
