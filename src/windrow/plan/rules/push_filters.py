"""Filters on one side of a join run before the join."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from windrow.plan.columns import Column, Expression, Scope
from windrow.plan.nodes import Filter, Join, Node, Project

__all__ = ["push_filters"]


def push_filters(node: Node) -> Node | None:
    """Move conditions of a filter below the inner join under it.

    Rows that do not pass are then not retained for later partners::

        WHERE b.price > 1 AND b.v < s.v        WHERE b.v < s.v
        └─ JOIN ON b.k = s.k             →     └─ JOIN ON b.k = s.k
           ├─ stream b                            ├─ WHERE b.price > 1
           └─ stream s                            │  └─ stream b
                                                  └─ stream s

    Spark does the same. In an outer join, conditions apply to its output, with NULLs for missing partners.
    """
    if not isinstance(node, Filter):
        return None
    if isinstance(node.input, Project):
        return _below(node, node.input)
    if not isinstance(node.input, Join) or node.input.kind != "inner":
        return None
    join = node.input
    sides = [[one for one in node.conditions if _reads_only(one, side)] for side in join.inputs]
    moved = [one for side in sides for one in side]
    if not moved:
        return None
    left, right = (
        _filtered(side, node, conditions) for side, conditions in zip(join.inputs, sides, strict=True)
    )
    below = replace(join, left=left, right=right)
    rest = tuple(one for one in node.conditions if one not in moved)
    return replace(node, input=below, conditions=rest, label=_label(node, rest)) if rest else below


def _below(node: Filter, project: Project) -> Node | None:
    """The projection over a join, with the filter moved below it; None if the filter reads a computed
    column.
    """
    passed = _passed(project.outputs)
    read = [one.reads for one in node.conditions]
    if not isinstance(project.input, Join) or not all(one and passed.issuperset(one) for one in read):
        return None
    below = _filtered(project.input, node, node.conditions)
    return replace(project, input=below)


def _passed(outputs: Iterable[tuple[Column, Expression]]) -> set[str]:
    """The columns that are passed on under their own ids.

    >>> from pyspark.sql.types import LongType
    >>> from windrow.syntax.sqltext import SqlText
    >>> same, other = (Column(one, "k", LongType()) for one in ("b1_0", "b2_0"))
    >>> of = Expression(SqlText(), LongType(), "b1_0")
    >>> _passed([(same, of), (other, of)])
    {'b1_0'}
    """
    return {column.id for column, one in outputs if one.column == column.id}


def _reads_only(condition: Expression, side: Node) -> bool:
    """Whether a condition reads one side alone."""
    return bool(condition.reads) and {column.id for column in side.columns}.issuperset(condition.reads or ())


def _filtered(side: Node, node: Filter, conditions: Sequence[Expression]) -> Node:
    if not conditions:
        return side
    known = {column.id for column in side.columns}
    parts = tuple(part for part in node.scope.parts if known.issuperset(part.columns))
    scope = Scope(parts, node.scope.prefix)
    return Filter(side, scope, tuple(conditions), node.clause, _label(node, conditions))


def _label(node: Filter, conditions: Sequence[Expression]) -> str:
    return f"{node.clause} {' AND '.join(' '.join(one.text.render().split()) for one in conditions)}"
