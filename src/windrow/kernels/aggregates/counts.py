"""count, count_if, bool_and and bool_or: counts of rows, as differences of running counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates.spec import AggregateSpec, Evaluate, Ints, Partial, added
from windrow.kernels.aggregates.windows import masked, running_total, valid_before

__all__ = [
    "COUNT",
    "COUNT_IF",
    "COUNT_STAR",
    "EVERY",
    "SOME",
    "count",
    "count_if",
    "count_star",
    "every",
    "some",
]


def count_star(_spec: AggregateSpec, _column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``count(*)``: rows, NULL or not; bigint, never NULL."""
    return pa.array(hi - lo)


def count(_spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``count(x)``: values that are not NULL; bigint, never NULL."""
    return pa.array(_valid(column, lo, hi))


def count_if(_spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``count_if(x)``: rows where the boolean is true; bigint, 0 rather than NULL."""
    return pa.array(_true(column, lo, hi))


def every(_spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``bool_and(x)``: whether no value is false; NULL if there is no value."""
    return _every(_true(column, lo, hi), _valid(column, lo, hi))


def some(_spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``bool_or(x)``: whether a value is true; NULL if there is no value."""
    return _some(_true(column, lo, hi), _valid(column, lo, hi))


def _every(true: Ints, valid: Ints) -> pa.Array:
    return masked(true == valid, valid == 0, pa.bool_())


def _some(true: Ints, valid: Ints) -> pa.Array:
    return masked(true > 0, valid == 0, pa.bool_())


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


def _counts(counted: Evaluate) -> Partial:
    """Counts are their own states."""
    return Partial(
        lambda spec, column, lo, hi: pa.table({"count": counted(spec, column, lo, hi)}),
        added,
        lambda _spec, _type, states: states.column("count"),
    )


def _truths(final: Callable[[Ints, Ints], pa.Array]) -> Partial:
    return Partial(
        lambda _spec, column, lo, hi: pa.table(
            {"true": _true(column, lo, hi), "valid": _valid(column, lo, hi)}
        ),
        added,
        lambda _spec, _type, states: final(
            states.column("true").to_numpy(), states.column("valid").to_numpy()
        ),
    )


COUNT_STAR, COUNT, COUNT_IF = _counts(count_star), _counts(count), _counts(count_if)
EVERY, SOME = _truths(_every), _truths(_some)
