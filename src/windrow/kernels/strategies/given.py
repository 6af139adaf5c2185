"""``given``: the join plan has found the boundary."""

from __future__ import annotations

import numpy as np

from windrow.kernels.pairs import Array
from windrow.kernels.strategies.task import Task

__all__ = ["find"]


def find(task: Task) -> Array:
    """The row at the position in a column of the label row, if it is among those searched."""
    label = task.sides["label"]
    position = task.rows.column(task.search.column, None).take(label)
    found = label + position.data.astype(np.int64) - task.rows.position(label)
    is_found = position.validity() & (task.low <= found) & (found < task.stop)
    return np.where(is_found, found, -1)
