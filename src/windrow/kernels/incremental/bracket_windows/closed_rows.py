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
from windrow.kernels.hashing import among, hashes
from windrow.kernels.incremental.bracket_windows.membership import BracketWindow
from windrow.kernels.incremental.timed_rows import TimedRows
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.zset.relation import NEVER

__all__ = ["closed_alone", "closed_pairs"]

Bools = npt.NDArray[np.bool_]


def closed_alone(
    retained: TimedRows,
    window: BracketWindow,
    ended: Ended | None,
    key: Sequence[str] | None,
    over: Ended | None,
) -> Bools:
    """The rows of one window that are closed.

    Parameters
    ----------
    ended
        The partitions of the window that have ended; None if none has, or it has no partitions.
    key, over
        For a query with groups: their key, and the groups that receive no more rows; otherwise None.
    """
    stays = _stays(retained, window, ended)
    if key is None:
        return stays
    found = stays & _ended(retained, over)
    if found.any():
        marks = hashes(retained.rows, tuple(key))
        found &= ~among(marks, marks[retained.alive & ~stays])
    return found


def closed_pairs(
    sides: tuple[TimedRows, TimedRows],
    windows: tuple[BracketWindow, BracketWindow],
    ended: tuple[Ended | None, Ended | None],
    keys: tuple[Sequence[str], Sequence[str]],
    over: tuple[Ended | None, Ended | None],
) -> tuple[Bools, Bools]:
    """The rows of either side that are final: all their pairs have been emitted, and none ends.

    Parameters
    ----------
    keys
        The columns of each side that are equal in pairs.
    over
        For each side, the keys for which the other one receives no more rows.
    """
    stays = [_stays(*one) for one in zip(sides, windows, ended, strict=True)]
    found = []
    for at, (retained, window) in enumerate(zip(sides, windows, strict=True)):
        free = retained.alive & (retained.enter < retained.reached) & _ended(retained, over[at])
        if window.rows is not None:  # a row itself counts towards pushing others out
            free &= _ended(retained, ended[at])
        other = sides[1 - at]
        moving = _is_among(retained, keys[at], other, keys[1 - at], other.alive & ~stays[1 - at], free)
        paired = _is_among(retained, keys[at], other, keys[1 - at], other.alive, free)
        found.append(free & ~moving & (stays[at] | ~paired))
    return found[0], found[1]


def _stays(retained: TimedRows, window: BracketWindow, ended: Ended | None) -> Bools:
    """The rows that have entered and never leave."""
    found: Bools = (retained.enter < retained.reached) & (retained.leave == NEVER)
    return found if window.rows is None or not found.any() else found & _ended(retained, ended)


def _ended(retained: TimedRows, ended: Ended | None) -> Bools:
    return np.zeros(len(retained), bool) if ended is None else ended.rows(retained.rows)


def _is_among(
    retained: TimedRows,
    key: Sequence[str],
    other: TimedRows,
    other_key: Sequence[str],
    some: Bools,
    wanted: Bools,
) -> Bools:
    """Of these rows, whether some rows of another window have their key."""
    found = np.zeros(len(retained), bool)
    if not wanted.any() or not some.any():
        return found
    names = [f"k{number}" for number in range(len(key))]
    mine = retained.rows.select(list(key)).filter(pa.array(wanted)).rename_columns(names)
    theirs = other.rows.select(list(other_key)).filter(pa.array(some)).rename_columns(names)
    number = numbered(pa.concat_tables([mine, theirs.cast(mine.schema)]), names)
    found[wanted] = np.isin(number[: len(mine)], number[len(mine) :])
    return found
