"""stddev and var, of samples and populations, through mergeable means and squared deviations.

A window's state is (n, mean, M2), M2 being the sum of squared deviations from the mean, and two states
merge: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing
sample variances" (1979), equation 2.1. Spark merges partial results the same way. The error relative to the
variance grows with the ratio of mean to deviation (times 2**-53 and the depth of :mod:`.fold`), not with its
square as that of a difference of sums of squares does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.aggregates.fold import fold
from windrow.kernels.aggregates.numbers import as_doubles
from windrow.kernels.aggregates.spec import AggregateSpec, Ints, Partial
from windrow.kernels.aggregates.windows import ValueWindows, masked, skip_nulls

__all__ = ["VARIANCE", "variance"]

Floats = npt.NDArray[Any]


def variance(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``stddev_samp``, ``stddev_pop``, ``var_samp`` and ``var_pop`` of a numeric column, as double.

    NULL if no value, and for the sample forms also if only one; the population forms are then 0.0. A NaN
    or an infinity makes the result NaN.
    """
    windows = skip_nulls(column, lo, hi)
    count = windows.hi - windows.lo
    if (count <= spec.function.endswith("_samp")).all():
        return pa.nulls(len(lo), pa.float64())
    return _result(spec, count, _moments(windows)[2])


def _moments(windows: ValueWindows) -> Floats:
    """The state of every window; meaningless where it is empty."""
    values = as_doubles(windows.values)
    with np.errstate(all="ignore"):
        # One value deviates from itself by nothing, except that inf - inf is NaN.
        states = np.stack([np.ones(len(values)), values, values - values])
        return fold(states, windows.lo, windows.hi, _merge)


def _result(spec: AggregateSpec, count: Ints, squares: Floats) -> pa.Array:
    sample = spec.function.endswith("_samp")
    null = count <= sample
    with np.errstate(all="ignore"):
        result = squares / np.where(null, 1, count - sample)
        if spec.function.startswith("stddev"):
            result = np.sqrt(result)
    return masked(result, null, pa.float64())


def _merge(left: Floats, right: Floats) -> Floats:
    """The state of both halves, from arrays whose first axis is (n, mean, M2)."""
    merged = np.empty((3, *np.broadcast_shapes(left.shape[1:], right.shape[1:])))
    np.add(left[0], right[0], out=merged[0])
    share = right[0] / merged[0]
    delta = right[1] - left[1]
    shift = delta * share
    np.add(left[1], shift, out=merged[1])
    # delta**2 * n_left * n_right / n
    shift *= delta
    shift *= left[0]
    np.add(left[2], right[2], out=merged[2])
    merged[2] += shift
    return merged


# -- in parts ------------------------------------------------------------------------------------


def _state(_spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Table:
    windows = skip_nulls(column, lo, hi)
    count = windows.hi - windows.lo
    moments = _moments(windows) if len(windows.values) else np.zeros((3, len(lo)))
    return _table(count, np.where(count > 0, moments, 0.0))


def _table(count: Ints, moments: Floats) -> pa.Table:
    return pa.table({"count": count, "mean": moments[1], "squares": moments[2]})


def _merge_states(_spec: AggregateSpec, left: pa.Table, right: pa.Table) -> pa.Table:
    counts = [states.column("count").to_numpy() for states in (left, right)]
    one, other = (
        np.stack([column.to_numpy().astype(np.float64) for column in states.columns])
        for states in (left, right)
    )
    with np.errstate(all="ignore"):
        merged = _merge(one, other)
    merged = np.where(counts[0] == 0, other, np.where(counts[1] == 0, one, merged))
    return _table(counts[0] + counts[1], merged)


def _final(spec: AggregateSpec, _source: pa.DataType, states: pa.Table) -> pa.Array:
    return _result(spec, states.column("count").to_numpy(), states.column("squares").to_numpy())


VARIANCE = Partial(_state, _merge_states, _final)
