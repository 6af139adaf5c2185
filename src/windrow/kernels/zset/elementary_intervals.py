"""Elementary intervals: the periods between changes, in which a group does not change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.kernels.zset.group_and_time import by_group_and_time
from windrow.kernels.zset.relation import NEVER

__all__ = ["ElementaryIntervals", "elementary", "gaps", "timeline"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ElementaryIntervals:
    """The elementary intervals of groups, and the intervals in which each row exists.

    Attributes
    ----------
    group, enter, leave
        Of each interval, in order of group and time; the last of a group may end at `NEVER`.
    first, stop
        Of each row: it exists in the intervals ``first <= k < stop``.
    """

    group: Ints
    enter: Ints
    leave: Ints
    first: Ints
    stop: Ints


def elementary(group: Ints, enter: Ints, leave: Ints) -> ElementaryIntervals:
    """Cut the time of each group at the instants at which one of its rows enters or leaves.

    Parameters
    ----------
    group, enter, leave
        Of each row, int64, in any order; ``enter < leave``.

    Returns
    -------
    Pieces
        This includes empty intervals between others, but neither the time before the first row, nor after the
        last has left.
    """
    count = len(group)
    ends = np.flatnonzero(leave != NEVER)
    instants = np.concatenate([enter, leave[ends]])
    groups = np.concatenate([group, group[ends]])
    order = by_group_and_time(groups, instants)
    instants, groups = instants[order], groups[order]
    new = np.ones(len(order), bool)
    new[1:] = (instants[1:] != instants[:-1]) | (groups[1:] != groups[:-1])
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(new) - 1
    at, of = instants[new], groups[new]
    last = np.ones(len(at), bool)
    last[:-1] = of[1:] != of[:-1]
    # if all rows of a group leave, its last instant begins no interval
    stays = np.zeros(int(group.max(initial=-1)) + 1, bool)
    stays[group[leave == NEVER]] = True
    until = np.append(at[1:], NEVER)
    until[last] = NEVER
    is_interval = ~last | stays[of]
    stop = np.cumsum(np.bincount(of, minlength=len(stays)))[group] if count else np.zeros(0, np.int64)
    stop[ends] = place[count:]
    if is_interval.all():
        return ElementaryIntervals(of, at, until, place[:count], stop)
    renumbered = np.cumsum(is_interval) - is_interval
    total = int(is_interval.sum())
    after = np.append(renumbered, total)
    return ElementaryIntervals(
        of[is_interval], at[is_interval], until[is_interval], after[place[:count]], after[stop]
    )


def gaps(enter: Ints, leave: Ints, origin: int) -> tuple[Ints, Ints]:
    """The periods from `origin` on without any of these rows, as enter and leave."""
    order = np.argsort(enter, kind="stable")
    reached = np.maximum.accumulate(np.append(np.int64(origin), leave[order]))
    begins = np.append(enter[order], np.int64(NEVER))
    empty = begins > reached
    return reached[empty], begins[empty]


def timeline(enter: Ints, leave: Ints) -> tuple[Ints, Ints]:
    """The periods between one change of any row and the next, as enter and leave.

    >>> timeline(np.array([0, 3]), np.array([NEVER, 5]))[0].tolist()
    [0, 3, 5]
    """
    begins = np.unique(np.concatenate([enter, leave[leave != NEVER]]))
    return begins, np.append(begins, np.int64(NEVER))[1:]
