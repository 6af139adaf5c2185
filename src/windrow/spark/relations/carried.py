"""Which plans have columns that operators cannot carry or compare, by their types."""

from __future__ import annotations

from typing import assert_never

from windrow.plan import nodes as plan
from windrow.plan.arrow_types import can_travel, is_carried
from windrow.plan.columns import Column
from windrow.plan.reasons import Reason
from windrow.spark.gateway import Gateway
from windrow.spark.relations.aggregates_of_plan import kernel_aggregates
from windrow.spark.relations.groups_of_plan import frames_of_a_block
from windrow.syntax.nodes import Range

__all__ = ["why_not_carried"]

Columns = tuple[Column, ...]

_CARRIED = (
    "a join, group or set operator with columns of type {}",
    "cast them in a subquery in FROM to numbers",
)
_COMPARED = (
    "INTERSECT, EXCEPT or LIMIT by columns of type {}",
    "cast them in a subquery in FROM: COLLATE UTF8_BINARY",
)


def why_not_carried(gateway: Gateway, node: plan.Node) -> Reason | None:
    """The first operator of a plan with a column of an unsupported type; None if there is none.

    Intervals of months and days pass through operators that process each row alone, and through joins with
    tables. Collated strings pass wherever Spark compares them; operators that compare rows themselves compare
    bytes.
    """
    for one in plan.walk(node):
        at: Range | None = getattr(one, "at", None)
        for column in _carried(gateway, one):
            if not can_travel(column.type):
                what, hint = _CARRIED
                return Reason(what.format(column.type.simpleString().upper()), at, hint)
        for column in _compared(one):
            if not is_carried(column.type):
                what, hint = _COMPARED
                return Reason(what.format(column.type.simpleString().upper()), at, hint)
    return None


def _carried(gateway: Gateway, node: plan.Node) -> Columns:
    """The columns of rows that are sent to an operator."""
    match node:
        case plan.Join(kind="inner") if _is_table(node.left) or _is_table(node.right):
            return ()
        case plan.Join(kind="left" | "semi" | "anti") if _is_table(node.right) and not _is_table(node.left):
            return ()
        case plan.Join(kind="semi" | "anti") | plan.Mark() if not node.keys and not node.conditions:
            return node.left.columns  # for the others, it only matters whether there are any
        case plan.Join() | plan.Mark() | plan.Value():
            return (*node.left.columns, *node.right.columns)
        case plan.SetOperation() if node.operator != "union" or not node.all:
            return (*node.left.columns, *node.right.columns)
        case plan.Aggregate():
            return _grouped(gateway, node)
        case plan.Over():
            return frames_of_a_block(node)[-1].input.columns
        case plan.Pieces() | plan.ClauseRelation() | plan.SessionWindows() | plan.Distinct() | plan.Sort():
            return tuple(column for one in node.inputs for column in one.columns)
        case plan.Scan() | plan.Input() | plan.StreamWindow() | plan.TimeWindows():
            return ()
        case plan.Filter() | plan.Project() | plan.OneRow() | plan.SetOperation():
            return ()  # computed by Spark, row by row
    assert_never(node)


def _compared(node: plan.Node) -> Columns:
    """The columns that an operator compares itself."""
    match node:
        case plan.SetOperation() if node.operator != "union":
            return node.columns
        case plan.Sort():
            keys = {*node.partition, *(key.column for key in node.keys)}
            return tuple(column for column in node.columns if column.id in keys)
    return ()


def _grouped(gateway: Gateway, node: plan.Aggregate) -> Columns:
    """The columns by which Spark groups rows; none if the kernel does."""
    if not isinstance(kernel_aggregates(gateway, node), Reason):
        return ()
    sources = {source for _, source in node.keys}
    return (*node.input.input.columns, *(one for one in node.input.columns if one.id in sources))


def _is_table(node: plan.Node) -> bool:
    """Whether rows exist from the beginning on, and stay."""
    match node:
        case plan.Scan():
            return not node.is_stream
        case plan.Input():
            return not node.is_temporal
        case plan.Project() | plan.Filter():
            return _is_table(node.input)
        case plan.Join(kind="inner"):
            return _is_table(node.left) and _is_table(node.right)
    return False
