"""Joins of time-varying relations: which rows of two sides exist at the same time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["overlapping"]

Ints = npt.NDArray[np.int64]


def overlapping(left: tuple[Ints, Ints, Ints], right: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints]:
    """The pairs of rows with equal keys whose times overlap.

    Either the right row enters while the left one exists, or the left one enters while the right one already
    exists: for a row, both are ranges of the other side in order of key and ENTER. The work is proportional
    to the pairs found, not to all pairs of a key.

    Parameters
    ----------
    left, right
        (key, enter, leave) of each row, int64, sorted by key and enter.

    Returns
    -------
    left, right
        The places of the rows of each pair.
    """
    entered_later = _within(left, right, side="left")
    entered_before = _within(right, left, side="right")
    rows = np.concatenate([entered_later[0], entered_before[1]])
    others = np.concatenate([entered_later[1], entered_before[0]])
    return rows, others


def _within(rows: tuple[Ints, Ints, Ints], others: tuple[Ints, Ints, Ints], side: str) -> tuple[Ints, Ints]:
    """For each row, the others of its key that enter while it exists, at its entry too if side is left."""
    key, enter, leave = rows
    low = _places(others, key, enter, side)
    high = _places(others, key, leave, "left")
    length = np.maximum(high - low, 0)
    index = np.repeat(np.arange(len(key)), length)
    first = np.cumsum(length) - length
    return index, np.arange(len(index)) - np.repeat(first - low, length)


def _places(others: tuple[Ints, Ints, Ints], key: Ints, instant: Ints, side: str) -> Ints:
    """Where (key, instant) would be inserted among the others."""
    count = len(others[0])
    keys, instants = np.concatenate([others[0], key]), np.concatenate([others[1], instant])
    # of equals, those that are looked up come first, or last
    looked_up = np.concatenate([np.full(count, side == "left"), np.full(len(key), side == "right")])
    order = np.lexsort((looked_up, instants, keys))
    before = np.cumsum(order < count)
    places = np.empty(len(order), np.int64)
    places[order] = before
    return places[count:]
