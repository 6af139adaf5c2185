"""When rows enter and leave a CQL window of a live stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.incremental.timed_rows import TimedRows, Times
from windrow.kernels.packing.numbering import numbered_in_order
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.zset.relation import NEVER

__all__ = ["BracketWindow", "WindowValueError"]

Ints = npt.NDArray[np.int64]


class WindowValueError(Exception):
    """The values of a window by value decrease (`falls`), or its distance is not greater than zero."""

    def __init__(self, *, falls: bool) -> None:
        super().__init__("falls" if falls else "distance")
        self.falls = falls


@dataclass(frozen=True)
class BracketWindow:
    """The definition of a window in brackets.

    Attributes
    ----------
    rowtime
        The column of the rowtimes, int64.
    length, slide
        In ticks: how long rows stay, None for ever; and the multiples at which they enter, None for at once.
    rows, row_slide
        How many rows of a partition stay, None without such a limit; and how many enter together, with the
        last of them.
    partition
        The columns of its keys.
    ties
        The columns that order rows with equal rowtimes, if they are not in order already.
    by_value
        For windows by value, the columns with the value of a row, and with the limit from which on a later
        row pushes it out.
    """

    rowtime: str
    length: int | None = None
    slide: int | None = None
    rows: int | None = None
    partition: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    row_slide: int = 1
    by_value: tuple[str, str] | None = None

    @property
    def is_by_time(self) -> bool:
        """Whether rows leave by time alone, if they do, and not as later rows arrive."""
        return self.rows is None and self.by_value is None

    def leaving(self, enter: Ints) -> Ints:
        """When rows leave that enter then, if none pushes them out."""
        return np.full(len(enter), NEVER) if self.length is None else enter + self.length

    def with_new(
        self, retained: TimedRows, rows: pa.Table, chunk: Ints, keys: tuple[tuple[str, ...], ...] = ()
    ) -> TimedRows:
        """The retained rows after new rows, all of them later than those retained before.

        Parameters
        ----------
        rows
            The new rows, with the columns of retained ones.
        chunk
            The file that retains each row.
        keys
            As of :meth:`TimedRows.of`.

        Raises
        ------
        WindowValueError
            For values by which rows cannot leave.
        """
        at = rows.column(self.rowtime).to_numpy()
        enter = at if self.slide is None else at + (-at) % self.slide
        whole = retained.with_rows(TimedRows.of(rows, enter, self.leaving(enter), chunk, keys))
        if self.by_value is not None and len(at):
            return self._by_values(whole, *self.by_value)
        if self.rows is None or not len(at):
            return whole
        is_new = np.arange(len(whole)) >= len(retained)
        # all later rows of a partition count, including those that have left since
        places = np.flatnonzero(whole.alike(self.partition, is_new))
        order, bounds = sorted_partitions(
            whole.rows.select([self.rowtime, *self.ties, *self.partition]).take(pa.array(places)),
            self.partition,
            tuple(map(SortKey, (self.rowtime, *self.ties))),
        )
        places = places if order is None else places[order]
        begins, ends = (np.repeat(one, np.diff(bounds)) for one in (bounds[:-1], bounds[1:]))
        within = np.arange(len(places))
        last = within
        if self.row_slide > 1:  # the retained rows begin with a whole group
            last = within + self.row_slide - 1 - (within - begins) % self.row_slide
            is_full = last < ends
            enter = np.full(len(places), NEVER)
            enter[is_full] = whole.rows.column(self.rowtime).to_numpy()[places[last[is_full]]]
            whole = whole.entering(places, enter)
        pushing = within + self.rows
        inside = pushing < ends
        pushed = places[inside]
        by = whole.enter[places[pushing[inside]]]
        whole = whole.pushed(pushed, np.minimum(whole.leave[pushed], by))
        if self.row_slide == 1:
            return whole
        stays = whole.leave[places[np.minimum(last, ends - 1)]]
        return whole.needed_until(places, np.where(last < ends, stays, NEVER))

    def _by_values(self, whole: TimedRows, value: str, limit: str) -> TimedRows:
        """The rows, where those leave whose limit a later row reaches; NULL reaches none."""
        there = np.flatnonzero(np.asarray(whole.rows.column(value).is_valid()))
        rows = whole.rows.take(pa.array(there))
        order, _ = sorted_partitions(rows, (), tuple(map(SortKey, (self.rowtime, *self.ties))))
        if order is not None:
            there, rows = there[order], rows.take(pa.array(order))
        has_limit = np.asarray(rows.column(limit).is_valid())
        both = [rows.column(value).combine_chunks(), rows.column(limit).combine_chunks()]
        values, limits = np.split(numbered_in_order(pa.table({"v": pa.chunked_array(both)}), ["v"]), 2)
        if (values[1:] < values[:-1]).any():
            raise WindowValueError(falls=True)
        if (limits[has_limit] <= values[has_limit]).any():
            raise WindowValueError(falls=False)
        first = np.searchsorted(values, limits)
        reached = has_limit & (first < len(values))
        leave = rows.column(self.rowtime).to_numpy()[first[reached]]
        return whole.pushed(there[reached], leave)

    def left(self, retained: TimedRows, times: Times) -> TimedRows:
        """The retained rows after a micro-batch."""
        return retained.at(times.until)
