"""A numeric column as doubles, each value rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.aggregates.exact import decimal_words

__all__ = ["as_doubles"]

#: Digits of a decimal whose unscaled value and power of ten are both exact in a double.
EXACT_DIGITS = 15


def as_doubles(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """The values of a numeric column without NULLs as float64, decimals rounded to the nearest double."""
    if not pa.types.is_decimal(column.type):
        return np.asarray(column.to_numpy(), np.float64)
    if column.type.precision <= EXACT_DIGITS:
        # A quotient of two exact doubles is the nearest double to the true one.
        unscaled = decimal_words(column)[:, 0]
        return np.asarray(unscaled / 10.0**column.type.scale)
    return np.array([float(value) for value in column.to_pylist()], np.float64)
