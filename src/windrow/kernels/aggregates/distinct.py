"""count_distinct: the rows of a window whose value does not come earlier in the same window."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.kernels.aggregates.order_codes import encode
from windrow.kernels.aggregates.spec import AggregateSpec, Ints
from windrow.kernels.aggregates.wavelet import count_below
from windrow.kernels.aggregates.windows import by_range, skip_nulls

__all__ = ["count_distinct"]


def count_distinct(_spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``count(DISTINCT x)``: bigint, never NULL. All NaN are one value, and so are 0.0 and -0.0."""
    windows = skip_nulls(column, lo, hi)
    counts = np.zeros(len(lo), np.int64)
    if not len(windows.values):
        return pa.array(counts)
    codes = encode(windows.values, merge_zeros=True).codes
    for piece, first, stop in by_range(windows.lo, windows.hi):
        before = _next_after_previous(codes[first:stop])
        start, end = windows.lo[piece] - first, windows.hi[piece] - first
        counts[piece] = count_below(before, start, end, start + 1)
    return pa.array(counts)


def _next_after_previous(codes: Ints) -> Ints:
    """For each row, one more than the last earlier row of the same value; 0 where there is none."""
    order = np.argsort(codes, kind="stable")
    again = codes[order[1:]] == codes[order[:-1]]
    previous = np.zeros(len(codes), np.int64)
    previous[order[1:][again]] = order[:-1][again] + 1
    return previous
