"""Interval arithmetic: the possible values of a predicate over ranges of rows, for all slices and chunks.

A value is an interval; a truth value is the set of its possible values. The result never excludes anything
that the kernel could find (ends are rounded outward), so a chunk that cannot satisfy a predicate can be
skipped for any data. Arrays have the shape (slices or 1, chunks or 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

import numpy as np

from windrow.kernels.pairs import Array
from windrow.kernels.strategies.monotone import direction
from windrow.kernels.window_plan import (
    ColumnRef,
    ConstantRef,
    Number,
    Operation,
    PairExpression,
    PositionRef,
    SameRow,
)

__all__ = ["PossibleValues", "Range", "Truth", "evaluate", "hits", "outward"]

_EXACT = 2.0**53  # integers up to here are doubles


@dataclass(frozen=True)
class Range:
    """Values between `low` and `high` (float64, none if ``low > high``).

    `null`: or NULL. `wild`: or anything at all. `fails`: or an error.
    """

    low: Array
    high: Array
    null: Array
    wild: Array
    fails: Array

    @property
    def empty(self) -> Array:
        """Whether there is no value but NULL."""
        empty: Array = self.low > self.high
        return empty

    def or_else(self, other: Range) -> Range:
        """The values of either."""
        return Range(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.null | other.null,
            self.wild | other.wild,
            self.fails | other.fails,
        )


@dataclass(frozen=True)
class Truth:
    """Which of TRUE, FALSE, NULL and an error a predicate may return."""

    true: Array
    false: Array
    null: Array
    fails: Array

    @property
    def certain(self) -> Array:
        """Whether it can be nothing but TRUE."""
        certain: Array = self.true & ~self.false & ~self.null & ~self.fails
        return certain


class PossibleValues(Protocol):
    """The possible values of a predicate's leaves."""

    ansi: bool

    def column(self, ref: ColumnRef) -> Range:
        """A column at a side's row."""

    def constant(self, ref: ConstantRef) -> Range:
        """A constant."""

    def position(self, side: str, shift: int) -> Range:
        """The position of a side's row, or of its neighbour; NULL where there is none."""

    def at_end(self, side: str, end: int) -> PossibleValues:
        """The same where the rows of `side` are those with the least (−1) or the greatest (1) value."""


def outward(values: Array, *, up: bool) -> Array:
    """The values as doubles, rounded up or down."""
    doubles = values.astype(np.float64)
    if values.dtype.kind == "f":
        return doubles
    return _widened(doubles, up=up)


def evaluate(expression: PairExpression, scope: PossibleValues) -> Range | Truth:
    """The possible values of an expression."""
    match expression:
        case ColumnRef():
            return scope.column(expression)
        case ConstantRef():
            return scope.constant(expression)
        case Number(value=value):
            number = np.array([[value]])
            no = np.zeros((1, 1), bool)
            return Range(outward(number, up=False), outward(number, up=True), no, no, no)
        case PositionRef(side=side):
            return scope.position(side, 0)
        case SameRow(left=left, right=right, null_safe=null_safe):
            return _equal(scope.position(*left), scope.position(*right), null_safe=null_safe)
        case Operation(operator=operator):
            return _OPERATIONS.get(operator, _strict)(expression, scope)


def truth(expression: PairExpression, scope: PossibleValues) -> Truth:
    """The possible values of a predicate."""
    return _as_truth(evaluate(expression, scope))


def hits(expression: PairExpression, target: str, scope: PossibleValues) -> tuple[Array, Array, Array]:
    """For each slice and chunk of `target`, whether a row may be found (or fail), one is, every one is."""
    whole = truth(expression, scope)
    every = whole.certain
    return whole.true | whole.fails, every | _some(expression, target, scope), every


def _some(expression: PairExpression, target: str, scope: PossibleValues) -> Array:
    """Whether some row of the chunk satisfies the predicate, whatever the rows of the other sides."""
    every = truth(expression, scope).certain
    if not isinstance(expression, Operation):
        return every
    if expression.operator in ("AND", "OR"):
        some = [_some(operand, target, scope) for operand in expression.operands]
        if expression.operator == "OR":
            return _any(some)
        # one row must satisfy all operands: so all but one are true at every row
        all_ = [truth(operand, scope).certain for operand in expression.operands]
        choices = [
            reduce(np.logical_and, [*all_[:number], part, *all_[number + 1 :]])
            for number, part in enumerate(some)
        ]
        return _any(choices)
    way = direction(expression, target)
    if way is None or _reads(expression, target) != 1:
        return every
    # the row with the greatest value of the one column that counts (or the least) satisfies it if any does
    return _any([every, truth(expression, scope.at_end(target, way)).certain])


