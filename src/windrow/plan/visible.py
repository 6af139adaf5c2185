"""Columns that a query leaves out, added back to its output."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from windrow.plan.columns import ROWS, Column, Expression, Scope
from windrow.plan.nodes import (
    Filter,
    Input,
    Join,
    Mark,
    Node,
    Over,
    Pieces,
    Project,
    SessionWindows,
    Sort,
    TimeWindows,
    Value,
)
from windrow.syntax.sqltext import SqlText

__all__ = ["VisibleColumns", "chosen", "over_rows", "passing", "with_columns"]


class VisibleColumns:
    """Adds columns of inputs to nodes.

    Parameters
    ----------
    hidden
        The additional columns of inputs that a query does not name: by the key of the input, in order.
    """

    def __init__(self, hidden: Mapping[str, Sequence[Column]]) -> None:
        self._hidden = hidden

    def showing(self, node: Node, wanted: Iterable[str]) -> Node:
        """The node with columns, named by id, that it or its inputs have."""
        have = {column.id for column in node.columns}
        missing = [one for one in dict.fromkeys(wanted) if one not in have]
        if not missing:
            return node
        match node:
            case Input():
                hidden = self._hidden.get(node.key, ())
                own = [column for column in node.columns if column not in hidden]
                also = {*missing, *(column.id for column in node.columns)}
                return replace(node, columns=(*own, *(column for column in hidden if column.id in also)))
            case Filter() | Over() | SessionWindows() | Sort():
                return replace(node, input=self.showing(node.input, missing))
            case Project():
                return passing(node, self.showing(node.input, missing), missing)
            case Join():
                left = [one for one in missing if self.has(node.left, one)]
                right = [one for one in missing if one not in left]
                if right:
                    assert node.kind not in ("semi", "anti"), right
                    node = replace(node, right=self.showing(node.right, right))
                return replace(node, left=self.showing(node.left, left))
            case Mark() | Value():
                return replace(node, left=self.showing(node.left, missing))
            case TimeWindows():
                return self._windows(node, missing)
            case Pieces():
                assert node.input is not None, missing
                return _further(node, self.showing(node.input, missing), missing)
        raise AssertionError(f"a {type(node).__name__} does not show {', '.join(missing)}")

    def _windows(self, node: TimeWindows, missing: Sequence[str]) -> Node:
        """Time windows with additional columns of their rows; columns that they already have stay under their
        ids.
        """
        own = {one.id: made for one, made in zip(node.rows.columns, node.columns, strict=False)}
        others = [one for one in missing if one not in own]
        made = over_rows(node, self.showing(node.rows, others), others)
        again = [(Column(one, own[one].name, own[one].type), own[one]) for one in missing if one in own]
        if not again:
            return made
        known = [(one, Expression(_text(visible.id), visible.type, visible.id)) for one, visible in again]
        outputs = (*_passed(made.columns), *known)
        return Project(made, Scope(), outputs, _listed(outputs), "columns")

    def has(self, node: Node, column: str) -> bool:
        """Whether a node can show a column."""
        if any(own.id == column for own in node.columns):
            return True
        match node:
            case Input():
                return any(own.id == column for own in self._hidden.get(node.key, ()))
            case Filter() | Over() | SessionWindows() | Sort() | Project():
                return self.has(node.input, column)
            case Join():
                is_left = self.has(node.left, column)
                return is_left or (node.kind not in ("semi", "anti") and self.has(node.right, column))
            case Mark() | Value():
                return self.has(node.left, column)
            case TimeWindows():
                return self.has(node.rows, column)
            case Pieces():
                may_show = not node.is_grouped or column in node.keys
                return may_show and node.input is not None and self.has(node.input, column)
        return False


def chosen(node: Node, ids: Sequence[str], names: Sequence[str] | None = None) -> Node:
    """These columns of a node in this order, possibly renamed; the node itself if it already has them so."""
    known = {column.id: column for column in node.columns}
    columns = [known[one] for one in ids]
    if names is not None:
        columns = [column.named(name) for column, name in zip(columns, names, strict=True)]
    if tuple(columns) == node.columns:
        return node
    outputs = tuple((column, Expression(_text(column.id), column.type, column.id)) for column in columns)
    return Project(node, Scope(), outputs, _listed(outputs), "columns")


def with_columns(
    node: Node, scope: Scope, further: Sequence[tuple[Column, Expression]], label: str
) -> Project:
    """The node with additional columns, computed from its own."""
    outputs = (*_passed(node.columns), *further)
    return Project(node, scope, outputs, _listed(outputs), label)


def passing(node: Project, inner: Node, ids: Collection[str]) -> Project:
    """A projection over another input, which passes on columns of that too."""
    also = _passed(column for column in inner.columns if column.id in ids)
    count = len(node.input.columns)
    if node.outputs[:count] == _passed(node.input.columns):  # it only adds columns, and so it does then
        outputs = (*_passed(inner.columns), *node.outputs[count:])
        if {column.id for column, _ in outputs} == {column.id for column, _ in (*node.outputs, *also)}:
            return replace(node, input=inner, outputs=outputs, listed=_listed(outputs))
    listed = SqlText.of(node.listed, *(f", {_text(column.id).render()}" for column, _ in also))
    return replace(node, input=inner, outputs=(*node.outputs, *also), listed=listed)


def over_rows(node: TimeWindows, rows: Node, visible: Sequence[str] = ()) -> TimeWindows:
    """The time windows over other rows that have the same columns, showing these too."""
    before = [column.id for column in node.rows.columns]
    rows = chosen(rows, [*before, *visible])
    spelled = _spelled(node.spelled, node.rows, rows, visible)
    own = [column.id for column in node.spelled.columns]
    order = [*own[: len(before)], *visible, *own[len(before) :]]
    return replace(node, rows=rows, spelled=chosen(spelled, order))


def _spelled(node: Node, old: Node, rows: Node, visible: Sequence[str]) -> Node:
    """The nodes that spell a time window over one input, over another."""
    if node is old:
        return rows
    if isinstance(node, Project):
        return passing(node, _spelled(node.input, old, rows, visible), visible)
    assert isinstance(node, Filter | Over | SessionWindows), node
    return replace(node, input=_spelled(node.input, old, rows, visible))


def _further(node: Pieces, inner: Node, ids: Sequence[str]) -> Pieces:
    """A SELECT that only Spark understands, with additional columns of its rows or keys."""
    known = {column.id: column for column in inner.columns}
    value = "any_value({})" if node.is_grouped else "{}"
    listed = [f", {value.format(_text(one).render())}" for one in ids]
    return replace(
        node,
        input=inner,
        halves=(SqlText.of(node.halves[0], *listed), node.halves[1]),
        columns=(*node.columns, *(known[one] for one in ids)),
        passes=(*node.passes, *((one, one) for one in ids)),
    )


def _passed(columns: Iterable[Column]) -> tuple[tuple[Column, Expression], ...]:
    return tuple((column, Expression(_text(column.id), column.type, column.id)) for column in columns)


def _text(column: str) -> SqlText:
    return SqlText.of(f"{ROWS}.{column}")


def _listed(outputs: Iterable[tuple[Column, Expression]]) -> SqlText:
    """A SELECT list of expressions, each with its id as alias."""
    return SqlText.join(
        ", ",
        [
            one.text if one.column else SqlText.of("(", one.text, f") AS {column.id}")
            for column, one in outputs
        ],
    )
