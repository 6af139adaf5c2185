"""``monotone``: bisection, or two pointers, where the predicate is monotone in the searched row.

A comparison whose one side rises along the rows and whose other side does not depend on the searched row is
false up to some row and true from there on (it *rises*), or the other way round (it *falls*): with rows in
order of date, ``n.date - s.date > INTERVAL 7 DAYS`` rises in n. The first row at which a conjunction of both
kinds is true is the first at which all rising ones are true, provided that the falling ones still are: later
they cannot be. A conjunction may also have parts that read the searched row alone: the result is then the
first row from the turning point of the rising parts on at which those are true.

Whether a column rises is checked in the data, not derived from the query, so this works for any column that
happens to follow the order. Bisection tests a logarithmic number of rows of the partition.
"""

from __future__ import annotations

import numpy as np

from windrow.errors import ExecutionError
from windrow.kernels.compiling import compiled
from windrow.kernels.pairs import Array, PairRows, Sides, satisfied
from windrow.kernels.strategies import scan
from windrow.kernels.strategies.task import Task, next_of
from windrow.kernels.window_plan import (
    ColumnRef,
    ConstantRef,
    Number,
    Operation,
    PairExpression,
    PositionRef,
    Search,
    sides_of,
)

__all__ = ["ascends", "computes_integers", "conjuncts", "direction", "find", "rising_columns", "solve"]

_APART = 64  # windows from one that is bisected to the next
_ITERATIONS = 256  # compiled iterations that take as long as bisection in numpy
_FAR_FROM_INFINITE = 1e150
_ITERATIONS_A_WINDOW = 16  # of bisection in numpy
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def solve(predicate: PairExpression, target: str) -> Search | None:
    """The search, if every part of the conjunction has a direction or reads only the searched row."""
    bounding = _bounding(predicate, target)
    applies = bounding and all(direction(part, target) is not None for part in bounding)
    return Search("monotone", predicate) if applies else None


def rising_columns(predicate: PairExpression, target: str) -> list[ColumnRef]:
    """The columns of the searched row that must rise."""
    return [column for part in _bounding(predicate, target) for column in _columns(part, target)]


def _bounding(predicate: PairExpression, target: str) -> list[PairExpression]:
    """The parts that read other rows too."""
    return [part for part in conjuncts(predicate) if not sides_of(part) <= {target}]


def find(task: Task) -> Array:
    """Bisection if the data follows the order that the predicate needs, else row by row."""
    found = _bisected(task)
    return scan.find(task) if found is None else found


def _bisected(task: Task) -> Array | None:
    """None if the data does not rise, or a part fails."""
    predicate, rows, target = task.search.predicate, task.rows, task.target
    assert predicate is not None
    if not rows.ansi and computes_integers(predicate):
        return None  # without ANSI they wrap round
    columns = rising_columns(predicate, target)
    if not all(ascends(rows, column) for column in columns):
        return None
    bounding = _bounding(predicate, target)
    if not all(_stays_finite(part, rows) for part in bounding):
        return None
    ways = [direction(part, target) for part in bounding]
    alone = [part for part in conjuncts(predicate) if part not in bounding]
    try:
        return _bisect(
            task,
            rising=[part for part, way in zip(bounding, ways, strict=True) if way == 1],
            falling=[part for part, way in zip(bounding, ways, strict=True) if way == -1],
            alone=alone if task.guard is None else [task.guard, *alone],
            shifts={0, *(column.shift for column in columns)},
        )
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


def computes_integers(expression: PairExpression) -> bool:
    """Whether there is arithmetic of integers, which wraps around without ANSI mode."""
    if not isinstance(expression, Operation):
        return False
    own = expression.operator in ("+", "-", "*", "NEG") and np.dtype(expression.dtype).kind == "i"
    return own or any(map(computes_integers, expression.operands))


def _stays_finite(expression: PairExpression, rows: PairRows, *, added: bool = False) -> bool:
    """Whether no sum of floats can be infinite, so that rising values are finite too."""
    match expression:
        case Operation(operator=operator, operands=operands, dtype=dtype):
            added = operator in ("+", "-", "*", "NEG") and np.dtype(dtype).kind == "f"
            return all(_stays_finite(operand, rows, added=added) for operand in operands)
        case ColumnRef(column=name, rank=rank):
            values = rows.column(name, rank) if added else None
        case ConstantRef(name=name, rank=rank):
            values = rows.constant(name, rank) if added else None
        case _:
            return True
    if values is None or values.data.dtype.kind != "f":
        return True
    data = values.data if values.valid is None else values.data[values.valid]
    return bool((np.abs(data) < _FAR_FROM_INFINITE).all())


def _columns(expression: PairExpression, target: str) -> list[ColumnRef]:
    match expression:
        case ColumnRef(side=side):
            return [expression] if side == target else []
        case Operation(operands=operands):
            return [column for operand in operands for column in _columns(operand, target)]
        case _:
            return []


