"""Rule: type every predicate, so that the kernel can evaluate it over columns that Spark computes.

A predicate that the kernel cannot evaluate is not typed; the reason is stored for EXPLAIN.
"""

from __future__ import annotations

from dataclasses import replace

from windrow.algebra.physical import Analyzer, DraftColumns, PlanDraft, Predicate
from windrow.algebra.window_node import WindowBoundary, WindowFragment
from windrow.kernels import window_plan
from windrow.rules.hoister import NotTypedError, Ranks, RowVariable
from windrow.rules.known_types import known_types
from windrow.rules.pair_conditions import PairConditions
from windrow.syntax.nodes import Role, Variable
from windrow.syntax.sqltext import SqlText

__all__ = ["hoist_predicates"]


def hoist_predicates(draft: PlanDraft, analyzer: Analyzer) -> PlanDraft:
    """Type the predicates of LABEL, START and END."""
    columns = DraftColumns(draft)
    ranks = Ranks()
    predicates = []
    for boundary in draft.window.boundaries():
        if boundary.when is not None:
            predicates.append(_predicate(draft, boundary, boundary.when, analyzer, columns, ranks))
    return replace(
        draft,
        predicates=tuple(predicates),
        hoisted=tuple(columns.hoisted.values()),
        constants=tuple(columns.constants.items()),
    )


def _predicate(
    draft: PlanDraft,
    boundary: WindowBoundary,
    when: WindowFragment,
    analyzer: Analyzer,
    columns: DraftColumns,
    ranks: Ranks,
) -> Predicate:
    scope = {
        variable.name.lower(): _row_variable(variable, boundary)
        for variable in draft.window.visible(boundary.side)
    }
    if when.column is not None:
        name = analyzer.column_scope(when.column, boundary)
        if name is None:
            return Predicate(boundary, None, "a Column over several rows cannot be taken apart")
        variable = scope[name.lower()]
        column = columns.add(SqlText(), name, when.column)
        return Predicate(boundary, window_plan.ColumnRef(column, variable.side, variable.shift))

    def types_of(texts: list[SqlText]) -> list[str]:
        known = known_types(when, scope, analyzer.fields, intervals=analyzer.has_intervals)
        return analyzer.types(texts, boundary.side) if known is None else known

    hoister = PairConditions(scope, when, types_of, analyzer.fields, columns, ranks, ansi=analyzer.ansi)
    try:
        return Predicate(boundary, hoister.typed(boundary.side.name))
    except NotTypedError as reason:
        return Predicate(boundary, None, str(reason))


def _row_variable(variable: Variable, boundary: WindowBoundary) -> RowVariable:
    shift = variable.role.shift
    return RowVariable(
        variable.name,
        variable.side.value,
        shift,
        is_position=variable.role is Role.POSITION,
        is_there=shift == 0 and variable.side is boundary.side,
    )
