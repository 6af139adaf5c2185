"""Splits a predicate into columns that Spark computes and a small expression over them.

    lower(s.kind) = 'x' AND s.val < 25 AND e_next.date - s.date > INTERVAL 7 DAYS
    →  h0 = lower(s.kind) = 'x'    h1 = s.val    h2 = e_next.date    h3 = s.date
       h0(start) AND h1(start) < 25 AND h2(end + 1) − h3(start) > c0

A part that reads one row alone becomes a column, whatever functions it calls, unless it only compares numbers
or times with constants. A part over a missing row (PREV before the first, NEXT after the last, START
unsatisfied) is the same expression over a row of NULLs: unless that is certainly NULL, Spark computes it
once, as a constant. The rest over several rows must be comparison, logic and arithmetic on types that the
kernel supports; :mod:`windrow.rules.pair_conditions` supports more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeGuard

from windrow.algebra.names import IDENTITY, as_written
from windrow.algebra.physical import DraftColumns, find_field
from windrow.algebra.window_node import WindowFragment
from windrow.errors import AnalysisError
from windrow.kernels import window_plan
from windrow.rules.types import FLOATS, INTEGERS, NUMPY, common_decimal, is_day_interval, is_decimal
from windrow.syntax.expression_nodes import (
    Call,
    Expression,
    Literal,
    Name,
    Opaque,
    OperationNode,
    names_in,
    parts_of,
)
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText

__all__ = [
    "IS_TRUE", "KERNEL_TYPES", "NOT_TRUE", "Guards", "Hoister", "NotTypedError", "Ranks", "RowVariable",
]  # fmt: skip

_MICROSECONDS_A_DAY = 86_400_000_000
_COMPARISONS = {"=", "<>", "<", "<=", ">", ">=", "<=>"}
_STRICT_CALLS = {"abs", "datediff", "date_diff", "upper", "lower", "length", "date_add", "date_sub", "year",
                 "month", "day", "hour", "minute", "second", "floor", "ceil", "round", "sqrt",
                 "unix_timestamp", "to_date", "trim", "substring", "mod", "pmod"}  # fmt: skip
_PLAIN = {"IS NULL", "BETWEEN", *_COMPARISONS}
_SAFE = {"AND", "OR", "NOT", "IS NULL", "IN", "BETWEEN", *_COMPARISONS}


NOT_FALSE = ("COALESCE((", "), TRUE)")
NOT_TRUE = ("NOT COALESCE((", "), FALSE)")
IS_TRUE = ("COALESCE((", "), FALSE)")

Guards = tuple[tuple[Expression, tuple[str, str]], ...]
"""Conditions beside a part, and the text around them that decides whether the part is evaluated.

