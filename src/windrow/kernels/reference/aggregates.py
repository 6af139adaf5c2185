"""Spark's aggregates over the values of a window, NULL markers already taken out."""

from __future__ import annotations

import datetime
import functools
import math
import operator
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from windrow.errors import ExecutionError, NotSupportedError, UsageError
from windrow.kernels.reference import arithmetic
from windrow.kernels.reference.comparison import compare
from windrow.kernels.reference.values import DECIMALS, canonical, mismatch

__all__ = ["AGGREGATES", "aggregate"]


def aggregate(
    function: str,
    values: Sequence[Any],
    *,
    distinct: bool = False,
    ignore_nulls: bool = False,
    parameters: tuple[Any, ...] = (),
    kind: str = "double",
) -> Any:
    """The aggregate `function` over `values`, in their order.

    Parameters
    ----------
    function
        One of :data:`AGGREGATES`, in any case. ``count_star`` counts every element, NULL or not.
    values
        The argument at each row of the window; None for NULL.
    distinct
        Leave out repeated values (NaN repeats NaN, -0.0 repeats 0.0); the first of each stays.
    ignore_nulls
        For first, last and any_value; the others never see NULLs.
    parameters
        ``percentile``: one number from 0 to 1, or a sequence of them.
    kind
        The argument's Spark type where the values do not determine it: ``"integer"`` makes a sum beyond 64
        bits raise; with ``"decimal(p,s)"`` averages have the scale s + 4 (``"decimal"``: s is the largest
        among the values). Otherwise the values' Python types decide: sums of int are int and averages float.

    Returns
    -------
    object
        None over no values (no non-NULL values), except that counts are 0 and lists are empty; the sample
        statistics are also None over one. Float sums are correctly rounded. Ties of ``mode`` go to the
        smallest value (in Spark to any); ``collect_set`` is in order of first occurrence (in Spark, any).

    Raises
    ------
    NotSupportedError
        ``REFERENCE_AGGREGATE`` for a function that is not known here.
    ExecutionError
        ``ARITHMETIC_OVERFLOW`` for an integer sum beyond 64 bits.
    """
    name = function.lower()
    if name not in AGGREGATES:
        raise NotSupportedError(
            f"the reference interpreter does not support aggregate {function}",
            condition="REFERENCE_AGGREGATE",
        )
    if name == "count_star":
        return len(values)
    if name in _POSITIONAL and not ignore_nulls:
        return _PLAIN[name](values)
    present = [value for value in values if value is not None]
    if distinct:
        present = _first_of_each(present)
    if not present and name not in _DEFINED_WHEN_EMPTY:
        return None
    if name == "sum":
        return _sum(present, kind)
    if name in ("avg", "mean"):
        return _avg(present, kind)
    if name in ("percentile", "percentile_cont"):
        return _percentile(present, parameters)
    return _PLAIN[name](present)


Values = Sequence[Any]


def _first_of_each(values: Values) -> list[Any]:
    seen: dict[Any, Any] = {}
    for value in values:
        seen.setdefault(canonical(value), value)
    return list(seen.values())


def _count(values: Values) -> int:
    return len(values)


def _count_if(values: Values) -> int:
    return sum(value is True for value in values)


def _sum(values: Values, kind: str) -> Any:
    first = values[0]
    if isinstance(first, float):
        return _rounded_sum(values)
    if isinstance(first, Decimal | datetime.timedelta):
        return functools.reduce(lambda one, other: arithmetic.add(one, other, True), values)
    if not isinstance(first, int) or isinstance(first, bool):
        raise mismatch("sum", first)
    total = sum(values)
    if kind == "integer" and not -(2**63) <= total < 2**63:
        raise ExecutionError("integer overflow in sum", condition="ARITHMETIC_OVERFLOW", sqlstate="22003")
    return total


def _avg(values: Values, kind: str) -> Any:
    total = _sum(values, kind="")
    if isinstance(total, Decimal):
        unit = Decimal(1).scaleb(-min(_declared_scale(values, kind) + 4, 38))
        return DECIMALS.divide(total, Decimal(len(values))).quantize(unit, context=DECIMALS)
    if isinstance(total, datetime.timedelta):
        return arithmetic.divide(total, len(values), True)
    return float(total) / len(values)


def _declared_scale(values: Values, kind: str) -> int:
    match = re.fullmatch(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)", kind)
    return int(match[1]) if match else max(-int(value.as_tuple().exponent) for value in values)


def _min(values: Values) -> Any:
    return min(values, key=functools.cmp_to_key(compare))


def _max(values: Values) -> Any:
    return max(values, key=functools.cmp_to_key(compare))


def _var_pop(values: Values) -> float:
    return _variance(values, len(values))


