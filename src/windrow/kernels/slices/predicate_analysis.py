"""Analysis of predicates: what they read, and a rewrite with positions as a column."""

from __future__ import annotations

from dataclasses import replace

from windrow.kernels.strategies.monotone import rising_columns
from windrow.kernels.window_plan import (
    ColumnRef,
    Operation,
    PairExpression,
    PositionRef,
    SameRow,
    Search,
    WindowPlan,
)

__all__ = [
    "columns",
    "leaves",
    "own_side",
    "positions_as_column",
    "predicates",
    "reads_positions",
    "rising",
    "shifts",
]


def own_side(plan: WindowPlan) -> str:
    """The side of the rows at which windows are made."""
    return "label" if plan.has_label else "start"


def predicates(plan: WindowPlan) -> dict[str, Search]:
    """The searches by predicate, by name.

    The search for the rows at which windows are made is called ``window``, the others by their side.
    """
    chosen = Search("first true", plan.labels) if plan.labels is not None else None
    named = {"window": chosen, "start": plan.start, "end": plan.end}
    return {
        name: search
        for name, search in named.items()
        if search is not None and search.predicate is not None and search.strategy != "given"
    }


def leaves(expression: PairExpression) -> list[PairExpression]:
    """The operands that are no operations."""
    if isinstance(expression, Operation):
        return [leaf for operand in expression.operands for leaf in leaves(operand)]
    return [expression]


def columns(expression: PairExpression) -> list[ColumnRef]:
    """The columns read."""
    return [leaf for leaf in leaves(expression) if isinstance(leaf, ColumnRef)]


def rising(search: Search, side: str) -> list[ColumnRef]:
    """The columns of the searched row that must increase for the search to use bisection."""
    if search.strategy == "monotone" and search.predicate is not None:
        return rising_columns(search.predicate, side)
    return [column for part in search.parts for column in rising(part, side)]


def reads_positions(expression: PairExpression) -> bool:
    """Whether it reads a row's position, which a slice does not know."""
    return any(isinstance(leaf, PositionRef) for leaf in leaves(expression))


def shifts(expression: PairExpression) -> set[int]:
    """Which neighbours of a row are read, as −1, 0 and 1."""
    found = {0}
    for leaf in leaves(expression):
        if isinstance(leaf, ColumnRef):
            found.add(leaf.shift)
        elif isinstance(leaf, SameRow):
            found |= {leaf.left[1], leaf.right[1]}
    return found


def positions_as_column(expression: PairExpression, column: str) -> PairExpression:
    """The expression with positions read from a column."""
    if isinstance(expression, PositionRef):
        return ColumnRef(column, expression.side)
    if isinstance(expression, Operation):
        operands = tuple(positions_as_column(operand, column) for operand in expression.operands)
        return replace(expression, operands=operands)
    return expression
