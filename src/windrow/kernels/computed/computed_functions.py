"""Functions of columns with Spark's meaning; on values on which Arrow may differ, they raise ArrowInvalid.

Functions with literals take these before the columns: `functools.partial` makes them functions of columns
alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "DAY",
    "INSTANT",
    "YEARS",
    "among",
    "by_literal",
    "cases",
    "day_of",
    "float_equal",
    "float_less",
    "float_less_equal",
    "later",
    "nearest",
    "of_calendar",
    "of_day",
    "of_numbers",
    "quotient",
    "same",
    "same_floats",
    "to_type",
]

DAY = 86_400_000_000
INSTANT = pa.timestamp("us", "UTC")
YEARS = (-719_162, 2_932_896)
"""The range of days of the years 1 to 9999."""

Ints = npt.NDArray[np.int64]


def same(left: pa.Array, right: pa.Array) -> pa.Array:
    """``<=>``."""
    return pc.coalesce(pc.equal(left, right), pc.and_(pc.is_null(left), pc.is_null(right)))


def float_equal(left: pa.Array, right: pa.Array) -> pa.Array:
    """``=`` of floats: NaN is equal to itself."""
    return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))


def same_floats(left: pa.Array, right: pa.Array) -> pa.Array:
    """``<=>`` of floats."""
    return pc.coalesce(float_equal(left, right), pc.and_(pc.is_null(left), pc.is_null(right)))


def float_less(left: pa.Array, right: pa.Array) -> pa.Array:
    """``<`` of floats: NaN is greater than any other."""
    return pc.or_(pc.less(left, right), pc.and_(pc.is_nan(right), pc.invert(pc.is_nan(left))))


def float_less_equal(left: pa.Array, right: pa.Array) -> pa.Array:
    """``<=`` of floats."""
    return pc.or_(pc.less_equal(left, right), pc.and_(pc.is_nan(right), pc.is_valid(left)))


def among(values: pa.Array, one: pa.Array) -> pa.Array:
    """``IN`` a list of literals."""
    return pc.if_else(pc.is_valid(one), pc.is_in(one, values), pa.scalar(None, pa.bool_()))


def cases(*parts: pa.Array) -> pa.Array:
    """``CASE``: conditions, as many values, and the value of ELSE."""
    half = len(parts) // 2
    found = parts[-1]
    for condition, value in reversed([*zip(parts[:half], parts[half:-1], strict=True)]):
        found = pc.if_else(pc.fill_null(condition, False), value, found)
    return found


def of_numbers(function: Callable[[Ints], Ints], kind: pa.DataType, value: pa.Array) -> pa.Array:
    """A function of whole numbers that are not NULL."""
    if isinstance(value, pa.Scalar):
        return of_numbers(function, kind, pa.array([value.as_py()], value.type))[0]
    mask = np.asarray(pc.is_null(value)) if value.null_count else None
    found = function(np.asarray(pc.fill_null(value, 0)))
    return pa.array(found, mask=mask).cast(kind)


def present(value: pa.Array) -> pa.Array:
    """The same values, none of which is NULL."""
    if value.null_count:
        raise pa.ArrowInvalid("a value is NULL")
    return value


def by_literal(
    function: Callable[[Ints, int], Ints], divisor: int, kind: pa.DataType, value: pa.Array
) -> pa.Array:
    """A function of whole numbers and a literal."""
    return of_numbers(lambda numbers: function(numbers, divisor), kind, value)


def quotient(value: Ints, divisor: int) -> Ints:
    """``DIV`` by a positive number, rounded towards zero."""
    return (value - np.fmod(value, divisor)) // divisor


def to_type(kind: pa.DataType, value: pa.Array) -> pa.Array:
    """A cast that loses nothing."""
    return value.cast(kind)


def nearest(kind: pa.DataType, value: pa.Array) -> pa.Array:
    """A cast to the nearest float."""
    return pc.cast(value, kind, safe=False)


# -- times -----------------------------------------------------------------------------------------------


def day_of(value: pa.Array) -> pa.Array:
    """The date of a timestamp."""
    return of_numbers(_days, pa.int32(), value.cast(pa.int64())).cast(pa.date32())


def _days(ticks: Ints) -> Ints:
    return ticks // DAY


def of_day(unit: int, count: int, value: pa.Array) -> pa.Array:
    """A unit of so many microseconds, modulo the next larger unit: the hour of the day."""
    return of_numbers(lambda ticks: ticks // unit % count, pa.int32(), value.cast(pa.int64()))


def of_calendar(function: Callable[[pa.Array], pa.Array], days: pa.Array) -> pa.Array:
    """A part of dates: the year, the month."""
    if isinstance(days, pa.Scalar):
        return of_calendar(function, pa.array([days.as_py()], days.type))[0]
    least, most = pc.min_max(days.cast(pa.int32())).values()
    if least.is_valid and not (YEARS[0] <= least.as_py() and most.as_py() <= YEARS[1]):
        raise pa.ArrowInvalid("years that calendars count in different ways")
    return function(days).cast(pa.int32())


def later(kind: pa.DataType, time: pa.Array, by: pa.Array) -> pa.Array:
    """A time plus so many microseconds, in this type."""
    return pc.add_checked(time.cast(pa.int64()), by.cast(pa.int64())).cast(kind)