def _any(choices: list[Array]) -> Array:
    either: Array = reduce(np.logical_or, choices)
    return either


def _reads(expression: PairExpression, side: str) -> int:
    """How many operands read the side."""
    match expression:
        case ColumnRef(side=own) | PositionRef(side=own):
            return int(own == side)
        case SameRow(left=left, right=right):
            return (left[0] == side) + (right[0] == side)
        case Operation(operands=operands):
            return sum(_reads(operand, side) for operand in operands)
        case _:
            return 0


# -- operators -----------------------------------------------------------------------------------


def _as_truth(value: Range | Truth) -> Truth:
    if isinstance(value, Truth):
        return value
    some = ~value.empty
    return Truth(
        value.wild | (some & (value.high >= 1)),
        value.wild | (some & (value.low <= 0)),
        value.null,
        value.fails,
    )


def _as_range(value: Range | Truth) -> Range:
    if isinstance(value, Range):
        return value
    low = np.where(value.false, 0.0, np.where(value.true, 1.0, np.inf))
    high = np.where(value.true, 1.0, np.where(value.false, 0.0, -np.inf))
    return Range(low, high, value.null, np.zeros_like(value.null), value.fails)


def _ranges(expression: Operation, scope: PossibleValues) -> list[Range]:
    return [_as_range(evaluate(operand, scope)) for operand in expression.operands]


def _connected(expression: Operation, scope: PossibleValues) -> Truth:
    parts = [truth(operand, scope) for operand in expression.operands]
    if expression.operator == "AND":
        return reduce(_and, parts)
    return _not(reduce(_and, map(_not, parts)))


def _and(left: Truth, right: Truth) -> Truth:
    evaluated = left.true | left.null
    return Truth(
        left.true & right.true,
        left.false | (evaluated & right.false),
        (left.null & (right.true | right.null)) | (left.true & right.null),
        left.fails | (evaluated & right.fails),
    )


def _not(value: Truth) -> Truth:
    return Truth(value.false, value.true, value.null, value.fails)


def _negation(expression: Operation, scope: PossibleValues) -> Truth:
    return _not(truth(expression.operands[0], scope))


def _equal(left: Range, right: Range, *, null_safe: bool = False) -> Truth:
    values = ~left.empty & ~right.empty
    wild = left.wild | right.wild
    true = wild | (values & (left.low <= right.high) & (right.low <= left.high))
    one = (left.low == left.high) & (right.low == right.high) & (left.low == right.low)
    false = wild | (values & ~one)
    null = left.null | right.null
    fails = left.fails | right.fails
    if not null_safe:
        return Truth(true, false, null, fails)
    return Truth(true | (left.null & right.null), false | null, np.zeros_like(null), fails)


def _less(left: Range, right: Range) -> Truth:
    values = ~left.empty & ~right.empty
    wild = left.wild | right.wild
    return Truth(
        wild | (values & (left.low < right.high)),
        wild | (values & (left.high >= right.low)),
        left.null | right.null,
        left.fails | right.fails,
    )


def _strict(expression: Operation, scope: PossibleValues) -> Range | Truth:
    parts = _ranges(expression, scope)
    operator = expression.operator
    match operator:
        case "=" | "<=>":
            return _equal(*parts, null_safe=operator == "<=>")
        case "<>":
            return _not(_equal(*parts))
        case "<" | ">=":
            less = _less(*parts)
            return less if operator == "<" else _not(less)
        case ">" | "<=":
            more = _less(*reversed(parts))
            return more if operator == ">" else _not(more)
        case _ if operator in _ENDS:
            return _arithmetic(expression, parts, ansi=scope.ansi)
        case _:
            return _anything(parts)


def _between(expression: Operation, scope: PossibleValues) -> Truth:
    value, low, high = expression.operands
    return _connected(
        Operation("AND", (Operation(">=", (value, low)), Operation("<=", (value, high)))), scope
    )


