"""Expressions of Spark's plans that need no Spark job: Arrow computes the same values over whole columns.

In an optimized plan, names are resolved, types are cast and zones are explicit. Spark computes all
expressions that this module does not read, and those that raise ArrowInvalid at run time: an overflow, for
which Spark raises its error, or values for which the two may differ. Where Spark cannot take over at run
time, only expressions that certainly raise nothing are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.computed import computed_functions, texts
from windrow.kernels.computed.computed_functions import DAY, INSTANT
from windrow.kernels.computed.computed_values import ComputedColumn, Constant, Function, Once
from windrow.spark.analysis.plan_tree import SparkNode
from windrow.spark.analysis.text_expressions import concatenated, element, of_ascii, of_text
from windrow.spark.analysis.time_expressions import (
    HOUR,
    converted,
    formatted,
    in_minute,
    is_utc,
    micros_of_minute,
    of_calendar,
    part_of_day,
    plus_interval,
    plus_units,
)
from windrow.spark.analysis.typed_values import (
    DIGITS,
    LOCAL,
    Handler,
    Span,
    Typed,
    Unread,
    kind_of,
    known,
    limits,
    literal_of,
    only,
    over,
    span_of,
    sums,
    turned,
    within,
)

__all__ = ["ColumnScope", "Struct", "read"]

_MOST_DIGITS = 38
_PRESENT = "Present"
"""The name here of ``coalesce(value, raise_error(…))``."""
_TOTAL = frozenset({"Cast", "UnixDate", "UnixMicros", "Hour", "Minute", "Add", "Multiply", _PRESENT})
"""Those of the handled expressions that are used for rowtimes, and are NULL only where an operand is."""


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
    full
        The columns that have no NULL.
    """

    kinds: Mapping[int, pa.DataType]
    again: frozenset[str] = frozenset()
    spans: Mapping[int, Span] = field(default_factory=dict)
    structs: Mapping[int, Struct] = field(default_factory=dict)
    certain: bool = False
    full: frozenset[int] = frozenset()


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
            raise _unread(node)
        span, is_full = scope.spans.get(number), number in scope.full
        return Typed(ComputedColumn(number), scope.kinds[number], span=span, is_full=is_full)
    if node.name == "GetStructField":
        (of,), place = node.children, int(node.fields["ordinal"])
        if of.name == "CreateNamedStruct":
            return read(of.children[2 * place + 1], scope)
        if of.name == "AttributeReference" and of.number in scope.structs:
            return scope.structs[of.number].field(place)
    if (null := _null_of(node)) is not None:
        return literal_of(null)
    if node.name == "Coalesce" and len(node.children) == 2 and _is_error(node.children[1]):
        node = SparkNode(_PRESENT, node.fields, node.children[:-1])
    counted = in_minute(node)
    handler = _HANDLERS.get(node.name) if counted is None else micros_of_minute
    if handler is None and node.name != "Literal":
        raise _unread(node)
    operands = [read(child, scope) for child in (node if counted is None else counted).children]
    try:
        if handler is None:
            return literal_of(node)
        found = handler(node, operands)
        only(not (scope.certain and found.doubt))
        found = replace(found, is_full=node.name in _TOTAL and all(one.is_full for one in operands))
    except Unread:
        raise _unread(node) from None
    if found.literal is None and node.key in scope.again:
        return replace(found, value=Once(found.value, node.key))
    return found


def _is_error(node: SparkNode) -> bool:
    """Whether an expression raises an error whenever it is evaluated."""
    return node.name == "RaiseError" or (node.name == "Cast" and _is_error(node.children[0]))


def _null_of(node: SparkNode) -> SparkNode | None:
    """The NULL that `unfolded_null` of `spark/relations/pairs_of_plan.py` hides from Spark's optimizer."""
    if node.name != "GetArrayItem" or not any(
        one.name == "Pmod" and one.children[1].fields.get("value") == "1" for one in node.children[1].walk()
    ):
        return None
    of = node.children[0]
    kind = of.fields["dataType"] if of.name == "Literal" else None
    if isinstance(kind, dict) and kind.get("type") == "array":
        return SparkNode("Literal", {"value": None, "dataType": kind["elementType"]}, ())
    return of.children[0] if of.name == "CreateArray" and of.children[0].name == "Literal" else None


