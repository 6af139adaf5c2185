"""How boundaries are found, for many windows at once: a file for each strategy, tried in this order.

=============== =================================================================================
`edges`         ``always``, ``unbounded``: no predicate
`first_true`    reads only the searched row
`position`      compares positions, or is ``e = l``
`monotone`      is bounded by what rises along the rows, and by parts that read only the searched row
`first_of`      OR of the three before
`scan`          any other typed predicate, row by row; in a compiled loop if there are many pairs
`given`         anything else: Spark has found it by a join
=============== =================================================================================

A file's ``solve`` says whether it applies to a predicate, ``find`` finds (:mod:`.task` has its contract).
"""

from __future__ import annotations

from windrow.errors import ExecutionError, Span
from windrow.kernels.pairs import Array, PairRows, Sides
from windrow.kernels.strategies import edges, first_of, first_true, given, monotone, position, scan
from windrow.kernels.strategies.task import Task
from windrow.kernels.window_plan import PairExpression, Search

__all__ = ["find", "solve"]


def solve(predicate: PairExpression, target: str) -> Search:
    """The search for the first row of side `target` at which a typed predicate is true."""
    solved = _solved(predicate, target) or first_of.solve(predicate, target, _solved)
    return solved or Search("scan", predicate)


def _solved(predicate: PairExpression, target: str) -> Search | None:
    return (
        first_true.solve(predicate, target)
        or position.solve(predicate, target)
        or monotone.solve(predicate, target)
    )


def find(search: Search, rows: PairRows, sides: Sides, target: str, low: Array, stop: Array) -> Array:
    """Find the boundary of every window: :mod:`windrow.kernels.strategies.task` has the contract.

    Raises
    ------
    ExecutionError
        With the predicate's place in the query.
    """
    if not len(low):
        return low
    try:
        return _find(Task(search, rows, sides, target, low, stop))
    except ExecutionError as error:
        if search.place is not None:
            error.span = Span(*search.place)
        raise


def _find(task: Task) -> Array:
    if task.search.strategy == "first of":
        return first_of.find(task, _find)
    return _STRATEGIES[task.search.strategy](task)


_STRATEGIES = {
    "always": edges.find_always,
    "unbounded": edges.find_unbounded,
    "first true": first_true.find,
    "position": position.find,
    "monotone": monotone.find,
    "scan": scan.find,
    "given": given.find,
}
