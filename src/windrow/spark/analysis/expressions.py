"""Expressions of Spark's plans that need no Spark job: Arrow computes the same values over whole columns.

In an optimized plan, names are resolved, types are cast and zones are explicit. Spark computes all
expressions that this module does not read, and those that raise ArrowInvalid at run time: an overflow, for
which Spark raises its error, or values for which the two may differ. Where Spark cannot take over at run
time, only expressions that certainly raise nothing are read.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.computed import computed_functions, texts
from windrow.kernels.computed.computed_functions import DAY, INSTANT, YEARS
from windrow.kernels.computed.computed_values import Applied, ComputedColumn, Constant, Function, Once, Value
from windrow.spark.analysis.plan_tree import SparkNode

__all__ = ["ColumnScope", "Span", "Struct", "Typed", "Unread", "kind_of", "read"]

_HOUR = 3_600_000_000
_MINUTE = 60_000_000
_UTC = ("UTC", "Etc/UTC", "GMT", "Z")
_LOCAL = pa.timestamp("us")
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
    "timestamp_ntz": _LOCAL,
}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_MOST_DIGITS = 38
_TICKS = {pa.date32(): 32, INSTANT: 64, _LOCAL: 64, pa.duration("us"): 64}

Span = tuple[int, int]
"""The least and the greatest that a value may be; of dates and times in days and microseconds."""


class Unread(Exception):  # noqa: N818 - it is no error: Spark computes it
    """An expression that only Spark computes; the message names the part."""


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
    """

    value: Value
    kind: pa.DataType
    literal: pa.Scalar | None = None
    span: Span | None = None
    doubt: str | None = None


class Struct(Protocol):
    """A struct column, which has fields and is never NULL."""

    def field(self, place: int) -> Typed:
        """One of the fields, as a column."""


@dataclass(frozen=True)
class ColumnScope:
    """The scope of expressions.

    Attributes
    ----------
    kinds
        The types of the columns.
    again
        The keys of expressions that occur more than once.
    spans
        The known ranges of columns.
    structs
        The struct columns whose fields are read.
    certain
        Whether to refuse expressions with a doubt.
    """

    kinds: Mapping[int, pa.DataType]
    again: frozenset[str] = frozenset()
    spans: Mapping[int, Span] = field(default_factory=dict)
    structs: Mapping[int, Struct] = field(default_factory=dict)
    certain: bool = False


def read(node: SparkNode, scope: ColumnScope) -> Typed:
    """Read an expression.

    Raises
    ------
    Unread
        Spark must compute it; the message names it.
    """
    if node.name == "AttributeReference":
        number = node.number
        if number not in scope.kinds:
            raise Unread(_printed(node))
        return Typed(ComputedColumn(number), scope.kinds[number], span=scope.spans.get(number))
    if node.name == "GetStructField":
        (of,), place = node.children, int(node.fields["ordinal"])
        if of.name == "CreateNamedStruct":
            return read(of.children[2 * place + 1], scope)
        if of.name == "AttributeReference" and of.number in scope.structs:
            return scope.structs[of.number].field(place)
    counted = _in_minute(node)
    operands = [read(child, scope) for child in (node if counted is None else counted).children]
    try:
        if node.name == "Literal":
            return _literal(node)
        handler = _HANDLERS.get(node.name) if counted is None else _micros_of_minute
        _only(handler is not None)
        assert handler is not None
        found = handler(node, operands)
        _only(not (scope.certain and found.doubt))
    except Unread:
        raise Unread(_printed(node)) from None
    if found.literal is None and node.key in scope.again:
        return replace(found, value=Once(found.value, node.key))
    return found


def _printed(node: SparkNode) -> str:
    """An expression as plans name it, and the columns that it reads."""
    names = dict.fromkeys(str(one.fields["name"]) for one in node.walk() if one.name == "AttributeReference")
    if node.name == "AttributeReference":
        return f"{node.fields['name']}, of type {node.fields['dataType']}"
    if node.name == "Literal":
        return f"{node.fields['value']}, of type {node.fields['dataType']}"
    return f"{node.name.lower()} over {', '.join(names)}" if names else node.name.lower()


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


