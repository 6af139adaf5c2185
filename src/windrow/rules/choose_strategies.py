"""Rule: choose how each boundary is found.

The strategies, and which of them applies to a typed predicate, are :mod:`windrow.kernels.strategies`.
"""

from __future__ import annotations

from dataclasses import replace

from windrow.algebra.physical import Analyzer, FoundBoundary, PlanDraft, Predicate
from windrow.algebra.window_node import WindowBoundary
from windrow.kernels.strategies import solve
from windrow.kernels.window_plan import PairExpression, Search, sides_of
from windrow.syntax.nodes import Side

__all__ = ["choose_strategies"]


def choose_strategies(draft: PlanDraft, analyzer: Analyzer) -> PlanDraft:  # noqa: ARG001 - every rule takes it
    """Fill in `found` for the boundaries to search, and `labels`."""
    window = draft.window
    found = []
    if window.label is not None:
        found.append(_found(window.start, draft.predicate(Side.START)))
    if window.end is not None:
        found.append(_found(window.end, draft.predicate(Side.END)))
    chooser = draft.predicate(Side.LABEL if window.label is not None else Side.START)
    return replace(draft, found=tuple(found), labels=chooser.typed if chooser else None)


def _found(boundary: WindowBoundary, predicate: Predicate | None) -> FoundBoundary:
    side = boundary.side
    if boundary.unbounded:
        return FoundBoundary(side, Search("unbounded"), "UNBOUNDED: the edge of the partition")
    if predicate is None:
        return FoundBoundary(side, Search("always"), "no WHEN: the first row searched")
    if predicate.typed is None:
        column = f"__{side.value}_position"
        return FoundBoundary(
            side,
            Search("given", column=column),
            f"{predicate.why_not}; Spark tries pairs of rows",
            boundary.when,
        )
    found = _typed(side, predicate.typed)
    span = boundary.when.span if boundary.when is not None else None
    place = (span.start, span.stop) if span is not None else None
    return replace(found, search=replace(found.search, place=place))


def _typed(side: Side, predicate: PairExpression) -> FoundBoundary:
    search = solve(predicate, side.value)
    return FoundBoundary(side, search, _reason(search, side, predicate))


def _reason(search: Search, side: Side, predicate: PairExpression) -> str:
    match search.strategy:
        case "first true":
            return f"reads only the {side.value} row: its true rows are found once"
        case "position":
            return "compares positions: solved by arithmetic"
        case "monotone":
            return f"bounds the {side.value} row by what rises with it: bisection, if the rows do rise"
        case "first of":
            return f"alternatives, each solved by itself: {', '.join(part.strategy for part in search.parts)}"
        case _:
            others = [
                other.value for other in Side if other is not side and other.value in sides_of(predicate)
            ]
            return f"compares the {side.value} row with the {' and '.join(others)} row: tried row by row"
