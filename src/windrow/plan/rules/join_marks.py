"""IN where NULL is not FALSE becomes several marks, each of which is TRUE or FALSE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from pyspark.sql.types import BooleanType, IntegerType

from windrow.plan.columns import ROWS, Column, Expression, Scope
from windrow.plan.nodes import Filter, Join, Mark, Node, Project
from windrow.plan.rules.join_all_pairs import with_one
from windrow.syntax.sqltext import SqlText

__all__ = ["join_marks", "split_marks"]

_MOST_VALUES = 3
"""The most values of `(a, b, c) IN` that are looked up by keys alone: each triples the lookups."""


def join_marks(node: Node) -> Node | None:
    """Mark the rows whose IN is unknown apart from those where it is TRUE.

    A value is unknown where either side is NULL. So the rows are looked up three times: by value, among the
    partners that are NULL, and, where they are NULL themselves, among all::

        k IN (SELECT k FROM s)        compute k IN (SELECT k FROM s)
        ├─ stream b              →    └─ k IN (SELECT k FROM s), is NULL: 1 = 1
        └─ stream s                      ├─ k IN (SELECT k FROM s), finds NULL: 1 = 1
                                         │  ├─ k IN (SELECT k FROM s): k = k
                                         │  │  ├─ stream b, 1 if k is NULL
                                         │  │  └─ stream s
                                         │  └─ k IS NULL
                                         │     └─ stream s
                                         └─ stream s

    Of several values, each may be equal or unknown in these ways. A column that ``IS NOT NULL`` needs fewer.
    """
    if not isinstance(node, Mark) or not node.unknown:
        return None
    if len(node.unknown) > _MOST_VALUES:
        return split_marks(node)
    known = tuple(key for key in node.keys if key not in node.unknown)
    right, one = with_one(node.right)
    made: list[tuple[Column, Expression]] = []
    lookups: list[tuple[Node, _Keys]] = []
    for equal, of_left, of_right in _lookups(node.unknown):
        if any(_is_never_null(node.left, mine) for mine, _ in of_left):
            continue
        if any(_is_never_null(node.right, theirs) for _, theirs in of_right):
            continue
        if len(equal) == len(node.unknown):
            lookups.append((node.right, node.keys))
            continue
        lacks = " AND ".join(f"{ROWS}.{mine} IS NULL" for mine, _ in of_left)
        value = SqlText.of(f"CASE WHEN {lacks} THEN 1 END" if lacks else "1")
        key = Column(f"{node.column.id}_key{len(made)}", "1", IntegerType())
        made.append((key, Expression(value, key.type, reads=frozenset(mine for mine, _ in of_left))))
        rows = _with_nulls(right, [theirs for _, theirs in of_right]) if of_right else right
        lookups.append((rows, (*known, *equal, (key.id, one))))
    return _marked(node, made, [(rows, keys, node.conditions) for rows, keys in lookups])


def split_marks(node: Node) -> Node | None:
    """Mark the rows of an IN of more values in three lookups, whatever their number.

    All values are equal; the partner lacks one; the row lacks one, and is compared with all partners. The
    other values of the last two are compared by a condition, so only rows with NULL are tried in pairs::

        (a, b, c, d) IN (SELECT …)     compute (a, b, c, d) IN (SELECT …)
        ├─ stream b                 →  └─ (a, b, c, d) IN (SELECT …), is NULL: 1 = 1 AND (a IS NULL OR …)
        └─ stream s                       ├─ (a, b, c, d) IN (SELECT …), finds NULL: (a IS NULL OR …)
                                          │  ├─ (a, b, c, d) IN (SELECT …): a = a, b = b, c = c, d = d
                                          │  │  ├─ stream b, 1 if a, b, c or d is NULL
                                          │  │  └─ stream s
                                          │  └─ a, b, c or d IS NULL
                                          │     └─ stream s
                                          └─ stream s, 1
    """
    if not isinstance(node, Mark) or len(node.unknown) <= _MOST_VALUES:
        return None
    of_left = [mine for mine, _ in node.unknown if not _is_never_null(node.left, mine)]
    of_right = [theirs for _, theirs in node.unknown if not _is_never_null(node.right, theirs)]
    compared = [key for key in node.unknown if key[0] in of_left or key[1] in of_right]
    known = tuple(key for key in node.keys if key not in compared)
    conditions = (*node.conditions, *(_may_be_equal(*key) for key in compared))
    one = Column(f"{node.column.id}_one", "1", IntegerType())
    right = _computed(node.right, [(one, Expression(SqlText.of("1"), one.type, reads=frozenset()))], "1")
    made: list[tuple[Column, Expression]] = []
    lookups: list[_Lookup] = [(node.right, node.keys, node.conditions)]
    if of_right:
        lookups.append((_with_some_null(node.right, of_right), known, conditions))
    if of_left:
        lacks = " OR ".join(f"{ROWS}.{mine} IS NULL" for mine in of_left)
        key = Column(f"{node.column.id}_key", "1", IntegerType())
        value = SqlText.of(f"CASE WHEN {lacks} THEN 1 END")
        made.append((key, Expression(value, key.type, reads=frozenset(of_left))))
        lookups.append((right, (*known, (key.id, one.id)), conditions))
    return _marked(node, made, lookups)


def _marked(node: Mark, made: list[tuple[Column, Expression]], lookups: Sequence[_Lookup]) -> Node:
    """The rows, marked by whether they have a partner in the first lookup, or NULL if only in another."""
    below: Node = _computed(node.left, made, "NULL")
    marks = [replace(node.column, id=f"{node.column.id}_{at}") for at in range(len(lookups))]
    for at, ((rows, keys, conditions), mark) in enumerate(zip(lookups, marks, strict=True)):
        below = replace(
            node, left=below, right=rows, keys=keys, conditions=conditions, column=mark, unknown=(),
            label=f"{node.label}: NULL" if at else node.label,
        )  # fmt: skip
    first, *others = [f"{ROWS}.{mark.id}" for mark in marks]
    outcome = SqlText.of(
        f"CASE WHEN {first} THEN true WHEN {' OR '.join([*others, 'false'])} THEN NULL ELSE false END"
    )
    result = Expression(outcome, node.column.type)
    return _computed(below, [(node.column, result)], node.label, node.left)


_Keys = tuple[tuple[str, str], ...]
_Lookup = tuple[Node, _Keys, tuple[Expression, ...]]
"""The partners, and the keys and conditions by which a row finds them."""


def _lookups(unknown: _Keys) -> Iterator[tuple[_Keys, _Keys, _Keys]]:
    """The keys that are equal, those that are NULL, and those whose partner is; all equal first."""
    for ways in product(range(3), repeat=len(unknown)):
        each = [*zip(unknown, ways, strict=True)]
        equal, of_left, of_right = (tuple(key for key, own in each if own == way) for way in range(3))
        yield equal, of_left, of_right


def _is_never_null(node: Node, column: str) -> bool:
    """Whether a filter has removed the rows in which a column is NULL."""
    match node:
        case Filter():
            own = any(one.is_null == (column, False) for one in node.conditions)
            return own or _is_never_null(node.input, column)
        case Project():
            source = next((one.column for made, one in node.outputs if made.id == column), None)
            return source is not None and _is_never_null(node.input, source)
        case Join(kind="semi" | "anti") | Mark():
            return _is_never_null(node.left, column)
    return False


def _may_be_equal(mine: str, theirs: str) -> Expression:
    """The condition that two values are equal, or one of them is NULL."""
    left, right = f"{ROWS}.{mine}", f"{ROWS}.{theirs}"
    text = SqlText.of(f"{left} IS NULL OR {right} IS NULL OR {left} = {right}")
    return Expression(text, BooleanType(), reads=frozenset([mine, theirs]))


def _with_some_null(node: Node, columns: list[str]) -> Filter:
    """The rows in which some of the columns is NULL."""
    text = SqlText.of(" OR ".join(f"{ROWS}.{column} IS NULL" for column in columns))
    condition = Expression(text, BooleanType(), reads=frozenset(columns))
    names = [next(one.name for one in node.columns if one.id == column) for column in columns]
    label = " OR ".join(f"{name} IS NULL" for name in names)
    return Filter(node, Scope(), (condition,), "WHERE", label)


def _with_nulls(node: Node, columns: list[str]) -> Filter:
    """The rows whose columns are NULL."""
    conditions = tuple(
        Expression(SqlText.of(f"{ROWS}.{column} IS NULL"), BooleanType(), is_null=(column, True))
        for column in columns
    )
    names = [next(one.name for one in node.columns if one.id == column) for column in columns]
    return Filter(node, Scope(), conditions, "WHERE", " AND ".join(f"{name} IS NULL" for name in names))


def _computed(
    node: Node, made: list[tuple[Column, Expression]], label: str, as_in: Node | None = None
) -> Project:
    """The rows, with the columns of the node or another, and with further ones."""
    same = [
        (column, Expression(SqlText.of(f"{ROWS}.{column.id}"), column.type, column.id))
        for column in (as_in or node).columns
    ]
    listed = [one.text for _, one in same]
    listed += [SqlText.of(one.text, f" AS {column.id}") for column, one in made]
    return Project(node, Scope(), (*same, *made), SqlText.join(", ", listed), label)
