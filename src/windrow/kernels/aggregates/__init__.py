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
from windrow.kernels.aggregates.gaps import Gaps, across, combined
from windrow.kernels.aggregates.ordering import is_orderable
from windrow.kernels.aggregates.spec import Aggregate, Evaluate, Ints, Partial, Result

__all__ = ["FUNCTIONS", "Aggregate", "Function", "Gaps", "aggregate", "combined", "state", "supports"]


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function: how it is evaluated, which argument types it takes, how it is done in parts."""

    evaluate: Evaluate
    accepts: Callable[[pa.DataType], bool]
    partial: Partial | None = None


def aggregate(spec: Aggregate, rows: pa.Table, lo: Ints, hi: Ints, gaps: Gaps | None = None) -> Result:
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
    gaps
        Stretches of rows that are not in the table; for functions with a `partial` only.

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
    function = FUNCTIONS[spec.function]
    if gaps is None or not len(gaps.low):
        return function.evaluate(spec, column, lo, hi)
    assert function.partial is not None
    return across(function.evaluate, function.partial, spec, column, lo, hi, gaps)


def state(spec: Aggregate, rows: pa.Table, lo: Ints, hi: Ints) -> pa.Table | None:
    """What the windows, which may be empty here, amount to, for :class:`Gaps`; None if only rows will do."""
    partial = FUNCTIONS[spec.function].partial
    if partial is None:
        return None
    column = pa.chunked_array([], pa.null()) if spec.argument is None else rows.column(spec.argument)
    return partial.state(spec, column, lo, hi)


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
        "count_star": Function(counts.count_star, _any, counts.COUNT_STAR),
        "count": Function(counts.count, _any, counts.COUNT),
        "count_if": Function(counts.count_if, pa.types.is_boolean, counts.COUNT_IF),
        "bool_and": Function(counts.every, pa.types.is_boolean, counts.EVERY),
        "bool_or": Function(counts.some, pa.types.is_boolean, counts.SOME),
        "sum": Function(sums.total, _is_numeric_or_interval, sums.TOTAL),
        "avg": Function(sums.average, _is_numeric_or_interval, sums.AVERAGE),
        "min": Function(extremes.extreme, is_orderable, extremes.EXTREME),
        "max": Function(extremes.extreme, is_orderable, extremes.EXTREME),
        "stddev_samp": Function(variance.variance, _is_numeric, variance.VARIANCE),
        "stddev_pop": Function(variance.variance, _is_numeric, variance.VARIANCE),
        "var_samp": Function(variance.variance, _is_numeric, variance.VARIANCE),
        "var_pop": Function(variance.variance, _is_numeric, variance.VARIANCE),
        "first": Function(positions.first, _any, positions.FIRST),
        "last": Function(positions.last, _any, positions.LAST),
        "any_value": Function(positions.first, _any, positions.FIRST),
        "median": Function(percentiles.percentile, _is_numeric_or_interval),
        "percentile": Function(percentiles.percentile, _is_numeric_or_interval),
        "count_distinct": Function(distinct.count_distinct, is_orderable),
        "mode": Function(frequencies.mode, is_orderable),
        "collect_list": Function(lists.collect_list, _any),
        "collect_set": Function(frequencies.collect_set, is_orderable),
    }
)
