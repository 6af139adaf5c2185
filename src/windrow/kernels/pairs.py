"""Evaluates a predicate over rows of several sides, for many windows at once.

Every side is an int64 array of row indices, one per window, −1 where the side has no row. Values are
:class:`PairValues`: data and validity. NULL, NaN, short-circuits and errors are Spark's: NaN equals NaN and
is greater than any number; the right operand of AND is evaluated only where the left is not FALSE (OR: not
TRUE), so a guard before a division over several rows works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExecutionError
from windrow.kernels.pair_functions import FUNCTIONS, Arguments, blank, storage
from windrow.kernels.window_plan import (
    ColumnRef,
    ConstantRef,
    Number,
    Operation,
    PairExpression,
    PositionRef,
    SameRow,
)

__all__ = ["Array", "PairRows", "PairValues", "Sides", "evaluate", "row_of", "satisfied"]

_FAR = 1 << 62  # further than any row, and yet a position can be added to it

Array = np.ndarray
Sides = Mapping[str, Array]


@dataclass(frozen=True)
class PairValues:
    """Values: `data[k]` is valid where `valid` is None or `valid[k]`."""

    data: Array
    valid: Array | None = None

    def take(self, index: Array) -> PairValues:
        """The values at these places."""
        return PairValues(self.data[index], None if self.valid is None else self.valid[index])

    def validity(self) -> Array:
        """`valid` as an array."""
        return np.ones(len(self.data), bool) if self.valid is None else self.valid


class PairRows:
    """The kernel's sorted rows as numpy columns, made on first use.

    Parameters
    ----------
    table
        Rows sorted by partition, then order.
    bounds
        int64, shape (partitions + 1,): partition p is rows ``bounds[p] : bounds[p + 1]``.
    expressions
        Every expression that will be evaluated, to find the columns that are compared by rank together.
    positions
        The rows' positions, from 1, if some rows of the one partition are missing; else None.
    """

    def __init__(
        self,
        table: pa.Table,
        bounds: Array,
        constants: pa.Table,
        expressions: tuple[PairExpression, ...],
        ansi: bool = True,
        positions: Array | None = None,
    ) -> None:
        self.table = table
        self.ansi = ansi
        self._positions = positions
        self._jumps = None if positions is None else np.flatnonzero(np.diff(positions, prepend=-1) != 1)
        counts = np.diff(bounds)
        self.first = np.repeat(bounds[:-1], counts)
        self.stop = np.repeat(bounds[1:], counts)
        self._constants = constants
        self._columns: dict[tuple[str, int | None], PairValues] = {}
        self.requested: Callable[[Operation, PairRows, Sides], PairValues] | None = None
        """Returns the values of conditions that Spark evaluates."""
        self._ranks(expressions)

    def source(self, name: str) -> pa.ChunkedArray:
        """A column of the input."""
        return self.table.column(name)

    def column(self, name: str, rank: int | None) -> PairValues:
        """A whole column of the table."""
        key = (name, rank)
        if key not in self._columns:
            self._columns[key] = _numeric(self.source(name))
        return self._columns[key]

    def constant(self, name: str, rank: int | None) -> PairValues:
        """A constant, as an array of one value."""
        key = (f"constant {name}", rank)
        if key not in self._columns:
            self._columns[key] = _numeric(self._constants.column(name))
        return self._columns[key]

    def position(self, index: Array) -> Array:
        """The positions in their partitions, from 1, of these rows."""
        if self._positions is None:
            place: Array = index - _gather(self.first, index) + 1
            return place
        return _gather(self._positions, index)

    def moved(self, index: Array, offset: int) -> Array:
        """The rows whose position is that of these rows plus `offset`.

        They may be outside the partition. If rows are missing, a missing row becomes the last existing one
        before it.
        """
        offset = max(-_FAR, min(offset, _FAR))
        if self._positions is None or self._jumps is None or len(self._jumps) == 1:
            return index + offset
        wanted = _gather(self._positions, index) + offset
        stretch = np.maximum(np.searchsorted(self._positions[self._jumps], wanted, side="right") - 1, 0)
        first = self._jumps[stretch]
        following = np.append(self._jumps[1:], np.iinfo(np.int64).max)[stretch]
        moved: Array = np.minimum(first + (wanted - self._positions[first]), following - 1)
        return moved

    def _ranks(self, expressions: tuple[PairExpression, ...]) -> None:
        groups: dict[int, dict[tuple[str, int | None], pa.ChunkedArray]] = {}
        for expression in expressions:
            for leaf in _leaves(expression):
                if leaf.rank is None:
                    continue
                group = groups.setdefault(leaf.rank, {})
                if isinstance(leaf, ColumnRef):
                    group[leaf.column, leaf.rank] = self.source(leaf.column)
                    if leaf.missing is not None:
                        group[f"constant {leaf.missing}", leaf.rank] = self._constants.column(leaf.missing)
                else:
                    group[f"constant {leaf.name}", leaf.rank] = self._constants.column(leaf.name)
        for members in groups.values():
            codes = _dense_ranks(list(members.values()))
            for key, code in zip(members, codes, strict=True):
                self._columns[key] = code


def satisfied(expression: PairExpression | None, rows: PairRows, sides: Sides) -> Array:
    """Whether the predicate is TRUE (neither FALSE nor NULL): bool, shape of the sides. None is true."""
    count = len(next(iter(sides.values())))
    if expression is None:
        return np.ones(count, bool)
    result = evaluate(expression, rows, sides)
    truth = result.data.astype(bool, copy=False)
    return truth if result.valid is None else truth & result.valid


def evaluate(expression: PairExpression, rows: PairRows, sides: Sides) -> PairValues:
    """The expression's value for every window.

    Raises
    ------
    ExecutionError
        ``ARITHMETIC_OVERFLOW``, ``DIVIDE_BY_ZERO`` or ``REMAINDER_BY_ZERO`` under ANSI, as Spark.
    """
    match expression:
        case ColumnRef():
            return _column(expression, rows, sides)
        case ConstantRef(name=name, rank=rank):
            count = len(next(iter(sides.values())))
            return rows.constant(name, rank).take(np.zeros(count, np.int64))
        case Number(value=value):
            return PairValues(np.full(len(next(iter(sides.values()))), value, np.int64))
        case PositionRef(side=side):
            index = sides[side]
            found = index >= 0
            return PairValues(rows.position(np.where(found, index, 0)), None if found.all() else found)
        case SameRow(left=left, right=right, null_safe=null_safe):
            first, first_there = row_of(rows, sides, *left)
            second, second_there = row_of(rows, sides, *right)
            if null_safe:
                return PairValues(first == second)
            there = first_there & second_there
            return PairValues(first == second, None if there.all() else there)
        case Operation():
            return _OPERATIONS.get(expression.operator, _strict)(expression, rows, sides)


def _gather(values: Array, index: Array) -> Array:
    found: Array = values[index] if len(values) else np.zeros(len(index), values.dtype)
    return found


def row_of(rows: PairRows, sides: Sides, side: str, shift: int) -> tuple[Array, Array]:
    """The index of a side's row, shifted, and whether there is such a row in the partition."""
    base = sides[side]
    there = base >= 0
    clipped = np.where(there, base, 0)
    index = clipped + shift
    if shift:
        there = there & (index >= _gather(rows.first, clipped)) & (index < _gather(rows.stop, clipped))
    return np.where(there, index, -1), there


