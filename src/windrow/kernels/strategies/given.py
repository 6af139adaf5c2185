"""``given``: the join plan has found the boundary."""

from __future__ import annotations

import numpy as np

from windrow.kernels.pairs import Array
from windrow.kernels.strategies.task import Task

__all__ = ["find"]


def find(task: Task) -> Array:
    """The row at the position that a column of the label row holds."""
    label = task.sides["label"]
    position = task.rows.column(task.search.column, None).take(label)
    return np.where(position.validity(), task.rows.first[label] + position.data.astype(np.int64) - 1, -1)
