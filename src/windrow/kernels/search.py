"""Finds, for many windows at once, the first row at which a boundary's predicate holds.

One function per strategy of :class:`~windrow.kernels.plan.Search`, all with the contract of

    find(search, rows, sides, target, low, stop) -> int64 array

For window k the rows ``low[k] <= j < stop[k]`` are searched in order for side `target`; the result is
the first j that satisfies the predicate, −1 if none does. `sides` holds the rows of the sides already
known. Windows are never split between partitions: ``[low, stop)`` lies in one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windrow.errors import ExecutionError, Span
from windrow.kernels import compiled
from windrow.kernels.monotone import bisect
from windrow.kernels.pairs import Array, Rows, Sides, holds
from windrow.kernels.plan import ColumnRef, Operation, PairExpression, Search

__all__ = ["find"]

_LARGEST_BLOCK = 1 << 18  # pairs tried at once: big enough for numpy, small enough for the cache
_PAIRS_BEFORE_COMPILING = 1 << 23  # take numpy about as long as numba takes to be imported and to compile
_PAIRS_BEFORE_CALLING = 1 << 17


def find(search: Search, rows: Rows, sides: Sides, target: str, low: Array, stop: Array) -> Array:
    """Find the boundary of every window; see the module for the contract."""
    try:
        return _STRATEGIES[search.strategy](_Task(search, rows, sides, target, low, stop))
    except ExecutionError as error:
        if search.place is not None:
            error.span = Span(*search.place)
        raise


@dataclass(frozen=True)
class _Task:
    """The arguments of :func:`find`."""

    search: Search
    rows: Rows
    sides: Sides
    target: str
    low: Array
    stop: Array


def _always(task: _Task) -> Array:
    return np.where(task.low < task.stop, task.low, -1)


def _unbounded(task: _Task) -> Array:
    return task.low if task.target == "start" else task.stop - 1


def _first_true(task: _Task) -> Array:
    """The predicate reads the searched row alone: find its true rows once, then look each window up."""
    every = np.arange(task.rows.table.num_rows, dtype=np.int64)
    true_rows = np.flatnonzero(holds(_guarded(task), task.rows, {task.target: every}))
    place = np.searchsorted(true_rows, task.low)
    padded = np.append(true_rows, np.iinfo(np.int64).max)
    found = padded[place]
    return np.where(found < task.stop, found, -1)


def _position(task: _Task) -> Array:
    """Solve `position − base position ⋚ offset` for the first row searched that satisfies it."""
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


def _monotone(task: _Task) -> Array:
    """Bisection where the data follows the order as the predicate would have it, else row by row."""
    assert task.search.predicate is not None
    guard = _guard(task)
    found = bisect(task.search.predicate, task.rows, task.sides, task.target, task.low, task.stop, guard)
    return _guarded_scan(task) if found is None else found


def _guarded_scan(task: _Task) -> Array:
    return _scan(replace(task, search=replace(task.search, predicate=_guarded(task))))


def _guard(task: _Task) -> ColumnRef | None:
    return ColumnRef(task.search.guard, task.target) if task.search.guard else None


def _guarded(task: _Task) -> PairExpression | None:
    """The predicate, FALSE and not evaluated where the guard is."""
    guard, predicate = _guard(task), task.search.predicate
    return predicate if guard is None or predicate is None else Operation("AND", (guard, predicate))


def _given(task: _Task) -> Array:
    """Positions that the join plan found, as a column of the label row."""
    label = task.sides["label"]
    position = task.rows.column(task.search.column, None).take(label)
    return np.where(position.validity(), task.rows.first[label] + position.data.astype(np.int64) - 1, -1)


def _scan(task: _Task) -> Array:
    """Try the rows of all open windows side by side, in blocks that grow while few windows are open.

    At most twice the pairs that a row-by-row loop would try. A pair that fails (division by zero) may
    lie beyond a window's end when blocks are longer than one row; then that block is tried again row
    by row, so an error is raised only for a pair that the loop would have reached. Big work is handed
    over to a compiled loop once that has become worth its start.
    """
    assert task.search.predicate is not None
    is_ready = compiled.is_ready(task.search.predicate)
    patience: float = _PAIRS_BEFORE_CALLING if is_ready else _PAIRS_BEFORE_COMPILING
    tried = 0
    found = np.full(len(task.low), -1, np.int64)
    cursor = task.low.astype(np.int64).copy()
    open_ = np.flatnonzero(cursor < task.stop)
    width = 1
    while len(open_):
        if tried >= patience and (task.stop[open_] - cursor[open_]).sum() >= patience:
            sides = {side: index[open_] for side, index in task.sides.items()}
            rest = compiled.search(
                task.search.predicate, task.rows, sides, task.target, cursor[open_], task.stop[open_]
            )
            if rest is not None:
                found[open_] = rest
                return found
            patience = float("inf")
        tried += len(open_) * width
        try:
            hit = _block(task, open_, cursor[open_], width)
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
            width = max(1, min(width * 2, _LARGEST_BLOCK // len(open_)))
    return found


def _block(task: _Task, windows: Array, cursor: Array, width: int) -> Array:
    """The first hit among the next `width` rows of each of these windows, −1 if none."""
    counts = np.minimum(task.stop[windows] - cursor, width)
    owner = np.repeat(np.arange(len(windows)), counts)
    first_pair = np.cumsum(counts) - counts
    candidate = cursor[owner] + (np.arange(len(owner)) - first_pair[owner])
    tried = {side: index[windows][owner] for side, index in task.sides.items()}
    hits = np.flatnonzero(holds(task.search.predicate, task.rows, {**tried, task.target: candidate}))
    result = np.full(len(windows), -1, np.int64)
    # the last assignment wins: going backwards leaves each window its first hit
    result[owner[hits[::-1]]] = candidate[hits[::-1]]
    return result


_STRATEGIES = {
    "always": _always,
    "unbounded": _unbounded,
    "first true": _first_true,
    "position": _position,
    "monotone": _monotone,
    "scan": _guarded_scan,
    "given": _given,
}