def _column(ref: ColumnRef, rows: PairRows, sides: Sides) -> PairValues:
    index, there = row_of(rows, sides, ref.side, ref.shift)
    column = rows.column(ref.column, ref.rank)
    if there.all():
        return column.take(index)
    found = (
        column.take(np.where(there, index, 0))
        if len(column.data) and there.any()
        else PairValues(np.zeros(len(index), column.data.dtype))
    )
    if ref.missing is None:
        return PairValues(found.data, found.validity() & there)
    instead = rows.constant(ref.missing, ref.rank)
    return PairValues(
        np.where(there, found.data, instead.data[0]), np.where(there, found.validity(), instead.validity()[0])
    )


# -- operators -----------------------------------------------------------------------------------


def _conjunction(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
    return _short_circuit(expression, rows, sides, decided=False)


def _disjunction(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
    return _short_circuit(expression, rows, sides, decided=True)


def _short_circuit(expression: Operation, rows: PairRows, sides: Sides, *, decided: bool) -> PairValues:
    """AND (decided by FALSE) and OR (decided by TRUE), Kleene's logic, operand by operand."""
    count = len(next(iter(sides.values())))
    data = np.full(count, not decided)
    valid = np.ones(count, bool)
    open_ = np.arange(count)
    for operand in expression.operands:
        part = evaluate(operand, rows, {side: index[open_] for side, index in sides.items()})
        truth, known = part.data.astype(bool, copy=False), part.validity()
        decides = known & (truth == decided)
        valid[open_[~known]] = False
        data[open_[decides]] = decided
        valid[open_[decides]] = True
        open_ = open_[~decides]
        if not len(open_):
            break
    return PairValues(data, None if valid.all() else valid)


def _coalesce(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
    first = evaluate(expression.operands[0], rows, sides)
    data, valid = first.data.astype(storage(expression.dtype)), first.validity().copy()
    for operand in expression.operands[1:]:
        open_ = np.flatnonzero(~valid)
        if not len(open_):
            break
        part = evaluate(operand, rows, {side: index[open_] for side, index in sides.items()})
        data[open_], valid[open_] = part.data, part.validity()
    return PairValues(data, valid)


def _case(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
    """CASE: condition, value, condition, value, …, and the value where no condition is TRUE.

    A value is evaluated only where its condition is TRUE.
    """
    count = len(next(iter(sides.values())))
    *branches, default = expression.operands
    data, valid = blank(count, expression.dtype), np.zeros(count, bool)
    open_ = np.arange(count)
    for condition, value in [*zip(branches[::2], branches[1::2], strict=True), (None, default)]:
        here = {side: index[open_] for side, index in sides.items()}
        met = np.ones(len(open_), bool) if condition is None else satisfied(condition, rows, here)
        chosen = open_[met]
        if len(chosen):
            part = evaluate(value, rows, {side: index[chosen] for side, index in sides.items()})
            data[chosen], valid[chosen] = part.data, part.validity()
        open_ = open_[~met]
        if not len(open_):
            break
    return PairValues(data, valid)


def _extreme(operator: str) -> Callable[[Operation, PairRows, Sides], PairValues]:
    """GREATEST and LEAST, which ignore NULLs; the first of equal values."""

    def function(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
        first, *others = (evaluate(operand, rows, sides) for operand in expression.operands)
        data, valid = first.data.astype(storage(expression.dtype)), first.validity()
        for part in others:
            value, known = part.data.astype(data.dtype), part.validity()
            better, both = known & ~valid, np.flatnonzero(known & valid)  # NULL compares with nothing
            better[both] = _compare(operator, value[both], data[both])
            data, valid = np.where(better, value, data), valid | known
        return PairValues(data, valid)

    return function


def _requested(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
    """The values that Spark has computed for these rows."""
    assert rows.requested is not None
    return rows.requested(expression, rows, sides)


def _null(expression: Operation, _rows: PairRows, sides: Sides) -> PairValues:
    count = len(next(iter(sides.values())))
    return PairValues(blank(count, expression.dtype), np.zeros(count, bool))


def _is_null(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
    return PairValues(~evaluate(expression.operands[0], rows, sides).validity())


def _null_safe_equal(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
    left, right = (evaluate(operand, rows, sides) for operand in expression.operands)
    both = left.validity() & right.validity()
    return PairValues((both & _compare("=", left.data, right.data)) | ~(left.validity() | right.validity()))


def _in(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
    first, *others = expression.operands
    return _disjunction(
        Operation("OR", tuple(Operation("=", (first, other)) for other in others)), rows, sides
    )


def _between(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
    value, low, high = expression.operands
    return _conjunction(
        Operation("AND", (Operation(">=", (value, low)), Operation("<=", (value, high)))), rows, sides
    )


def _strict(expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
    """Operators that are NULL when an operand is: NOT, comparisons, arithmetic."""
    parts = [evaluate(operand, rows, sides) for operand in expression.operands]
    known = [part.valid for part in parts if part.valid is not None]
    valid = reduce(np.logical_and, known) if known else None
    operator = expression.operator
    if operator == "NOT":
        return PairValues(~parts[0].data.astype(bool), valid)
    if operator in ("=", "<>", "<", "<=", ">", ">="):
        left, right = parts[0].data, parts[1].data
        if valid is None or left.dtype.kind != "O":
            return PairValues(_compare(operator, left, right).astype(bool, copy=False), valid)
        data, there = np.zeros(len(left), bool), np.flatnonzero(valid)  # NULL compares with nothing
        data[there] = _compare(operator, left[there], right[there])
        return PairValues(data, valid)
    if operator in FUNCTIONS:
        used = np.ones(len(parts[0].data), bool) if valid is None else valid
        arguments = Arguments([part.data for part in parts], used, expression.dtype, rows.ansi)
        data, missing = FUNCTIONS[operator](arguments)
        return PairValues(data, valid if missing is None else used & ~missing)
    return _arithmetic(expression, [part.data for part in parts], valid, rows.ansi)


def _compare(operator: str, left: Array, right: Array) -> Array:
    """Spark's order of numbers: NaN = NaN, and greater than any other."""
    if operator == "<>":
        return ~_compare("=", left, right)
    if operator in ("<=", ">="):
        return ~_compare("<" if operator == ">=" else ">", left, right)
    if operator == ">":
        left, right = right, left
    result: Array = left == right if operator == "=" else left < right
    if left.dtype.kind == "f" or right.dtype.kind == "f":
        left_nan, right_nan = np.isnan(left), np.isnan(right)
        result = result | (left_nan & right_nan) if operator == "=" else result | (~left_nan & right_nan)
    return result


def _arithmetic(expression: Operation, parts: list[Array], valid: Array | None, ansi: bool) -> PairValues:
    dtype = np.dtype(expression.dtype)
    operands = [part.astype(dtype, copy=False) for part in parts]
    used = np.ones(len(operands[0]), bool) if valid is None else valid
    if expression.operator in ("/", "%"):
        zero = (operands[1] == 0) & used
        if zero.any():
            if ansi:
                condition, what, instead = _BY_ZERO[expression.operator]
                raise _failed(condition, "22012", what, f"test for zero first, or use {instead}")
            valid = used & ~zero
            operands[1] = np.where(operands[1] == 0, 1, operands[1]).astype(dtype)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        result = _NUMPY[expression.operator](*operands)
    if (
        dtype.kind == "i"
        and ansi
        and expression.operator != "%"
        and _overflows(expression.operator, operands, result, used)
    ):
        raise _failed(
            "ARITHMETIC_OVERFLOW", "22003", f"{dtype.name} overflow", "cast the operands to a wider type"
        )
    return PairValues(result, valid)


def _overflows(operator: str, operands: list[Array], result: Array, used: Array) -> bool:
    """Whether the exact result of an integer operation exceeds the dtype, for any valid value."""
    left, right = operands[0], operands[-1]
    lowest = np.iinfo(result.dtype).min
    if operator == "+":  # the operands have one sign and the result has the other
        wrong = ((left ^ result) & (right ^ result)) < 0
    elif operator == "-":
        wrong = ((left ^ right) & (left ^ result)) < 0
    elif operator == "*":
        divisor = np.where(left == 0, 1, left)
        wrong = (left != 0) & ((result // divisor != right) | ((left == -1) & (right == lowest)))
    else:  # NEG and ABS
        wrong = left == lowest
    return bool((used & wrong).any())


def _failed(condition: str, sqlstate: str, message: str, hint: str) -> ExecutionError:
    return ExecutionError(
        f"{message} in a window predicate", condition=condition, sqlstate=sqlstate, hint=hint
    )


_BY_ZERO = {
    "/": ("DIVIDE_BY_ZERO", "division by zero", "try_divide"),
    "%": ("REMAINDER_BY_ZERO", "remainder by zero", "try_mod"),
}
_NUMPY = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "NEG": np.negative,
    "ABS": np.abs,
}

_OPERATIONS = {
    "AND": _conjunction,
    "OR": _disjunction,
    "COALESCE": _coalesce,
    "ISNULL": _is_null,
    "CASE": _case,
    "NULL": _null,
    "REQUESTED": _requested,
    "GREATEST": _extreme(">"),
    "LEAST": _extreme("<"),
    "<=>": _null_safe_equal,
    "IN": _in,
    "BETWEEN": _between,
}


# -- from Arrow ----------------------------------------------------------------------------------


def _leaves(expression: PairExpression) -> list[ColumnRef | ConstantRef]:
    match expression:
        case ColumnRef() | ConstantRef():
            return [expression]
        case Operation(operands=operands):
            return [leaf for operand in operands for leaf in _leaves(operand)]
        case _:
            return []


def _numeric(column: pa.ChunkedArray) -> PairValues:
    """A column as numpy: times in their unit, texts and decimals as Python's objects."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    valid = None if array.null_count == 0 else np.asarray(pc.is_valid(array))
    kind = array.type
    if pa.types.is_null(kind):
        return PairValues(np.zeros(len(array), bool), np.zeros(len(array), bool))
    if pa.types.is_boolean(kind):
        return PairValues(np.asarray(pc.fill_null(array, False)), valid)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(kind):
        array = array.view(pa.int64())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_decimal(kind):
        missing = Decimal(0) if pa.types.is_decimal(kind) else ""
        objects = np.empty(len(array), object)
        objects[:] = [missing if value is None else value for value in array.to_pylist()]
        return PairValues(objects, valid)
    return PairValues(np.asarray(array.fill_null(0) if valid is not None else array), valid)


def _dense_ranks(columns: list[pa.ChunkedArray]) -> list[PairValues]:
    """Integers that compare as the columns' values do, over all columns together."""
    arrays = [column.combine_chunks() if column.num_chunks != 1 else column.chunk(0) for column in columns]
    typed = [array.type for array in arrays if not pa.types.is_null(array.type)]
    if typed:  # a NULL among the constants has no type of its own
        arrays = [
            pa.nulls(len(array), typed[0]) if pa.types.is_null(array.type) else array for array in arrays
        ]
    joined = pa.concat_arrays(arrays)
    if pa.types.is_null(joined.type):
        return [PairValues(np.zeros(len(array), np.int64), np.zeros(len(array), bool)) for array in arrays]
    encoded = joined.dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[np.asarray(pc.sort_indices(encoded.dictionary))] = np.arange(len(encoded.dictionary))
    indices = np.asarray(encoded.indices.fill_null(0))
    codes = ranks[indices] if len(ranks) else np.zeros(len(joined), np.int64)
    valid = np.asarray(pc.is_valid(joined))
    cuts = np.cumsum([len(array) for array in arrays])[:-1]
    return [
        PairValues(code, known)
        for code, known in zip(np.split(codes, cuts), np.split(valid, cuts), strict=True)
    ]
