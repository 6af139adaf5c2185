"""Writes the search for one predicate as a Python function for numba to compile.

The function is a loop over windows and, inside, over the rows searched, with the predicate spelt out as
statements over pairs of variables: a value, and whether it is known. The meaning is that of
:mod:`windrow.kernels.pairs`, operator for operator. Columns, constants and numbers are arguments, so that
predicates of one shape share a function. What is never NULL has no second variable.

    search_…(found, low, stop, first, last, *arguments) -> (window, row)

The first row that satisfies the predicate is put into ``found[window]``. The result is the first pair at
which the predicate fails (division by zero, overflow), (−1, −1) if none does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from windrow.kernels.pair_functions import FUNCTIONS, is_object
from windrow.kernels.pairs import Array, PairRows, Sides, evaluate
from windrow.kernels.window_plan import (
    ColumnRef,
    ConstantRef,
    Number,
    Operation,
    PairExpression,
    PositionRef,
    SameRow,
)

__all__ = ["OPTIONS", "GeneratedProgram", "NoFormError", "Translator", "translate"]

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
"""How numba is to compile a program."""

_HEAD = f"# compiled with {OPTIONS}\nimport numpy as np\n\n\n"
_LINES = 250  # compiled within seconds
_DEPTH = 60  # Python reads a hundred levels of indentation

_BOOL, _INT64, _FLOAT64 = np.dtype(bool), np.dtype(np.int64), np.dtype(np.float64)
_NUMBERS = frozenset(map(np.dtype, ("int8", "int16", "int32", "int64", "float32", "float64")))


@dataclass(frozen=True, slots=True)
class GeneratedProgram:
    """A function's source, its name, unique to the source, and its arguments from the sixth on."""

    name: str
    source: str
    arguments: tuple[Array | np.generic, ...]


_BEGINNING = {
    False: ("        for j in range(low[k], stop[k]):",),
    True: (
        "        begun = max(low[k], reached)",
        "        reached = max(begun, stop[k])",
        "        for j in range(begun, stop[k]):",
    ),
}
"""The loop over the rows of a window, by whether the ends of windows increase."""


def translate(
    predicate: PairExpression, rows: PairRows, sides: Sides, target: str, *, rising: bool = False
) -> GeneratedProgram | None:
    """The search for side `target`; None where a part has no compiled form or the whole is too long.

    If it is `rising`, each window is searched from where the search of the window before it ended.
    """
    try:
        return Translator(rows, sides, target).program(predicate, rising=rising)
    except NoFormError:
        return None


class NoFormError(Exception):
    """The predicate has no compiled form and is left to numpy."""


@dataclass(frozen=True, slots=True)
class _Value:
    """Names or short expressions: the value, and whether it is known (None: always)."""

    data: str
    known: str | None
    dtype: np.dtype

    @property
    def truth(self) -> str:
        """The value as a Boolean."""
        return _cast(self.data, self.dtype, _BOOL)


class _Block:
    """Lines of a function's body."""

    def __init__(self, depth: int) -> None:
        self.lines: list[str] = []
        self.depth = depth

    def add(self, line: str) -> None:
        if len(self.lines) == _LINES or self.depth > _DEPTH:
            raise NoFormError
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def inside(self, header: str) -> Iterator[None]:
        self.add(header)
        self.depth += 1
        yield
        self.depth -= 1


