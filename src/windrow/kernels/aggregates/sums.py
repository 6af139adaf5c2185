"""sum and avg of integers, decimals, floats and day-time intervals, as Spark types and rounds them.

Integers, decimals and intervals are added exactly (:mod:`.exact`). Floats are added by :mod:`.fold`
from the window's own rows: with u = 2**-53 and d = ``2 * 16 * ceil(log16(length))``, the depth of
additions there, the result is within d * u / (1 - d * u) times the sum of the absolute values of the
exact sum (N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, section 4.2), where adding the rows
one by one, as Spark does, has d = length - 1. Both are true while no partial sum leaves the doubles.
Where the order of the rows is not to matter, they are added in two doubles: the result is the exact sum,
rounded, but where nearly all of it cancels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.aggregates import exact
from windrow.kernels.aggregates.fold import fold
from windrow.kernels.aggregates.numbers import as_doubles
from windrow.kernels.aggregates.spec import AggregateSpec, Bools, Ints, Partial, added
from windrow.kernels.aggregates.windows import ValueWindows, masked, skip_nulls

__all__ = ["AVERAGE", "TOTAL", "average", "total"]


def total(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``sum``: bigint for integers, decimal with ten more digits, double for floats, or an interval.

    A sum overflows when the window's exact total does not fit the result type, whatever the order of the
    rows; Spark's bigint sum also fails where only a partial sum did not fit. NULL if no value.

    Raises
    ------
    ExecutionError
        ``ARITHMETIC_OVERFLOW`` under ANSI; for intervals ``INTERVAL_ARITHMETIC_OVERFLOW`` always.
    """
    windows = skip_nulls(column, lo, hi)
    if pa.types.is_null(column.type):
        return pa.nulls(len(lo), spec.result_type)
    if pa.types.is_floating(spec.result_type):
        return masked(_float_sums(windows, spec), windows.empty, spec.result_type)
    return _exact_total(spec, _exact_totals(windows), windows.empty)


def _exact_total(spec: AggregateSpec, totals: exact.Totals, empty: Bools) -> pa.Array:
    kind = spec.result_type
    if pa.types.is_decimal(kind):
        over = _decimal_overflow(spec, totals, kind.precision)
        return exact.decimals(totals.low, totals.high, empty | over, kind)
    if pa.types.is_duration(kind):
        _refuse_interval_overflow(totals)
    elif spec.ansi and totals.overflows().any():
        raise _overflow("ARITHMETIC_OVERFLOW", "the sum of a window's values does not fit into BIGINT")
    return masked(totals.low, empty, kind)


