"""``first of``: alternatives joined by OR, each solved by itself; the first row that any of them finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from windrow.errors import ExecutionError
from windrow.kernels.pairs import Array
from windrow.kernels.strategies import scan
from windrow.kernels.strategies.task import Task
from windrow.kernels.window_plan import Operation, PairExpression, Search

__all__ = ["find", "solve"]


def solve(
    predicate: PairExpression, target: str, solve_part: Callable[[PairExpression, str], Search | None]
) -> Search | None:
    """The search, if every alternative can be solved."""
    if not isinstance(predicate, Operation) or predicate.operator != "OR":
        return None
    parts = [solve_part(operand, target) for operand in predicate.operands]
    solved = tuple(part for part in parts if part is not None)
    return Search("first of", predicate, parts=solved) if len(solved) == len(parts) else None


def find(task: Task, find_part: Callable[[Task], Array]) -> Array:
    """Search each alternative before the row that the alternatives to its left have found.

    An alternative may fail at a row that OR would not evaluate: then the rows are tested one by one.
    """
    try:
        return _first(task, find_part)
    except ExecutionError:
        return scan.find(task)


def _first(task: Task, find_part: Callable[[Task], Array]) -> Array:
    found, stop = np.full(len(task.low), -1, np.int64), task.stop
    for part in task.search.parts:
        alternative = task.by(part)
        here = find_part(Task(alternative.search, task.rows, task.sides, task.target, task.low, stop))
        found, stop = np.where(here >= 0, here, found), np.where(here >= 0, here, stop)
    return found