class Translator:
    """Translates one predicate: a method adds the statements that a part needs and returns its value."""

    def __init__(self, rows: PairRows, sides: Sides, target: str) -> None:
        self.rows, self.sides, self.target = rows, sides, target
        self.parameters: dict[Hashable, str] = {}
        self.arguments: list[Array | np.generic] = []
        self.per_window, self.per_row = _Block(2), _Block(3)
        # what does not depend on the searched row is read once a window
        self.window_rows: dict[tuple[str, int], tuple[str, str]] = {}
        self.window_values: dict[ColumnRef, _Value] = {}
        self.variables = 0

    def program(self, predicate: PairExpression, *, rising: bool) -> GeneratedProgram:
        """The search as a function."""
        value = self.value(predicate)
        with self.per_row.inside(f"if {_all(value.truth, value.known)}:"):
            self.per_row.add("found[k] = j")
            if rising:
                self.per_row.add("reached = j")
            self.per_row.add("break")
        parameters = ", ".join(["found", "low", "stop", "first", "last", *self.parameters.values()])
        body = "\n".join(
            [
                f"({parameters}):",
                *(["    reached = np.int64(0)"] if rising else []),
                "    for k in range(len(low)):",
                "        if low[k] >= stop[k]:",
                "            continue",
                "        begin = first[low[k]]",
                "        end = last[low[k]]",
                *self.per_window.lines,
                *_BEGINNING[rising],
                *self.per_row.lines,
                "    return -1, -1",
                "",
            ]
        )
        # numba distinguishes functions by their names
        name = f"search_{hashlib.sha256((_HEAD + body).encode()).hexdigest()[:24]}"
        return GeneratedProgram(name, f"{_HEAD}def {name}{body}", tuple(self.arguments))

    def parameter(self, key: Hashable, value: Array | np.generic) -> str:
        """The name of an argument; what is requested again is passed once."""
        if key not in self.parameters:
            self.parameters[key] = f"a{len(self.arguments)}"
            self.arguments.append(value)
        return self.parameters[key]

    def variable(self) -> str:
        """A new name."""
        self.variables += 1
        return f"v{self.variables}"

    def stored(self, data: str, known: str | None, dtype: np.dtype) -> _Value:
        """The value, stored in variables."""
        return _Value(self.named(data), None if known is None else self.named(known), dtype)

    def named(self, expression: str) -> str:
        """A variable with this value: the expression itself if it is one."""
        if expression.isidentifier():
            return expression
        name = self.variable()
        self.per_row.add(f"{name} = {expression}")
        return name

    def fail_if(self, wrong: str, known: str | None) -> None:
        """Leave the search if the value is used and cannot be computed."""
        with self.per_row.inside(f"if {_all(known, wrong)}:"):
            self.per_row.add("return k, j")

    def value(self, expression: PairExpression) -> _Value:
        """The value of an expression, after the statements that it needs."""
        match expression:
            case ColumnRef():
                return self.column(expression)
            case ConstantRef(name=name, rank=rank):
                return self.constant(name, rank)
            case Number(value=value):
                if not -(1 << 63) <= value < 1 << 63:
                    raise NoFormError
                return _Value(self.parameter(expression, np.int64(value)), None, _INT64)
            case PositionRef(side=side):
                return self.position(side)
            case SameRow(left=left, right=right, null_safe=null_safe):
                (one, one_there), (other, other_there) = self.row(*left), self.row(*right)
                there = None if null_safe else _known(one_there, other_there)
                return self.stored(f"{one} == {other}", there, _BOOL)
            case Operation():
                return self.operation(expression)

    # -- leaves ------------------------------------------------------------------------------------

    def row(self, side: str, shift: int) -> tuple[str, str | None]:
        """The index of a side's row, shifted, −1 where there is none, and whether there is one."""
        if side == self.target:
            if not shift:
                return "j", None
            there = f"(j + {shift} < end)" if shift > 0 else f"(j - {-shift} >= begin)"
            return f"(j + {shift} if {there} else -1)", there
        if (side, shift) not in self.window_rows:
            index, there = self.window_rows[side, shift] = self.variable(), self.variable()
            base = self.parameter(("side", side), self.sides[side])
            self.per_window.add(f"{index} = {base}[k]")
            self.per_window.add(f"{there} = {index} >= 0")
            if shift:
                with self.per_window.inside(f"if {there}:"):
                    moved = f"{index} + {shift}"
                    self.per_window.add(f"{there} = first[{index}] <= {moved} < last[{index}]")
                    self.per_window.add(f"{index} = {moved} if {there} else -1")
        return self.window_rows[side, shift]

    @cached_property
    def positions(self) -> Array:
        """The positions of all rows."""
        every = {self.target: np.arange(len(self.rows.first))}
        return evaluate(PositionRef(self.target), self.rows, every).data

    def position(self, side: str) -> _Value:
        """The position of a side's row."""
        positions = self.parameter("positions", self.positions)
        if side == self.target:
            return _Value(self.named(f"{positions}[np.uintp(j)]"), None, _INT64)
        row, there = self.row(side, 0)
        position = self.variable()
        self.per_window.add(f"{position} = {positions}[{row}] if {there} else 0")
        return _Value(position, there, _INT64)

    def column(self, ref: ColumnRef) -> _Value:
        """A column's value at a side's row."""
        if ref.side == self.target:
            return self.read(ref, self.per_row)
        if ref not in self.window_values:
            self.window_values[ref] = self.read(ref, self.per_window)
        return self.window_values[ref]

    def read(self, ref: ColumnRef, block: _Block) -> _Value:
        """A column's value, read by statements in `block`."""
        column = self.rows.column(ref.column, ref.rank)
        dtype = _supported(column.data.dtype)
        row, there = self.row(ref.side, ref.shift)
        # an unsigned index spares the test for one that counts from the end
        place = f"[np.uintp({row})]"
        value = self.parameter(("column", ref.column, ref.rank), column.data) + place
        valid = None
        if column.valid is not None:
            valid = self.parameter(("valid", ref.column, ref.rank), column.valid) + place
        data, known = self.variable(), self.variable()
        if there is None:
            block.add(f"{data} = {value}")
            if valid is None:
                return _Value(data, None, dtype)
            block.add(f"{known} = {valid}")
            return _Value(data, known, dtype)
        instead = _Value(_zero(dtype), "False", dtype)
        if ref.missing is not None and (over := self.constant(ref.missing, ref.rank)).known is None:
            instead = over
        if instead.dtype != dtype:
            if {instead.dtype.kind, dtype.kind} != {"i"}:
                raise NoFormError  # in Spark a column and its value over a missing row have one type
            dtype = np.result_type(instead.dtype, dtype)
        block.add(f"{data} = {_cast(instead.data, instead.dtype, dtype)}")
        block.add(f"{known} = {instead.known or True}")
        with block.inside(f"if {there}:"):
            block.add(f"{data} = {_cast(value, column.data.dtype, dtype)}")
            block.add(f"{known} = {valid or True}")
        return _Value(data, None if instead.known is None and valid is None else known, dtype)

    def constant(self, name: str, rank: int | None) -> _Value:
        """A constant's value."""
        constant = self.rows.constant(name, rank)
        dtype = _supported(constant.data.dtype)
        if not constant.validity()[0]:
            return _Value(_zero(dtype), "False", dtype)
        return _Value(self.parameter(("constant", name, rank), constant.data[0]), None, dtype)

    # -- operators ---------------------------------------------------------------------------------

    def operation(self, expression: Operation) -> _Value:
        """The value of an operator over its operands."""
        operands = expression.operands
        match expression.operator:
            case "AND" | "OR" as operator:
                return self.logic([partial(self.value, part) for part in operands], operator == "OR")
            case "IN":
                if len(operands) == 1:
                    return _Value("False", None, _BOOL)
                first = self.value(operands[0])
                return self.logic([partial(self.comparison, "=", first, part) for part in operands[1:]], True)
            case "BETWEEN":
                first, low, high = self.value(operands[0]), *operands[1:]
                reaches = partial(self.comparison, ">=", first, low)
                return self.logic([reaches, partial(self.comparison, "<=", first, high)], False)
            case "COALESCE":
                return self.coalesce(expression)
            case "CASE":
                return self.case(expression)
            case "NULL":
                return _Value(_zero(_kind(expression)), "False", _kind(expression))
            case "GREATEST" | "LEAST" as operator:
                return self.extreme(expression, ">" if operator == "GREATEST" else "<")
            case "CAST":
                return self.widened(expression)
            case "ISNULL":
                return self.stored(f"not {self.value(operands[0]).known or True}", None, _BOOL)
            case "NOT":
                part = self.value(operands[0])
                return self.stored(f"not {part.truth}", part.known, _BOOL)
            case "<=>":
                left, right = map(self.value, operands)
                same = _compared("=", left, right)
                one, other = left.known or "True", right.known or "True"
                return self.stored(f"(({same}) & {one} & {other}) | (not ({one} | {other}))", None, _BOOL)
            case "=" | "<>" | "<" | "<=" | ">" | ">=" as operator:
                return self.comparison(operator, self.value(operands[0]), operands[1])
            case operator if operator == "REQUESTED" or operator in FUNCTIONS:
                raise NoFormError
            case _:
                return self.arithmetic(expression, [self.value(operand) for operand in operands])

    def comparison(self, operator: str, left: _Value, operand: PairExpression) -> _Value:
        """The value of a comparison."""
        right = self.value(operand)
        return self.stored(_compared(operator, left, right), _known(left.known, right.known), _BOOL)

    def logic(self, operands: Sequence[Callable[[], _Value]], decided: bool) -> _Value:
        """AND (decided by FALSE) and OR (decided by TRUE): no operand is evaluated once one decides."""
        result, known = self.variable(), self.variable()
        nullable = False
        self.per_row.add(f"{result} = {not decided}")
        self.per_row.add(f"{known} = True")
        for number, operand in enumerate(operands):
            undecided = f"if {'not ' if decided else ''}{result}:"
            with self.per_row.inside(undecided) if number else nullcontext():
                part = operand()
                if part.known is None:
                    self.per_row.add(f"{result} = {part.truth}")
                    continue
                nullable = True
                decides = _all(part.known, part.truth if decided else f"not {part.truth}")
                self.per_row.add(f"{result} = {decides if decided else f'not ({decides})'}")
                self.per_row.add(f"{known} = {known} & {part.known}")
        if not nullable:
            return _Value(result, None, _BOOL)
        # what decides is known, whatever was not before it
        return _Value(result, f"({known} | {result if decided else f'(not {result})'})", _BOOL)

    def coalesce(self, expression: Operation) -> _Value:
        """The first operand that is not NULL."""
        dtype = _kind(expression)
        data, known = self.variable(), self.variable()
        always = False
        for number, operand in enumerate(expression.operands):
            if always:
                break
            with self.per_row.inside(f"if not {known}:") if number else nullcontext():
                value = self.value(operand)
                self.per_row.add(f"{data} = {_converted(value, dtype)}")
                self.per_row.add(f"{known} = {value.known or True}")
                always = value.known is None
        return _Value(data, None if always else known, dtype)

    def case(self, expression: Operation) -> _Value:
        """The value of the first condition that is TRUE."""
        dtype = _kind(expression)
        *branches, default = expression.operands
        data, known, open_ = self.variable(), self.variable(), self.variable()
        self.per_row.add(f"{data} = {_zero(dtype)}")
        self.per_row.add(f"{known} = False")
        self.per_row.add(f"{open_} = True")
        for condition, operand in zip(branches[::2], branches[1::2], strict=True):
            with self.per_row.inside(f"if {open_}:"):
                met = self.value(condition)
                with self.per_row.inside(f"if {_all(met.truth, met.known)}:"):
                    self.per_row.add(f"{open_} = False")
                    self.assign(operand, data, known, dtype)
        with self.per_row.inside(f"if {open_}:"):
            self.assign(default, data, known, dtype)
        return _Value(data, known, dtype)

    def assign(self, operand: PairExpression, data: str, known: str, dtype: np.dtype) -> None:
        """Assign an operand's value to two variables."""
        value = self.value(operand)
        self.per_row.add(f"{data} = {_converted(value, dtype)}")
        self.per_row.add(f"{known} = {value.known or True}")

    def extreme(self, expression: Operation, operator: str) -> _Value:
        """GREATEST and LEAST, which leave NULLs out; of equal ones the first."""
        dtype = _kind(expression)
        data, known = self.variable(), self.variable()
        first, *others = expression.operands
        self.assign(first, data, known, dtype)
        for operand in others:
            value = self.value(operand)
            name = self.named(_converted(value, dtype))
            better = _compared(operator, _Value(name, None, dtype), _Value(data, None, dtype))
            with self.per_row.inside(f"if {_all(value.known, f'(not {known}) | ({better})')}:"):
                self.per_row.add(f"{data} = {name}")
                self.per_row.add(f"{known} = True")
        return _Value(data, known, dtype)

    def widened(self, expression: Operation) -> _Value:
        """A cast to a type that represents all values, or of an integer to a float."""
        value, dtype = self.value(expression.operands[0]), _kind(expression)
        if dtype == _BOOL or (dtype.kind == "i" and dtype.itemsize < value.dtype.itemsize):
            raise NoFormError
        return _Value(_converted(value, dtype), value.known, dtype)

    def arithmetic(self, expression: Operation, operands: list[_Value]) -> _Value:
        """The value of a computation, checked as Spark checks it."""
        dtype = _computed(np.dtype(expression.dtype))
        if expression.operator == "/" and dtype.kind == "i":
            raise NoFormError  # Spark divides integers as doubles
        known = _known(*(operand.known for operand in operands))
        # smaller integers are computed in 64 bits, where they cannot overflow
        wide = _INT64 if dtype.kind == "i" else dtype
        names = [self.named(_cast(_converted(operand, dtype), dtype, wide)) for operand in operands]
        if expression.operator in ("/", "%"):
            if self.rows.ansi:
                self.fail_if(f"{names[1]} == 0", known)
            else:
                known = _all(known, f"{names[1]} != 0")
        result = self.variable()
        if expression.operator == "%":
            self.remainder(result, names, known, wide)
        else:
            forms = _INTEGERS if wide == _INT64 else _FLOATS
            self.per_row.add(f"{result} = {forms[expression.operator].format(*names)}")
            if self.rows.ansi and dtype.kind == "i":
                self.check_overflow(expression.operator, result, names, known, dtype)
        return self.stored(f"np.{dtype}({result})", known, dtype)

    def remainder(self, result: str, names: list[str], known: str | None, wide: np.dtype) -> None:
        """The remainder with the sign of the left operand, as in C."""
        left, right = names
        if wide != _INT64:
            self.per_row.add(f"{result} = np.fmod({left}, {right})")
            return
        self.per_row.add(f"{result} = np.int64(0)")
        # the processor traps at zero, and at the lowest integer by −1
        with self.per_row.inside(f"if {_all(known, f'{right} != 0', f'{right} != -1')}:"):
            self.per_row.add(f"{result} = {left} % {right}")
            with self.per_row.inside(f"if ({result} != 0) & (({result} ^ {left}) < 0):"):
                self.per_row.add(f"{result} -= {right}")

    def check_overflow(
        self, operator: str, result: str, names: list[str], known: str | None, dtype: np.dtype
    ) -> None:
        """Fail where the exact result of an operation on integers leaves the dtype."""
        limits = np.iinfo(dtype)
        if dtype != _INT64:
            self.fail_if(f"({result} < {limits.min}) | ({result} > {limits.max})", known)
            return
        left, right = names[0], names[-1]
        lowest = f"np.int64({limits.min})"
        match operator:
            case "+":  # the operands have one sign and the result has the other
                self.fail_if(f"(({left} ^ {result}) & ({right} ^ {result})) < 0", known)
            case "-":
                self.fail_if(f"(({left} ^ {right}) & ({left} ^ {result})) < 0", known)
            case "*":  # numbers of 32 bits do not overflow; of others the product is divided back
                long = " | ".join(f"(np.int64(np.int32({name})) != {name})" for name in names)
                with self.per_row.inside(f"if {long}:"):
                    with self.per_row.inside(f"if {left} == -1:"):
                        self.fail_if(f"{right} == {lowest}", known)
                    with self.per_row.inside(f"elif {left} != 0:"):
                        self.fail_if(f"{result} // {left} != {right}", known)
            case _:  # NEG and ABS
                self.fail_if(f"{left} == {lowest}", known)


