"""``first true``: the predicate reads the searched row alone, so its true rows are found once."""

from __future__ import annotations

from windrow.kernels.pairs import Array
from windrow.kernels.strategies.task import Task, next_of
from windrow.kernels.window_plan import PairExpression, Search, sides_of

__all__ = ["find", "solve"]


def solve(predicate: PairExpression, target: str) -> Search | None:
    """The search, if no other side is read."""
    return Search("first true", predicate) if sides_of(predicate) <= {target} else None


def find(task: Task) -> Array:
    """A look-up for each window."""
    return next_of(task.true_rows(task.predicate), task.low, task.stop)
