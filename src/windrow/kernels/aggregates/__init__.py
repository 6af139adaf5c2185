"""Aggregates over windows of rows: every window of a call at once, in arrays.

:func:`aggregate` is the entry; :data:`FUNCTIONS` says which functions there are and for which types.
Each strategy is a file of its own:

* ``counts``: differences of running counts; ``exact`` and ``sums``: differences of exact running totals;
* ``fold``: float sums, variances and extremes from the window's own rows, never by subtraction;
* ``wavelet``: percentiles and distinct counts, one walk down the bits for all windows;
* ``frequencies`` and ``lists``: the rows of each window written out, in pieces of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from windrow.kernels.aggregates import (
    counts,
    distinct,
    extremes,
    frequencies,
    lists,
    percentiles,
    positions,
    sums,
    variance,
)
from windrow.kernels.aggregates.ordering import is_orderable
from windrow.kernels.aggregates.spec import Aggregate, Evaluate, Ints, Result

__all__ = ["FUNCTIONS", "Aggregate", "Function", "aggregate", "supports"]


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function: how it is evaluated, and which argument types it takes."""

    evaluate: Evaluate
    accepts: Callable[[pa.DataType], bool]


def aggregate(spec: Aggregate, rows: pa.Table, lo: Ints, hi: Ints) -> Result:
    """Evaluate an aggregate over many windows of a table.

    Parameters
    ----------
    spec
        The aggregate; ``supports(spec.function, type of its argument)`` must hold.
    rows
        The rows; only the column ``spec.argument`` is read. It may be chunked.
    lo, hi
        int64, shape ``(windows,)``: window k is rows ``lo[k] <= i < hi[k]`` and has at least one. Windows
        may overlap and come in any order.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray
        One value of ``spec.result_type`` per window. NULLs among the values are passed over; a window
        with none but NULLs gives NULL, except for counts (0) and collections ([]).

    Raises
    ------
    ExecutionError
        A value does not fit the result type, as each function tells.
    """
    lo, hi = np.asarray(lo, np.int64), np.asarray(hi, np.int64)
    if not len(lo):
        return pa.array([], spec.result_type)
    column = pa.chunked_array([], pa.null()) if spec.argument is None else rows.column(spec.argument)
    return FUNCTIONS[spec.function].evaluate(spec, column, lo, hi)


def supports(function: str, argument_type: pa.DataType) -> bool:
    """Whether :func:`aggregate` evaluates `function` over a column of this type, without a cast.

    >>> supports("sum", pa.int32()), supports("sum", pa.string()), supports("skewness", pa.int32())
    (True, False, False)
    """
    known = FUNCTIONS.get(function)
    return known is not None and (pa.types.is_null(argument_type) or known.accepts(argument_type))


def _any(_type: pa.DataType) -> bool:
    return True


def _is_numeric(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_signed_integer(type_)
        or pa.types.is_decimal128(type_)
        or pa.types.is_float32(type_)
        or pa.types.is_float64(type_)
    )


def _is_numeric_or_interval(type_: pa.DataType) -> bool:
    return _is_numeric(type_) or type_ == pa.duration("us")


#: Every function, under its canonical name.
FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "count_star": Function(counts.count_star, _any),
        "count": Function(counts.count, _any),
        "count_if": Function(counts.count_if, pa.types.is_boolean),
        "bool_and": Function(counts.every, pa.types.is_boolean),
        "bool_or": Function(counts.some, pa.types.is_boolean),
        "sum": Function(sums.total, _is_numeric_or_interval),
        "avg": Function(sums.average, _is_numeric_or_interval),
        "min": Function(extremes.extreme, is_orderable),
        "max": Function(extremes.extreme, is_orderable),
        "stddev_samp": Function(variance.variance, _is_numeric),
        "stddev_pop": Function(variance.variance, _is_numeric),
        "var_samp": Function(variance.variance, _is_numeric),
        "var_pop": Function(variance.variance, _is_numeric),
        "first": Function(positions.first, _any),
        "last": Function(positions.last, _any),
        "any_value": Function(positions.first, _any),
        "median": Function(percentiles.percentile, _is_numeric_or_interval),
        "percentile": Function(percentiles.percentile, _is_numeric_or_interval),
        "count_distinct": Function(distinct.count_distinct, is_orderable),
        "mode": Function(frequencies.mode, is_orderable),
        "collect_list": Function(lists.collect_list, _any),
        "collect_set": Function(frequencies.collect_set, is_orderable),
    }
)
