"""Types functions of several rows, as far as the kernel supports them with Spark's exact meaning.

    abs(e.price - s.price) > 3              CASE WHEN e.x > s.x THEN e.x ELSE s.x END < 10
    concat(s.word, e.word) = 'ab'           timestampdiff(SECOND, s.at, e.at) < 60

A part that reads one row is a column in these too, cast by Spark if the function needs another type. Texts
and decimals are Python objects in the kernel.
"""

from __future__ import annotations

from typing import Protocol

from windrow.kernels import window_plan
from windrow.rules.hoister import IS_TRUE, NOT_TRUE, Guards, NotTypedError, RowVariable
from windrow.rules.types import FLOATS, INTEGERS, NUMPY, common_decimal, is_day_interval, is_decimal
from windrow.syntax.expression_nodes import Call, Expression, Literal, OperationNode

__all__ = ["Functions"]

_MICROSECONDS = {"microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
                 "hour": 3_600_000_000, "day": 86_400_000_000, "week": 604_800_000_000}  # fmt: skip
_DIFFERENCES = {f"{name} {unit}": _MICROSECONDS[unit] for unit in _MICROSECONDS
                for name in ("timestampdiff", "datediff", "date_diff")}  # fmt: skip
_STORED = {"boolean": "bool", "date": "int32", "timestamp": "int64", "timestamp_ntz": "int64", **NUMPY}
_TEXT = "string"
_INT = "int"

# of texts: the kernel's operator, and the types of the arguments
_TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "length": ("LENGTH", (_TEXT,)),
    "len": ("LENGTH", (_TEXT,)),
    "char_length": ("LENGTH", (_TEXT,)),
    "character_length": ("LENGTH", (_TEXT,)),
    "substring": ("SUBSTRING", (_TEXT, _INT, _INT)),
    "substr": ("SUBSTRING", (_TEXT, _INT, _INT)),
    "left": ("LEFT", (_TEXT, _INT)),
    "right": ("RIGHT", (_TEXT, _INT)),
    "instr": ("INSTR", (_TEXT, _TEXT)),
    "startswith": ("STARTSWITH", (_TEXT, _TEXT)),
    "endswith": ("ENDSWITH", (_TEXT, _TEXT)),
    "contains": ("CONTAINS", (_TEXT, _TEXT)),
    "levenshtein": ("LEVENSHTEIN", (_TEXT, _TEXT)),
}


class Typer(Protocol):
    """Types whole conditions (:class:`windrow.rules.pair_conditions.PairConditions`)."""

    types: dict[tuple[int, int], str]
    ansi: bool

    def convert(self, expression: Expression, guards: Guards) -> window_plan.PairExpression:
        """The part as the kernel evaluates it."""

    def leaf(
        self, expression: Expression, cast: str | None, guards: Guards, rank: int | None = None
    ) -> window_plan.PairExpression:
        """A part that Spark computes whole, cast if need be."""

    def reads(self, expression: Expression) -> set[RowVariable]:
        """The rows that the part reads."""

    def single_row(self, expression: Expression) -> RowVariable | None:
        """The one row that it reads."""

    def is_made(self, expression: Expression) -> bool:
        """Whether it is not a column of a row."""

    def displayed(self, expression: Expression) -> str:
        """A part as errors show it."""