def _var_samp(values: Values) -> float | None:
    return None if len(values) < 2 else _variance(values, len(values) - 1)


def _stddev_pop(values: Values) -> float:
    return math.sqrt(_var_pop(values))


def _stddev_samp(values: Values) -> float | None:
    variance = _var_samp(values)
    return None if variance is None else math.sqrt(variance)


def _variance(values: Values, over: int) -> float:
    """The sum of squared deviations over `over`, exact until the one rounding at the end."""
    if not all(math.isfinite(value) for value in values):
        return math.nan
    # Spark takes decimals as doubles here.
    exact = [Fraction(float(value)) for value in values]
    mean = sum(exact, Fraction()) / len(exact)
    return _rounded(sum(((value - mean) ** 2 for value in exact), Fraction()) / over)


def _rounded_sum(values: Values) -> float:
    if not all(math.isfinite(value) for value in values):
        # Infinities of both signs, or a NaN, are NaN whatever the order.
        return float(sum(value for value in values if not math.isfinite(value)))
    return _rounded(sum((Fraction(value) for value in values), Fraction()))


def _rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _first(values: Values) -> Any:
    return values[0] if values else None


def _last(values: Values) -> Any:
    return values[-1] if values else None


def _every(values: Values) -> bool:
    return all(values)


def _some(values: Values) -> bool:
    return any(values)


def _bits(combine: Callable[[int, int], int]) -> Callable[[Values], int]:
    return lambda values: functools.reduce(combine, values)


def _median(values: Values) -> Any:
    return _percentile(values, (0.5,))


def _percentile(values: Values, parameters: tuple[Any, ...]) -> Any:
    if len(parameters) != 1:
        raise UsageError("percentile needs exactly one parameter", condition="PERCENTILE_PARAMETER")
    (wanted,) = parameters
    ordered = sorted(values, key=functools.cmp_to_key(compare))
    if isinstance(wanted, list | tuple):
        return [_interpolated(ordered, float(share)) for share in wanted]
    return _interpolated(ordered, float(wanted))


def _interpolated(ordered: Values, share: float) -> Any:
    """Between the two values around (n - 1) · share, by the formula of Spark's percentile."""
    if not 0 <= share <= 1:
        raise UsageError(
            f"percentile parameter {share} is not between 0 and 1", condition="PERCENTILE_PARAMETER"
        )
    position = (len(ordered) - 1) * share
    low, high = math.floor(position), math.ceil(position)
    below, above = _measure(ordered[low]), _measure(ordered[high])
    same = low == high or compare(below, above) == 0
    value = below if same else below + (above - below) * (position - low)
    if isinstance(ordered[0], datetime.timedelta):
        return datetime.timedelta(microseconds=math.trunc(value))
    return value


def _measure(value: Any) -> float:
    """A number as a double, an interval as its microseconds."""
    if isinstance(value, datetime.timedelta):
        return float(value // datetime.timedelta(microseconds=1))
    return float(value)


def _mode(values: Values) -> Any:
    counts: dict[Any, int] = {}
    for value in values:
        counts[canonical(value)] = counts.get(canonical(value), 0) + 1
    most = max(counts.values())
    return _min([value for value in values if counts[canonical(value)] == most])


def _collect_list(values: Values) -> list[Any]:
    return list(values)


def _collect_set(values: Values) -> list[Any]:
    return _first_of_each(values)


_PLAIN: dict[str, Callable[[Values], Any]] = {
    "any": _some,
    "any_value": _first,
    "array_agg": _collect_list,
    "bit_and": _bits(operator.and_),
    "bit_or": _bits(operator.or_),
    "bit_xor": _bits(operator.xor),
    "bool_and": _every,
    "bool_or": _some,
    "collect_list": _collect_list,
    "collect_set": _collect_set,
    "count": _count,
    "count_if": _count_if,
    "every": _every,
    "first": _first,
    "first_value": _first,
    "last": _last,
    "last_value": _last,
    "max": _max,
    "median": _median,
    "min": _min,
    "mode": _mode,
    "some": _some,
    "std": _stddev_samp,
    "stddev": _stddev_samp,
    "stddev_pop": _stddev_pop,
    "stddev_samp": _stddev_samp,
    "var_pop": _var_pop,
    "var_samp": _var_samp,
    "variance": _var_samp,
}

AGGREGATES = frozenset({*_PLAIN, "avg", "count_star", "mean", "percentile", "percentile_cont", "sum"})
"""The aggregates known here, by name in lower case."""

_POSITIONAL = {"any_value", "first", "first_value", "last", "last_value"}
_DEFINED_WHEN_EMPTY = {"array_agg", "collect_list", "collect_set", "count", "count_if"}
