"""Finds a boundary by bisection where the predicate is monotone in the searched row.

A comparison whose one side rises along the rows and whose other side does not depend on the searched row is
false up to some row and true from there on (it *rises*), or the other way round (it *falls*): with rows in
order of date, ``n.date - s.date > INTERVAL 7 DAYS`` rises in n. The first row at which a conjunction of both
kinds holds is the first at which all rising ones hold, provided that the falling ones still hold there: later
they will not either.

Whether a column rises is looked up in the data, not derived from the query, so any column will do that
happens to follow the order. Bisection tries as many rows as the logarithm of the partition's length.
"""

from __future__ import annotations

import numpy as np

from windrow.errors import ExecutionError
from windrow.kernels import compiled
from windrow.kernels.pairs import Array, Rows, Sides, holds
from windrow.kernels.plan import (
    ColumnRef,
    ConstantRef,
    Number,
    Operation,
    PairExpression,
    PositionRef,
    reads,
)

__all__ = ["ascends", "bisect", "conjuncts", "direction"]

_APART = 64  # windows from one that is bisected to the next
_STEPS = 256  # compiled steps that take as long as bisection in numpy
_MANY = 1 << 19  # windows for which bisection takes longer than numba's start
_MANY_WHEN_READY = 1 << 16
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def bisect(
    predicate: PairExpression,
    rows: Rows,
    sides: Sides,
    target: str,
    low: Array,
    stop: Array,
    guard: ColumnRef | None = None,
) -> Array | None:
    """The first row of each ``[low, stop)`` that satisfies the predicate, −1 if none; None if not monotone.

    Parameters
    ----------
    predicate
        A conjunction of comparisons, each with a :func:`direction`.
    rows, sides, target, low, stop
        As :func:`windrow.kernels.search.find` has them.
    guard
        A column that is FALSE at rows that must not be found.
    """
    if not rows.ansi and _computes_integers(predicate):
        return None  # without ANSI they wrap round
    rising: list[PairExpression] = []
    falling: list[PairExpression] = []
    shifts = {0}
    for part in conjuncts(predicate):
        for column in _columns(part, target):
            if not ascends(rows, column):
                return None
            shifts.add(column.shift)
        way = direction(part, target)
        if way is None:
            return None
        (rising if way > 0 else falling).append(part)
    try:
        at_last = falling if guard is None else [guard, *falling]
        return _bisect(rising, at_last, rows, sides, target, low, stop, shifts)
    except ExecutionError:
        # a pair that fails may be one that a search row by row would never try
        return None


def conjuncts(predicate: PairExpression) -> list[PairExpression]:
    """The parts of a conjunction; an equality is two inequalities."""
    if isinstance(predicate, Operation) and predicate.operator == "AND":
        return [part for operand in predicate.operands for part in conjuncts(operand)]
    if isinstance(predicate, Operation) and predicate.operator == "=":
        return [Operation(">=", predicate.operands), Operation("<=", predicate.operands)]
    return [predicate]


def direction(predicate: PairExpression, target: str) -> int | None:
    """1 if the comparison turns from false to true along rising rows of `target`, −1 if back, else None."""
    if not isinstance(predicate, Operation) or predicate.operator not in _FLIPPED:
        return None
    left, right = (_slope(operand, target) for operand in predicate.operands)
    if left is None or right is None or left * right > 0 or left == right == 0:
        return None
    slope = left or -right
    return slope if predicate.operator in (">", ">=") else -slope


def _slope(expression: PairExpression, target: str) -> int | None:
    """1 if the value rises with the columns of `target`, −1 if it falls, 0 if it does not depend on them."""
    match expression:
        case ColumnRef(side=side) | PositionRef(side=side):
            return int(side == target)
        case ConstantRef() | Number():
            return 0
        case Operation(operator="NEG", operands=(operand,)):
            slope = _slope(operand, target)
            return None if slope is None else -slope
        case Operation(operator="+" | "-" as operator, operands=operands):
            left, right = (_slope(operand, target) for operand in operands)
            if left is None or right is None:
                return None
            right = right if operator == "+" else -right
            return None if left * right < 0 else left or right
        case Operation(operator="*", operands=(operand, Number(value=factor))):
            slope = _slope(operand, target)
            return None if slope is None or factor <= 0 else slope
        case _:
            return None


def _computes_integers(expression: PairExpression) -> bool:
    if not isinstance(expression, Operation):
        return False
    own = expression.operator in ("+", "-", "*", "NEG") and np.dtype(expression.dtype).kind == "i"
    return own or any(map(_computes_integers, expression.operands))


def _columns(expression: PairExpression, target: str) -> list[ColumnRef]:
    match expression:
        case ColumnRef(side=side):
            return [expression] if side == target else []
        case Operation(operands=operands):
            return [column for operand in operands for column in _columns(operand, target)]
        case _:
            return []