def ascends(rows: PairRows, ref: ColumnRef) -> bool:
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
    task: Task,
    rising: list[PairExpression],
    falling: list[PairExpression],
    alone: list[PairExpression],
    shifts: set[int],
) -> Array:
    """Bisection over the rows that have all their neighbours; the row at either edge is tested by itself.

    From the turning point of the rising parts on, the first row at which the parts that read it alone are
    true.
    """
    rows, sides, target, low, stop = task.rows, task.sides, task.target, task.low, task.stop
    everything = [*alone, *rising, *falling]
    begin, end, found = low, stop, np.full(len(low), -1, np.int64)
    inner = np.minimum(low, len(rows.first) - 1)
    if min(shifts) < 0:
        begin = np.where(low == rows.first[inner], low + 1, low)
        first = _at(everything, rows, sides, target, low, (low < begin) & (low < stop))
        found = np.where(first, low, found)
    if max(shifts) > 0:
        end = np.where(stop == rows.stop[inner], stop - 1, stop)
    here = _turning_points(rising, rows, sides, target, begin, np.maximum(end, begin))
    if alone:
        following = next_of(task.true_rows(_conjunction(alone)), here, end)
        here = np.where(following < 0, end, following)
    candidate = (here >= begin) & (here < end) & (found < 0)
    inside = _at(falling, rows, sides, target, here, candidate) if falling else candidate
    found = np.where(inside, here, found)
    last = stop - 1
    edge = _at(everything, rows, sides, target, last, (end < stop) & (last >= begin) & (found < 0))
    return np.where(edge, last, found)


def _turning_points(
    rising: list[PairExpression], rows: PairRows, sides: Sides, target: str, begin: Array, end: Array
) -> Array:
    """The first row of each ``[begin, end)`` at which all parts are true, `end` if there is none."""
    if rising:
        predicate, iterations = _conjunction(rising), _ITERATIONS_A_WINDOW * len(begin)
        if iterations >= compiled.patience(predicate):
            found = _two_pointers(rising, rows, sides, target, begin, end)
            if found is not None:
                return found
        compiled.count(predicate, iterations)
    return _halved(rising, rows, sides, target, begin, end)


def _halved(
    rising: list[PairExpression], rows: PairRows, sides: Sides, target: str, begin: Array, end: Array
) -> Array:
    here, beyond = begin.copy(), end.copy()
    while (open_ := np.flatnonzero(here < beyond)).size:
        middle = (here[open_] + beyond[open_]) // 2
        true = _all(rising, rows, {side: index[open_] for side, index in sides.items()}, target, middle)
        beyond[open_] = np.where(true, middle, beyond[open_])
        here[open_] = np.where(true, here[open_], middle + 1)
    return here


def _two_pointers(
    rising: list[PairExpression], rows: PairRows, sides: Sides, target: str, begin: Array, end: Array
) -> Array | None:
    """The same by a compiled search; None if that is too slow.

    If the ends rise with the windows, each window is searched from where the one before it ended. Else, at
    intervals, one window is bisected, to see how long searches are.
    """
    predicate = _conjunction(rising)
    if _ends_rise(rising, rows, sides, begin):
        found = compiled.search(predicate, rows, sides, target, begin, end, rising=True)
        return None if found is None else np.where(found < 0, end, found)
    sampled = np.arange(0, len(begin), _APART)
    sample = {side: index[sampled] for side, index in sides.items()}
    ends = _halved(rising, rows, sample, target, begin[sampled], end[sampled])
    if (ends - begin[sampled]).mean() > _ITERATIONS:
        return None
    found = compiled.search(predicate, rows, sides, target, begin, end)
    return None if found is None else np.where(found < 0, end, found)


def _ends_rise(rising: list[PairExpression], rows: PairRows, sides: Sides, begin: Array) -> bool:
    """Whether no window's turning point is before that of a window before it in its partition."""
    if (np.diff(begin) < 0).any():
        return False
    for part in rising:
        for side, index in sides.items():
            if side not in sides_of(part):
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
    parts: list[PairExpression], rows: PairRows, sides: Sides, target: str, row: Array, where: Array
) -> Array:
    """Whether all parts are true at these rows; evaluated only where requested."""
    result = np.zeros(len(row), bool)
    tried = np.flatnonzero(where)
    if tried.size:
        result[tried] = _all(
            parts, rows, {side: index[tried] for side, index in sides.items()}, target, row[tried]
        )
    return result


def _all(parts: list[PairExpression], rows: PairRows, sides: Sides, target: str, row: Array) -> Array:
    true = np.ones(len(row), bool)
    for part in parts:
        true &= satisfied(part, rows, {**sides, target: row})
    return true