They are the operands to the left: in AND the part is evaluated where they are `NOT_FALSE`, in OR where they
are `NOT_TRUE`.
"""


@dataclass(frozen=True, slots=True)
class RowVariable:
    """A row that predicates read, by `side` and `shift`; a position is a number, not a row.

    `is_there` says that the row is never missing.
    """

    name: str
    side: str
    shift: int = 0
    is_position: bool = False
    is_there: bool = False


class NotTypedError(Exception):
    """The kernel cannot evaluate this part; the message says why."""


class Ranks:
    """Numbers the groups of columns that are compared by rank."""

    def __init__(self) -> None:
        self.last = -1

    def new(self) -> int:
        """The next number."""
        self.last += 1
        return self.last


class Hoister:
    """Types one expression over row variables."""

    def __init__(
        self,
        scope: Mapping[str, RowVariable],
        when: WindowFragment,
        types_of: Callable[[list[SqlText]], list[str]],
        fields: Mapping[str, str],
        columns: DraftColumns,
        ranks: Ranks,
        *,
        ansi: bool,
    ) -> None:
        self.scope, self.when, self.fields, self.columns, self.ranks = scope, when, fields, columns, ranks
        self.types_of, self.ansi = types_of, ansi
        self.types: dict[Range, str] = {}

    def typed(self, what: str) -> window_plan.PairExpression:
        """The whole condition; `what` names its owner in errors.

        Raises
        ------
        AnalysisError
            ``PREDICATE_NOT_BOOLEAN``.
        NotTypedError
            The kernel cannot evaluate it.
        """
        assert self.when.expression is not None
        self.analyse(self.when.expression)
        kind = self.types[self.when.expression.range]
        if kind not in ("boolean", "void"):
            raise AnalysisError(
                f"predicate of {what} is of type {kind}, not boolean",
                condition="PREDICATE_NOT_BOOLEAN",
                sqlstate="42804",
                span=self.when.span,
                hint="write a condition, for example a comparison",
            )
        return self.convert(self.when.expression, ())

    def analyse(self, expression: Expression) -> None:
        """Look up the types of the predicate and of all its parts, in one go."""
        parts = parts_of(expression)
        texts = [SqlText.of("(", self.text(part), ")") for part in parts]
        for part, kind in zip(parts, self.types_of(texts), strict=True):
            self.types[part.range] = kind

    def text(self, expression: Expression) -> SqlText:
        """A part as text for Spark."""
        assert self.when.part is not None
        return self.when.part(expression.range)

    # -- what a part reads -------------------------------------------------------------------------

    def variable(self, name: Name) -> RowVariable | None:
        """The variable that a path begins with."""
        return self.scope.get(name.parts[0].lower())

    def field(self, expression: Expression) -> str | None:
        """The name of the field, if the part is a field of a row."""
        if isinstance(expression, Name) and len(expression.parts) == 2:
            return expression.parts[1]
        return None

    def reads(self, expression: Expression) -> set[RowVariable]:
        """The variables that the part reads."""
        found = {self.variable(name) for name in names_in(expression)}
        return {variable for variable in found if variable is not None}

    def single_row(self, expression: Expression) -> RowVariable | None:
        """The one row variable that the part reads, if it reads one row and no position."""
        read = self.reads(expression)
        if len(read) != 1:
            return None
        variable = next(iter(read))
        return None if variable.is_position else variable

    def is_row(self, expression: Expression) -> RowVariable | None:
        """The variable, if the part is a row variable itself and not a field of it."""
        if not isinstance(expression, Name) or len(expression.parts) != 1:
            return None
        variable = self.scope.get(expression.parts[0].lower())
        return None if variable is None or variable.is_position else variable

    def needs_identity(self, expression: Expression) -> bool:
        """Whether the part is a row variable or compares two: Spark's columns know values, not rows."""
        if self.is_row(expression) is not None:
            return True
        compares = isinstance(expression, OperationNode) and expression.operator in _COMPARISONS
        if compares and all(self.is_row(operand) is not None for operand in _operands(expression)):
            return True
        return any(
            self.needs_identity(part)
            for part in _operands(expression)
            if not (isinstance(expression, OperationNode) and expression.operator == "IS NULL")
        )

    # -- to the kernel's expressions ---------------------------------------------------------------

    def convert(self, expression: Expression, guards: Guards) -> window_plan.PairExpression:
        """The part as the kernel evaluates it; `guards` are true wherever it is evaluated."""
        if not self.reads(expression):
            return self.constant(expression)
        if self.single_row(expression) is not None and not self.needs_identity(expression):
            if not self.is_plain(expression):
                return self.hoisted(expression, guards)
            with suppress(NotTypedError):
                return self.operation(expression, guards)
            return self.hoisted(expression, guards)
        match expression:
            case Name(parts=parts):
                variable = self.scope[parts[0].lower()]
                if variable.is_position:
                    return window_plan.PositionRef(variable.side)
                raise NotTypedError(f"row {variable.name} is used as a value")
            case OperationNode():
                return self.operation(expression, guards)
            case Call(function="coalesce" | "nvl" | "ifnull", arguments=parts):
                dtype = self.dtype(expression)
                return window_plan.Operation(
                    "COALESCE", tuple(self.number(part, guards, dtype) for part in parts), dtype
                )
            case Call(function="abs", arguments=(part,)):
                dtype = self.dtype(expression)
                return window_plan.Operation("ABS", (self.number(part, guards, dtype),), dtype)
            case Call(function="datediff" | "date_diff", arguments=(end, start)):
                days = (self.leaf(end, "DATE", guards), self.leaf(start, "DATE", guards))
                return window_plan.Operation("-", days, "int32")
        raise NotTypedError(f"{self.displayed(expression)} reads several rows inside one function")

    def operation(self, expression: OperationNode, guards: Guards) -> window_plan.PairExpression:
        """An operator in the kernel's form."""
        operator, operands = expression.operator, expression.operands
        if operator in ("AND", "OR"):
            converted = []
            for operand in operands:
                converted.append(self.truth(operand, guards))
                guards = (*guards, (operand, NOT_FALSE if operator == "AND" else NOT_TRUE))
            return window_plan.Operation(operator, tuple(converted))
        if operator == "NOT":
            (operand,) = operands
            is_word = operand.range == expression.range
            negated = self.negated(operand, guards) if is_word else self.truth(operand, guards)
            return window_plan.Operation("NOT", (negated,))
        if operator == "IS NULL":
            return window_plan.Operation("ISNULL", (self.value(operands[0], guards),))
        if operator in _COMPARISONS:
            return self.comparison(operator, operands, guards)
        if operator == "IN":
            first, *items = operands
            kinds = {self.types[operand.range] for operand in operands} - {"void"}
            if not self.ansi and "float" in kinds and kinds & INTEGERS and kinds - INTEGERS - {"float"}:
                raise NotTypedError("without ANSI, IN compares all its values in one type")
            return window_plan.Operation(
                "OR", tuple(self.comparison("=", (first, item), guards) for item in items)
            )
        if operator == "BETWEEN":
            value, low, high = operands
            return window_plan.Operation(
                "AND",
                (self.comparison(">=", (value, low), guards), self.comparison("<=", (value, high), guards)),
            )
        return self.arithmetic(expression, guards)

    def negated(self, expression: Expression, guards: Guards) -> window_plan.PairExpression:
        """The operand of NOT IN, IS NOT NULL and the like, with the text of the negation."""
        assert isinstance(expression, OperationNode)
        return self.operation(expression, guards)

    def comparison(
        self, operator: str, operands: tuple[Expression, ...], guards: Guards
    ) -> window_plan.PairExpression:
        """A comparison in the types in which Spark compares."""
        left, right = operands
        rows = self.is_row(left), self.is_row(right)
        if rows[0] is not None and rows[1] is not None:
            return _same_row(operator, rows[0], rows[1])
        kinds = {self.types[left.range], self.types[right.range]} - {"void"}
        cast: str | None = None
        rank: int | None = None
        if not self.ansi and "float" in kinds and kinds & INTEGERS:
            raise NotTypedError("integers and FLOAT are compared as FLOAT without ANSI")
        if (
            kinds <= INTEGERS | FLOATS
            or (len(kinds) <= 1 and kinds <= {"date", "timestamp", "timestamp_ntz", "boolean"})
        ) or all(map(is_day_interval, kinds)):
            pass
        elif kinds & FLOATS and all(kind in INTEGERS | FLOATS or is_decimal(kind) for kind in kinds):
            cast = "DOUBLE"
        elif (
            kinds == {"string"}
            or kinds == {"binary"}
            or (any(map(is_decimal, kinds)) and (cast := common_decimal(kinds)) is not None)
        ):
            rank = self.ranks.new()
        elif len(kinds) == 2 and "date" in kinds and kinds & {"timestamp", "timestamp_ntz"}:
            cast = (kinds - {"date"}).pop().upper()
        else:
            raise NotTypedError(f"{' and '.join(sorted(kinds))} are not compared in the kernel")
        parts = []
        for part in (left, right):
            needs_cast = cast is not None and self.types[part.range].upper() != cast
            if cast == "DOUBLE" and not is_decimal(self.types[part.range]):
                needs_cast = False
            if needs_cast or rank is not None:
                parts.append(self.leaf(part, cast if needs_cast else None, guards, rank))
            else:
                parts.append(self.convert(part, guards))
        return window_plan.Operation(operator, tuple(parts))

    def arithmetic(self, expression: OperationNode, guards: Guards) -> window_plan.PairExpression:
        """A computation in the kernel's form."""
        operator, operands = expression.operator, expression.operands
        kind = self.types[expression.range]
        kinds = [self.types[operand.range] for operand in operands]
        if kind in NUMPY and all(one in NUMPY or is_decimal(one) for one in kinds) and operator != "DIV":
            if operator == "/" and kind != "double":
                raise NotTypedError(f"division returns {kind}")
            return window_plan.Operation(
                operator, tuple(self.number(part, guards, NUMPY[kind]) for part in operands), NUMPY[kind]
            )
        if operator == "-" and kinds == ["date", "date"] and is_day_interval(kind):
            days = window_plan.Operation("-", tuple(self.convert(part, guards) for part in operands), "int64")
            return window_plan.Operation("*", (days, window_plan.Number(_MICROSECONDS_A_DAY)), "int64")
        if operator == "-" and is_day_interval(kind) and set(kinds) == {"date", "timestamp"}:
            raise NotTypedError("a date's midnight depends on the session's zone")
        if operator == "-" and is_day_interval(kind) and set(kinds) <= {"date", "timestamp", "timestamp_ntz"}:
            # Spark subtracts times as local times of the session's time zone
            displayed = (
                self.convert(part, guards)
                if one == "timestamp_ntz"
                else self.leaf(part, "TIMESTAMP_NTZ", guards)
                for part, one in zip(operands, kinds, strict=True)
            )
            return window_plan.Operation("-", tuple(displayed), "int64")
        if operator in ("+", "-") and kind == "date" and set(kinds) <= {"date", *INTEGERS}:
            return window_plan.Operation(
                operator, tuple(self.convert(part, guards) for part in operands), "int32"
            )
        if operator in ("+", "-") and is_day_interval(kind) and all(map(is_day_interval, kinds)):
            return window_plan.Operation(
                operator, tuple(self.convert(part, guards) for part in operands), "int64"
            )
        raise NotTypedError(
            f"{' '.join([kinds[0], operator, *kinds[1:]])} over several rows is not computed in the kernel"
        )

    def number(self, expression: Expression, guards: Guards, dtype: str) -> window_plan.PairExpression:
        """A part as an operand of arithmetic in this dtype."""
        kind = self.types[expression.range]
        if is_decimal(kind) and dtype == "float64":
            return self.leaf(expression, "DOUBLE", guards)
        if kind in NUMPY or kind == "void":
            return self.convert(expression, guards)
        raise NotTypedError(f"{kind} is not a number that the kernel has")

    def truth(self, expression: Expression, guards: Guards) -> window_plan.PairExpression:
        """A part as a condition; Spark takes texts as Booleans too."""
        if self.types[expression.range] in ("boolean", "void"):
            return self.convert(expression, guards)
        return self.leaf(expression, "BOOLEAN", guards)

    def value(self, expression: Expression, guards: Guards) -> window_plan.PairExpression:
        """A part of which only the validity matters."""
        if self.is_row(expression):
            raise NotTypedError("a row variable of several rows")
        return self.convert(expression, guards)

    def dtype(self, expression: Expression) -> str:
        """The dtype of a number."""
        kind = self.types[expression.range]
        if kind not in NUMPY:
            raise NotTypedError(f"{kind} is not a number that the kernel has")
        return NUMPY[kind]

    # -- leaves ------------------------------------------------------------------------------------

    def leaf(
        self,
        expression: Expression,
        cast: str | None,
        guards: Guards,
        rank: int | None = None,
    ) -> window_plan.PairExpression:
        """A part that Spark computes whole, cast if need be."""
        if not self.reads(expression):
            return self.constant(expression, cast, rank)
        if self.single_row(expression) is None:
            raise NotTypedError(
                f"{self.displayed(expression)} reads several rows"
                f" and is of type {self.types[expression.range]}"
            )
        return self.hoisted(expression, guards, cast, rank)

    def constant(
        self, expression: Expression, cast: str | None = None, rank: int | None = None
    ) -> window_plan.PairExpression:
        """A part that reads no row."""
        rendered = self.text(expression).render()
        if (
            cast is None
            and rank is None
            and isinstance(expression, Literal)
            and rendered.isdigit()
            and len(rendered) < 19
        ):
            return window_plan.Number(int(rendered))
        if rank is None and cast is None and not self.has_values(self.types[expression.range]):
            raise NotTypedError(f"a constant of type {self.types[expression.range]}")
        return window_plan.ConstantRef(self.columns.constant(_cast(self.text(expression), cast)), rank)

    def hoisted(
        self,
        expression: Expression,
        guards: Guards,
        cast: str | None = None,
        rank: int | None = None,
    ) -> window_plan.PairExpression:
        """A part that reads one row, as a column."""
        variable = self.single_row(expression)
        assert variable is not None
        kind = self.types[expression.range]
        if cast is None and rank is None and not self.has_values(kind):
            raise NotTypedError(
                f"{self.displayed(expression)} of type {kind} is not a value that the kernel has"
            )
        text = _cast(self.text(expression), cast)
        own_guards = [
            (guard, around)
            for guard, around in guards
            if self.single_row(guard) is variable and not self.needs_identity(guard)
        ]
        if own_guards and not self.is_safe(expression):
            passed = (SqlText.of(before, self.text(guard), after) for guard, (before, after) in own_guards)
            conditions = SqlText.join(" AND ", passed)
            text = SqlText.of("CASE WHEN ", conditions, " THEN ", text, " END")
        written = self.field(expression) if cast is None else None
        field = None if written is None else find_field(self.fields, written)
        name = self.columns.add(text, variable.name) if field is None else self.columns.field(field)
        missing = None
        if not variable.is_there and not self.is_strict(expression):
            missing = self.columns.constant(text)
        return window_plan.ColumnRef(name, variable.side, variable.shift, missing, rank)

    def has_values(self, kind: str) -> bool:
        """Whether the kernel supports values of this type, other than ranks."""
        return kind in KERNEL_TYPES or is_day_interval(kind)

    def is_plain(self, expression: Expression) -> TypeGuard[OperationNode]:
        """Whether the part compares fields that are numbers or times with constants, as the kernel does too.

        A field may be carried for other reasons, and a selection of fields is read from files without Spark.
        """
        if not isinstance(expression, OperationNode):
            return False
        if expression.operator in ("AND", "OR", "NOT"):
            return all(self.is_plain(operand) or self.is_number(operand) for operand in expression.operands)
        if expression.operator not in _PLAIN:
            return False
        if not all(map(self.is_number, expression.operands)):
            return False
        kinds = {self.types[operand.range] for operand in expression.operands}
        numbers = {kind for kind in kinds if kind in INTEGERS | FLOATS or is_decimal(kind)}
        return len(kinds) == 1 or kinds <= INTEGERS | FLOATS or (kinds == numbers and bool(kinds & FLOATS))

    def is_number(self, expression: Expression) -> bool:
        """Whether the part is a constant or a field of a type that the kernel supports."""
        kind = self.types[expression.range]
        if not self.reads(expression):
            return kind in KERNEL_TYPES - {"void"} or is_decimal(kind)
        return self.field(expression) is not None and kind in KERNEL_TYPES

    def is_strict(self, expression: Expression) -> bool:
        """Whether the part is certainly NULL over a row of NULLs."""
        match expression:
            case Name():
                return len(expression.parts) > 1 or self.field(expression) is not None
            case OperationNode(operator="BETWEEN", operands=(value, low, high)):
                # one bound that fails decides, whatever the other is
                return self.is_strict(value) or (self.is_strict(low) and self.is_strict(high))
            case OperationNode(operator=operator, operands=operands):
                return operator not in ("AND", "OR", "IS NULL", "<=>", "IN") and any(
                    map(self.is_strict, operands)
                )
            case Call(function=function, arguments=arguments):
                return function in _STRICT_CALLS and any(map(self.is_strict, arguments))
            case _:
                return False

    def is_safe(self, expression: Expression) -> bool:
        """Whether the part cannot fail, so that it may be computed for every row."""
        match expression:
            case Name() | Literal():
                return True
            case OperationNode(operator=operator, operands=operands):
                return operator in _SAFE and all(map(self.is_safe, operands))
            case _:
                return False

    def displayed(self, expression: Expression) -> str:
        """A part as errors and EXPLAIN show it."""
        return as_written(self.text(expression).render()).replace(f"`{IDENTITY}", "").replace("`", "")


KERNEL_TYPES = INTEGERS | FLOATS | {"boolean", "date", "timestamp", "timestamp_ntz", "void"}


def _operands(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case OperationNode(operands=parts) | Call(arguments=parts):
            return parts
        case Name() | Literal() | Opaque():
            return ()


def _cast(text: SqlText, to: str | None) -> SqlText:
    return SqlText.of("(", text, ")") if to is None else SqlText.of("CAST((", text, f") AS {to})")


def _same_row(operator: str, left: RowVariable, right: RowVariable) -> window_plan.PairExpression:
    same = window_plan.SameRow((left.side, left.shift), (right.side, right.shift))
    if operator == "=":
        return same
    if operator == "<>":
        return window_plan.Operation("NOT", (same,))
    if operator == "<=>":
        # both missing: two NULL rows are not distinct
        return window_plan.SameRow(same.left, same.right, null_safe=True)
    raise NotTypedError(f"rows are compared with {operator}")
