"""count, count_if, bool_and and bool_or: counts of rows, as differences of running counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates.spec import Aggregate, Ints
from windrow.kernels.aggregates.windows import masked, running_total, valid_before

__all__ = ["count", "count_if", "count_star", "every", "some"]


def count_star(_spec: Aggregate, _column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``count(*)``: rows, NULL or not; bigint, never NULL."""
    return pa.array(hi - lo)


def count(_spec: Aggregate, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``count(x)``: values that are not NULL; bigint, never NULL."""
    return pa.array(_valid(column, lo, hi))


def count_if(_spec: Aggregate, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``count_if(x)``: rows where the boolean is true; bigint, 0 rather than NULL."""
    return pa.array(_true(column, lo, hi))


def every(_spec: Aggregate, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``bool_and(x)``: whether no value is false; NULL if there is no value."""
    valid = _valid(column, lo, hi)
    return masked(_true(column, lo, hi) == valid, valid == 0, pa.bool_())


def some(_spec: Aggregate, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``bool_or(x)``: whether a value is true; NULL if there is no value."""
    return masked(_true(column, lo, hi) > 0, _valid(column, lo, hi) == 0, pa.bool_())


def _valid(column: pa.ChunkedArray, lo: Ints, hi: Ints) -> Ints:
    if not column.null_count:
        return hi - lo
    before = valid_before(column)
    return before[hi] - before[lo]


def _true(column: pa.ChunkedArray, lo: Ints, hi: Ints) -> Ints:
    if pa.types.is_null(column.type):
        return np.zeros(len(lo), np.int64)
    before = running_total(pc.fill_null(column, False).to_numpy())
    return before[hi] - before[lo]
