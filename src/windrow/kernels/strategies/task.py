"""The contract of strategies: their input and result.

    find(task) -> int64 array

For window k the rows ``low[k] <= j < stop[k]`` are searched in order for side `target`; the result is
the first j that satisfies the predicate, −1 if none does. `sides` has the rows of the sides already
known. Windows are never split between partitions: ``[low, stop)`` lies in one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windrow.kernels.pairs import Array, PairRows, Sides, satisfied
from windrow.kernels.window_plan import ColumnRef, Operation, PairExpression, Search

__all__ = ["Task", "next_of"]


@dataclass(frozen=True)
class Task:
    """One boundary of many windows; the module has the contract."""

    search: Search
    rows: PairRows
    sides: Sides
    target: str
    low: Array
    stop: Array

    @property
    def predicate(self) -> PairExpression:
        """The predicate, FALSE and not evaluated at rows that the guard excludes."""
        predicate = self.search.predicate
        assert predicate is not None
        guard = self.guard
        return predicate if guard is None else Operation("AND", (guard, predicate))

    @property
    def guard(self) -> ColumnRef | None:
        """The guard's column at the searched row."""
        return ColumnRef(self.search.guard, self.target) if self.search.guard else None

    def by(self, search: Search) -> Task:
        """The same for another search, which has the same guard."""
        return replace(self, search=replace(search, guard=self.search.guard))

    def true_rows(self, predicate: PairExpression) -> Array:
        """The rows at which a predicate over the searched row alone is true, in order."""
        every = np.arange(self.rows.table.num_rows, dtype=np.int64)
        found: Array = np.flatnonzero(satisfied(predicate, self.rows, {self.target: every}))
        return found


def next_of(rows: Array, low: Array, stop: Array) -> Array:
    """For each ``[low, stop)`` the first of these rows, −1 if none is in it."""
    found = np.append(rows, np.iinfo(np.int64).max)[np.searchsorted(rows, low)]
    return np.where(found < stop, found, -1)
