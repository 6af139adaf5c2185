"""first, last and any_value: one row of each window, by its position."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates.spec import AggregateSpec, Bools, Ints, Partial, Result
from windrow.kernels.aggregates.windows import take

__all__ = ["FIRST", "LAST", "first", "last"]


def first(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> Result:
    """``first(x)`` and ``any_value(x)``: the value in the first row, or the first value that is not NULL.

    NULL if that row's value is, or with ``ignore_nulls`` if there is no such row. Any type.
    """
    row, there = _first(spec, column, lo, hi)
    return take(column, row, ~there)


def _first(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> tuple[Ints, Bools]:
    """The row, and whether there is one."""
    if not spec.ignore_nulls or not column.null_count:
        return lo, lo < hi
    rows = np.arange(len(column) + 1)
    following = np.minimum.accumulate(np.where(_valid(column), rows, len(column))[::-1])[::-1]
    return following[lo], following[lo] < hi


def last(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> Result:
    """``last(x)``: the value in the last row, or the last value that is not NULL; as :func:`first`."""
    row, there = _last(spec, column, lo, hi)
    return take(column, row, ~there)


def _last(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> tuple[Ints, Bools]:
    if not spec.ignore_nulls or not column.null_count:
        return hi - 1, lo < hi
    rows = np.arange(len(column) + 1)
    preceding = np.maximum.accumulate(np.where(_valid(column), rows, -1))
    return preceding[hi - 1], (preceding[hi - 1] >= lo) & (lo < hi)


def _valid(column: pa.ChunkedArray) -> Bools:
    """Which values are not NULL, with an additional False for windows that are empty at the end."""
    return np.append(pc.is_valid(column).to_numpy(), False)


# -- in parts ------------------------------------------------------------------------------------

_Find = Callable[[AggregateSpec, pa.ChunkedArray, Ints, Ints], tuple[Ints, Bools]]


def _partial(find: _Find, *, prefers_left: bool) -> Partial:
    """The state is the value and whether there is a row."""

    def state(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Table:
        row, there = find(spec, column, lo, hi)
        return pa.table({"value": take(column, row, ~there), "there": there})

    def merge(_spec: AggregateSpec, left: pa.Table, right: pa.Table) -> pa.Table:
        count = len(left)
        one, other = np.arange(count), np.arange(count, 2 * count)
        there = [states.column("there").to_numpy() for states in (left, right)]
        pick = np.where(there[0], one, other) if prefers_left else np.where(there[1], other, one)
        values = [*left.column("value").chunks, *right.column("value").chunks]
        value = take(pa.chunked_array(values, left.schema.field("value").type), pick)
        return pa.table({"value": value, "there": there[0] | there[1]})

    return Partial(state, merge, lambda _spec, _type, states: states.column("value"))


FIRST, LAST = _partial(_first, prefers_left=True), _partial(_last, prefers_left=False)
