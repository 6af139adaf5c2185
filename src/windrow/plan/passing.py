"""Which queries process each row alone, and which stream columns their columns copy.

Each output row of such a query comes from one row of one stream, possibly with rows of static tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from windrow.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Input,
    Join,
    Mark,
    Node,
    Over,
    Project,
    Scan,
    SessionWindows,
    SetOperation,
    Sort,
    StreamWindow,
    TimeWindows,
    Value,
    walk,
)

__all__ = ["Leaf", "ids_of", "lowest_stateful", "origins", "reads_stream"]

Leaf: TypeAlias = Scan | StreamWindow | Input
Origins: TypeAlias = tuple[tuple[Leaf, str], ...]


def reads_stream(node: Node) -> bool:
    """Whether the node reads a stream."""
    return any(
        isinstance(one, StreamWindow)
        or (isinstance(one, Scan) and one.is_stream)
        or (isinstance(one, Input) and one.is_temporal)
        for one in walk(node)
    )


def lowest_stateful(node: Node) -> Node | None:
    """The lowest node of which a row depends on several arriving rows; None if there is none."""
    if not reads_stream(node):
        return None
    match node:
        case Scan() | StreamWindow() | Input():
            return None
        case Filter() | Project() | TimeWindows():
            (below,) = node.inputs
            return lowest_stateful(below)
        case Join() | Mark() | Value() | SetOperation():
            found = lowest_stateful(node.left) or lowest_stateful(node.right)
            return found or (None if _passes(node) else node)
    return next((found for one in node.inputs if (found := lowest_stateful(one)) is not None), node)


def _passes(node: Join | Mark | Value | SetOperation) -> bool:
    """Whether each output row of the node depends on one arriving row only."""
    left, right = reads_stream(node.left), reads_stream(node.right)
    match node:
        case SetOperation():  # the rows of a table would arrive in every micro-batch
            return node.operator == "union" and node.all and left and right
        case Join(kind="inner"):
            return left != right
        case Join(kind="right"):
            return right and not left
        case Join(kind="full"):
            return False
    return left and not right


def origins(node: Node, column: str, path: str = "") -> Origins:
    """The stream columns that a column copies: one for each relation that UNION combines.

    Empty if it is computed or unknown. With a path, the column's field at that path; fields are named
    ``a.b``.
    """
    match node:
        case Scan():
            return _of_leaf(node, column, node.sources, path)
        case StreamWindow():
            return _of_leaf(node, column, node.input.sources, path)
        case Input():
            return _of_leaf(node, column, [one.name for one in node.columns], path)
        case Project():
            one = next(one for made, one in node.outputs if made.id == column)
            if one.column is not None:
                return origins(node.input, one.column, path)
            return origins(node.input, one.field[0], _path(one.field[1], path)) if one.field else ()
        case Aggregate():
            source = next((source for key, source in node.keys if key.id == column), None)
            return () if source is None else origins(node.input, source, path)
        case SetOperation():
            at = [one.id for one in node.columns].index(column)
            left = origins(node.left, node.left.columns[at].id, path)
            if node.operator != "union":
                return left
            right = origins(node.right, node.right.columns[at].id, path)
            return (*left, *right) if left and right else ()
        case (
            Filter()
            | Join()
            | Mark()
            | Value()
            | Over()
            | SessionWindows()
            | TimeWindows()
            | Distinct()
            | Sort()
        ):
            below = [one for one in node.inputs if any(own.id == column for own in one.columns)]
            return origins(below[0], column, path) if below else ()
    return ()


def ids_of(node: Node, column: str) -> frozenset[str]:
    """The ids of a column in the nodes from one that has it back to the node that makes it."""
    found = {column}
    while not isinstance(node, SetOperation):
        if isinstance(node, Project):
            source = next((one.column for made, one in node.outputs if made.id == column), None)
            if source is None:
                break
            column, node = source, node.input
        else:
            below = [one for one in node.inputs if any(own.id == column for own in one.columns)]
            if not below:
                break
            node = below[0]
        found.add(column)
    return frozenset(found)


def _of_leaf(leaf: Leaf, column: str, names: Sequence[str], path: str) -> Origins:
    name = next(name for own, name in zip(leaf.columns, names, strict=True) if own.id == column)
    return ((leaf, _path(name, path)),)


def _path(first: str, then: str) -> str:
    return f"{first}.{then}" if then else first
