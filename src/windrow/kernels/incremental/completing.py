"""AFTER WATERMARK, live: buffers the rows of a query until they are complete, then emits them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.incremental.operated import Moves
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.trace import Trace
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER
from windrow.punctuations.regions import Lines, Region

__all__ = ["Completing", "first_above"]

Ints = npt.NDArray[np.int64]


@dataclass
class Completing:
    """The present rows of a relation that are not complete.

    Parameters
    ----------
    schema
        The columns, without `ENTER` and `LEAVE`.
    lines
        The lines of the columns that decide when rows are complete.
    """

    schema: pa.Schema
    lines: Lines = field(default_factory=dict)
    retained: Trace = field(init=False)

    def __post_init__(self) -> None:
        self.retained = Trace(self.schema, self.schema.names, self.lines)

    @property
    def looked_at(self) -> int:
        """How many retained rows it has read so far."""
        return self.retained.looked_at

    def advance(
        self,
        changes: pa.Table | None,
        since_when: Callable[[pa.Table], Ints],
        times: Times,
        near: Sequence[Region] | None = None,
    ) -> pa.Table:
        """The rows that become complete or leave, with `ENTER` and `LEAVE`.

        Parameters
        ----------
        changes
            The rows that enter or leave.
        since_when
            The times since when rows are complete, as known by the end of the micro-batch; otherwise `NEVER`.
        near
            Regions that contain all rows that may have become complete; all, if that is unknown.
        """
        schema = pa.schema([*self.schema, pa.field(ENTER, pa.int64()), pa.field(LEAVE, pa.int64())])
        rows = schema.empty_table() if changes is None else changes.select(schema.names).cast(schema)
        moves = Moves.of(self.retained, rows, times)
        # rows that leave without being retained were complete
        output = [moves.unknown]
        moving = moves.changed(self.retained, times)
        self.retained.remove(moves.places)
        since, leave = np.maximum(_ints(moving, ENTER), since_when(moving)), _ints(moving, LEAVE)
        output.append(_timed_rows(moving.select(self.schema.names), since, leave, times))
        output += self._completed(since_when, times, near)
        self.retained.add(moving.filter(pa.array((since >= times.until) & (leave >= times.until))))
        return pa.concat_tables([part.cast(schema) for part in output])

    def _completed(
        self, since_when: Callable[[pa.Table], Ints], times: Times, near: Sequence[Region] | None
    ) -> list[pa.Table]:
        """The earlier rows that stay and are complete now."""
        output = []
        for rows, slots, places in self._near(near):
            since = since_when(rows)[slots]
            now = since < times.until
            if now.any():
                since = np.maximum(since[now], (times.since or 0) - 1)
                leave = np.full(len(since), NEVER)
                is_whole = len(since) == rows.num_rows
                chosen = rows if is_whole else rows.take(pa.array(slots[now]))
                output.append(_timed_rows(chosen, since, leave, times))
                self.retained.remove(places[now])
        return output

    def _near(self, near: Sequence[Region] | None) -> Iterator[tuple[pa.Table, Ints, Ints]]:
        """Tables of rows, which of them are retained, and their places."""
        places = None if near is None else self.retained.matching(near)
        if places is None or len(places) == len(self.retained):
            for rows, _, slots, of_run in self.retained.runs():
                yield rows, slots, of_run
            return
        self.retained.looked_at += len(places)
        yield self.retained.rows(places), np.arange(len(places)), places


def _timed_rows(rows: pa.Table, since: Ints, leave: Ints, times: Times) -> pa.Table:
    """The rows that are emitted or leave in a micro-batch."""
    changed = times.changed(since, leave)
    if not changed.all():
        rows, since, leave = rows.filter(pa.array(changed)), since[changed], leave[changed]
    enter, leave = times.clipped(since, leave)
    return rows.append_column(ENTER, pa.array(enter)).append_column(LEAVE, pa.array(leave))


def first_above(values: Ints, whens: Ints, ticks: Ints) -> Ints:
    """When the first of the values exceeds each tick, or never; the values may decrease, as local
    times do.
    """
    place = np.searchsorted(np.maximum.accumulate(values), ticks, "right")
    return np.append(whens, NEVER)[place]


def _ints(table: pa.Table, name: str) -> Ints:
    return np.asarray(table.column(name).to_numpy(), np.int64)
