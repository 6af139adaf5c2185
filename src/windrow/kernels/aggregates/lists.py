"""collect_list: the values of each window, in row order."""

from __future__ import annotations

import pyarrow as pa

from windrow.kernels.aggregates.spec import AggregateSpec, Ints
from windrow.kernels.aggregates.windows import by_length, expanded, listed, skip_nulls, take

__all__ = ["collect_list"]


def collect_list(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.ChunkedArray:
    """``collect_list(x)``: an array of the values that are not NULL, [] if there are none. Any type."""
    windows = skip_nulls(column, lo, hi)
    chunks = []
    for piece in by_length(windows.lo, windows.hi):
        start, end = windows.lo[piece], windows.hi[piece]
        _, rows = expanded(start, end)
        values = take(windows.values, rows)
        chunks.append(listed(values, end - start, spec.result_type))
    return pa.chunked_array(chunks, spec.result_type)
