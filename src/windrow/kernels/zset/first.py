"""ORDER BY with LIMIT: the first rows in an order, over time."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort

import numpy as np
import numpy.typing as npt

from windrow.kernels.zset.multiplicities import counted
from windrow.kernels.zset.relation import NEVER

__all__ = ["first_of_groups", "first_rows"]

Ints = npt.NDArray[np.int64]


_LEVELS = 50  # up to which so many passes over all rows take less time than a heap for each group


def first_of_groups(
    bounds: Ints, enter: Ints, leave: Ints, offset: int, limit: int | None
) -> tuple[Ints, Ints, Ints]:
    """The periods in which each row is among the first of its group; all groups at once, if no row leaves.

    Parameters
    ----------
    bounds
        int64, (groups + 1,): where the groups begin among the rows, which are in order in each.
    enter, leave, offset, limit
        As those of :func:`first_rows`.

    Returns
    -------
    row, enter, leave
        As those of :func:`first_rows`, the rows of all groups.
    """
    sizes = np.diff(bounds)
    if offset + (limit or 0) > _LEVELS:
        alone = np.ones(len(sizes), bool)
    else:
        alone = np.zeros(len(sizes), bool)
        alone[np.searchsorted(bounds, np.flatnonzero(leave != NEVER), "right") - 1] = True
    rows = np.flatnonzero(np.repeat(~alone, sizes))
    group = np.repeat(np.arange(len(sizes)), sizes)[rows]
    found = [_entering(rows, group, enter[rows], offset, limit)]
    for start, stop in zip(bounds[:-1][alone].tolist(), bounds[1:][alone].tolist(), strict=True):
        part = slice(start, stop)
        row, *times = first_rows(enter[part], leave[part], offset, limit)
        found.append((row + start, *times))
    row, begins, stops = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return row, begins, stops


def _entering(
    rows: Ints, group: Ints, enter: Ints, offset: int, limit: int | None
) -> tuple[Ints, Ints, Ints]:
    """For groups from which no row leaves. A row moves behind `offset` others, then behind the limit."""
    begins = np.maximum(enter, _pushed_out(group, enter, offset))
    stops = np.full(len(enter), NEVER) if limit is None else _pushed_out(group, enter, offset + limit)
    lasting = begins < stops
    return rows[lasting], begins[lasting], stops[lasting]


def _pushed_out(group: Ints, enter: Ints, most: int) -> Ints:
    """From when `most` rows of its group are before each: the `most`-th least `ENTER` of those before it.

    Level by level, as an insertion sort of all groups side by side: the first has the least of the rows so
    far, and passes on what it does not retain.
    """
    if not most:
        return np.full(len(enter), np.iinfo(np.int64).min)
    instants, entered = np.unique(enter, return_inverse=True)
    never = len(instants)
    apart = (len(group) - group) * (never + 1)  # so that the least of a group is less than any before it
    is_first = np.diff(group, prepend=-1) != 0
    before = np.zeros(len(group), np.int64)
    for _ in range(most):
        before[1:] = (np.minimum.accumulate(entered + apart) - apart)[:-1]
        before[is_first] = never
        if (before == never).all():
            break
        entered = np.maximum(entered, before)
    return np.append(instants, NEVER)[before]


def first_rows(enter: Ints, leave: Ints, offset: int, limit: int | None) -> tuple[Ints, Ints, Ints]:
    """The periods in which each row is among the first.

    Parameters
    ----------
    enter, leave
        The times of the rows, which are in their order.
    offset, limit
        How many rows to skip, and how many to select then; None for all.

    Returns
    -------
    row, enter, leave
        Periods in which the row is selected.
    """
    if limit is None:
        leading = _leading(enter, leave, offset)
        return _without((np.arange(len(enter)), enter, leave), leading) if offset else _all(enter, leave)
    whole = _leading(enter, leave, offset + limit)
    return _without(whole, _leading(enter, leave, offset)) if offset else whole


def _all(enter: Ints, leave: Ints) -> tuple[Ints, Ints, Ints]:
    return np.arange(len(enter)), enter, leave


def _leading(enter: Ints, leave: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """When rows are among the first `most`: a change costs a heap operation."""
    if not most:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    count = len(enter)
    ends = np.flatnonzero(leave != NEVER)
    at = np.concatenate([leave[ends], enter])
    row = np.concatenate([ends, np.arange(count)])
    is_entering = np.concatenate([np.zeros(len(ends), bool), np.ones(count, bool)])
    order = np.lexsort((is_entering, at))
    leading: list[int] = []
    waiting: list[int] = []
    is_waiting, since = bytearray(count), [0] * count
    found: list[tuple[int, int, int]] = []
    for instant, which, entering in zip(
        at[order].tolist(), row[order].tolist(), is_entering[order].tolist(), strict=True
    ):
        if entering:
            insort(leading, which)
            since[which] = instant
            if len(leading) > most:
                out = leading.pop()
                found.append((out, since[out], instant))
                heapq.heappush(waiting, out)
                is_waiting[out] = True
        elif is_waiting[which]:
            is_waiting[which] = False
        else:
            del leading[bisect_left(leading, which)]
            found.append((which, since[which], instant))
            while waiting and not is_waiting[waiting[0]]:
                heapq.heappop(waiting)
            if waiting:
                following = heapq.heappop(waiting)
                is_waiting[following] = False
                since[following] = instant
                insort(leading, following)
    found += [(which, since[which], NEVER) for which in leading]
    rows, begins, stops = (np.array([part[place] for part in found], np.int64) for place in range(3))
    lasting = begins < stops
    return rows[lasting], begins[lasting], stops[lasting]


def _without(whole: tuple[Ints, Ints, Ints], part: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints, Ints]:
    """Subtract periods of rows, each of which is within another period of the same row."""
    row = np.concatenate([whole[0], part[0]])
    enter, leave = np.concatenate([whole[1], part[1]]), np.concatenate([whole[2], part[2]])
    return counted("except all", row, enter, leave, np.arange(len(row)) >= len(whole[0]))
