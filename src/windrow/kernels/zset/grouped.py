"""Aggregates of groups of rows that come and go, for each stretch of time in which a group stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.aggregates import Aggregate, aggregate
from windrow.kernels.aggregates.windows import expanded
from windrow.kernels.zset.elementary import Pieces, elementary

__all__ = ["grouped"]

Ints = npt.NDArray[np.int64]
_REFERENCES = 1 << 22  # rows of pieces that are written out at once


def grouped(
    rows: pa.Table, group: Ints, enter: Ints, leave: Ints, specs: Sequence[Aggregate]
) -> Iterator[tuple[Ints, Ints, Ints, list[pa.Array]]]:
    """The aggregates of each group.

    Where rows leave in the order in which they came, those that are there are a stretch of them, and the work
    does not depend on how many they are. Else the rows of each piece of time are written out.

    Parameters
    ----------
    rows
        With the columns that `specs` read.
    group, enter, leave
        Of each row, int64; groups are numbered from 0.

    Yields
    ------
    row, enter, leave, values
        Of each piece of time in which the group has rows: one of them, when it is, and the aggregates.
    """
    order = np.lexsort((leave, enter, group))
    group, enter, leave = group[order], enter[order], leave[order]
    rows = rows.take(pa.array(order))
    pieces = elementary(group, enter, leave)
    if (np.diff(pieces.stop) >= 0).all():
        number = np.arange(len(pieces.enter))
        lo = np.searchsorted(pieces.stop, number, side="right")
        hi = np.searchsorted(pieces.first, number, side="right")
        kept = np.flatnonzero(lo < hi)
        lo, hi = lo[kept], hi[kept]
        values = [_array(aggregate(spec, rows, lo, hi)) for spec in specs]
        yield order[lo], pieces.enter[kept], pieces.leave[kept], values
        return
    for part in _parts(pieces):
        own = np.arange(part.start, part.stop)
        row, piece = expanded(pieces.first[own], pieces.stop[own])
        row = own[row]
        by_piece = np.argsort(piece, kind="stable")
        row, piece = row[by_piece], piece[by_piece]
        begins = np.flatnonzero(np.diff(piece, prepend=-1))
        hi = np.append(begins[1:], len(piece))
        there = rows.take(pa.array(row))
        values = [_array(aggregate(spec, there, begins, hi)) for spec in specs]
        found = piece[begins]
        yield order[row[begins]], pieces.enter[found], pieces.leave[found], values


def _parts(pieces: Pieces) -> Iterator[slice]:
    """Stretches of rows of whole groups, each of so many references if that can be."""
    if not len(pieces.first):
        return
    groups = pieces.group[pieces.first]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    reached = np.cumsum(pieces.stop - pieces.first)
    begin = 0
    for end in [*starts[1:].tolist(), len(groups)]:
        done = int(reached[begin - 1]) if begin else 0
        if end == len(groups) or int(reached[end - 1]) - done >= _REFERENCES:
            yield slice(begin, end)
            begin = end


def _array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
