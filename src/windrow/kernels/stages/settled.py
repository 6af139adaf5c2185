"""Rows in a window that can be dropped because punctuation has closed their keys.

A row stays in a window without a length of time until later rows push it out. After its partition has ended,
none does, and the row never leaves. If no later row can change its group or its pairs either, no change will
be computed from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.advance.ended import Ended
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.stages.held import Held
from windrow.kernels.stages.windows import Window
from windrow.kernels.zset.relation import NEVER

__all__ = ["settled_alone", "settled_pairs"]

Bools = npt.NDArray[np.bool_]


def settled_alone(
    held: Held, window: Window, ended: Ended | None, key: Sequence[str] | None, over: Ended | None
) -> Bools:
    """The rows of one window that are settled.

    Parameters
    ----------
    ended
        The partitions of the window that have ended; None if none has, or it has no partitions.
    key, over
        Of a query with groups: their key, and the groups to which no row will come; of others None.
    """
    stays = _stays(held, window, ended)
    if key is None:
        return stays
    found = stays & _ended(held, over)
    if found.any():
        found &= ~held.alike(tuple(key), held.alive & ~stays)
    return found


def settled_pairs(
    sides: tuple[Held, Held],
    windows: tuple[Window, Window],
    ended: tuple[Ended | None, Ended | None],
    keys: tuple[Sequence[str], Sequence[str]],
    over: tuple[Ended | None, Ended | None],
) -> tuple[Bools, Bools]:
    """The rows of either side that are settled: all their pairs have been told, and none ends.

    Parameters
    ----------
    keys
        The columns of each side that are equal in pairs.
    over
        Of each side, the keys with which no row will come to the other one.
    """
    stays = [_stays(*one) for one in zip(sides, windows, ended, strict=True)]
    found = []
    for at, (held, window) in enumerate(zip(sides, windows, strict=True)):
        free = held.alive & (held.enter < held.reached) & _ended(held, over[at])
        if window.rows is not None:  # a row counts among those that push others out
            free &= _ended(held, ended[at])
        other = sides[1 - at]
        moving = _is_among(held, keys[at], other, keys[1 - at], other.alive & ~stays[1 - at], free)
        paired = _is_among(held, keys[at], other, keys[1 - at], other.alive, free)
        found.append(free & ~moving & (stays[at] | ~paired))
    return found[0], found[1]


def _stays(held: Held, window: Window, ended: Ended | None) -> Bools:
    """The rows that have entered and never leave."""
    found: Bools = (held.enter < held.reached) & (held.leave == NEVER)
    return found if window.rows is None or not found.any() else found & _ended(held, ended)


def _ended(held: Held, ended: Ended | None) -> Bools:
    return np.zeros(len(held), bool) if ended is None else ended.rows(held.rows)


def _is_among(
    held: Held, key: Sequence[str], other: Held, other_key: Sequence[str], some: Bools, asked: Bools
) -> Bools:
    """Of the rows that are asked about, whether some rows of another window have their key."""
    found = np.zeros(len(held), bool)
    if not asked.any() or not some.any():
        return found
    names = [f"k{number}" for number in range(len(key))]
    mine = held.rows.select(list(key)).filter(pa.array(asked)).rename_columns(names)
    theirs = other.rows.select(list(other_key)).filter(pa.array(some)).rename_columns(names)
    number = numbered(pa.concat_tables([mine, theirs.cast(mine.schema)]), names)
    found[asked] = np.isin(number[: len(mine)], number[len(mine) :])
    return found
