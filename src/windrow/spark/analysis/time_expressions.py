"""Functions of dates and times in Spark's plans, as Arrow computes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from windrow.kernels.computed import computed_functions, texts
from windrow.kernels.computed.computed_functions import INSTANT, YEARS
from windrow.kernels.computed.computed_values import Function
from windrow.spark.analysis.plan_tree import SparkNode
from windrow.spark.analysis.typed_values import (
    LOCAL,
    Handler,
    Span,
    Typed,
    Unread,
    known,
    only,
    over,
    span_of,
    sums,
    within,
)

__all__ = [
    "HOUR", "converted", "formatted", "in_minute", "is_utc", "micros_of_minute", "of_calendar", "part_of_day",
    "plus_interval", "plus_units",
]  # fmt: skip

HOUR = 3_600_000_000
"""Microseconds."""
_MINUTE = HOUR // 60
_UTC = ("UTC", "Etc/UTC", "GMT", "Z")


def is_utc(node: SparkNode) -> bool:
    """Whether an expression reads times in UTC."""
    return node.fields.get("timeZoneId") in _UTC


def part_of_day(unit: int, of: int) -> Handler:
    """A part of the time of day, such as the hour."""

    def handler(node: SparkNode, operands: Sequence[Typed]) -> Typed:
        (value,) = operands
        only(value.kind == LOCAL or (value.kind == INSTANT and is_utc(node)))
        return over(partial(computed_functions.of_day, unit, of), operands, pa.int32(), (0, of - 1))

    return handler


def of_calendar(function: Function, span: Span) -> Handler:
    """A part of a date, such as the year."""

    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        (value,) = operands
        only(pa.types.is_date32(value.kind))
        return over(
            partial(computed_functions.of_calendar, function),
            operands,
            pa.int32(),
            span,
            _beyond(value, YEARS),
        )

    return handler


def _beyond(value: Typed, span: Span) -> str | None:
    """The doubt about a value that may be outside a range."""
    least, most = span_of(value)
    return None if span[0] <= least and most <= span[1] else "of years in which calendars differ"


def formatted(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    """``date_format`` by patterns of digits."""
    value, pattern = operands
    shape = texts.time_shape(known(pattern))
    if shape is None or value.kind != INSTANT or not is_utc(node):
        raise Unread
    first, last = texts.FORMATTED
    doubt = _beyond(value, (first * 1_000_000, last * 1_000_000))
    return over(partial(texts.formatted, shape), [value], pa.string(), doubt=doubt)


def plus_interval(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    """A time and an interval of days and seconds."""
    value, length = operands
    only(value.kind == INSTANT and is_utc(node) and length.kind == pa.duration("us"))
    (least, most), (shortest, longest) = map(span_of, operands)
    span = within((least + shortest, most + longest), INSTANT)
    return over(partial(computed_functions.later, INSTANT), operands, INSTANT, *span)


def plus_units(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    """``timestampadd`` of microseconds to a time without a zone, in which days and hours are all alike."""
    count, value = operands
    only(node.fields["unit"] == "MICROSECOND" and value.kind == LOCAL and count.kind == pa.int64())
    span = within(sums(span_of(value), span_of(count)), LOCAL)
    return over(partial(computed_functions.later, LOCAL), [value, count], LOCAL, *span)


def in_minute(node: SparkNode) -> SparkNode | None:
    """The seconds whose microseconds an expression is, ``CAST(seconds * 1000000 AS BIGINT)``."""
    if node.name != "Cast" or node.fields["dataType"] != "long" or node.children[0].name != "Multiply":
        return None
    seconds, factor = node.children[0].children
    is_million = factor.name == "Literal" and factor.fields["value"] == "1000000"
    return seconds if is_million and seconds.name == "SecondWithFraction" else None


def micros_of_minute(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    """The microseconds since the minute began, of a time without a zone."""
    (value,) = operands
    only(value.kind == LOCAL)
    span = (0, _MINUTE - 1)
    found = over(partial(computed_functions.of_day, 1, _MINUTE), operands, pa.int32(), span)
    return over(partial(computed_functions.to_type, pa.int64()), [found], pa.int64(), span)


def converted(old: pa.DataType, new: pa.DataType) -> Handler:
    """A cast that loses nothing, from one type to another."""

    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        only(operands[0].kind == old)
        return over(partial(computed_functions.to_type, new), operands, new, operands[0].span)

    return handler
