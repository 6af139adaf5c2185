"""``scan``: the predicate is tested row by row, for all windows in parallel."""

from __future__ import annotations

import numpy as np

from windrow.errors import ExecutionError
from windrow.kernels.compiling import compiled
from windrow.kernels.pairs import Array, satisfied
from windrow.kernels.strategies.task import Task
from windrow.kernels.window_plan import PairExpression

__all__ = ["find"]

_LARGEST_CHUNK = 1 << 18  # pairs tried at once: big enough for numpy, small enough for the cache


def find(task: Task) -> Array:
    """Test the rows of all open windows in parallel, in chunks that grow as fewer windows are open.

    This tests at most twice the pairs of a row-by-row loop. A pair that fails (division by zero) may be
    beyond a window's end if chunks are longer than one row; then that chunk is tested again row by row, so an
    error is raised only for a pair that the loop would have reached. A compiled loop takes over if the work
    is large.
    """
    predicate = task.predicate
    patience: float = compiled.patience(predicate)
    tried = 0
    found = np.full(len(task.low), -1, np.int64)
    cursor = task.low.astype(np.int64).copy()
    open_ = np.flatnonzero(cursor < task.stop)
    width = 1
    while len(open_):
        if tried >= patience and (task.stop[open_] - cursor[open_]).sum() >= patience:
            sides = {side: index[open_] for side, index in task.sides.items()}
            rest = compiled.search(predicate, task.rows, sides, task.target, cursor[open_], task.stop[open_])
            if rest is not None:
                found[open_] = rest
                return found
            patience = float("inf")
        tried += len(open_) * width
        try:
            hit = _chunk(task, predicate, open_, cursor[open_], width)
        except ExecutionError:
            if width == 1:
                raise
            width = 1
            continue
        done = hit >= 0
        found[open_[done]] = hit[done]
        open_ = open_[~done]
        cursor[open_] += width
        open_ = open_[cursor[open_] < task.stop[open_]]
        if len(open_):
            width = max(1, min(width * 2, _LARGEST_CHUNK // len(open_)))
    compiled.count(predicate, tried)
    return found


def _chunk(task: Task, predicate: PairExpression, windows: Array, cursor: Array, width: int) -> Array:
    """The first hit among the next `width` rows of each of these windows, −1 if none."""
    counts = np.minimum(task.stop[windows] - cursor, width)
    owner = np.repeat(np.arange(len(windows)), counts)
    first_pair = np.cumsum(counts) - counts
    candidate = cursor[owner] + (np.arange(len(owner)) - first_pair[owner])
    tried = {side: index[windows][owner] for side, index in task.sides.items()}
    hits = np.flatnonzero(satisfied(predicate, task.rows, {**tried, task.target: candidate}))
    result = np.full(len(windows), -1, np.int64)
    # the last assignment wins: going backwards leaves each window its first hit
    result[owner[hits[::-1]]] = candidate[hits[::-1]]
    return result
