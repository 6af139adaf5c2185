"""EMIT with a delay: when buffered changes are emitted."""

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
    """The times of rows in the output, if changes of a group are emitted `delay` after the first of them.

    The first change is the one after the last emission. Changes at the instant of emission are included.

    Parameters
    ----------
    group
        The number of each row's group, from 0 on.
    same
        The same number for equal rows: if one leaves as an equal one enters, nothing changes.
    enter, leave
        The times of the rows.
    complete
        When the row's group is complete, or `NEVER`: buffered changes are emitted then.

    Returns
    -------
    row, enter, leave
        Periods of time; rows that enter and leave between two emissions have none.
    """
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    emitted_enter, emitted_leave = np.empty_like(enter), np.empty_like(leave)
    for start, stop in zip(starts, np.append(starts, len(order))[1:], strict=True):
        rows = order[start:stop]
        changes = _changes(same[rows], enter[rows], leave[rows])
        emitted = _emitted(changes.tolist(), delay, int(complete[rows[0]]))
        emitted_enter[rows] = emitted[np.searchsorted(changes, enter[rows])]
        emitted_leave[rows] = emitted[np.searchsorted(changes, leave[rows])]
    lasting = np.flatnonzero(emitted_enter < emitted_leave)
    return lasting, emitted_enter[lasting], emitted_leave[lasting]


def _changes(same: Ints, enter: Ints, leave: Ints) -> Ints:
    """The instants at which the multiplicity of some row changes, in order."""
    row, at = np.concatenate([same, same]), np.concatenate([enter, leave])
    diff = np.repeat(np.array([1, -1]), len(same))
    order = np.lexsort((row, at))
    row, at, diff = row[order], at[order], diff[order]
    first = np.flatnonzero((np.diff(at, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 0))
    changed = at[first][np.add.reduceat(diff, first) != 0]
    found: Ints = np.unique(changed[changed != NEVER])
    return found


def _emitted(changes: list[int], delay: int, complete: int) -> Ints:
    """When each of a group's changes, in order, is emitted; then `NEVER`, for rows that never leave."""
    emitted = np.full(len(changes) + 1, NEVER, np.int64)
    at = 0
    while at < len(changes):
        first = changes[at]
        due = complete if first <= complete <= first + delay else first + delay
        after = bisect_right(changes, due, at)
        emitted[at:after] = due
        at = after
    return emitted
