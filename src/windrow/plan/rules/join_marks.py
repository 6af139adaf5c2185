"""EXISTS and IN in expressions become outer joins with the distinct keys."""

from __future__ import annotations

from windrow.plan.columns import ROWS, Column, Expression, Scope
from windrow.plan.nodes import Distinct, Join, Mark, Node, Project
from windrow.syntax.sqltext import SqlText

__all__ = ["join_marks"]


def join_marks(node: Node) -> Node | None:
    """Mark the rows that have a partner by an outer join, for hosts without mark joins.

    Each key is there once, so the join does not multiply rows::

        k IN (SELECT k FROM s)        compute k IN (SELECT k FROM s)
        ├─ stream b              →    └─ LEFT JOIN k IN (SELECT k FROM s)
        └─ stream s                      ├─ stream b
                                         └─ DISTINCT k
                                            └─ stream s

    Not if there is a condition other than the keys, or NULL counts as equal, as in NOT IN.
    """
    if not isinstance(node, Mark) or not node.keys or node.conditions or node.unknown:
        return None
    known = {column.id: column for column in node.right.columns}
    made = [
        (Column(f"key_{node.column.id}_{at}", known[other].name, known[other].type), known[other])
        for at, (_, other) in enumerate(node.keys)
    ]
    outputs = tuple(
        (column, Expression(SqlText.of(f"{ROWS}.{source.id}"), source.type, source.id))
        for column, source in made
    )
    listed = SqlText.join(", ", [one.text for _, one in outputs])
    names = ", ".join(column.name for column, _ in outputs)
    keys = Distinct(Project(node.right, Scope(), outputs, listed, "columns"), f"DISTINCT {names}")
    pairs = tuple((mine, column.id) for (mine, _), (column, _) in zip(node.keys, made, strict=True))
    joined = Join(node.left, keys, "left", pairs, (), Scope(), f"LEFT JOIN {node.label}", node.at)
    there = SqlText.of(f"{ROWS}.{made[0][0].id} IS NOT NULL")
    mark = (node.column, Expression(there, node.column.type))
    same = tuple(
        (column, Expression(SqlText.of(f"{ROWS}.{column.id}"), column.type, column.id))
        for column in node.left.columns
    )
    listed = SqlText.join(", ", [*(one.text for _, one in same), SqlText.of(there, f" AS {node.column.id}")])
    return Project(joined, Scope(), (*same, mark), listed, node.label)
