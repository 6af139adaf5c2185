"""When rows enter and leave a CQL window of a live stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.incremental.timed_rows import TimedRows, Times
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.zset.relation import NEVER

__all__ = ["Window"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """What a bracket says.

    Attributes
    ----------
    rowtime
        The column of the rowtimes, int64.
    length, slide
        In ticks: how long rows stay, None for ever; and at which multiples they enter, None for at once.
    rows
        How many rows of a partition stay; None without such a limit.
    partition
        The columns of its keys.
    ties
        The columns that order rows of one rowtime, if they are not in order already.
    """

    rowtime: str
    length: int | None = None
    slide: int | None = None
    rows: int | None = None
    partition: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()

    def taken(
        self, retained: TimedRows, rows: pa.Table, chunk: Ints, keys: tuple[tuple[str, ...], ...] = ()
    ) -> TimedRows:
        """What is retained when rows have come, all of them later than those retained before.

        Parameters
        ----------
        rows
            Those that come: the columns of retained ones.
        chunk
            Of each, the file that keeps it.
        keys
            As of :meth:`TimedRows.of`.
        """
        at = rows.column(self.rowtime).to_numpy()
        enter = at if self.slide is None else at + (-at) % self.slide
        leave = np.full(len(at), NEVER) if self.length is None else enter + self.length
        whole = retained.with_rows(TimedRows.of(rows, enter, leave, chunk, keys))
        if self.rows is None or not len(at):
            return whole
        came = np.arange(len(whole)) >= len(retained)
        # of a partition all later rows count, also those that have left since
        places = np.flatnonzero(whole.alike(self.partition, came))
        order, bounds = sorted_partitions(
            whole.rows.select([self.rowtime, *self.ties, *self.partition]).take(pa.array(places)),
            self.partition,
            tuple(map(SortKey, (self.rowtime, *self.ties))),
        )
        places = places if order is None else places[order]
        ends = np.repeat(bounds[1:], np.diff(bounds))
        pushing = np.arange(len(places)) + self.rows
        inside = pushing < ends
        pushed = places[inside]
        by = whole.enter[places[pushing[inside]]]
        return whole.pushed(pushed, np.minimum(whole.leave[pushed], by))

    def left(self, retained: TimedRows, times: Times) -> TimedRows:
        """What is retained after a micro-batch."""
        return retained.at(times.until)
