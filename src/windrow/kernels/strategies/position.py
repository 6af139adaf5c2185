"""``position``: positions are compared, so the row follows by arithmetic."""

from __future__ import annotations

import numpy as np

from windrow.kernels.pairs import Array
from windrow.kernels.strategies.task import Task
from windrow.kernels.window_plan import Number, Operation, PairExpression, PositionRef, SameRow, Search

__all__ = ["find", "solve"]

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def solve(predicate: PairExpression, target: str) -> Search | None:
    """The search, if the predicate is ``position(target) − position(base) ⋚ offset`` or ``target = base``."""
    if isinstance(predicate, SameRow):
        ends = {predicate.left, predicate.right}
        of_target = (target, 0) in ends
        if of_target and len(ends) == 2 and all(shift == 0 for _, shift in ends) and not predicate.null_safe:
            base = next(name for name, _ in ends if name != target)
            return Search("position", predicate, base, "=", 0)
        return None
    if not isinstance(predicate, Operation) or predicate.operator not in _MIRRORED:
        return None
    left, right = (_linear(operand) for operand in predicate.operands)
    if left is None or right is None:
        return None
    weights = {name: left[0].get(name, 0) - right[0].get(name, 0) for name in left[0] | right[0]}
    weights = {name: weight for name, weight in weights.items() if weight}
    bases = [name for name in weights if name != target]
    if len(bases) != 1 or abs(weights.get(target, 0)) != 1 or weights[target] != -weights[bases[0]]:
        return None
    offset = (right[1] - left[1]) * weights[target]
    operator = predicate.operator if weights[target] == 1 else _MIRRORED[predicate.operator]
    return Search("position", predicate, bases[0], operator, offset)


def find(task: Task) -> Array:
    """Solve for the first row searched that satisfies the comparison."""
    base = task.sides[task.search.base]
    there = base >= 0
    exact = task.rows.moved(np.maximum(base, 0), task.search.offset)
    if task.search.comparison == "=":
        found = exact
        fits = (exact >= task.low) & (exact < task.stop)
    elif task.search.comparison in (">=", ">"):
        found = np.maximum(exact + (task.search.comparison == ">"), task.low)
        fits = found < task.stop
    else:  # <= and <: true from the partition's first row on, if at all
        found = task.low
        fits = (task.low <= exact - (task.search.comparison == "<")) & (task.low < task.stop)
    return np.where(there & fits, found, -1)


def _linear(expression: PairExpression) -> tuple[dict[str, int], int] | None:
    """A sum of positions and integers: weights of the sides' positions, and the constant."""
    match expression:
        case Number(value=value):
            return {}, value
        case PositionRef(side=side):
            return {side: 1}, 0
        case Operation(operator="NEG", operands=(operand,)):
            part = _linear(operand)
            return None if part is None else ({side: -weight for side, weight in part[0].items()}, -part[1])
        case Operation(operator="+" | "-" as operator, operands=operands):
            left, right = (_linear(operand) for operand in operands)
            if left is None or right is None:
                return None
            sign = 1 if operator == "+" else -1
            weights = {
                side: left[0].get(side, 0) + sign * right[0].get(side, 0) for side in left[0] | right[0]
            }
            return weights, left[1] + sign * right[1]
        case _:
            return None
