"""Rule: choose how each boundary is found.

The strategies, the first that applies (:class:`windrow.kernels.plan.Search` says what each does):

    no WHEN                                   always
    UNBOUNDED                                 unbounded
    reads only the searched row               first true
    positions compared, or e = l              position
    compares what rises along the rows        monotone
    typed for the kernel                      scan
    anything else                             given, by a join plan in Spark
"""

from __future__ import annotations

from dataclasses import replace

from windrow.algebra.nodes import Boundary
from windrow.algebra.physical import Analyzer, Draft, Found, Predicate
from windrow.kernels.monotone import conjuncts, direction
from windrow.kernels.plan import Number, Operation, PairExpression, PositionRef, SameRow, Search, reads
from windrow.syntax.nodes import Side

__all__ = ["choose_strategies"]

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def choose_strategies(draft: Draft, analyzer: Analyzer) -> Draft:  # noqa: ARG001 - every rule takes it
    """Fill in `found` for the boundaries that are searched for, and `labels`."""
    window = draft.window
    found = []
    if window.label is not None:
        found.append(_found(window.start, draft.predicate(Side.START)))
    if window.end is not None:
        found.append(_found(window.end, draft.predicate(Side.END)))
    chooser = draft.predicate(Side.LABEL if window.label is not None else Side.START)
    return replace(draft, found=tuple(found), labels=chooser.typed if chooser else None)


def _found(boundary: Boundary, predicate: Predicate | None) -> Found:
    side = boundary.side
    if boundary.unbounded:
        return Found(side, Search("unbounded"), "UNBOUNDED: the edge of the partition")
    if predicate is None:
        return Found(side, Search("always"), "no WHEN: the first row searched")
    if predicate.typed is None:
        column = f"__{side.value}_position"
        return Found(
            side,
            Search("given", column=column),
            f"{predicate.why_not}; Spark tries pairs of rows",
            boundary.when,
        )
    found = _typed(side, predicate.typed)
    span = boundary.when.span if boundary.when is not None else None
    place = (span.start, span.stop) if span is not None else None
    return replace(found, search=replace(found.search, place=place))


def _typed(side: Side, predicate: PairExpression) -> Found:
    others = [other for other in Side if other is not side and reads(predicate, other.value)]
    if not others:
        return Found(
            side,
            Search("first true", predicate),
            f"reads only the {side.value} row: its true rows are found once",
        )
    solved = _position(side, predicate)
    if solved is not None:
        return Found(side, solved, "compares positions: solved by arithmetic")
    if all(direction(part, side.value) is not None for part in conjuncts(predicate)):
        reason = f"bounds the {side.value} row by what rises with it: bisection, if the rows do rise"
        return Found(side, Search("monotone", predicate), reason)
    read = " and ".join(other.value for other in others)
    return Found(
        side,
        Search("scan", predicate),
        f"compares the {side.value} row with the {read} row: tried row by row",
    )


def _position(side: Side, predicate: PairExpression) -> Search | None:
    """`position(side) − position(base) ⋚ offset`, if the predicate is of that form."""
    if isinstance(predicate, SameRow):
        ends = {predicate.left, predicate.right}
        of_target = (side.value, 0) in ends
        if of_target and len(ends) == 2 and all(shift == 0 for _, shift in ends) and not predicate.null_safe:
            base = next(name for name, _ in ends if name != side.value)
            return Search("position", predicate, base, "=", 0)
        return None
    if not isinstance(predicate, Operation) or predicate.operator not in _MIRRORED:
        return None
    left, right = (_linear(operand) for operand in predicate.operands)
    if left is None or right is None:
        return None
    weights = {name: left[0].get(name, 0) - right[0].get(name, 0) for name in left[0] | right[0]}
    weights = {name: weight for name, weight in weights.items() if weight}
    base_names = [name for name in weights if name != side.value]
    if (
        len(base_names) != 1
        or abs(weights.get(side.value, 0)) != 1
        or weights[side.value] != -weights[base_names[0]]
    ):
        return None
    offset = (right[1] - left[1]) * weights[side.value]
    operator = predicate.operator if weights[side.value] == 1 else _MIRRORED[predicate.operator]
    return Search("position", predicate, base_names[0], operator, offset)


def _linear(expression: PairExpression) -> tuple[dict[str, int], int] | None:
    """A sum of positions and integers: weights of the sides' positions, and the constant."""
    match expression:
        case Number(value=value):
            return {}, value
        case PositionRef(side=side):
            return {side: 1}, 0
        case Operation(operator="NEG", operands=(operand,)):
            part = _linear(operand)
            return None if part is None else ({side: -weight for side, weight in part[0].items()}, -part[1])
        case Operation(operator="+" | "-" as operator, operands=operands):
            left, right = (_linear(operand) for operand in operands)
            if left is None or right is None:
                return None
            sign = 1 if operator == "+" else -1
            sides = left[0] | right[0]
            return {side: left[0].get(side, 0) + sign * right[0].get(side, 0) for side in sides}, left[
                1
            ] + sign * right[1]
        case _:
            return None
