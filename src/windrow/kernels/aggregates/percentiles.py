"""median and percentile, interpolated between neighbours as Spark does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.aggregates.numbers import as_doubles
from windrow.kernels.aggregates.order_codes import encode
from windrow.kernels.aggregates.spec import AggregateSpec, Ints
from windrow.kernels.aggregates.wavelet import kth_smallest
from windrow.kernels.aggregates.windows import by_range, listed, masked, skip_nulls

__all__ = ["percentile"]

Floats = npt.NDArray[Any]


def percentile(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``median(x)`` and ``percentile(x, fraction | array of fractions)``.

    The value at place ``fraction * (n - 1)`` among the n sorted values, linearly interpolated: double for
    numbers; for day-time intervals an interval, cut to whole microseconds. NULL (also in place of the
    array) if there is no value. Reference: Spark's ``PercentileBase.getPercentile``.
    """
    windows = skip_nulls(column, lo, hi)
    empty = windows.empty
    if not len(windows.values):
        return pa.nulls(len(lo), spec.result_type)
    several = pa.types.is_list(spec.result_type)
    fractions = (0.5,) if spec.function == "median" else spec.parameters
    if pa.types.is_duration(column.type):
        ranked = windows.values.cast(pa.int64())
        values = ranked.to_numpy().astype(np.float64)
    else:
        ranked = windows.values
        values = as_doubles(ranked)
    found = _interpolated(encode(ranked).codes, values, windows.lo, windows.hi, fractions)
    element = spec.result_type.value_type if several else spec.result_type
    if pa.types.is_duration(element):
        found = np.trunc(found).astype(np.int64)
    if not several:
        return masked(found[:, 0], empty, element)
    flat = found[~empty].reshape(-1)
    values = masked(flat, np.zeros(len(flat), np.bool_), element)
    return listed(values, np.where(empty, 0, len(fractions)), spec.result_type, empty)


def _interpolated(codes: Ints, values: Floats, lo: Ints, hi: Ints, fractions: tuple[float, ...]) -> Floats:
    """Shape ``(windows, fractions)``; each piece of windows ranks only the rows that it reads."""
    found = np.empty((len(lo), len(fractions)))
    # An empty window may start past the last row.
    lo = np.minimum(lo, len(codes) - 1)
    hi = np.maximum(hi, lo + 1)
    for piece, first, stop in by_range(lo, hi):
        _, where, ranks = np.unique(codes[first:stop], return_index=True, return_inverse=True)
        by_rank = values[first:stop][where]
        start, end = lo[piece] - first, hi[piece] - first
        for column, fraction in enumerate(fractions):
            place = (end - start - 1) * fraction
            below, above = np.floor(place), np.ceil(place)
            lower = by_rank[kth_smallest(ranks, start, end, below.astype(np.int64))]
            upper = by_rank[kth_smallest(ranks, start, end, above.astype(np.int64))]
            with np.errstate(all="ignore"):
                between = lower + (upper - lower) * (place - below)
            found[piece, column] = np.where((below == above) | (lower == upper), lower, between)
    return found