def _unread(node: SparkNode) -> Unread:
    """That Spark must compute an expression, which is called as plans call it."""
    if node.name == "AttributeReference":
        return Unread(f"{node.fields['name']}, of type {node.fields['dataType']}")
    if node.name == "Literal":
        kind = node.fields["dataType"]
        return Unread(
            "a literal of type binary" if kind == "binary" else f"{node.fields['value']}, of type {kind}"
        )
    names = dict.fromkeys(str(one.fields["name"]) for one in node.walk() if one.name == "AttributeReference")
    return Unread(node.name.lower(), [*names])


# -- one function of several values ----------------------------------------------------------------------


def _booleans(function: Function) -> Handler:
    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        only(all(pa.types.is_boolean(operand.kind) for operand in operands))
        return over(function, operands, pa.bool_())

    return handler


def _any(function: Function) -> Handler:
    return lambda _, operands: over(function, operands, pa.bool_())


def _field(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    """A field of a column of structs."""
    (of,), place = operands, int(node.fields["ordinal"])
    only(pa.types.is_struct(of.kind))
    field_of = partial(pc.struct_field, indices=[place])
    return over(field_of, operands, of.kind.field(place).type, doubt="files may have fields in another form")


def _is_compared(kind: pa.DataType) -> bool:
    """Whether Arrow compares values as Spark does; for floats, Arrow does not treat NaN as the greatest."""
    return (
        pa.types.is_signed_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
        or kind in (INSTANT, LOCAL)
    )


def _compared(function: Function, of_floats: Function, *, turned: bool = False) -> Handler:
    """A comparison; for floats, its sides may be swapped."""

    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        left, right = operands
        only(left.kind == right.kind)
        if pa.types.is_floating(left.kind):
            return over(of_floats, [right, left] if turned else operands, pa.bool_())
        only(_is_compared(left.kind))
        return over(function, operands, pa.bool_())

    return handler


def _in(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    value, *others = operands
    only(_is_compared(value.kind) and all(other.kind == value.kind for other in others))
    among = pa.array(list(map(known, others)), value.kind)
    return over(partial(computed_functions.among, among), [value], pa.bool_())


def _arithmetic(function: Function, ends: Callable[..., Sequence[int]]) -> Handler:
    """Arithmetic on whole numbers, with the range of results from the ranges of its operands."""

    def handler(node: SparkNode, operands: Sequence[Typed]) -> Typed:
        kinds = {operand.kind for operand in operands}
        if any(map(pa.types.is_decimal, kinds)):
            return _decimals(node.name, function, operands)
        kind = operands[0].kind
        only(len(kinds) == 1)
        if kind == pa.float64():
            return over(function, operands, kind)
        only(pa.types.is_signed_integer(kind))
        found = ends(*map(span_of, operands))
        return over(function, operands, kind, *within((min(found), max(found)), kind))

    return handler


def _products(left: Span, right: Span) -> list[int]:
    return [one * other for one in left for other in right]


def _sizes(span: Span) -> list[int]:
    return [*map(abs, span), *([0] if span[0] <= 0 <= span[1] else [])]


def _decimals(name: str, function: Function, operands: Sequence[Typed]) -> Typed:
    """Sums and products of decimals that need no rounding."""
    only(len(operands) == 2 and all(pa.types.is_decimal(operand.kind) for operand in operands))
    left, right = (operand.kind for operand in operands)
    if name == "Multiply":
        kind = (left.precision + right.precision + 1, left.scale + right.scale)
    else:
        scale = max(left.scale, right.scale)
        kind = (max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)
    only(kind[0] <= _MOST_DIGITS)
    return over(function, operands, pa.decimal128(*kind))


def _divided(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    """A float divided by a non-zero literal."""
    value, by = operands
    only(value.kind == by.kind == pa.float64() and known(by) != 0)
    return over(pc.divide, operands, pa.float64())


def _by_literal(function: Function, *, is_remainder: bool) -> Handler:
    """The quotient or the remainder by a positive literal."""

    def handler(_: SparkNode, operands: Sequence[Typed]) -> Typed:
        value, by = operands
        kind, divisor = value.kind, known(by)
        only(pa.types.is_signed_integer(kind) and by.kind == kind and divisor > 0)
        span = (1 - divisor, divisor - 1) if is_remainder else span_of(value)
        whole = kind if is_remainder else pa.int64()
        return over(partial(computed_functions.by_literal, function, divisor, whole), [value], whole, span)

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
    only(all(value.kind == kind for value in (*values, last)))
    only(all(pa.types.is_boolean(condition.kind) for condition in conditions))
    return over(computed_functions.cases, [*conditions, *values, last], kind, _joined([*values, last]))


def _coalesce(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    kind = operands[0].kind
    only(all(operand.kind == kind for operand in operands))
    return over(pc.coalesce, operands, kind, _joined(operands))


def _present(_: SparkNode, operands: Sequence[Typed]) -> Typed:
    """A value for which NULL is an error, and which is never NULL."""
    (value,) = operands
    only(value.is_full)
    return over(computed_functions.present, operands, value.kind, value.span)


def _cast(node: SparkNode, operands: Sequence[Typed]) -> Typed:
    (value,) = operands
    old, new = value.kind, kind_of(node.fields["dataType"])
    if old == new:
        # an interval that ends with another field than seconds is cut there
        only(not pa.types.is_duration(new) or str(node.fields["dataType"]).endswith("second"))
        return value
    if new == pa.date32() and (old == LOCAL or (old == INSTANT and is_utc(node))):
        least, most = span_of(value)
        return over(computed_functions.day_of, operands, new, (least // DAY, most // DAY))
    if old in DIGITS and new == pa.float64():
        return over(partial(computed_functions.nearest, new), operands, new)
    if old in DIGITS and new in DIGITS:
        only(DIGITS[old] < DIGITS[new])
    elif old in DIGITS and pa.types.is_decimal(new):
        # Arrow asks for as many digits as any number of the type may have
        only(new.precision - new.scale >= DIGITS[old])
    elif pa.types.is_decimal(old) and pa.types.is_decimal(new):
        only(new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale)
    elif old == INSTANT and new == LOCAL:
        only(is_utc(node))
    else:
        only((old in DIGITS and new == pa.string()) or (old == pa.float32() and new == pa.float64()))
    return over(partial(computed_functions.to_type, new), operands, new, value.span)


_HANDLERS: Mapping[str, Handler] = {
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
    "Add": _arithmetic(pc.add_checked, sums),
    "Subtract": _arithmetic(pc.subtract_checked, lambda left, right: sums(left, turned(right))),
    "Multiply": _arithmetic(pc.multiply_checked, _products),
    "UnaryMinus": _arithmetic(pc.negate_checked, turned),
    "Abs": _arithmetic(pc.abs_checked, _sizes),
    "Divide": _divided,
    "IntegralDivide": _by_literal(computed_functions.quotient, is_remainder=False),
    "Remainder": _by_literal(np.fmod, is_remainder=True),
    "Pmod": _by_literal(np.mod, is_remainder=True),
    "CaseWhen": _case,
    "If": _case,
    "Coalesce": _coalesce,
    _PRESENT: _present,
    "Cast": _cast,
    "Hour": part_of_day(HOUR, 24),
    "Minute": part_of_day(HOUR // 60, 60),
    "Second": part_of_day(HOUR // 3600, 60),
    "UnixDate": converted(pa.date32(), pa.int32()),
    "Year": of_calendar(pc.year, (1, 9999)),
    "Quarter": of_calendar(pc.quarter, (1, 4)),
    "Month": of_calendar(pc.month, (1, 12)),
    "DayOfMonth": of_calendar(pc.day, (1, 31)),
    "DayOfYear": of_calendar(pc.day_of_year, (1, 366)),
    "DateFormatClass": formatted,
    "TimestampAdd": plus_units,
    "TimestampAddInterval": plus_interval,
    "TimeAdd": plus_interval,  # the same in Spark 4.0
    "GetStructField": _field,
    "UnixMicros": converted(INSTANT, pa.int64()),
    "MicrosToTimestamp": converted(pa.int64(), INSTANT),
    "Lower": of_ascii(lambda: texts.lower, pa.string(), 0),
    "Upper": of_ascii(lambda: texts.upper, pa.string(), 0),
    "Length": of_text(lambda: texts.length, pa.int32(), 0, (0, limits(pa.int32())[1])),
    "StringReplace": of_text(texts.replaced, pa.string(), 2),
    "Substring": of_text(texts.substring, pa.string(), 2),
    "Contains": of_text(texts.containing, pa.bool_(), 1),
    "StartsWith": of_text(texts.starting, pa.bool_(), 1),
    "EndsWith": of_text(texts.ending, pa.bool_(), 1),
    "RLike": of_ascii(texts.found, pa.bool_(), 1),
    "RegExpExtract": of_ascii(texts.extracted, pa.string(), 2),
    "Concat": concatenated,
    "StringSplitSQL": of_text(texts.split, pa.list_(pa.string()), 1),
    "ElementAt": element,
}
