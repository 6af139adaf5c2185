"""When changes are told that are gathered for a while."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from windrow.kernels.zset.relation import NEVER

__all__ = ["delayed"]

Ints = npt.NDArray[np.int64]


def delayed(
    group: Ints, same: Ints, enter: Ints, leave: Ints, complete: Ints, delay: int
) -> tuple[Ints, Ints, Ints]:
    """When rows are shown, if the changes of each group are told `delay` after the first of them.

    The first is that after the last that was told; those at the very instant of telling are among them.

    Parameters
    ----------
    group
        Of each row the number of its group, from 0 on.
    same
        A number that equal rows have in common: one that leaves as an equal one enters is no change.
    enter, leave
        When rows are there.
    complete
        When the row's group is complete, or `NEVER`: changes that wait then are told then.

    Returns
    -------
    row, enter, leave
        Stretches of time; rows that come and go between two instants of telling have none.
    """
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    told_enter, told_leave = np.empty_like(enter), np.empty_like(leave)
    for start, stop in zip(starts, np.append(starts, len(order))[1:], strict=True):
        rows = order[start:stop]
        changes = _changes(same[rows], enter[rows], leave[rows])
        told = _told(changes.tolist(), delay, int(complete[rows[0]]))
        told_enter[rows] = told[np.searchsorted(changes, enter[rows])]
        told_leave[rows] = told[np.searchsorted(changes, leave[rows])]
    lasting = np.flatnonzero(told_enter < told_leave)
    return lasting, told_enter[lasting], told_leave[lasting]


def _changes(same: Ints, enter: Ints, leave: Ints) -> Ints:
    """The instants at which there is another number of copies of some row, in order."""
    row, at = np.concatenate([same, same]), np.concatenate([enter, leave])
    diff = np.repeat(np.array([1, -1]), len(same))
    order = np.lexsort((row, at))
    row, at, diff = row[order], at[order], diff[order]
    first = np.flatnonzero((np.diff(at, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 0))
    changed = at[first][np.add.reduceat(diff, first) != 0]
    found: Ints = np.unique(changed[changed != NEVER])
    return found


def _told(changes: list[int], delay: int, complete: int) -> Ints:
    """When each of a group's changes is told; they are in order. Then `NEVER`, for what never changes."""
    told = np.full(len(changes) + 1, NEVER, np.int64)
    at = 0
    while at < len(changes):
        first = changes[at]
        due = complete if first <= complete <= first + delay else first + delay
        after = bisect_right(changes, due, at)
        told[at:after] = due
        at = after
    return told
