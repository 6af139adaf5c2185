"""min and max of any orderable type, as a fold over integers in the values' order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates.fold import fold
from windrow.kernels.aggregates.order_codes import encode
from windrow.kernels.aggregates.spec import AggregateSpec, Ints, Partial, Result
from windrow.kernels.aggregates.windows import skip_nulls

__all__ = ["EXTREME", "extreme"]


def extreme(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> Result:
    """``min(x)`` and ``max(x)``; NULL if there is no value.

    NaN is greater than every other number. Where a window has both zeros, ``min`` returns -0.0 and ``max``
    0.0; Spark returns whichever comes first, and they are equal in every comparison.
    """
    windows = skip_nulls(column, lo, hi)
    if not len(windows.values):
        return pa.nulls(len(lo), column.type)
    ordered = encode(windows.values)
    combine = np.minimum if spec.function == "min" else np.maximum
    return ordered.decode(fold(ordered.codes, windows.lo, windows.hi, combine), windows.empty)


def _state(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Table:
    return pa.table({"value": extreme(spec, column, lo, hi)})


def _merge(spec: AggregateSpec, left: pa.Table, right: pa.Table) -> pa.Table:
    values = pa.chunked_array(
        [*left.column("value").chunks, *right.column("value").chunks], left.schema[0].type
    )
    count = len(left)
    valid = np.asarray(pc.is_valid(values))
    pick = np.where(valid[:count], np.arange(count), np.arange(count, 2 * count))
    both = np.flatnonzero(valid[:count] & valid[count:])
    if len(both):
        codes = encode(values.take(pa.array(np.concatenate([both, both + count])))).codes
        one, other = codes[: len(both)], codes[len(both) :]
        smaller = other < one if spec.function == "min" else other > one
        pick[both[smaller]] += count
    return pa.table({"value": values.take(pa.array(pick))})


EXTREME = Partial(_state, _merge, lambda _spec, _type, states: states.column("value"))
