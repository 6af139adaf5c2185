"""A column that is several keys of a join is one of them, and copies of it are the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windrow.plan.columns import ROWS, Column, Expression, Scope
from windrow.plan.nodes import Join, Mark, Node, Project
from windrow.syntax.sqltext import SqlText

__all__ = ["keys_once"]


def keys_once(node: Node) -> Node | None:
    """Copy a column that is several keys of a join, as operators over whole streams find keys by name.

    One pair of them is there once::

        JOIN: a.k = b.k, a.k = b.v        compute JOIN
        ├─ stream a                    →  └─ JOIN: a.k = b.k, k = b.v
        └─ stream b                          ├─ compute k
                                             │  └─ stream a
                                             └─ stream b
    """
    if not isinstance(node, Join | Mark) or not node.keys:
        return None
    mine, theirs = ([key[side] for key in node.keys] for side in range(2))
    if len({*mine}) == len(mine) and len({*theirs}) == len(theirs):
        return None
    keys = [*dict.fromkeys(node.keys)]
    left, mine = _copied(node.left, [one for one, _ in keys])
    right, theirs = _copied(node.right, [one for _, one in keys])
    pairs = tuple(zip(mine, theirs, strict=True))
    return _passed(replace(node, left=left, right=right, keys=pairs), node.columns, node.label)


def _copied(node: Node, keys: Sequence[str]) -> tuple[Node, list[str]]:
    """The rows with a copy of each key that was there before, and the columns that are the keys then."""
    known, found, copies = {column.id: column for column in node.columns}, list[str](), list[Column]()
    for at, key in enumerate(keys):
        copy = replace(known[key], id=f"{key}_again{at}") if key in found else known[key]
        copies += [copy] if key in found else []
        found.append(copy.id)
    if not copies:
        return node, found
    sources = dict(zip(found, keys, strict=True))
    label = ", ".join(column.name for column in copies)
    return _passed(node, [*node.columns, *copies], label, sources), found


def _passed(
    node: Node, columns: Sequence[Column], label: str, sources: dict[str, str] | None = None
) -> Project:
    """These columns of the rows, of which some are copies."""
    of = {column.id: (sources or {}).get(column.id, column.id) for column in columns}
    outputs = tuple(
        (column, Expression(SqlText.of(f"{ROWS}.{of[column.id]}"), column.type, of[column.id]))
        for column in columns
    )
    listed = [SqlText.of(one.text, f" AS {column.id}") for column, one in outputs]
    return Project(node, Scope(), outputs, SqlText.join(", ", listed), label)
