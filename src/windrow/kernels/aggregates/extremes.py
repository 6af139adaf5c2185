"""min and max of any orderable type, as a fold over integers in the values' order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.kernels.aggregates.fold import fold
from windrow.kernels.aggregates.ordering import encode
from windrow.kernels.aggregates.spec import Aggregate, Ints, Result
from windrow.kernels.aggregates.windows import skip_nulls

__all__ = ["extreme"]


def extreme(spec: Aggregate, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> Result:
    """``min(x)`` and ``max(x)``; NULL if there is no value.

    NaN is greater than every other number. Where a window holds both zeros, ``min`` gives -0.0 and ``max``
    0.0; Spark gives whichever comes first, and they are equal in every comparison.
    """
    windows = skip_nulls(column, lo, hi)
    if not len(windows.values):
        return pa.nulls(len(lo), column.type)
    ordered = encode(windows.values)
    combine = np.minimum if spec.function == "min" else np.maximum
    return ordered.decode(fold(ordered.codes, windows.lo, windows.hi, combine), windows.empty)