class Functions:
    """Functions and operators over parts that read several rows."""

    def __init__(self, typer: Typer) -> None:
        self.typer = typer

    def typed(self, expression: Expression, guards: Guards) -> window_plan.PairExpression:
        """The part as the kernel evaluates it.

        Raises
        ------
        NotTypedError
            The kernel has no such function.
        """
        match expression:
            case OperationNode(operator=operator, operands=operands):
                return self.operator(operator, operands, self.kind(expression), guards)
            case Call(function=function, arguments=arguments):
                found = self.choice(function, arguments, self.kind(expression), guards)
                if found is None:
                    found = self.number(function, arguments, self.kind(expression), guards)
                if found is None:
                    found = self.text(function, arguments, self.kind(expression), guards)
                if found is None:
                    found = self.time(function, arguments, self.kind(expression), guards)
                if found is not None:
                    return found
        raise NotTypedError(
            f"{self.typer.displayed(expression)} reads several rows in a way the kernel lacks"
        )

    def kind(self, expression: Expression) -> str:
        """The type of a part in Spark."""
        return self.typer.types[expression.range]

    # -- operators ---------------------------------------------------------------------------------

    def operator(
        self, operator: str, operands: tuple[Expression, ...], kind: str, guards: Guards
    ) -> window_plan.PairExpression:
        """Arithmetic, ``||`` and LIKE."""
        kinds = [self.kind(operand) for operand in operands]
        if operator == "||" and kind == _TEXT:
            return self.all_as("CONCAT", operands, _TEXT, _TEXT, guards)
        if operator == "LIKE":
            return self.all_as("LIKE", operands, _TEXT, "bool", guards)
        if operator == "DIV" and set(kinds) <= INTEGERS:
            return self.all_as("DIV", operands, "bigint", "int64", guards)
        if operator in ("+", "-", "*", "/", "%", "NEG"):
            if is_decimal(kind) and all(is_decimal(one) or one in INTEGERS for one in kinds):
                exact = tuple(self.value(operand, guards) for operand in operands)
                return window_plan.Operation(f"DECIMAL {operator}", exact, kind)
            if kind in NUMPY:
                return self.all_as(operator, operands, kind, NUMPY[kind], guards)
            moved = kind == "timestamp_ntz" and operator in ("+", "-")
            if moved or (operator == "NEG" and is_day_interval(kind)):
                return window_plan.Operation(
                    operator, tuple(self.value(part, guards) for part in operands), "int64"
                )
        raise NotTypedError(f"{' '.join([kinds[0], operator, *kinds[1:]])} over several rows")

    def comparison(
        self, operator: str, operands: tuple[Expression, ...], guards: Guards
    ) -> window_plan.PairExpression:
        """A comparison of values, not of ranks."""
        kinds = {self.kind(operand) for operand in operands} - {"void"}
        if not kinds:
            raise NotTypedError("NULL is compared with NULL")
        exact = kinds <= INTEGERS | {kind for kind in kinds if is_decimal(kind)}
        if len(kinds) == 1 or all(map(is_day_interval, kinds)):
            (kind, *_) = kinds
            parts = tuple(self.as_kind(operand, kind, guards) for operand in operands)
        elif exact and common_decimal(kinds) is not None:
            parts = tuple(self.value(operand, guards) for operand in operands)
        elif kinds & FLOATS and all(kind in INTEGERS | FLOATS or is_decimal(kind) for kind in kinds):
            of_floats = not self.typer.ansi and "float" in kinds and bool(kinds & INTEGERS)
            common = "float" if of_floats else "double"
            parts = tuple(self.as_kind(operand, common, guards) for operand in operands)
        elif len(kinds) == 2 and "date" in kinds and kinds & {"timestamp", "timestamp_ntz"}:
            (time,) = kinds - {"date"}
            parts = tuple(self.as_kind(operand, time, guards) for operand in operands)
        else:
            raise NotTypedError(f"{' and '.join(sorted(kinds))} are not compared in the kernel")
        return window_plan.Operation(operator, parts)

    # -- CASE and the like -------------------------------------------------------------------------

    def choice(
        self, function: str, arguments: tuple[Expression, ...], kind: str, guards: Guards
    ) -> window_plan.PairExpression | None:
        """Functions that return one of their arguments."""
        match function, arguments:
            case "case when", _:
                return self.case(arguments, kind, guards)
            case "case", (operand, *branches):
                return self.case_of(operand, branches, kind, guards)
            case (("if" | "iff"), (condition, one, other)):
                return self.case((condition, one, other), kind, guards)
            case "nvl2", (tested, one, other):
                missing = window_plan.Operation("ISNULL", (self.value(tested, guards),))
                chosen = self.as_kind(other, kind, guards), self.as_kind(one, kind, guards)
                return window_plan.Operation("CASE", (missing, *chosen), _stored(kind))
            case "nullif", (one, other):
                same = self.comparison("=", (one, other), guards)
                value = self.as_kind(one, kind, guards)
                return window_plan.Operation("CASE", (same, _null(kind), value), _stored(kind))
            case (("coalesce" | "nvl" | "ifnull"), _):
                return self.all_as("COALESCE", arguments, kind, _stored(kind), guards)
            case (("greatest" | "least"), _):
                return self.all_as(function.upper(), arguments, kind, _stored(kind), guards)
            case _:
                return None

    def case(self, parts: tuple[Expression, ...], kind: str, guards: Guards) -> window_plan.PairExpression:
        """Conditions and values in alternation, and the value if no condition is TRUE."""
        operands: list[window_plan.PairExpression] = []
        for condition, value in zip(parts[: len(parts) - 1 : 2], parts[1::2], strict=True):
            operands.append(self.typer.convert(condition, guards))
            operands.append(self.as_kind(value, kind, (*guards, (condition, IS_TRUE))))
            guards = (*guards, (condition, NOT_TRUE))
        default = self.as_kind(parts[-1], kind, guards) if len(parts) % 2 else _null(kind)
        return window_plan.Operation("CASE", (*operands, default), _stored(kind))

    def case_of(
        self, operand: Expression, branches: list[Expression], kind: str, guards: Guards
    ) -> window_plan.PairExpression:
        """CASE with an operand, which is compared with each."""
        operands: list[window_plan.PairExpression] = []
        for other, value in zip(branches[: len(branches) - 1 : 2], branches[1::2], strict=True):
            operands.append(self.comparison("=", (operand, other), guards))
            operands.append(self.as_kind(value, kind, guards))
        default = self.as_kind(branches[-1], kind, guards) if len(branches) % 2 else _null(kind)
        return window_plan.Operation("CASE", (*operands, default), _stored(kind))

    # -- numbers -----------------------------------------------------------------------------------

    def number(
        self, function: str, arguments: tuple[Expression, ...], kind: str, guards: Guards
    ) -> window_plan.PairExpression | None:
        """Functions of numbers and of intervals, and casts."""
        first = self.kind(arguments[0]) if arguments else ""
        is_number = first in NUMPY or first == "void"
        match function, arguments:
            case "cast", (part,):
                return self.as_kind(part, kind, guards)
            case "abs", (part,) if is_decimal(kind):
                return window_plan.Operation("DECIMAL ABS", (self.value(part, guards),), kind)
            case "abs", (part,) if is_day_interval(kind):
                return window_plan.Operation("ABS", (self.value(part, guards),), "int64")
            case (("mod" | "pmod"), (_, _)) if kind in NUMPY:
                operator = "%" if function == "mod" else "PMOD"
                return self.all_as(operator, arguments, kind, NUMPY[kind], guards)
            case "mod", (_, _) if is_decimal(kind):
                return self.operator("%", arguments, kind, guards)
            case "div", (_, _):
                return self.operator("DIV", arguments, kind, guards)
            case (("sign" | "signum"), (part,)) if is_number or is_decimal(first):
                return window_plan.Operation("SIGN", (self.value(part, guards),), "float64")
            case (("floor" | "ceil" | "ceiling"), (part,)) if kind == "bigint" and first in NUMPY:
                operator = "FLOOR" if function == "floor" else "CEIL"
                return window_plan.Operation(operator, (self.value(part, guards),), "int64")
            case "round", (part, *digits) if first in NUMPY or is_decimal(first):
                return self.rounded(part, digits, kind, guards)
            case "sqrt", (part,):
                return window_plan.Operation("SQRT", (self.as_kind(part, "double", guards),), "float64")
            case (("pow" | "power"), (part, Literal() as exponent)) if self.written(exponent) == "2":
                return window_plan.Operation("SQUARE", (self.as_kind(part, "double", guards),), "float64")
            case _:
                return None

    def written(self, literal: Literal) -> str:
        """A literal as it stands in the query."""
        return self.typer.displayed(literal).strip("()")

    def rounded(
        self, part: Expression, digits: list[Expression], kind: str, guards: Guards
    ) -> window_plan.PairExpression | None:
        """ROUND to a literal number of digits."""
        count = 0
        if digits:
            if not isinstance(digits[0], Literal) or not self.written(digits[0]).isdigit():
                return None
            count = int(self.written(digits[0]))
        if not is_decimal(kind) and kind not in NUMPY:
            return None
        operands = (self.value(part, guards), window_plan.Number(count))
        return window_plan.Operation("ROUND", operands, _stored(kind))

    # -- texts and times ---------------------------------------------------------------------------

    def text(
        self, function: str, arguments: tuple[Expression, ...], kind: str, guards: Guards
    ) -> window_plan.PairExpression | None:
        """Functions of texts."""
        if function == "concat" and kind == _TEXT:
            return self.all_as("CONCAT", arguments, _TEXT, _TEXT, guards)
        if function in ("locate", "position") and len(arguments) == 2:
            function, arguments = "instr", arguments[::-1]
        if function not in _TEXTS:
            return None
        operator, wanted = _TEXTS[function]
        fewest = len(wanted) - (operator == "SUBSTRING")
        if not fewest <= len(arguments) <= len(wanted) or self.kind(arguments[0]) in ("binary", "void"):
            return None
        parts = tuple(self.as_kind(part, to, guards) for part, to in zip(arguments, wanted, strict=False))
        return window_plan.Operation(operator, parts, _stored(kind))

    def time(
        self, function: str, arguments: tuple[Expression, ...], kind: str, guards: Guards
    ) -> window_plan.PairExpression | None:
        """Functions of dates and times, whose parts are those of local time in the session's time zone."""
        if function in _DIFFERENCES and len(arguments) == 2:
            start, end = (self.as_local_time(part, guards) for part in arguments)
            passed = window_plan.Operation("-", (end, start), "int64")
            return window_plan.Operation("DIV", (passed, window_plan.Number(_DIFFERENCES[function])), "int64")
        if function in ("date_add", "date_sub", "dateadd") and kind == "date" and len(arguments) == 2:
            date, days = self.as_kind(arguments[0], "date", guards), self.as_kind(arguments[1], _INT, guards)
            return window_plan.Operation("-" if function == "date_sub" else "+", (date, days), "int32")
        if function in ("datediff", "date_diff") and len(arguments) == 2:
            return self.all_as("-", arguments, "date", "int32", guards)
        return None

    def as_local_time(self, part: Expression, guards: Guards) -> window_plan.PairExpression:
        """A time as local time in the session's time zone."""
        if self.kind(part) not in ("timestamp", "timestamp_ntz"):
            raise NotTypedError(f"{self.typer.displayed(part)} is not a time")
        return self.as_kind(part, "timestamp_ntz", guards)

    # -- operands ----------------------------------------------------------------------------------

    def all_as(
        self, operator: str, parts: tuple[Expression, ...], kind: str, dtype: str, guards: Guards
    ) -> window_plan.PairExpression:
        """An operation whose operands are all of a type."""
        operands = tuple(self.as_kind(part, kind, guards) for part in parts)
        return window_plan.Operation(operator, operands, dtype)

    def value(self, part: Expression, guards: Guards) -> window_plan.PairExpression:
        """A part, unchanged."""
        return self.as_kind(part, self.kind(part), guards)

    def as_kind(self, part: Expression, kind: str, guards: Guards) -> window_plan.PairExpression:
        """A part as a value of this type, cast by Spark if it reads at most one row."""
        own = self.kind(part)
        of_row = not self.typer.reads(part) or self.typer.single_row(part) is not None
        if own != kind and of_row and not self.typer.is_made(part):
            return self.typer.leaf(part, kind.upper(), guards)
        value = self.typer.convert(part, guards)
        if own == kind or (is_day_interval(own) and is_day_interval(kind)):
            _stored(kind)
            return value
        numbers = own in NUMPY or own == "boolean" or is_decimal(own)
        if numbers and (kind in NUMPY or kind == "boolean"):
            return window_plan.Operation("CAST", (value,), _stored(kind))
        if is_decimal(kind) and (own in INTEGERS or is_decimal(own)):
            return window_plan.Operation("CAST", (value,), kind)
        if kind == _TEXT and (own in INTEGERS or own == "boolean"):
            return window_plan.Operation("CAST", (value,), _TEXT)
        raise NotTypedError(f"a value of several rows of type {own} is not cast to {kind} in the kernel")


def _stored(kind: str) -> str:
    """The kernel's dtype for values of a type."""
    if kind in _STORED:
        return _STORED[kind]
    if kind == _TEXT or is_decimal(kind):
        return kind
    if is_day_interval(kind):
        return "int64"
    raise NotTypedError(f"the kernel has no values of type {kind}")


def _null(kind: str) -> window_plan.PairExpression:
    """NULL of a type."""
    return window_plan.Operation("NULL", (), _stored(kind))
