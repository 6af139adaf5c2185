"""Windows over a column: passing over NULLs, cutting the work into pieces, making the result.

The windows of one call are two int64 arrays, window k being rows ``lo[k] <= i < hi[k]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates.spec import Bools, Ints, Result

__all__ = [
    "ValueWindows",
    "by_length",
    "by_range",
    "expanded",
    "listed",
    "masked",
    "running_total",
    "skip_nulls",
    "take",
    "valid_before",
]

#: Windows per piece: small enough that a piece's arrays stay in the processor's cache.
PIECE = 1 << 16

#: Row references per piece where the rows of each window are written out one by one.
EXPANDED = 1 << 21


@dataclass(frozen=True, slots=True)
class ValueWindows:
    """Windows over the values of a column that are not NULL.

    Attributes
    ----------
    values
        The values, without the NULLs, in row order.
    lo, hi
        int64, the bounds of each window as positions in `values`; ``lo == hi`` where all were NULL.
    """

    values: pa.ChunkedArray
    lo: Ints
    hi: Ints

    @property
    def empty(self) -> Bools:
        """Which windows have no value at all; most aggregates are NULL there."""
        return np.equal(self.lo, self.hi)


def skip_nulls(column: pa.ChunkedArray, lo: Ints, hi: Ints) -> ValueWindows:
    """The same windows over the column's values without its NULLs."""
    if not column.null_count:
        return ValueWindows(column, lo, hi)
    before = valid_before(column)
    return ValueWindows(column.drop_null(), before[lo], before[hi])


def valid_before(column: pa.ChunkedArray) -> Ints:
    """How many values before each position are not NULL: int64, one longer than the column."""
    return running_total(pc.is_valid(column).to_numpy())


def running_total(addends: npt.NDArray[Any]) -> Ints:
    """The sum of all the addends before each position: int64, one longer than `addends`."""
    totals = np.zeros(len(addends) + 1, np.int64)
    np.cumsum(addends, dtype=np.int64, out=totals[1:])
    return totals


def masked(values: npt.NDArray[Any], null: Bools, type_: pa.DataType) -> pa.Array:
    """An Arrow array of `type_` from numbers of the same width, NULL where `null`.

    Integers become dates, timestamps and durations by being taken for their count of units.
    """
    array = pa.array(values, mask=null if null.any() else None)
    return array if array.type == type_ else array.cast(type_)


def by_range(lo: Ints, hi: Ints) -> Iterator[tuple[slice, int, int]]:
    """Cut the windows into pieces that each read a short range of rows: (windows, first row, end row).

    Neighbouring windows mostly read neighbouring rows, so pieces of some multiple of their length read
    each row twice at most. Where that fails (the order is random), all windows are one piece.
    """
    size = PIECE
    while len(lo):
        starts = np.arange(0, len(lo), size)
        first, end = np.minimum.reduceat(lo, starts), np.maximum.reduceat(hi, starts)
        if len(starts) == 1 or int((end - first).sum()) <= 2 * int(end.max() - first.min()):
            for start, row, stop in zip(starts.tolist(), first.tolist(), end.tolist(), strict=True):
                yield slice(start, start + size), row, stop
            return
        size *= 4


def by_length(lo: Ints, hi: Ints) -> Iterator[slice]:
    """Cut the windows into pieces of a bounded number of row references (but at least one window)."""
    reached = np.cumsum(hi - lo)
    start = 0
    while start < len(lo):
        done = int(reached[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(reached, done + EXPANDED, side="right")))
        yield slice(start, stop)
        start = stop


def expanded(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """Every row of every window: (index of the window, row), in the order of windows and rows."""
    length = hi - lo
    window = np.repeat(np.arange(len(lo)), length)
    first = np.cumsum(length) - length
    return window, np.arange(len(window)) - np.repeat(first - lo, length)


def take(column: pa.ChunkedArray, rows: Ints, null: Bools | None = None) -> Result:
    """The column's values at `rows`, NULL where `null`; in chunks, so that long strings find room."""
    indices = pa.array(rows, mask=null if null is not None and null.any() else None)
    if pa.types.is_primitive(column.type) or len(rows) <= EXPANDED:
        return column.take(indices)
    parts = [column.take(indices.slice(start, EXPANDED)) for start in range(0, len(rows), EXPANDED)]
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], column.type)


def listed(values: Result, length: Ints, type_: pa.DataType, null: Bools | None = None) -> pa.Array:
    """Cut `values` into consecutive lists of these lengths, NULL (and without values) where `null`."""
    flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if flat.type != type_.value_type:  # times are in the zone of the session
        flat = flat.cast(type_.value_type)
    offsets = pa.array(running_total(length), pa.int32())
    mask = pa.array(null) if null is not None and null.any() else None
    return pa.ListArray.from_arrays(offsets, flat, type=type_, mask=mask)