_FLOATS = {"+": "{} + {}", "-": "{} - {}", "*": "{} * {}", "/": "{} / {}", "NEG": "-{}", "ABS": "abs({})"}
# numba tells LLVM that signed integers do not overflow, and LLVM then drops the tests for it
_INTEGERS = {
    "+": "np.int64(np.uint64({}) + np.uint64({}))",
    "-": "np.int64(np.uint64({}) - np.uint64({}))",
    "*": "np.int64(np.uint64({}) * np.uint64({}))",
    "NEG": "np.int64(np.uint64(0) - np.uint64({0}))",
    "ABS": "{0} if {0} >= 0 else np.int64(np.uint64(0) - np.uint64({0}))",
}
_MIRRORED = {">": "<", "<=": ">="}


def _compared(operator: str, left: _Value, right: _Value) -> str:
    """A comparison in Spark's order of numbers: NaN = NaN, and greater than any other."""
    if operator in _MIRRORED:
        return _compared(_MIRRORED[operator], right, left)
    if operator in ("<>", ">="):
        return f"not ({_compared('=' if operator == '<>' else '<', left, right)})"
    common = _FLOAT64 if "f" in (left.dtype.kind, right.dtype.kind) else _INT64
    if left.dtype == right.dtype != _BOOL:
        common = left.dtype
    sign = "==" if operator == "=" else "<"
    plain = f"{_cast(left.data, left.dtype, common)} {sign} {_cast(right.data, right.dtype, common)}"
    if right.dtype.kind != "f" or (operator == "=" and left.dtype.kind != "f"):
        return plain
    left_nan, right_nan = f"({left.data} != {left.data})", f"({right.data} != {right.data})"
    if operator == "=":
        return f"({plain}) | ({left_nan} & {right_nan})"
    if left.dtype.kind != "f":
        return f"({plain}) | {right_nan}"
    return f"({plain}) | ({right_nan} & (not {left_nan}))"


