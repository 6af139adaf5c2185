"""Bounded out-of-orderness: which rows are further out of order than allowed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.streams.entries import NO_BOUND, Ints

__all__ = ["TooLate", "too_late"]


@dataclass(frozen=True, eq=False)
class TooLate:
    """For each row the bound when it arrived, and whether it is below it; the greatest rowtime of all."""

    late: npt.NDArray[np.bool_]
    bounds: Ints
    seen: int


def too_late(ticks: Ints, seen: int | None, within: int) -> TooLate:
    """Which rows are further behind the greatest earlier rowtime than allowed.

    >>> too_late(np.array([10, 9, 12, 10, 9]), None, 2).late.tolist()
    [False, False, False, False, True]
    """
    first = NO_BOUND if seen is None else seen
    greatest = np.maximum.accumulate(np.concatenate([[first], ticks]))
    bounds = np.where(greatest > NO_BOUND + within, greatest - within, NO_BOUND)[:-1]
    return TooLate(ticks < bounds, bounds, int(greatest[-1]))
