"""first, last and any_value: one row of each window, by its position."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates.spec import Aggregate, Bools, Ints, Result
from windrow.kernels.aggregates.windows import take

__all__ = ["first", "last"]


def first(spec: Aggregate, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> Result:
    """``first(x)`` and ``any_value(x)``: of the first row, or of the first whose value is not NULL.

    NULL if that row's value is, or with ``ignore_nulls`` if there is no such row. Any type.
    """
    if not spec.ignore_nulls or not column.null_count:
        return take(column, lo)
    rows = np.arange(len(column))
    following = np.minimum.accumulate(np.where(_valid(column), rows, len(column))[::-1])[::-1]
    return take(column, following[lo], following[lo] >= hi)


def last(spec: Aggregate, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> Result:
    """``last(x)``: of the last row, or of the last whose value is not NULL; as :func:`first`."""
    if not spec.ignore_nulls or not column.null_count:
        return take(column, hi - 1)
    rows = np.arange(len(column))
    preceding = np.maximum.accumulate(np.where(_valid(column), rows, -1))
    return take(column, preceding[hi - 1], preceding[hi - 1] < lo)


def _valid(column: pa.ChunkedArray) -> Bools:
    valid: Bools = pc.is_valid(column).to_numpy()
    return valid
