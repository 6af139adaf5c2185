"""Typed expressions: values that Arrow computes, with their types, ranges and doubts."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from windrow.kernels.computed.computed_functions import INSTANT
from windrow.kernels.computed.computed_values import Applied, Constant, Function, Value
from windrow.spark.analysis.plan_tree import SparkNode

__all__ = [
    "DIGITS", "LOCAL", "Handler", "Span", "Typed", "Unread", "kind_of", "known", "limits", "literal_of",
    "only", "over", "span_of", "sums", "turned", "within",
]  # fmt: skip

LOCAL = pa.timestamp("us")
"""The type of times without a zone."""
_TICKS = {pa.date32(): 32, INSTANT: 64, LOCAL: 64, pa.duration("us"): 64}
"""The number of bits of dates, times and intervals."""
_KINDS: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": INSTANT,
    "timestamp_ntz": LOCAL,
}
DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""The most digits of whole numbers."""

Span = tuple[int, int]
"""The least and the greatest possible value; dates and times in days and microseconds."""


class Unread(Exception):  # noqa: N818 - it is no error: Spark computes it
    """An expression that only Spark computes.

    Attributes
    ----------
    what
        The part of it that Arrow does not compute, without columns.
    columns
        The columns that this part reads.
    """

    def __init__(self, what: str = "", columns: Sequence[str] = ()) -> None:
        self.what, self.columns = what, tuple(columns)
        super().__init__(f"{what} over {', '.join(columns)}" if columns else what)


@dataclass(frozen=True)
class Typed:
    """A typed expression.

    Attributes
    ----------
    value, kind
        The expression, and its type.
    literal
        Its value, if it is a literal.
    span
        Its range, if it is a number or a time with a known range.
    doubt
        Why Spark may have to compute it after all.
    is_full
        Whether it is never NULL, as far as is known.
    """

    value: Value
    kind: pa.DataType
    literal: pa.Scalar | None = None
    span: Span | None = None
    doubt: str | None = None
    is_full: bool = False


Handler = Callable[[SparkNode, Sequence[Typed]], Typed]


def over(
    function: Function,
    operands: Sequence[Typed],
    kind: pa.DataType,
    span: Span | None = None,
    doubt: str | None = None,
) -> Typed:
    """A function of typed values."""
    return Typed(Applied(function, tuple(operand.value for operand in operands)), kind, None, span, doubt)


def only(condition: bool) -> None:
    """Leave an expression to Spark unless something is true."""
    if not condition:
        raise Unread


def known(operand: Typed) -> Any:
    """The value of a literal."""
    only(operand.literal is not None and operand.literal.is_valid)
    assert operand.literal is not None
    return operand.literal.as_py()


def span_of(operand: Typed) -> Span:
    """The range of a value, or of its type if unknown."""
    return operand.span or limits(operand.kind)


def limits(kind: pa.DataType) -> Span:
    """The range of a type."""
    bits = _TICKS.get(kind) or kind.bit_width
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def within(span: Span, kind: pa.DataType) -> tuple[Span | None, str | None]:
    """The range of values clipped to a type, and whether they may exceed the type."""
    least, most = limits(kind)
    return (span, None) if least <= span[0] and span[1] <= most else (None, "it may overflow")


def sums(left: Span, right: Span) -> Span:
    """The range of sums."""
    return left[0] + right[0], left[1] + right[1]


def turned(span: Span) -> Span:
    """The range of the negative values."""
    return -span[1], -span[0]


# -- literals --------------------------------------------------------------------------------------------


def kind_of(name: object) -> pa.DataType:
    """The Arrow type for a type's name in plans.

    Raises
    ------
    Unread
        Arrow has no equivalent type.
    """
    if not isinstance(name, str):
        raise Unread
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", name)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if name.startswith("interval ") and not re.search("year|month", name):
        return pa.duration("us")
    if name not in _KINDS:  # a string with a collation among them
        raise Unread
    return _KINDS[name]


def literal_of(node: SparkNode) -> Typed:
    """A literal of a plan."""
    kind, text = kind_of(node.fields["dataType"]), node.fields["value"]
    try:
        literal = pa.scalar(None if text is None else _parsed(text, kind), kind)
    except (ValueError, pa.ArrowException) as error:
        raise Unread from error
    if not literal.is_valid or (kind not in DIGITS and kind not in _TICKS):
        return Typed(Constant(literal), kind, literal, is_full=literal.is_valid)
    number = literal.cast(pa.int32() if kind == pa.date32() else pa.int64()).as_py()
    return Typed(Constant(literal), kind, literal, (number, number), is_full=True)


def _parsed(text: str, kind: pa.DataType) -> object:
    if pa.types.is_string(kind):
        return text
    if pa.types.is_boolean(kind):
        return text == "true"
    if pa.types.is_signed_integer(kind):
        return int(text)
    if pa.types.is_decimal(kind):
        return Decimal(text)
    if pa.types.is_date(kind):
        return datetime.date.fromisoformat(text)
    if pa.types.is_duration(kind) or pa.types.is_timestamp(kind):
        return int(text)
    if pa.types.is_floating(kind):
        return float(text)
    raise Unread
