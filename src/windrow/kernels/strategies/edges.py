"""``always`` and ``unbounded``: the first row searched, and the edge of the partition."""

from __future__ import annotations

import numpy as np

from windrow.kernels.pairs import Array
from windrow.kernels.strategies.task import Task

__all__ = ["find_always", "find_unbounded"]


def find_always(task: Task) -> Array:
    """The first row searched."""
    return np.where(task.low < task.stop, task.low, -1)


def find_unbounded(task: Task) -> Array:
    """The partition's first row for a start, its last one for an end."""
    return task.low if task.target == "start" else task.stop - 1
