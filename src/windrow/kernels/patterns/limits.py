"""The limit of the search from each row, by a frame or a duration."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.kernels.pairs import PairRows
from windrow.kernels.patterns.pattern_plan import Duration, MatchPlan, PatternFrame

__all__ = ["limits_of"]

Array = np.ndarray


def limits_of(plan: MatchPlan, rows: PairRows, bounds: Array, complete: Array | None, bound: Any) -> Array:
    """The row before which the search from each row ends: int64, (rows,), or empty if none is limited.

    Parameters
    ----------
    plan
        The clause.
    rows
        The rows, sorted.
    bounds
        int64, (partitions + 1,): partition p is rows ``bounds[p] : bounds[p + 1]``.
    complete
        bool, (partitions,): whether a partition receives no more rows; None if none does.
    bound
        With DURATION, in the numbers of the key's column: no later key is smaller; None if unknown.

    Returns
    -------
    numpy.ndarray
        It is beyond the end of the partition if it depends on rows that may still arrive.
    """
    if plan.frame is not None:
        more = np.zeros(len(bounds) - 1, np.int64) if complete is None else np.where(complete, 0, 1)
        return _of_frame(plan.frame, rows, np.repeat(more, np.diff(bounds)))
    if plan.duration is not None:
        limits = _of_duration(plan.duration, rows)
        if complete is None or complete.all():
            return limits
        due = rows.column(plan.duration.due, None)
        open_ended: Array = np.repeat(~complete, np.diff(bounds)) & (limits == rows.stop) & due.validity()
        if bound is not None:
            open_ended &= due.data > bound
        known: Array = limits + open_ended
        return known
    return np.empty(0, np.int64)


def _of_frame(frame: PatternFrame, rows: PairRows, more: Array) -> Array:
    stop: Array = rows.stop.astype(np.int64) + more
    if frame.following is None:
        return stop
    here = np.arange(len(stop), dtype=np.int64)
    return here + np.minimum(frame.following + 1, stop - here)


def _of_duration(duration: Duration, rows: PairRows) -> Array:
    """Bisection for all rows at once; a row without a key has no rows within the time, nor is it one."""
    key, due = rows.column(duration.key, None), rows.column(duration.due, None)
    known = key.validity()
    here = np.arange(len(rows.stop), dtype=np.int64)
    low, stop = here.copy(), rows.stop.astype(np.int64)
    last = len(here) - 1
    while True:
        open_still = low < stop
        if not open_still.any():
            limits: Array = np.where(known & due.validity(), low, here)
            return limits
        middle = (low + stop) // 2
        at = np.minimum(middle, last)
        before = known[at] & (key.data[at] < due.data)
        low = np.where(open_still & before, middle + 1, low)
        stop = np.where(open_still & ~before, middle, stop)
