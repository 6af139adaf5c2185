"""A scalar subquery becomes a join of all rows with its one row."""

from __future__ import annotations

from windrow.plan.columns import Scope
from windrow.plan.nodes import Join, Node, Value
from windrow.plan.rules.join_all_pairs import with_one

__all__ = ["join_values"]


def join_values(node: Node) -> Node | None:
    """Join rows with the row of a scalar subquery, for hosts that join by keys.

    If the subquery may return no row, its value is NULL::

        (SELECT AVG(v) FROM s)        JOIN (SELECT AVG(v) FROM s)
        ├─ stream b              →    ├─ stream b, 1
        └─ GROUP BY (): avg(v)        └─ GROUP BY (): avg(v), 1
    """
    if not isinstance(node, Value):
        return None
    left, mine = with_one(node.left)
    right, theirs = with_one(node.right)
    return Join(
        left,
        right,
        "inner" if node.is_there else "left",
        ((mine, theirs),),
        (),
        Scope(),
        f"JOIN {node.label}",
        node.at,
    )
