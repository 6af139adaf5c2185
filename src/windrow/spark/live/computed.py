"""Expressions of rows that need no job of Spark's: comparisons and sums of whole numbers and times.

They are read from Spark's optimized plan, in which names are resolved, types are cast and times of zones are
told. What is not read here, Spark computes: so is what overflows, which is for Spark to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Computed", "computed"]

Array = npt.NDArray[np.int64]

_TOKEN = re.compile(r"\s*([^\s(),\[\]]+#\d+L?|\w+|<=>|<=|>=|[-+*%<>=(),])")
_DAY = 86_400_000_000
_COMPARED: Mapping[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_NUMBERS: Mapping[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked,
}  # fmt: skip


class _Unread(Exception):  # noqa: N818 - it is no error: Spark computes it
    pass


_Value = Callable[[pa.Table], pa.Array]
"""What gives a value for each row; literals are scalars."""


@dataclass(frozen=True)
class _Typed:
    """A value; numbers made of nothing but literals are as wide as plans do not say."""

    value: _Value
    kind: pa.DataType
    is_literal: bool = False


@dataclass(frozen=True)
class Computed:
    """What a fragment makes of the rows of its leaf.

    Attributes
    ----------
    condition
        Of the rows that stay; None for all.
    columns
        The values, in order.
    schema
        Their names and types.
    """

    condition: _Value | None
    columns: tuple[_Value, ...]
    schema: pa.Schema

    def of(self, rows: pa.Table) -> pa.Table | None:
        """What it makes of these; None where Spark is to say what is wrong with them."""
        try:
            if self.condition is not None:
                stays = pc.fill_null(self.condition(rows), False)
                if not pc.all(stays, min_count=0).as_py():
                    rows = rows.filter(stays)
            columns = [_whole(value(rows), rows.num_rows) for value in self.columns]
        except pa.ArrowInvalid:
            return None
        found = [column.cast(field.type) for column, field in zip(columns, self.schema, strict=True)]
        return pa.Table.from_arrays(found, schema=self.schema)


def computed(
    plan: Sequence[str], leaf: pa.Schema, result: pa.Schema, zone: str, numbers: Sequence[str]
) -> Computed | None:
    """What a fragment makes of the rows of its one leaf; None where Spark is needed for that.

    Parameters
    ----------
    plan
        The operators of its optimized plan, the last first.
    leaf, result
        The columns of its leaf, and its own.
    zone
        The session's.
    numbers
        By which the plan tells the columns of the leaf.
    """
    above = [line for line in plan if not line.startswith(("MapInArrow ", "Range "))]
    projects = [line for line in above if line.startswith("Project [")]
    filters = [line for line in above if line.startswith("Filter ")]
    if (
        above != [*projects, *filters]
        or len(projects) != 1
        or len(filters) > 1
        or len(plan) != len(above) + 2
    ):
        return None
    columns = dict(zip(numbers, leaf, strict=True))
    try:
        condition = None
        if filters:
            reader = _Reader(filters[0].removeprefix("Filter "), columns, zone)
            condition = reader.whole()
        reader = _Reader(projects[0].removeprefix("Project [").removesuffix("]"), columns, zone)
        values = list(reader.items(result))
    except _Unread:
        return None
    if condition is not None and not pa.types.is_boolean(condition.kind):
        return None
    return Computed(None if condition is None else condition.value, tuple(values), result)


class _Reader:
    """Reads expressions as Spark shows them in plans."""

    def __init__(self, text: str, columns: Mapping[str, pa.Field], zone: str) -> None:
        self.columns, self.zone, self.at = columns, zone, 0
        self.tokens: list[str] = []
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                raise _Unread
            self.tokens.append(found[1])
            place = found.end()

    def whole(self) -> _Typed:
        """An expression that ends where the text does."""
        found = self._expression()
        if self.at < len(self.tokens):
            raise _Unread
        return found

    def items(self, result: pa.Schema) -> Iterator[_Value]:
        """The expressions of a SELECT list."""
        for number, field in enumerate(result):
            if number:
                self._take(",")
            found = self._expression()
            named = self.tokens[self.at - 1]
            if self._next() == "AS":
                self.at += 1
                named = self._next()
                self.at += 1
            elif "#" not in named:
                raise _Unread
            if named.partition("#")[0] != field.name:
                raise _Unread
            is_number = pa.types.is_signed_integer(found.kind) and pa.types.is_signed_integer(field.type)
            if found.kind != field.type and not (found.is_literal and is_number):
                raise _Unread
            yield found.value
        if self.at < len(self.tokens):
            raise _Unread

    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self, token: str) -> None:
        if self._next() != token:
            raise _Unread
        self.at += 1

    def _expression(self) -> _Typed:
        token = self._next()
        self.at += 1
        if token == "(":
            return self._operation()
        if token == "NOT":
            return _Typed(_over(pc.invert, [self._boolean()]), pa.bool_())
        if token == "CASE":
            return self._case()
        if "#" in token:
            return self._column(token)
        if token.isdigit() or (token == "-" and self._next().isdigit()):
            if token == "-":
                token += self._next()
                self.at += 1
            return _literal(int(token))
        if token in ("true", "false"):
            literal = pa.scalar(token == "true")
            return _Typed(lambda _: literal, pa.bool_(), is_literal=True)
        return self._call(token)

    def _column(self, token: str) -> _Typed:
        name, _, number = token.partition("#")
        field = self.columns.get(number.removesuffix("L"))
        if field is None or field.name != name:
            raise _Unread
        return _Typed(lambda rows: rows.column(name), field.type)

    def _boolean(self) -> _Typed:
        found = self._expression()
        if not pa.types.is_boolean(found.kind):
            raise _Unread
        return found

    def _operation(self) -> _Typed:
        """What is in brackets: two operands, or a list joined by AND or OR."""
        left = self._expression()
        operator = self._next()
        while self._next() != ")":
            operator = self._next()
            self.at += 1
            left = self._joined(left, operator, self._expression())
        self._take(")")
        return left

    def _joined(self, left: _Typed, operator: str, right: _Typed) -> _Typed:
        if operator in ("AND", "OR"):
            if not (pa.types.is_boolean(left.kind) and pa.types.is_boolean(right.kind)):
                raise _Unread
            of = pc.and_kleene if operator == "AND" else pc.or_kleene
            return _Typed(_over(of, [left, right]), pa.bool_())
        left, right = _alike(left, right)
        if operator in _COMPARED and _is_compared(left.kind):
            return _Typed(_over(_COMPARED[operator], [left, right]), pa.bool_())
        if operator == "%" and left.kind == pa.int64() and right.is_literal and not left.is_literal:
            return _Typed(_over(_remainder, [left, right]), pa.int64())
        if operator in _NUMBERS and left.kind == pa.int64() and not (left.is_literal and right.is_literal):
            return _Typed(_over(_NUMBERS[operator], [left, right]), pa.int64())
        raise _Unread

    def _case(self) -> _Typed:
        """``CASE WHEN … THEN … END`` of one condition, without ELSE."""
        self._take("WHEN")
        condition = self._boolean()
        self._take("THEN")
        value = self._expression()
        self._take("END")

        def chosen(rows: pa.Table) -> pa.Array:
            holds = _whole(pc.fill_null(condition.value(rows), False), rows.num_rows)
            return pc.if_else(holds, value.value(rows), pa.scalar(None, value.kind))

        return _Typed(chosen, value.kind, value.is_literal)

    def _call(self, name: str) -> _Typed:
        self._take("(")
        if name == "cast":
            value = self._expression()
            self._take("as")
            kind = self._next()
            self.at += 1
            self._take(")")
            return self._cast(value, kind)
        arguments = [self._expression()]
        while self._next() == ",":
            self.at += 1
            arguments.append(self._expression())
        self._take(")")
        kinds = [argument.kind for argument in arguments]
        match name, arguments:
            case "isnotnull", [_]:
                return _Typed(_over(pc.is_valid, arguments), pa.bool_())
            case "isnull", [_]:
                return _Typed(_over(pc.is_null, arguments), pa.bool_())
            case "coalesce", [_, *_] if len(set(kinds)) == 1:
                is_literal = all(argument.is_literal for argument in arguments)
                return _Typed(_over(pc.coalesce, arguments), kinds[0], is_literal)
            case "unix_micros", [value] if _is_instant(value.kind):
                return _Typed(_over(lambda one: one.cast(pa.int64()), arguments), pa.int64())
            case "timestamp_micros", [value] if value.kind == pa.int64():
                return _Typed(_over(lambda one: one.cast(_INSTANT), arguments), _INSTANT)
            case "pmod", [value, divisor] if (
                kinds == [pa.int64(), pa.int64()] and divisor.is_literal and not value.is_literal
            ):
                return _Typed(_over(_modulo, [value, divisor]), pa.int64())
        raise _Unread

    def _cast(self, value: _Typed, kind: str) -> _Typed:
        if kind == "bigint" and pa.types.is_signed_integer(value.kind):
            return _Typed(_over(lambda one: one.cast(pa.int64()), [value]), pa.int64())
        if kind == "date" and _is_instant(value.kind) and self.zone in ("UTC", "Etc/UTC", "GMT", "Z"):
            return _Typed(_over(_day_of, [value]), pa.date32())
        raise _Unread


_INSTANT = pa.timestamp("us", "UTC")


def _is_instant(kind: pa.DataType) -> bool:
    return bool(kind == _INSTANT)


def _is_compared(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or _is_instant(kind))


def _literal(value: int) -> _Typed:
    if not -(2**63) <= value < 2**63:
        raise _Unread
    literal = pa.scalar(value, pa.int64())
    return _Typed(lambda _: literal, pa.int64(), is_literal=True)


def _alike(left: _Typed, right: _Typed) -> tuple[_Typed, _Typed]:
    """Operands of one type: Spark has cast them, and does not show the types of literals."""
    if left.is_literal == right.is_literal:
        if left.kind != right.kind:
            raise _Unread
        return left, right
    kind = right.kind if left.is_literal else left.kind
    if not pa.types.is_signed_integer(kind):
        raise _Unread
    return _Typed(left.value, kind, left.is_literal), _Typed(right.value, kind, right.is_literal)


def _over(function: Callable[..., pa.Array], arguments: Sequence[_Typed]) -> _Value:
    return lambda rows: function(*(argument.value(rows) for argument in arguments))


def _whole(value: pa.Array | pa.Scalar, count: int) -> pa.Array:
    return pa.repeat(value, count) if isinstance(value, pa.Scalar) else value


def _modulo(value: pa.Array, divisor: pa.Scalar) -> pa.Array:
    """The rest that is not negative, of a positive divisor."""
    return _rest(np.mod, value, divisor)


def _remainder(value: pa.Array, divisor: pa.Scalar) -> pa.Array:
    """The rest with the sign of what is divided, of a positive divisor."""
    return _rest(np.fmod, value, divisor)


def _rest(of: np.ufunc, value: pa.Array, divisor: pa.Scalar) -> pa.Array:
    by = divisor.as_py()
    if by <= 0:
        raise pa.ArrowInvalid("Spark says what that is")
    if isinstance(value, pa.Scalar):
        return pa.scalar(int(of(value.as_py(), by)) if value.is_valid else None, pa.int64())
    numbers = of(np.asarray(pc.fill_null(value, 0)), by)
    return pa.array(numbers, mask=np.asarray(pc.is_null(value)) if value.null_count else None)


def _day_of(value: pa.Array) -> pa.Array:
    ticks = value.cast(pa.int64())
    days = np.asarray(pc.fill_null(ticks, 0)) // _DAY
    mask = np.asarray(pc.is_null(ticks)) if ticks.null_count else None
    return pa.array(days, mask=mask).cast(pa.int32()).cast(pa.date32())