def _literal(node: SparkNode) -> Typed:
    kind, text = kind_of(node.fields["dataType"]), node.fields["value"]
    try:
        literal = pa.scalar(None if text is None else _parsed(text, kind), kind)
    except (ValueError, pa.ArrowException) as error:
        raise Unread from error
    if not literal.is_valid or (kind not in _DIGITS and kind not in _TICKS):
        return Typed(Constant(literal), kind, literal)
    number = literal.cast(pa.int32() if kind == pa.date32() else pa.int64()).as_py()
    return Typed(Constant(literal), kind, literal, (number, number))


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


# -- one function of several values ----------------------------------------------------------------------

_Handler = Callable[[SparkNode, Sequence[Typed]], Typed]


def _over(
    function: Function,
    operands: Sequence[Typed],
    kind: pa.DataType,
    span: Span | None = None,
    doubt: str | None = None,
) -> Typed:
    return Typed(Applied(function, tuple(operand.value for operand in operands)), kind, None, span, doubt)


def _only(holds: bool) -> None:
    if not holds:
        raise Unread


def _known(operand: Typed) -> Any:
    """The value of a literal."""
    _only(operand.literal is not None and operand.literal.is_valid)
    assert operand.literal is not None
    return operand.literal.as_py()


def _booleans(function: Function) -> _Handler:
    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        _only(all(pa.types.is_boolean(operand.kind) for operand in operands))
        return _over(function, operands, pa.bool_())

    return handler


def _any(function: Function) -> _Handler:
    return lambda _, operands: _over(function, operands, pa.bool_())


