"""A join without an equality becomes a join on a constant column."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql.types import IntegerType

from windrow.plan.columns import ROWS, Column, Expression, Scope
from windrow.plan.nodes import Join, Mark, Node, Project
from windrow.syntax.sqltext import SqlText

__all__ = ["join_all_pairs", "with_one"]


def join_all_pairs(node: Node) -> Node | None:
    """Add a constant to the sides of a join without an equality, as its key.

    It is for operators that join only by keys::

    JOIN ON b.v < s.v        WHERE b.v < s.v
    ├─ stream b         →    └─ JOIN of all pairs
    └─ stream s                 ├─ stream b, 1
                                └─ stream s, 1
    """
    if not isinstance(node, Join | Mark) or node.keys:
        return None
    left, mine = with_one(node.left)
    right, theirs = with_one(node.right)
    label = node.label
    if isinstance(node, Join) and not node.is_of_subquery:
        label = f"{'' if node.kind == 'inner' else f'{node.kind.upper()} '}JOIN of all pairs"
    return replace(node, left=left, right=right, keys=((mine, theirs),), label=label)


def with_one(node: Node) -> tuple[Node, str]:
    """The rows with a column that is 1 in each, and its id."""
    one = Column(f"one_{node.columns[0].id}_{len(node.columns)}", "1", IntegerType())  # of this node alone
    same = tuple(
        (column, Expression(SqlText.of(f"{ROWS}.{column.id}"), column.type, column.id))
        for column in node.columns
    )
    value = Expression(SqlText.of("1"), one.type, reads=frozenset())
    listed = SqlText.of(f"{ROWS}.*, 1 AS {one.id}")
    return Project(node, Scope(), (*same, (one, value)), listed, "all pairs"), one.id
