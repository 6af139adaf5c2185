"""Aggregates over windows of rows: every window of a call at once, in arrays.

:func:`aggregate` is the entry; :data:`FUNCTIONS` says which functions there are and for which types.
Each strategy is a file of its own:

* ``counts``: differences of running counts; ``exact`` and ``sums``: differences of exact running totals;
* ``fold``: float sums, variances, extremes and bits from the window's own rows, never by subtraction;
* ``wavelet``: percentiles and distinct counts, one walk down the bits for all windows;
* ``frequencies`` and ``lists``: the rows of each window written out, in pieces of bounded size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from windrow.kernels.aggregates import (
    bits,
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
from windrow.kernels.aggregates.order_codes import is_orderable
from windrow.kernels.aggregates.spec import AggregateSpec, Evaluate, Ints, Partial, Result

__all__ = ["FUNCTIONS", "AggregateSpec", "Function", "Gaps", "aggregate", "combined", "state", "supports"]


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function, and its properties for the rest of the project.

    Attributes
    ----------
    evaluate
        Its values over many windows.
    accepts
        The types of arguments that it supports.
    partial
        Its evaluation in parts; None if it needs all rows of a window.
    names
        Spark's names for it. `COUNT(*)` and `COUNT(DISTINCT …)` are written in another way.
    empty
        Its value over no rows.
    skips_nulls
        Whether it passes over NULLs.
    is_arbitrary
        Whether its value is that of some row, or a list, so that ties or the order of rows decide.
    in_any_order
        For which types the same rows in another order have the same value, to the last digit.
    retracts
        For which types the states of rows that leave can be subtracted from the group's.
    merges
        Whether a group to which rows are only added needs no more than its state.
    counts_values
        For which types it suffices to know how often each value occurs in a group, whatever rows leave.
    ignores_distinct
        Whether DISTINCT changes nothing.
    has_fractions
        Whether its second argument is a fraction, or several.
    between_values
        Whether its value may lie between two values, which Spark rounds to whole months.
    """

    evaluate: Evaluate
    accepts: Callable[[pa.DataType], bool]
    partial: Partial | None = None
    names: tuple[str, ...] = ()
    empty: object = None
    skips_nulls: bool = True
    is_arbitrary: bool = False
    in_any_order: Callable[[pa.DataType], bool] = lambda _: False
    retracts: Callable[[pa.DataType], bool] = lambda _: False
    merges: bool = False
    counts_values: Callable[[pa.DataType], bool] = lambda _: False
    ignores_distinct: bool = False
    has_fractions: bool = False
    between_values: bool = False

    def is_incremental(self, kind: pa.DataType, *, appends: bool) -> bool:
        """Whether groups are updated from their state alone, without the rows they are of.

        Parameters
        ----------
        kind
            The type of the argument.
        appends
            Whether no row ever leaves a group.
        """
        if pa.types.is_null(kind):
            return False
        return self.retracts(kind) or self.counts_values(kind) or (appends and self.merges)


def aggregate(spec: AggregateSpec, rows: pa.Table, lo: Ints, hi: Ints, gaps: Gaps | None = None) -> Result:
    """Evaluate an aggregate over many windows of a table.

    Parameters
    ----------
    spec
        The aggregate; ``supports(spec.function, type of its argument)`` must be true.
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
        with none but NULLs returns NULL, except for counts (0) and collections ([]).

    Raises
    ------
    ExecutionError
        A value does not fit the result type, as each function says.
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


def state(spec: AggregateSpec, rows: pa.Table, lo: Ints, hi: Ints) -> pa.Table | None:
    """The partial state of windows, which may be empty here, for :class:`Gaps`; None if only rows suffice."""
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


def _is_exact(type_: pa.DataType) -> bool:
    return not pa.types.is_floating(type_)


def _is_number_in_order(type_: pa.DataType) -> bool:
    """Whether values are numbers in their order, whatever other values there are."""
    return bool(
        pa.types.is_signed_integer(type_) or pa.types.is_date32(type_) or pa.types.is_timestamp(type_)
    )


_COUNT = functools.partial(Function, empty=0, in_any_order=_any, retracts=_any)
_TRUTH = functools.partial(Function, in_any_order=_any, retracts=_any)
_TOTAL = functools.partial(Function, in_any_order=_is_exact, retracts=_is_exact, merges=True)
_FOLDED = functools.partial(Function, in_any_order=_any, merges=True)
_EXTREME = functools.partial(_FOLDED, counts_values=_is_number_in_order, ignores_distinct=True)
_RANK = functools.partial(Function, in_any_order=_any, between_values=True)
_ROW = functools.partial(Function, skips_nulls=False, is_arbitrary=True)
_LIST = functools.partial(Function, empty=(), is_arbitrary=True)
_is_truth = pa.types.is_boolean
_is_amount = _is_numeric_or_interval

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "count_star": _COUNT(counts.count_star, _any, counts.COUNT_STAR, skips_nulls=False),
        "count": _COUNT(counts.count, _any, counts.COUNT, ("count",)),
        "count_if": _COUNT(counts.count_if, _is_truth, counts.COUNT_IF, ("count_if",)),
        "count_distinct": Function(
            distinct.count_distinct, is_orderable, empty=0, in_any_order=_any, counts_values=_any
        ),
        "bool_and": _TRUTH(counts.every, _is_truth, counts.EVERY, ("bool_and", "every")),
        "bool_or": _TRUTH(counts.some, _is_truth, counts.SOME, ("bool_or", "any", "some")),
        "sum": _TOTAL(sums.total, _is_amount, sums.TOTAL, ("sum",)),
        "avg": _TOTAL(sums.average, _is_amount, sums.AVERAGE, ("avg", "mean"), between_values=True),
        "min": _EXTREME(extremes.extreme, is_orderable, extremes.EXTREME, ("min",)),
        "max": _EXTREME(extremes.extreme, is_orderable, extremes.EXTREME, ("max",)),
        "bit_and": _FOLDED(bits.bits, pa.types.is_signed_integer, bits.BITS, ("bit_and",)),
        "bit_or": _FOLDED(bits.bits, pa.types.is_signed_integer, bits.BITS, ("bit_or",)),
        "bit_xor": _FOLDED(bits.bits, pa.types.is_signed_integer, bits.BITS, ("bit_xor",)),
        "stddev_samp": Function(
            variance.variance, _is_numeric, variance.VARIANCE, ("stddev_samp", "stddev", "std")
        ),
        "stddev_pop": Function(variance.variance, _is_numeric, variance.VARIANCE, ("stddev_pop",)),
        "var_samp": Function(variance.variance, _is_numeric, variance.VARIANCE, ("var_samp", "variance")),
        "var_pop": Function(variance.variance, _is_numeric, variance.VARIANCE, ("var_pop",)),
        "first": _ROW(positions.first, _any, positions.FIRST, ("first", "first_value")),
        "last": _ROW(positions.last, _any, positions.LAST, ("last", "last_value")),
        "any_value": _ROW(positions.first, _any, positions.FIRST, ("any_value",)),
        "median": _RANK(percentiles.percentile, _is_amount, names=("median",)),
        "percentile": _RANK(percentiles.percentile, _is_amount, names=("percentile",), has_fractions=True),
        "mode": Function(frequencies.mode, is_orderable, names=("mode",), is_arbitrary=True),
        "collect_list": _LIST(lists.collect_list, _any, names=("collect_list", "array_agg")),
        "collect_set": _LIST(frequencies.collect_set, is_orderable),
    }
)
"""Every function, by its name in the kernels."""
