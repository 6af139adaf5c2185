"""bit_and, bit_or and bit_xor of integers, as a fold over the window's values."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates.fold import fold
from windrow.kernels.aggregates.spec import AggregateSpec, Ints, Partial, Result
from windrow.kernels.aggregates.windows import skip_nulls

__all__ = ["BITS", "bits"]

_COMBINE: MappingProxyType[str, np.ufunc] = MappingProxyType(
    {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}
)
_IN_ARROW: MappingProxyType[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {"bit_and": pc.bit_wise_and, "bit_or": pc.bit_wise_or, "bit_xor": pc.bit_wise_xor}
)


def bits(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> Result:
    """``bit_and(x)`` and its kin, in the type of x; NULL if there is no value."""
    windows = skip_nulls(column, lo, hi)
    if not len(windows.values):
        return pa.nulls(len(lo), column.type)
    found = fold(windows.values.to_numpy(), windows.lo, windows.hi, _COMBINE[spec.function])
    return pa.array(found, column.type, mask=windows.empty)


def _state(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Table:
    return pa.table({"value": bits(spec, column, lo, hi)})


def _merge(spec: AggregateSpec, left: pa.Table, right: pa.Table) -> pa.Table:
    one, other = left.column("value"), right.column("value")
    return pa.table({"value": pc.coalesce(_IN_ARROW[spec.function](one, other), one, other)})


BITS = Partial(_state, _merge, lambda _spec, _type, states: states.column("value"))