def _kind(expression: Operation) -> np.dtype:
    if is_object(expression.dtype):
        raise NoFormError
    dtype = np.dtype(expression.dtype)
    return dtype if dtype == _BOOL else _computed(dtype)


def _converted(value: _Value, dtype: np.dtype) -> str:
    """The value as an operand of arithmetic in this dtype."""
    if value.dtype.kind == "f" and dtype.kind == "i":
        raise NoFormError  # where a float does not fit, the processor decides
    return _cast(value.data, value.dtype, dtype)


def _cast(text: str, source: np.dtype, to: np.dtype) -> str:
    if source == to:
        return text
    return f"({text} != 0)" if to == _BOOL else f"np.{to}({text})"


def _zero(dtype: np.dtype) -> str:
    return "False" if dtype == _BOOL else f"np.{dtype}(0)"


def _known(*parts: str | None) -> str | None:
    """Whether all of these are known; None: always."""
    return " & ".join(part for part in parts if part is not None) or None


def _all(*conditions: str | None) -> str:
    """The conjunction of the conditions that are not None."""
    return " & ".join(f"({condition})" for condition in conditions if condition is not None)


def _supported(dtype: np.dtype) -> np.dtype:
    if dtype not in _NUMBERS and dtype != _BOOL:
        raise NoFormError
    return dtype


def _computed(dtype: np.dtype) -> np.dtype:
    if dtype not in _NUMBERS:
        raise NoFormError
    return dtype