def ascends(rows: Rows, ref: ColumnRef) -> bool:
    """Whether the column has no NULLs, NaNs or infinities and never falls within a partition."""
    column = rows.column(ref.column, ref.rank)
    if column.valid is not None and not column.valid.all():
        return False
    data = column.data
    if data.dtype.kind == "f" and not np.isfinite(data).all():
        return False
    falls = data[1:] < data[:-1]
    return not (falls & (rows.first[1:] == rows.first[:-1])).any()


def _bisect(
    rising: list[PairExpression],
    falling: list[PairExpression],
    rows: Rows,
    sides: Sides,
    target: str,
    low: Array,
    stop: Array,
    shifts: set[int],
) -> Array:
    """Bisection over the rows that have all their neighbours; the one at either edge is tried by itself."""
    found = np.full(len(low), -1, np.int64)
    begin = np.where(
        (low == rows.first[np.minimum(low, len(rows.first) - 1)]) & (min(shifts) < 0), low + 1, low
    )
    limit = rows.stop[np.minimum(low, len(rows.stop) - 1)]
    end = np.where((stop == limit) & (max(shifts) > 0), stop - 1, stop)
    everything = [*rising, *falling]
    first = _at(everything, rows, sides, target, low, (low < begin) & (low < stop))
    found = np.where(first, low, found)
    here = _turning_points(rising, rows, sides, target, begin, np.maximum(end, begin))
    candidate = (here >= begin) & (here < end) & (found < 0)
    inside = _at(everything, rows, sides, target, here, candidate)
    found = np.where(inside, here, found)
    last = stop - 1
    edge = _at(everything, rows, sides, target, last, (end < stop) & (last >= begin) & (found < 0))
    return np.where(edge, last, found)


def _turning_points(
    rising: list[PairExpression], rows: Rows, sides: Sides, target: str, begin: Array, end: Array
) -> Array:
    """The first row of each ``[begin, end)`` at which all parts hold, `end` if they hold at none."""
    if rising and len(begin) >= (_MANY_WHEN_READY if compiled.is_ready(_conjunction(rising)) else _MANY):
        found = _two_pointers(rising, rows, sides, target, begin, end)
        if found is not None:
            return found
    return _halved(rising, rows, sides, target, begin, end)


def _halved(
    rising: list[PairExpression], rows: Rows, sides: Sides, target: str, begin: Array, end: Array
) -> Array:
    here, beyond = begin.copy(), end.copy()
    while (open_ := np.flatnonzero(here < beyond)).size:
        middle = (here[open_] + beyond[open_]) // 2
        true = _all(rising, rows, {side: index[open_] for side, index in sides.items()}, target, middle)
        beyond[open_] = np.where(true, middle, beyond[open_])
        here[open_] = np.where(true, here[open_], middle + 1)
    return here


def _two_pointers(
    rising: list[PairExpression], rows: Rows, sides: Sides, target: str, begin: Array, end: Array
) -> Array | None:
    """The same by a compiled search that goes on where the windows before it ended; None if that is long.

    Every so many windows one is bisected. If the ends rise with the windows, it bounds those after it.
    """
    sampled = np.arange(0, len(begin), _APART)
    sample = {side: index[sampled] for side, index in sides.items()}
    ends = _halved(rising, rows, sample, target, begin[sampled], end[sampled])
    low = begin
    if _ends_rise(rising, rows, sides, begin):
        low = np.clip(np.repeat(ends, _APART)[: len(begin)], begin, end)
    last = np.minimum(sampled + _APART, len(begin)) - 1
    steps = np.append(ends[1:], ends[-1]) - low[last]
    if np.maximum(steps, 0).mean() > _STEPS:
        return None
    found = compiled.search(_conjunction(rising), rows, sides, target, low, end)
    return None if found is None else np.where(found < 0, end, found)


def _ends_rise(rising: list[PairExpression], rows: Rows, sides: Sides, begin: Array) -> bool:
    """Whether no window's turning point is before that of a window before it in its partition."""
    if (np.diff(begin) < 0).any():
        return False
    for part in rising:
        for side, index in sides.items():
            if not reads(part, side):
                continue
            columns = _columns(part, side)
            known = (index >= 0).all() and (np.diff(index) >= 0).all()
            if not known or direction(part, side) != -1:
                return False
            if not all(column.shift == 0 and ascends(rows, column) for column in columns):
                return False
    return True


def _conjunction(parts: list[PairExpression]) -> PairExpression:
    return parts[0] if len(parts) == 1 else Operation("AND", tuple(parts))


def _at(
    parts: list[PairExpression], rows: Rows, sides: Sides, target: str, row: Array, where: Array
) -> Array:
    """Whether all parts hold at these rows, tried only where asked."""
    result = np.zeros(len(row), bool)
    tried = np.flatnonzero(where)
    if tried.size:
        result[tried] = _all(
            parts, rows, {side: index[tried] for side, index in sides.items()}, target, row[tried]
        )
    return result


def _all(parts: list[PairExpression], rows: Rows, sides: Sides, target: str, row: Array) -> Array:
    true = np.ones(len(row), bool)
    for part in parts:
        true &= holds(part, rows, {**sides, target: row})
    return true
