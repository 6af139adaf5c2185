"""The columns that Spark needs to evaluate conditions over pairs of rows: variables and their fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from windrow.algebra.physical import Analyzer, DraftColumns, PlanDraft, Predicate, find_field
from windrow.algebra.window_node import WindowFragment
from windrow.kernels.window_plan import Elsewhere
from windrow.rules.share_keys import share_keys
from windrow.syntax.expression_nodes import Call, Expression, Name, Opaque, OperationNode
from windrow.syntax.nodes import Role, Variable

__all__ = ["carry_fields", "elsewhere"]

_OF_ROWS = {"IS NULL", "=", "<>", "<=>"}


def elsewhere(draft: PlanDraft) -> Elsewhere:
    """The neighbouring rows of sides, and whether positions are read, for conditions that Spark evaluates."""
    read = [
        variable
        for predicate in draft.predicates
        if predicate.typed is None
        for variable, _ in _reads(draft, predicate)
    ]
    shifts = {(variable.side.value, variable.role.shift) for variable in read if variable.role.shift}
    return Elsewhere(frozenset(shifts), any(variable.role is Role.POSITION for variable in read))


def carry_fields(draft: PlanDraft, analyzer: Analyzer) -> tuple[PlanDraft, tuple[tuple[str, str], ...]]:
    """The draft with a column for each field that Spark reads, to which retained rows are reduced.

    If the kernel cannot evaluate a condition, Spark also evaluates those of the boundaries before it.

    Returns
    -------
    draft
        With the columns.
    fields
        The fields in the order of the rows', each with its column.
    """
    last = max(at for at, predicate in enumerate(draft.predicates) if predicate.typed is None)
    names: set[str] = set()
    for predicate in draft.predicates[: last + 1]:
        for variable, field in _reads(draft, predicate):
            if variable.role is not Role.POSITION:
                names |= set(analyzer.fields) if field is None else {field}
    found = {find_field(analyzer.fields, name) for name in names}
    columns = DraftColumns(draft)
    fields = tuple((field, columns.field(field)) for field in analyzer.fields if field in found)
    wider = replace(draft, hoisted=tuple(columns.hoisted.values()))
    return share_keys(wider, analyzer), fields


def _reads(draft: PlanDraft, predicate: Predicate) -> Iterator[tuple[Variable, str | None]]:
    """The variables that a condition reads, each with the field: None for all, "" if none is needed."""
    visible = {one.name.lower(): one for one in draft.window.visible(predicate.boundary.side)}
    for name, field in _paths(predicate.boundary.when, list(visible)):
        if name.lower() in visible:
            yield visible[name.lower()], field


def _paths(when: WindowFragment | None, visible: list[str]) -> Iterator[tuple[str, str | None]]:
    if when is None:
        return
    if when.expression is None:  # a Column: its inputs are unknown
        yield from ((name, None) for name in visible)
    else:
        yield from _names(when.expression)


def _names(expression: Expression) -> Iterator[tuple[str, str | None]]:
    match expression:
        case OperationNode(operator=operator, operands=operands) if operator in _OF_ROWS and all(
            isinstance(operand, Name) and len(operand.parts) == 1 for operand in operands
        ):
            yield from ((operand.parts[0], "") for operand in operands if isinstance(operand, Name))
        case OperationNode(operands=parts) | Call(arguments=parts):
            for part in parts:
                yield from _names(part)
        case Name():
            yield _path(expression)
        case Opaque(names=names):
            yield from map(_path, names)
        case _:
            return


def _path(name: Name) -> tuple[str, str | None]:
    return name.parts[0], name.parts[1] if len(name.parts) > 1 else None
