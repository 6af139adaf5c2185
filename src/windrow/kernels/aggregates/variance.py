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
from windrow.kernels.aggregates.spec import Aggregate, Ints
from windrow.kernels.aggregates.windows import masked, skip_nulls

__all__ = ["variance"]

Floats = npt.NDArray[Any]


def variance(spec: Aggregate, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``stddev_samp``, ``stddev_pop``, ``var_samp`` and ``var_pop`` of a numeric column, as double.

    NULL if no value, and for the sample forms also if only one; the population forms are then 0.0. A NaN
    or an infinity makes the result NaN.
    """
    windows = skip_nulls(column, lo, hi)
    count = windows.hi - windows.lo
    sample = spec.function.endswith("_samp")
    null = count <= 1 if sample else windows.empty
    if null.all():
        return pa.nulls(len(lo), pa.float64())
    values = as_doubles(windows.values)
    with np.errstate(all="ignore"):
        # One value deviates from itself by nothing, except that inf - inf is NaN.
        states = np.stack([np.ones(len(values)), values, values - values])
        squares = fold(states, windows.lo, windows.hi, _merge)[2]
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
