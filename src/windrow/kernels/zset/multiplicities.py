"""DISTINCT and set operators: the multiplicity of a row, from its counts on either side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from windrow.kernels.zset.group_and_time import by_group_and_time
from windrow.kernels.zset.relation import NEVER

__all__ = ["COUNTS", "counted"]

Ints = npt.NDArray[np.int64]


def _some(count: Ints) -> Ints:
    return (count > 0).astype(np.int64)


#: The multiplicity of a row in the result, from its multiplicities on the left and on the right.
COUNTS: Mapping[str, Callable[[Ints, Ints], Ints]] = MappingProxyType(
    {
        "distinct": lambda left, _: _some(left),
        "union": lambda left, right: _some(left + right),
        "intersect": lambda left, right: _some(np.minimum(left, right)),
        "intersect all": lambda left, right: np.minimum(left, right),
        "except": lambda left, right: _some(left) * (1 - _some(right)),
        "except all": lambda left, right: np.maximum(left - right, 0),
    }
)


def counted(
    operator: str, group: Ints, enter: Ints, leave: Ints, is_right: npt.NDArray[np.bool_]
) -> tuple[Ints, Ints, Ints]:
    """The result's rows with their times.

    Parameters
    ----------
    operator
        A key of `COUNTS`.
    group, enter, leave, is_right
        For each row, in any order: the number of its group of equal rows, its times, and its side.

    Returns
    -------
    group, enter, leave
        A row for each copy.
    """
    ends = np.flatnonzero(leave != NEVER)
    instants = np.concatenate([enter, leave[ends]])
    groups = np.concatenate([group, group[ends]])
    right = np.concatenate([is_right, is_right[ends]])
    change = np.concatenate([np.ones(len(enter), np.int64), -np.ones(len(ends), np.int64)])
    order = by_group_and_time(groups, instants)
    instants, groups, right, change = instants[order], groups[order], right[order], change[order]
    last = np.ones(len(order), bool)
    last[:-1] = (instants[1:] != instants[:-1]) | (groups[1:] != groups[:-1])
    starts = np.ones(len(order), bool)
    starts[1:] = groups[1:] != groups[:-1]
    begun = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))

    def running(of: npt.NDArray[np.bool_]) -> Ints:
        """The number of rows after each instant."""
        changes = np.where(of, change, 0)
        total = np.cumsum(changes)
        count: Ints = (total - (total - changes)[begun])[last]
        return count

    counts = COUNTS[operator](running(~right), running(right))
    at, of = instants[last], groups[last]
    first = np.ones(len(at), bool)
    first[1:] = of[1:] != of[:-1]
    before = np.where(first, 0, np.roll(counts, 1))
    changes = counts != before
    at, of, counts = at[changes], of[changes], counts[changes]
    until = np.roll(at, -1)
    until[np.append(of[1:] != of[:-1], True)[: len(of)]] = NEVER
    return np.repeat(of, counts), np.repeat(at, counts), np.repeat(until, counts)
