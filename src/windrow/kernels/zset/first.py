"""ORDER BY with LIMIT: the first rows in an order, over time."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort

import numpy as np
import numpy.typing as npt

from windrow.kernels.zset.multiplicities import counted
from windrow.kernels.zset.relation import NEVER

__all__ = ["first_rows"]

Ints = npt.NDArray[np.int64]


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
    comes = np.concatenate([np.zeros(len(ends), bool), np.ones(count, bool)])
    order = np.lexsort((comes, at))
    leading: list[int] = []
    waiting: list[int] = []
    is_waiting, since = bytearray(count), [0] * count
    found: list[tuple[int, int, int]] = []
    for instant, which, entering in zip(
        at[order].tolist(), row[order].tolist(), comes[order].tolist(), strict=True
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
