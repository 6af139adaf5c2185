"""Semi, anti and mark joins: in which periods a row has a partner on the other side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.zset.join import overlapping
from windrow.kernels.zset.multiplicities import counted
from windrow.kernels.zset.relation import NEVER

__all__ = ["partnered"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_BEGIN = -(2**63)


def partnered(
    left: tuple[Ints, Ints, Ints], right: tuple[Ints, Ints, Ints]
) -> tuple[Ints, Bools, Ints, Ints]:
    """The periods in which rows of the left side have, and have no, partner with their key.

    The cost is that of sorting both sides, and the periods found: no pairs are made.

    Parameters
    ----------
    left, right
        (key, enter, leave) of each row, int64, in any order.

    Returns
    -------
    row, has_partner, enter, leave
        Of each period, the place of its row on the left. A row has no two adjacent periods of one kind.
    """
    of, since, until = counted("distinct", *right, np.zeros(len(right[0]), bool))
    ends = until != NEVER
    keys = np.unique(left[0])
    # periods without and with a partner alternate in the time of each key
    key = np.concatenate([keys, of, of[ends]])
    begin = np.concatenate([np.full(len(keys), _BEGIN), since, until[ends]])
    there = np.zeros(len(key), bool)
    there[len(keys) : len(keys) + len(of)] = True
    order = np.lexsort((begin, key))
    key, begin, there = key[order], begin[order], there[order]
    end = np.append(begin[1:], NEVER)[: len(begin)]
    end[:-1][key[1:] != key[:-1]] = NEVER
    by_time = np.lexsort((left[1], left[0]))
    found, period = overlapping((left[0][by_time], left[1][by_time], left[2][by_time]), (key, begin, end))
    row = by_time[found]
    enter, leave = np.maximum(left[1][row], begin[period]), np.minimum(left[2][row], end[period])
    return row, there[period], enter, leave
