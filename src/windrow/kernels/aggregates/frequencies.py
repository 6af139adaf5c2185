"""mode and collect_set: the distinct values of each window and how often they occur.

The rows of many windows are written out side by side and sorted by (window, value) in one go, so this
costs O(length log length) per window.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windrow.kernels.aggregates.order_codes import encode
from windrow.kernels.aggregates.spec import AggregateSpec, Ints, Result
from windrow.kernels.aggregates.windows import by_length, expanded, listed, skip_nulls

__all__ = ["collect_set", "mode"]


def mode(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> Result:
    """``mode(x)``: the value that occurs most often, the smallest of several; NULL if there is no value.

    Spark takes any of several.
    """
    windows = skip_nulls(column, lo, hi)
    if not len(windows.values):
        return pa.nulls(len(lo), spec.result_type)
    ordered = encode(windows.values, merge_zeros=True)
    chosen = np.zeros(len(lo), ordered.codes.dtype)
    for piece, window, codes, times in _counted(ordered.codes, windows.lo, windows.hi):
        first = np.flatnonzero(np.diff(window, prepend=-1))
        most = np.maximum.reduceat(times, first)
        best = np.flatnonzero(times == np.repeat(most, np.diff(first, append=len(window))))
        at, where = np.unique(window[best], return_index=True)
        chosen[piece.start + at] = codes[best[where]]
    return ordered.decode(chosen, windows.empty)


def collect_set(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.ChunkedArray:
    """``collect_set(x)``: the distinct values, in ascending order (in Spark: in any); [] if none."""
    windows = skip_nulls(column, lo, hi)
    if not len(windows.values):
        return pa.chunked_array([pa.array([[]] * len(lo), spec.result_type)])
    ordered = encode(windows.values, merge_zeros=True)
    chunks = []
    for piece, window, codes, _ in _counted(ordered.codes, windows.lo, windows.hi):
        values = ordered.decode(codes, np.zeros(len(codes), np.bool_))
        length = np.bincount(window, minlength=piece.stop - piece.start)
        chunks.append(listed(values, length, spec.result_type))
    return pa.chunked_array(chunks, spec.result_type)


def _counted(codes: Ints, lo: Ints, hi: Ints) -> Iterator[tuple[slice, Ints, Ints, Ints]]:
    """Per piece of windows: the piece, then (window in it, value, times) in ascending order."""
    distinct, ranks = np.unique(codes, return_inverse=True)
    for piece in by_length(lo, hi):
        window, row = expanded(lo[piece], hi[piece])
        keys, times = np.unique(window * len(distinct) + ranks[row], return_counts=True)
        yield piece, keys // len(distinct), distinct[keys % len(distinct)], times
