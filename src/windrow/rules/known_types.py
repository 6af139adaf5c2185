"""Types of conditions over fields, positions, literals, simple operators and DATEDIFF, without Spark.

Each analysis by Spark takes some milliseconds of every query. Spark types a condition with any other part, or
with names that are not written exactly like the field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from windrow.algebra.names import visible_field
from windrow.algebra.window_node import WindowFragment
from windrow.rules.hoister import RowVariable
from windrow.rules.types import FLOATS, INTEGERS, is_day_interval
from windrow.syntax.expression_nodes import Call, Expression, Literal, Name, Opaque, OperationNode, parts_of

__all__ = ["has_plain_names", "known_types"]

_INT = re.compile(r"\d{1,9}")
_INTERVAL = re.compile(r"INTERVAL\s+(?:'\d{1,9}'|\d{1,9})\s+(DAY|HOUR|MINUTE|SECOND)S?", re.IGNORECASE)
_ORDER = ("tinyint", "smallint", "int", "bigint")
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz", "boolean"})


def known_types(
    when: WindowFragment, scope: Mapping[str, RowVariable], fields: Mapping[str, str], *, intervals: bool
) -> list[str] | None:
    """The types of a condition and of all its parts, in their order; None if Spark must analyse it.

    Parameters
    ----------
    when
        The condition.
    scope
        The variables that it may read, by their names in lower case.
    fields
        The types of the fields of rows.
    intervals
        Whether differences of dates and literals are intervals of the standard, not Spark's legacy ones.
    """
    if when.expression is None or when.part is None or not has_plain_names(fields):
        return None
    typing = _Typing(when, scope, fields)
    try:
        types = [typing.kind(part) for part in parts_of(when.expression)]
    except _UnknownError:
        return None
    return types if intervals or not any(map(is_day_interval, types)) else None


def has_plain_names(fields: Mapping[str, str]) -> bool:
    """Whether a field is read by its own name, and no two names differ by case alone."""
    return all(visible_field(field) == field for field in fields) and len(
        {field.lower() for field in fields}
    ) == len(fields)


class _UnknownError(Exception):
    """Spark must analyse it."""


class _Typing:
    def __init__(
        self, when: WindowFragment, scope: Mapping[str, RowVariable], fields: Mapping[str, str]
    ) -> None:
        self.when, self.scope, self.fields = when, scope, fields

    def kind(self, part: Expression) -> str:
        match part:
            case Name(parts=(name,)):
                variable = self.variable(name)
                if not variable.is_position:
                    raise _UnknownError
                return "bigint"
            case Name(parts=(name, field)) if not self.variable(name).is_position and field in self.fields:
                return self.fields[field]
            case Literal() if _INT.fullmatch(self.text(part)):
                return "int"
            case Literal() if self.text(part).upper() in ("TRUE", "FALSE"):
                return "boolean"
            case Literal() | Opaque() if interval := _INTERVAL.fullmatch(self.text(part)):
                return f"interval {interval[1].lower()}"
            case Call(function="datediff" | "date_diff", arguments=arguments):
                if [self.kind(argument) for argument in arguments] == ["date", "date"]:
                    return "int"
            case OperationNode(operator=operator, operands=operands):
                return self.operation(operator, [self.kind(operand) for operand in operands])
        raise _UnknownError

    def variable(self, name: str) -> RowVariable:
        variable = self.scope.get(name.lower())
        if variable is None or variable.name != name:
            raise _UnknownError
        return variable

    def text(self, part: Expression) -> str:
        assert self.when.part is not None
        return self.when.part(part.range).render().strip()

    def operation(self, operator: str, kinds: list[str]) -> str:
        if operator in ("AND", "OR", "NOT") and set(kinds) == {"boolean"}:
            return "boolean"
        if operator in _COMPARISONS or operator in ("BETWEEN", "IN"):
            if _compare(kinds):
                return "boolean"
        elif operator == "IS NULL":
            return "boolean"
        elif operator in ("+", "-") and len(kinds) == 2:
            if set(kinds) <= INTEGERS:
                return max(kinds, key=_ORDER.index)
            if set(kinds) <= INTEGERS | {"double"}:
                return "double"
            if operator == "-" and kinds == ["date", "date"]:
                return "interval day"
        raise _UnknownError


def _compare(kinds: list[str]) -> bool:
    """Whether Spark compares values of these types without casts."""
    return (
        set(kinds) <= INTEGERS | FLOATS
        or (len(set(kinds)) == 1 and kinds[0] in _TIMES)
        or all(map(is_day_interval, kinds))
    )
