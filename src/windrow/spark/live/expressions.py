"""Expressions of Spark's plans that need no job of Spark's: Arrow computes the same of whole columns.

Plans have names resolved, types cast and zones told. What is not read here, Spark computes; so is what
raises ArrowInvalid: it overflows, which is for Spark to refuse, or has values on which the two may differ.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.spark.live import texts
from windrow.spark.live.plan_tree import Node

__all__ = ["Rows", "Typed", "Unread", "Value", "read", "whole"]

_DAY = 86_400_000_000
_HOUR = 3_600_000_000
_UTC = ("UTC", "Etc/UTC", "GMT", "Z")
_INSTANT = pa.timestamp("us", "UTC")
_LOCAL = pa.timestamp("us")
_KINDS: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": _INSTANT,
    "timestamp_ntz": _LOCAL,
}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_MOST_DIGITS = 38

Value = Callable[["Rows"], pa.Array]
"""What gives a value for each row; literals give scalars."""


class Unread(Exception):  # noqa: N818 - it is no error: Spark computes it
    """What is in an expression that is not computed here."""


@dataclass
class Rows:
    """Rows that are computed with.

    Attributes
    ----------
    columns
        By the numbers by which plans tell them.
    count
        Of rows.
    known
        What has been computed of them and is asked for again, by :attr:`Node.key`.
    """

    columns: dict[int, pa.Array]
    count: int
    known: dict[str, pa.Array] = field(default_factory=dict)

    def where(self, condition: pa.Array) -> Rows:
        """The rows of which it is true."""
        stays = whole(pc.fill_null(condition, False), self.count)
        if pc.all(stays, min_count=0).as_py():
            return self
        columns = {number: column.filter(stays) for number, column in self.columns.items()}
        known = {key: column.filter(stays) for key, column in self.known.items()}
        return Rows(columns, pc.sum(stays, min_count=0).as_py(), known)


@dataclass(frozen=True)
class Typed:
    """A value of each row, its type, and the value itself if it is a literal."""

    value: Value
    kind: pa.DataType
    literal: pa.Scalar | None = None


def read(node: Node, kinds: Mapping[int, pa.DataType], again: frozenset[str]) -> Typed:
    """How an expression is computed.

    Parameters
    ----------
    kinds
        The types of the columns.
    again
        The keys of expressions that are asked for more than once.

    Raises
    ------
    Unread
        It is for Spark to compute.
    """
    if node.name == "AttributeReference":
        number = node.number
        if number not in kinds:
            raise Unread
        return Typed(lambda rows: rows.columns[number], kinds[number])
    if node.name == "Literal":
        return _literal(node)
    handler = _HANDLERS.get(node.name)
    if handler is None:
        raise Unread
    found = handler(node, [read(child, kinds, again) for child in node.children])
    if found.literal is None and node.key in again:
        return Typed(_once(found.value, node.key), found.kind)
    return found


def whole(value: pa.Array, count: int) -> pa.Array:
    """A value of each row, also where it is one for all."""
    return pa.repeat(value, count) if isinstance(value, pa.Scalar) else value


def _once(value: Value, key: str) -> Value:
    def found(rows: Rows) -> pa.Array:
        if key not in rows.known:
            rows.known[key] = whole(value(rows), rows.count)
        return rows.known[key]

    return found


# -- literals --------------------------------------------------------------------------------------------


def _kind(name: object) -> pa.DataType:
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


def _literal(node: Node) -> Typed:
    kind, text = _kind(node.fields["dataType"]), node.fields["value"]
    try:
        literal = pa.scalar(None if text is None else _parsed(text, kind), kind)
    except (ValueError, pa.ArrowException) as error:
        raise Unread from error
    return Typed(lambda _: literal, kind, literal)


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
    if pa.types.is_duration(kind) or kind == _LOCAL:
        return int(text)
    if pa.types.is_floating(kind):
        return float(text)
    raise Unread  # of times in zones a text says too little


# -- one function of several values ----------------------------------------------------------------------

_Function = Callable[..., pa.Array]
_Handler = Callable[[Node, Sequence[Typed]], Typed]


def _over(function: _Function, operands: Sequence[Typed], kind: pa.DataType) -> Typed:
    values = [operand.value for operand in operands]
    return Typed(lambda rows: function(*(value(rows) for value in values)), kind)


def _only(holds: bool) -> None:
    if not holds:
        raise Unread


def _known(operand: Typed) -> Any:
    """What a literal is."""
    _only(operand.literal is not None and operand.literal.is_valid)
    assert operand.literal is not None
    return operand.literal.as_py()


def _booleans(function: _Function) -> _Handler:
    def handler(_: Node, operands: Sequence[Typed]) -> Typed:
        _only(all(pa.types.is_boolean(operand.kind) for operand in operands))
        return _over(function, operands, pa.bool_())

    return handler


def _any(function: _Function) -> _Handler:
    return lambda _, operands: _over(function, operands, pa.bool_())


def _is_compared(kind: pa.DataType) -> bool:
    """Whether values are compared alike: NaN is not."""
    return (
        pa.types.is_signed_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
        or kind in (_INSTANT, _LOCAL)
    )


def _compared(function: _Function) -> _Handler:
    def handler(_: Node, operands: Sequence[Typed]) -> Typed:
        left, right = operands
        _only(left.kind == right.kind and _is_compared(left.kind))
        return _over(function, operands, pa.bool_())

    return handler


def _same(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.coalesce(pc.equal(left, right), pc.and_(pc.is_null(left), pc.is_null(right)))


def _in(_: Node, operands: Sequence[Typed]) -> Typed:
    value, *others = operands
    _only(_is_compared(value.kind) and all(other.kind == value.kind for other in others))
    among = pa.array(list(map(_known, others)), value.kind)

    def found(one: pa.Array) -> pa.Array:
        return pc.if_else(pc.is_valid(one), pc.is_in(one, among), pa.scalar(None, pa.bool_()))

    return _over(found, [value], pa.bool_())


def _arithmetic(function: _Function) -> _Handler:
    def handler(node: Node, operands: Sequence[Typed]) -> Typed:
        kinds = {operand.kind for operand in operands}
        if any(map(pa.types.is_decimal, kinds)):
            return _decimals(node.name, function, operands)
        kind = operands[0].kind
        _only(len(kinds) == 1 and (pa.types.is_signed_integer(kind) or kind == pa.float64()))
        return _over(function, operands, kind)

    return handler


def _decimals(name: str, function: _Function, operands: Sequence[Typed]) -> Typed:
    """Sums and products that have all their digits."""
    _only(len(operands) == 2 and all(pa.types.is_decimal(operand.kind) for operand in operands))
    left, right = (operand.kind for operand in operands)
    if name == "Multiply":
        kind = (left.precision + right.precision + 1, left.scale + right.scale)
    else:
        scale = max(left.scale, right.scale)
        kind = (max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)
    _only(kind[0] <= _MOST_DIGITS)
    return _over(function, operands, pa.decimal128(*kind))


def _remainder(of: np.ufunc) -> _Handler:
    """The rest by a positive literal."""

    def handler(_: Node, operands: Sequence[Typed]) -> Typed:
        value, by = operands
        kind = value.kind
        divisor = _known(by)
        _only(pa.types.is_signed_integer(kind) and by.kind == kind and divisor > 0)
        return _over(lambda one: _numbers(one, lambda each: of(each, divisor), kind), [value], kind)

    return handler


def _numbers(
    value: pa.Array,
    function: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]],
    kind: pa.DataType,
) -> pa.Array | pa.Scalar:
    """A function of whole numbers that are not NULL."""
    if isinstance(value, pa.Scalar):
        return _numbers(pa.array([value.as_py()], value.type), function, kind)[0]
    mask = np.asarray(pc.is_null(value)) if value.null_count else None
    found = function(np.asarray(pc.fill_null(value, 0)))
    return pa.array(found, mask=mask).cast(kind)


def _case(_: Node, operands: Sequence[Typed]) -> Typed:
    """``CASE WHEN … THEN … ELSE … END``, and ``IF``."""
    conditions, values = operands[:-1:2], operands[1::2]
    kind = values[0].kind
    last = operands[-1] if len(operands) % 2 else Typed(lambda _: pa.scalar(None, kind), kind)
    _only(all(value.kind == kind for value in (*values, last)))
    _only(all(pa.types.is_boolean(condition.kind) for condition in conditions))

    def chosen(rows: Rows) -> pa.Array:
        found = last.value(rows)
        for condition, value in reversed([*zip(conditions, values, strict=True)]):
            holds = whole(pc.fill_null(condition.value(rows), False), rows.count)
            found = pc.if_else(holds, value.value(rows), found)
        return found

    return Typed(chosen, kind)


def _coalesce(_: Node, operands: Sequence[Typed]) -> Typed:
    kind = operands[0].kind
    _only(all(operand.kind == kind for operand in operands))
    return _over(pc.coalesce, operands, kind)


def _cast(node: Node, operands: Sequence[Typed]) -> Typed:
    (value,) = operands
    old, new = value.kind, _kind(node.fields["dataType"])
    if new == pa.date32() and (old == _LOCAL or (old == _INSTANT and _is_utc(node))):
        return _over(_day_of, operands, new)
    if old in _DIGITS and new in _DIGITS:
        _only(_DIGITS[old] < _DIGITS[new])
    elif old in _DIGITS and pa.types.is_decimal(new):
        # Arrow asks for as many digits as any number of the type may have
        _only(new.precision - new.scale >= _DIGITS[old])
    elif pa.types.is_decimal(old) and pa.types.is_decimal(new):
        _only(new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale)
    else:
        _only(old in _DIGITS and new == pa.float64())
    return _over(lambda one: one.cast(new), operands, new)


# -- times -----------------------------------------------------------------------------------------------


def _is_utc(node: Node) -> bool:
    return node.fields.get("timeZoneId") in _UTC


def _ticks(value: pa.Array) -> pa.Array:
    return value.cast(pa.int64())


def _day_of(value: pa.Array) -> pa.Array:
    return _numbers(_ticks(value), lambda ticks: ticks // _DAY, pa.int32()).cast(pa.date32())


def _part(unit: int, of: int) -> _Handler:
    """The hour of the day, or the like."""

    def handler(node: Node, operands: Sequence[Typed]) -> Typed:
        (value,) = operands
        _only(value.kind == _LOCAL or (value.kind == _INSTANT and _is_utc(node)))
        return _over(
            lambda one: _numbers(_ticks(one), lambda ticks: ticks // unit % of, pa.int32()),
            operands,
            pa.int32(),
        )

    return handler


def _formatted(node: Node, operands: Sequence[Typed]) -> Typed:
    value, pattern = operands
    shape = texts.time_shape(_known(pattern))
    if shape is None or value.kind != _INSTANT or not _is_utc(node):
        raise Unread
    return _over(lambda one: texts.formatted(_ticks(one), shape), [value], pa.string())


def _plus_interval(node: Node, operands: Sequence[Typed]) -> Typed:
    value, length = operands
    _only(value.kind == _INSTANT and _is_utc(node) and length.kind == pa.duration("us"))
    return _over(lambda one, by: pc.add_checked(_ticks(one), _ticks(by)).cast(_INSTANT), operands, _INSTANT)


def _converted(old: pa.DataType, new: pa.DataType) -> _Handler:
    def handler(_: Node, operands: Sequence[Typed]) -> Typed:
        _only(operands[0].kind == old)
        return _over(lambda one: one.cast(new), operands, new)

    return handler


# -- texts -----------------------------------------------------------------------------------------------


def _text_of(operands: Sequence[Typed], literals: int) -> list[Any]:
    """Of a text and literals after it: these."""
    first, *others = operands
    _only(pa.types.is_string(first.kind) and len(others) == literals)
    return list(map(_known, others))


def _text(made: Callable[..., _Function | None], kind: pa.DataType, literals: int) -> _Handler:
    """A function of one text, made by literals; None where Spark has to know."""

    def handler(_: Node, operands: Sequence[Typed]) -> Typed:
        function = made(*_text_of(operands, literals))
        if function is None:
            raise Unread
        return _over(function, operands[:1], kind)

    return handler


def _concat(_: Node, operands: Sequence[Typed]) -> Typed:
    _only(all(pa.types.is_string(operand.kind) for operand in operands))
    return _over(lambda *each: pc.binary_join_element_wise(*each, ""), operands, pa.string())


def _split(_: Node, operands: Sequence[Typed]) -> Typed:
    (by,) = _text_of(operands, 1)
    _only(bool(by))
    return _over(lambda one: pc.split_pattern(one, by), operands[:1], pa.list_(pa.string()))


def _element(node: Node, operands: Sequence[Typed]) -> Typed:
    """``split_part``: an element of a list, or else a text."""
    parts, place = operands
    default = node.tree("defaultValueOutOfBound")
    if default is None:
        raise Unread
    at, other = _known(place), _known(_literal(default))
    _only(parts.kind == pa.list_(pa.string()) and at > 0)
    return _over(lambda lists: texts.element(lists, at, other), [parts], pa.string())


_HANDLERS: Mapping[str, _Handler] = {
    "Not": _booleans(pc.invert),
    "And": _booleans(pc.and_kleene),
    "Or": _booleans(pc.or_kleene),
    "IsNull": _any(pc.is_null),
    "IsNotNull": _any(pc.is_valid),
    "EqualTo": _compared(pc.equal),
    "EqualNullSafe": _compared(_same),
    "LessThan": _compared(pc.less),
    "LessThanOrEqual": _compared(pc.less_equal),
    "GreaterThan": _compared(pc.greater),
    "GreaterThanOrEqual": _compared(pc.greater_equal),
    "In": _in,
    "Add": _arithmetic(pc.add_checked),
    "Subtract": _arithmetic(pc.subtract_checked),
    "Multiply": _arithmetic(pc.multiply_checked),
    "UnaryMinus": _arithmetic(pc.negate_checked),
    "Abs": _arithmetic(pc.abs_checked),
    "Remainder": _remainder(np.fmod),
    "Pmod": _remainder(np.mod),
    "CaseWhen": _case,
    "If": _case,
    "Coalesce": _coalesce,
    "Cast": _cast,
    "Hour": _part(_HOUR, 24),
    "Minute": _part(_HOUR // 60, 60),
    "Second": _part(_HOUR // 3600, 60),
    "DateFormatClass": _formatted,
    "TimestampAddInterval": _plus_interval,
    "TimeAdd": _plus_interval,  # the same in Spark 4.0
    "UnixMicros": _converted(_INSTANT, pa.int64()),
    "MicrosToTimestamp": _converted(pa.int64(), _INSTANT),
    "Lower": _text(lambda: texts.lower, pa.string(), 0),
    "Upper": _text(lambda: texts.upper, pa.string(), 0),
    "Length": _text(lambda: pc.utf8_length, pa.int32(), 0),
    "StringReplace": _text(texts.replaced, pa.string(), 2),
    "Substring": _text(texts.substring, pa.string(), 2),
    "Contains": _text(lambda part: lambda one: pc.match_substring(one, part), pa.bool_(), 1),
    "StartsWith": _text(lambda part: lambda one: pc.starts_with(one, part), pa.bool_(), 1),
    "EndsWith": _text(lambda part: lambda one: pc.ends_with(one, part), pa.bool_(), 1),
    "RLike": _text(texts.found, pa.bool_(), 1),
    "RegExpExtract": _text(texts.extracted, pa.string(), 2),
    "Concat": _concat,
    "StringSplitSQL": _split,
    "ElementAt": _element,
}