def _field(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    """A field of a column of structs."""
    (of,), place = operands, int(node.fields["ordinal"])
    _only(pa.types.is_struct(of.kind))
    field_of = partial(pc.struct_field, indices=[place])
    return _over(field_of, operands, of.kind.field(place).type, doubt="files may have fields in another form")


def _is_compared(kind: pa.DataType) -> bool:
    """Whether Arrow compares values as Spark does; for floats, Arrow does not treat NaN as the greatest."""
    return (
        pa.types.is_signed_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
        or kind in (INSTANT, _LOCAL)
    )


def _compared(function: Function, of_floats: Function, *, turned: bool = False) -> _Handler:
    """A comparison; one of floats may have its sides swapped."""

    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        left, right = operands
        _only(left.kind == right.kind)
        if pa.types.is_floating(left.kind):
            return _over(of_floats, [right, left] if turned else operands, pa.bool_())
        _only(_is_compared(left.kind))
        return _over(function, operands, pa.bool_())

    return handler


def _in(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    value, *others = operands
    _only(_is_compared(value.kind) and all(other.kind == value.kind for other in others))
    among = pa.array(list(map(_known, others)), value.kind)
    return _over(partial(computed_functions.among, among), [value], pa.bool_())


def _arithmetic(function: Function, ends: Callable[..., Sequence[int]]) -> _Handler:
    """Arithmetic on whole numbers, with the range of results from the ranges of its operands."""

    def handler(node: SparkNode, operands: Sequence[Typed]) -> Typed:
        kinds = {operand.kind for operand in operands}
        if any(map(pa.types.is_decimal, kinds)):
            return _decimals(node.name, function, operands)
        kind = operands[0].kind
        _only(len(kinds) == 1)
        if kind == pa.float64():
            return _over(function, operands, kind)
        _only(pa.types.is_signed_integer(kind))
        found = ends(*map(_span, operands))
        return _over(function, operands, kind, *_within((min(found), max(found)), kind))

    return handler


def _span(operand: Typed) -> Span:
    return operand.span or _limits(operand.kind)


def _limits(kind: pa.DataType) -> Span:
    bits = _TICKS.get(kind) or kind.bit_width
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _within(span: Span, kind: pa.DataType) -> tuple[Span | None, str | None]:
    """The range of values clipped to a type, and whether they may exceed the type."""
    least, most = _limits(kind)
    return (span, None) if least <= span[0] and span[1] <= most else (None, "it may overflow")


def _sums(left: Span, right: Span) -> Span:
    return left[0] + right[0], left[1] + right[1]


def _turned(span: Span) -> Span:
    return -span[1], -span[0]


def _products(left: Span, right: Span) -> list[int]:
    return [one * other for one in left for other in right]


def _sizes(span: Span) -> list[int]:
    return [*map(abs, span), *([0] if span[0] <= 0 <= span[1] else [])]


def _decimals(name: str, function: Function, operands: Sequence[Typed]) -> Typed:
    """Sums and products of decimals that need no rounding."""
    _only(len(operands) == 2 and all(pa.types.is_decimal(operand.kind) for operand in operands))
    left, right = (operand.kind for operand in operands)
    if name == "Multiply":
        kind = (left.precision + right.precision + 1, left.scale + right.scale)
    else:
        scale = max(left.scale, right.scale)
        kind = (max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)
    _only(kind[0] <= _MOST_DIGITS)
    return _over(function, operands, pa.decimal128(*kind))


def _divided(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    """A float by a literal that is not zero."""
    value, by = operands
    _only(value.kind == by.kind == pa.float64() and _known(by) != 0)
    return _over(pc.divide, operands, pa.float64())


def _by_literal(function: Function, *, is_remainder: bool) -> _Handler:
    """The quotient or the rest by a positive literal."""

    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        value, by = operands
        kind, divisor = value.kind, _known(by)
        _only(pa.types.is_signed_integer(kind) and by.kind == kind and divisor > 0)
        span = (1 - divisor, divisor - 1) if is_remainder else _span(value)
        whole = kind if is_remainder else pa.int64()
        return _over(partial(computed_functions.by_literal, function, divisor, whole), [value], whole, span)

    return handler


def _joined(operands: Sequence[Typed]) -> Span | None:
    """The range of a value that is one of these."""
    spans = [operand.span for operand in operands if operand.literal is None or operand.literal.is_valid]
    known = [span for span in spans if span is not None]
    if not known or len(known) < len(spans):
        return None
    return min(least for least, _ in known), max(most for _, most in known)


def _case(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    """``CASE WHEN … THEN … ELSE … END``, and ``IF``."""
    conditions, values = operands[:-1:2], operands[1::2]
    kind = values[0].kind
    nothing = pa.scalar(None, kind)
    last = operands[-1] if len(operands) % 2 else Typed(Constant(nothing), kind, nothing)
    _only(all(value.kind == kind for value in (*values, last)))
    _only(all(pa.types.is_boolean(condition.kind) for condition in conditions))
    return _over(computed_functions.cases, [*conditions, *values, last], kind, _joined([*values, last]))


def _coalesce(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    kind = operands[0].kind
    _only(all(operand.kind == kind for operand in operands))
    return _over(pc.coalesce, operands, kind, _joined(operands))


def _cast(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    (value,) = operands
    old, new = value.kind, kind_of(node.fields["dataType"])
    if old == new:
        return value
    if new == pa.date32() and (old == _LOCAL or (old == INSTANT and _is_utc(node))):
        least, most = _span(value)
        return _over(computed_functions.day_of, operands, new, (least // DAY, most // DAY))
    if old in _DIGITS and new == pa.float64():
        return _over(partial(computed_functions.nearest, new), operands, new)
    if old in _DIGITS and new in _DIGITS:
        _only(_DIGITS[old] < _DIGITS[new])
    elif old in _DIGITS and pa.types.is_decimal(new):
        # Arrow asks for as many digits as any number of the type may have
        _only(new.precision - new.scale >= _DIGITS[old])
    elif pa.types.is_decimal(old) and pa.types.is_decimal(new):
        _only(new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale)
    elif old == INSTANT and new == _LOCAL:
        _only(_is_utc(node))
    else:
        _only((old in _DIGITS and new == pa.string()) or (old == pa.float32() and new == pa.float64()))
    return _over(partial(computed_functions.to_type, new), operands, new, value.span)


# -- times -----------------------------------------------------------------------------------------------


def _is_utc(node: SparkNode) -> bool:
    return node.fields.get("timeZoneId") in _UTC


def _part(unit: int, of: int) -> _Handler:
    """A part of the time of day, such as the hour."""

    def handler(node: SparkNode, operands: Sequence[Typed]) -> Typed:
        (value,) = operands
        _only(value.kind == _LOCAL or (value.kind == INSTANT and _is_utc(node)))
        return _over(partial(computed_functions.of_day, unit, of), operands, pa.int32(), (0, of - 1))

    return handler


def _of_calendar(function: Function, span: Span) -> _Handler:
    """A part of a date, such as the year."""

    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        (value,) = operands
        _only(pa.types.is_date32(value.kind))
        return _over(
            partial(computed_functions.of_calendar, function),
            operands,
            pa.int32(),
            span,
            _beyond(value, YEARS),
        )

    return handler


def _beyond(value: Typed, span: Span) -> str | None:
    """The doubt about a value that may be outside a range."""
    least, most = _span(value)
    return None if span[0] <= least and most <= span[1] else "of years in which calendars differ"


def _formatted(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    value, pattern = operands
    shape = texts.time_shape(_known(pattern))
    if shape is None or value.kind != INSTANT or not _is_utc(node):
        raise Unread
    first, last = texts.FORMATTED
    doubt = _beyond(value, (first * 1_000_000, last * 1_000_000))
    return _over(partial(texts.formatted, shape), [value], pa.string(), doubt=doubt)


def _plus_interval(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    value, length = operands
    _only(value.kind == INSTANT and _is_utc(node) and length.kind == pa.duration("us"))
    (least, most), (shortest, longest) = map(_span, operands)
    span = _within((least + shortest, most + longest), INSTANT)
    return _over(partial(computed_functions.later, INSTANT), operands, INSTANT, *span)


def _plus_units(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    """``timestampadd`` of microseconds to a time without a zone, in which days and hours are all alike."""
    count, value = operands
    _only(node.fields["unit"] == "MICROSECOND" and value.kind == _LOCAL and count.kind == pa.int64())
    span = _within(_sums(_span(value), _span(count)), _LOCAL)
    return _over(partial(computed_functions.later, _LOCAL), [value, count], _LOCAL, *span)


def _in_minute(node: SparkNode) -> SparkNode | None:
    """The seconds of which an expression has the microseconds, ``CAST(seconds * 1000000 AS BIGINT)``."""
    if node.name != "Cast" or node.fields["dataType"] != "long" or node.children[0].name != "Multiply":
        return None
    seconds, factor = node.children[0].children
    is_million = factor.name == "Literal" and factor.fields["value"] == "1000000"
    return seconds if is_million and seconds.name == "SecondWithFraction" else None


def _micros_of_minute(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    (value,) = operands
    _only(value.kind == _LOCAL)
    span = (0, _MINUTE - 1)
    found = _over(partial(computed_functions.of_day, 1, _MINUTE), operands, pa.int32(), span)
    return _over(partial(computed_functions.to_type, pa.int64()), [found], pa.int64(), span)


def _converted(old: pa.DataType, new: pa.DataType) -> _Handler:
    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        _only(operands[0].kind == old)
        return _over(partial(computed_functions.to_type, new), operands, new, operands[0].span)

    return handler


# -- texts -----------------------------------------------------------------------------------------------


def _text_of(operands: Sequence[Typed], literals: int) -> list[Any]:
    """The operands of a function of a text and literals."""
    first, *others = operands
    _only(pa.types.is_string(first.kind) and len(others) == literals)
    return list(map(_known, others))


def _text(
    made: Callable[..., Function | None], kind: pa.DataType, literals: int, span: Span | None = None
) -> _Handler:
    """A function of one text, made by literals; None if Spark must compute it."""

    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        function = made(*_text_of(operands, literals))
        if function is None:
            raise Unread
        return _over(function, operands[:1], kind, span)

    return handler


def _ascii(made: Callable[..., Function | None], kind: pa.DataType, literals: int) -> _Handler:
    """The same, if only ASCII texts have a certain result."""
    handler = _text(made, kind, literals)
    return lambda node, operands: replace(
        handler(node, operands), doubt="letters of other alphabets are Spark's to know"
    )


def _concat(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    _only(all(pa.types.is_string(operand.kind) for operand in operands))
    return _over(texts.concatenated, operands, pa.string())


def _element(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    """``split_part``: an element of a list, or else a text."""
    parts, place = operands
    default = node.tree("defaultValueOutOfBound")
    if default is None:
        raise Unread
    at, other = _known(place), _known(_literal(default))
    _only(parts.kind == pa.list_(pa.string()) and at > 0)
    return _over(partial(texts.element, at, other), [parts], pa.string())


_HANDLERS: Mapping[str, _Handler] = {
    "Not": _booleans(pc.invert),
    "And": _booleans(pc.and_kleene),
    "Or": _booleans(pc.or_kleene),
    "IsNull": _any(pc.is_null),
    "IsNotNull": _any(pc.is_valid),
    "EqualTo": _compared(pc.equal, computed_functions.float_equal),
    "EqualNullSafe": _compared(computed_functions.same, computed_functions.same_floats),
    "LessThan": _compared(pc.less, computed_functions.float_less),
    "LessThanOrEqual": _compared(pc.less_equal, computed_functions.float_less_equal),
    "GreaterThan": _compared(pc.greater, computed_functions.float_less, turned=True),
    "GreaterThanOrEqual": _compared(pc.greater_equal, computed_functions.float_less_equal, turned=True),
    "In": _in,
    "Add": _arithmetic(pc.add_checked, _sums),
    "Subtract": _arithmetic(pc.subtract_checked, lambda left, right: _sums(left, _turned(right))),
    "Multiply": _arithmetic(pc.multiply_checked, _products),
    "UnaryMinus": _arithmetic(pc.negate_checked, _turned),
    "Abs": _arithmetic(pc.abs_checked, _sizes),
    "Divide": _divided,
    "IntegralDivide": _by_literal(computed_functions.quotient, is_remainder=False),
    "Remainder": _by_literal(np.fmod, is_remainder=True),
    "Pmod": _by_literal(np.mod, is_remainder=True),
    "CaseWhen": _case,
    "If": _case,
    "Coalesce": _coalesce,
    "Cast": _cast,
    "Hour": _part(_HOUR, 24),
    "Minute": _part(_HOUR // 60, 60),
    "Second": _part(_HOUR // 3600, 60),
    "UnixDate": _converted(pa.date32(), pa.int32()),
    "Year": _of_calendar(pc.year, (1, 9999)),
    "Quarter": _of_calendar(pc.quarter, (1, 4)),
    "Month": _of_calendar(pc.month, (1, 12)),
    "DayOfMonth": _of_calendar(pc.day, (1, 31)),
    "DayOfYear": _of_calendar(pc.day_of_year, (1, 366)),
    "DateFormatClass": _formatted,
    "TimestampAdd": _plus_units,
    "TimestampAddInterval": _plus_interval,
    "TimeAdd": _plus_interval,  # the same in Spark 4.0
    "GetStructField": _field,
    "UnixMicros": _converted(INSTANT, pa.int64()),
    "MicrosToTimestamp": _converted(pa.int64(), INSTANT),
    "Lower": _ascii(lambda: texts.lower, pa.string(), 0),
    "Upper": _ascii(lambda: texts.upper, pa.string(), 0),
    "Length": _text(lambda: texts.length, pa.int32(), 0, (0, _limits(pa.int32())[1])),
    "StringReplace": _text(texts.replaced, pa.string(), 2),
    "Substring": _text(texts.substring, pa.string(), 2),
    "Contains": _text(texts.containing, pa.bool_(), 1),
    "StartsWith": _text(texts.starting, pa.bool_(), 1),
    "EndsWith": _text(texts.ending, pa.bool_(), 1),
    "RLike": _ascii(texts.found, pa.bool_(), 1),
    "RegExpExtract": _ascii(texts.extracted, pa.string(), 2),
    "Concat": _concat,
    "StringSplitSQL": _text(texts.split, pa.list_(pa.string()), 1),
    "ElementAt": _element,
}