def _in(expression: Operation, scope: PossibleValues) -> Truth:
    first, *others = expression.operands
    return _connected(Operation("OR", tuple(Operation("=", (first, other)) for other in others)), scope)


def _is_null(expression: Operation, scope: PossibleValues) -> Truth:
    value = _as_range(evaluate(expression.operands[0], scope))
    return Truth(value.null, value.wild | ~value.empty, np.zeros_like(value.null), value.fails)


def _coalesce(expression: Operation, scope: PossibleValues) -> Range:
    first, *others = _ranges(expression, scope)
    for other in others:
        fails = first.fails | (first.null & other.fails)
        first = replace(first.or_else(other), null=first.null & other.null, fails=fails)
    return first


def _anything(parts: list[Range]) -> Range:
    """The result of functions without bounds: any value, NULL or an error."""
    yes = np.ones(np.broadcast_shapes((1, 1), *(part.null.shape for part in parts)), bool)
    return Range(np.full(yes.shape, np.inf), np.full(yes.shape, -np.inf), yes, yes, yes)


def _arithmetic(expression: Operation, parts: list[Range], *, ansi: bool) -> Range:
    dtype = np.dtype(expression.dtype)
    empty = reduce(np.logical_or, (part.empty for part in parts))
    null = reduce(np.logical_or, (part.null for part in parts))
    wild = reduce(np.logical_or, (part.wild for part in parts))
    fails = reduce(np.logical_or, (part.fails for part in parts))
    with np.errstate(all="ignore"):
        ends = [(_rounded(part.low, dtype), _rounded(part.high, dtype)) for part in parts]
        if expression.operator in ("/", "%"):
            low, high = ends[1]
            zero = (low <= 0) & (high >= 0) | parts[1].wild
            wild = wild | zero | (expression.operator == "%")
            fails, null = (fails | zero, null) if ansi else (fails, null | zero)
        low, high = _ENDS[expression.operator](*ends)
        low, high = _rounded(low, dtype), _rounded(high, dtype)
        if dtype.kind == "f":
            wild = wild | (~empty & ~(np.isfinite(low) & np.isfinite(high)))
        else:
            limits = np.iinfo(dtype)
            beyond = ~empty & ((low < limits.min) | (high >= float(limits.max) + 1)) | wild
            low, high = _widened(low, up=False), _widened(high, up=True)
            wild, fails = wild | beyond, (fails | beyond if ansi else fails)
    nothing = empty | wild
    return Range(np.where(nothing, np.inf, low), np.where(nothing, -np.inf, high), null, wild, fails)


def _rounded(values: Array, dtype: np.dtype) -> Array:
    """Rounded as by an operation in this dtype; rounding preserves the order."""
    return values.astype(dtype).astype(np.float64) if dtype.kind == "f" else values


def _widened(values: Array, *, up: bool) -> Array:
    return np.where(np.abs(values) < _EXACT, values, np.nextafter(values, np.inf if up else -np.inf))


_Ends = tuple[Array, Array]


def _corners(operation: Callable[[Array, Array], Array]) -> Callable[[_Ends, _Ends], _Ends]:
    def ends(left: _Ends, right: _Ends) -> _Ends:
        values = [operation(one, other) for one in left for other in right]
        return reduce(np.minimum, values), reduce(np.maximum, values)

    return ends


def _absolute(ends: _Ends) -> _Ends:
    low, high = ends
    return np.where((low <= 0) & (high >= 0), 0.0, np.minimum(abs(low), abs(high))), np.maximum(
        abs(low), abs(high)
    )


_ENDS: Mapping[str, Callable[..., _Ends]] = {
    "+": lambda left, right: (left[0] + right[0], left[1] + right[1]),
    "-": lambda left, right: (left[0] - right[1], left[1] - right[0]),
    "*": _corners(np.multiply),
    "/": _corners(np.divide),
    "%": lambda left, _right: left,
    "NEG": lambda ends: (-ends[1], -ends[0]),
    "ABS": _absolute,
}

_OPERATIONS: Mapping[str, Callable[[Operation, PossibleValues], Range | Truth]] = {
    "AND": _connected,
    "OR": _connected,
    "NOT": _negation,
    "IN": _in,
    "BETWEEN": _between,
    "ISNULL": _is_null,
    "COALESCE": _coalesce,
}