def average(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Array:
    """``avg``: double for integers and floats, decimal(p + 4, s + 4) for decimal(p, s), or an interval.

    Decimals and intervals are rounded half up (away from zero). NULL if no value.

    Raises
    ------
    ExecutionError
        ``ARITHMETIC_OVERFLOW`` under ANSI where a decimal sum has more than 38 digits, and
        ``NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION`` where the average has more digits than its type;
        ``INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION`` always.
    """
    windows = skip_nulls(column, lo, hi)
    if pa.types.is_null(column.type):
        return pa.nulls(len(lo), spec.result_type)
    count = windows.hi - windows.lo
    if pa.types.is_floating(column.type):
        return masked(_float_sums(windows, spec) / np.maximum(count, 1), windows.empty, spec.result_type)
    return _exact_average(spec, column.type, _exact_totals(windows), count)


def _exact_average(spec: AggregateSpec, source: pa.DataType, totals: exact.Totals, count: Ints) -> pa.Array:
    kind = spec.result_type
    empty, count = count == 0, np.maximum(count, 1)
    if pa.types.is_decimal(kind):
        return _decimal_average(spec, source, totals, empty, count)
    if pa.types.is_duration(kind):
        _refuse_interval_overflow(totals)
        return masked(_divide_half_up(totals.low, count), empty, kind)
    return masked(totals.floats() / count, empty, kind)


def _exact_totals(windows: ValueWindows) -> exact.Totals:
    if pa.types.is_decimal(windows.values.type):
        return exact.word_totals(exact.decimal_words(windows.values), windows.lo, windows.hi)
    return exact.integer_totals(windows.values.cast(pa.int64()).to_numpy(), windows.lo, windows.hi)


def _float_sums(windows: ValueWindows, spec: AggregateSpec) -> npt.NDArray[np.float64]:
    """Sums of a float column; 0.0 where empty."""
    if spec.any_order:
        sums: npt.NDArray[np.float64] = _pairs(windows)[0] + 0.0
        return sums
    values = as_doubles(windows.values)
    if not len(values):
        return np.zeros(len(windows.lo))
    # Spark starts from 0.0, so that the sum of negative zeros is 0.0.
    return fold(values, windows.lo, windows.hi, np.add) + 0.0


def _pairs(windows: ValueWindows) -> npt.NDArray[Any]:
    """Sums of a float column in two doubles, (2, windows); 0.0 where empty."""
    values = as_doubles(windows.values)
    if not len(values):
        return np.zeros((2, len(windows.lo)))
    sums = fold(np.stack([values, np.zeros(len(values))]), windows.lo, windows.hi, _added_pairs)
    return np.where(windows.empty, 0.0, sums)


def _added_pairs(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The sum of numbers that are each a double and its rounding error (T. J. Dekker, 1971)."""
    total = one[0] + other[0]
    part = total - one[0]
    rest = (one[0] - (total - part)) + (other[0] - part) + (one[1] + other[1])
    high = total + rest
    is_finite = np.isfinite(high)
    return np.stack([np.where(is_finite, high, total), np.where(is_finite, rest - (high - total), 0.0)])


def _decimal_average(
    spec: AggregateSpec, source: pa.DataType, totals: exact.Totals, empty: Bools, count: Ints
) -> pa.Array:
    kind = spec.result_type
    null = empty | _decimal_overflow(spec, totals, min(38, source.precision + 10))
    factor = 10 ** (kind.scale - source.scale)
    if totals.high is None and not totals.beyond(2**62 // factor).any():
        quotients = exact.Totals(_divide_half_up(totals.low * factor, count), None)
    else:
        quotients = _divide_wide(totals, factor, count)
    over = quotients.beyond(10**kind.precision) & ~null
    if spec.ansi and over.any():
        message = f"the average of a window's values does not fit into decimal({kind.precision},{kind.scale})"
        raise _overflow("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", message)
    return exact.decimals(quotients.low, quotients.high, null | over, kind)


def _divide_half_up(dividend: Ints, divisor: Ints) -> Ints:
    """The quotient, rounded to the nearest, halves away from zero; the divisor is positive.

    The remainder is compared, not the dividend doubled, so that no int64 overflows.
    """
    quotient = dividend // divisor
    rest = dividend - quotient * divisor
    above = divisor - rest
    quotient += (rest > above) | ((rest == above) & (dividend > 0))
    return quotient


def _divide_wide(totals: exact.Totals, factor: int, count: Ints) -> exact.Totals:
    """As :func:`_divide_half_up`, the totals times `factor`, of any size; limited to the ends of 128 bits."""
    lows, highs = [], []
    for dividend, divisor in zip(totals.integers(), count.tolist(), strict=True):
        nearest = (2 * abs(dividend) * factor + divisor) // (2 * divisor)
        signed = min(nearest, 2**127 - 1) * (1 if dividend >= 0 else -1)
        lows.append(signed & 0xFFFFFFFFFFFFFFFF)
        highs.append(signed >> 64)
    return exact.Totals(np.array(lows, np.uint64).view(np.int64), np.array(highs, np.int64))


def _decimal_overflow(spec: AggregateSpec, totals: exact.Totals, digits: int) -> Bools:
    """Which sums have more than `digits` digits; raises for them under ANSI."""
    over = totals.beyond(10**digits)
    if spec.ansi and over.any():
        message = f"the sum of a window's values has more than {digits} digits"
        raise _overflow("ARITHMETIC_OVERFLOW", message)
    return over


def _refuse_interval_overflow(totals: exact.Totals) -> None:
    if totals.overflows().any():
        raise ExecutionError(
            "the sum of a window's intervals does not fit into an interval",
            condition="INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION",
            sqlstate="22015",
            hint="sum the seconds of the intervals as DOUBLE",
        )


def _overflow(condition: str, message: str) -> ExecutionError:
    return ExecutionError(
        message,
        condition=condition,
        sqlstate="22003",
        hint="cast the argument to DOUBLE, or set spark.sql.ansi.enabled to false",
    )


# -- in parts ------------------------------------------------------------------------------------


def _state(spec: AggregateSpec, column: pa.ChunkedArray, lo: Ints, hi: Ints) -> pa.Table:
    """How many values, and their sum: one or two doubles, or the totals of an exact sum's limbs."""
    windows = skip_nulls(column, lo, hi)
    count, values = windows.hi - windows.lo, windows.values
    if pa.types.is_null(column.type):
        sums: list[npt.NDArray[Any]] = []
    elif pa.types.is_floating(column.type):
        sums = (
            [*_pairs(windows)]
            if spec.any_order
            else [np.where(windows.empty, 0.0, _float_sums(windows, spec))]
        )
    elif pa.types.is_decimal(column.type):
        sums = [*exact.word_limbs(exact.decimal_words(values), windows.lo, windows.hi)]
    else:
        sums = [*exact.integer_limbs(values.cast(pa.int64()).to_numpy(), windows.lo, windows.hi)]
    return pa.table({"count": count} | {f"sum{number}": part for number, part in enumerate(sums)})


def _merge(spec: AggregateSpec, left: pa.Table, right: pa.Table) -> pa.Table:
    """The states of both: numbers that are added, two doubles of `any_order` as one number."""
    if not spec.any_order or not pa.types.is_floating(left.schema[-1].type):
        return added(spec, left, right)
    with np.errstate(all="ignore"):
        high, low = _added_pairs(
            *(np.stack([one.column(at).to_numpy() for at in (1, 2)]) for one in (left, right))
        )
    count = left.column("count").to_numpy() + right.column("count").to_numpy()
    return pa.table([count, high, low], left.column_names)


def _parts(states: pa.Table) -> tuple[Ints, list[npt.NDArray[Any]]]:
    count, *sums = (column.to_numpy() for column in states.columns)
    return count, sums


def _final_total(spec: AggregateSpec, source: pa.DataType, states: pa.Table) -> pa.Array:
    count, sums = _parts(states)
    if not sums:
        return pa.nulls(len(count), spec.result_type)
    if pa.types.is_floating(source):
        return masked(sums[0] + 0.0, count == 0, spec.result_type)
    return _exact_total(spec, exact.carried(sums), count == 0)


def _final_average(spec: AggregateSpec, source: pa.DataType, states: pa.Table) -> pa.Array:
    count, sums = _parts(states)
    if not sums:
        return pa.nulls(len(count), spec.result_type)
    if pa.types.is_floating(source):
        return masked((sums[0] + 0.0) / np.maximum(count, 1), count == 0, spec.result_type)
    return _exact_average(spec, source, exact.carried(sums), count)


TOTAL, AVERAGE = Partial(_state, _merge, _final_total), Partial(_state, _merge, _final_average)
