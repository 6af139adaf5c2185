"""Rows that come out of order by no more than some time: which are later than that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.streams.entries import NO_BOUND, Ints

__all__ = ["TooLate", "too_late"]


@dataclass(frozen=True, eq=False)
class TooLate:
    """Of each row the bound when it came, and whether it was below it; the greatest rowtime after all."""

    late: npt.NDArray[np.bool_]
    bounds: Ints
    seen: int


def too_late(ticks: Ints, seen: int | None, within: int) -> TooLate:
    """Which rows are further behind the greatest rowtime before them than they may be.

    >>> too_late(np.array([10, 9, 12, 10, 9]), None, 2).late.tolist()
    [False, False, False, False, True]
    """
    first = NO_BOUND if seen is None else seen
    greatest = np.maximum.accumulate(np.concatenate([[first], ticks]))
    bounds = np.where(greatest > NO_BOUND + within, greatest - within, NO_BOUND)[:-1]
    return TooLate(ticks < bounds, bounds, int(greatest[-1]))
