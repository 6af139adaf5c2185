"""Top-N: if only the first row numbers are requested, retain only the first rows of each partition."""

from __future__ import annotations

import re
from dataclasses import replace

from windrow.plan.columns import Expression, Scope, named
from windrow.plan.nodes import Filter, Node, Over, Project, Sort
from windrow.syntax.expression_nodes import Literal, Name, OperationNode
from windrow.syntax.expressions import parse_expression
from windrow.syntax.tokens import tokenize

__all__ = ["first_rows"]

_ROW_NUMBER = re.compile(r"\s*row_number\s*\(\s*\)\s*over\b", re.IGNORECASE)
_UP_TO = {"<=": 0, "<": -1, "=": 0}
"""The offset from a bound to the greatest number that passes it."""
_TURNED = {">=": "<=", ">": "<", "=": "="}


def first_rows(node: Node) -> Node | None:
    """Number no more rows of a partition than a condition on ROW_NUMBER lets through.

    The state of a partition is then that many rows::

        WHERE rn <= 3                        WHERE rn <= 3
        └─ OVER (PARTITION BY k       →      └─ OVER (PARTITION BY k ORDER BY v): row_number()
             ORDER BY v): row_number()          └─ the first 3 OVER (PARTITION BY k ORDER BY v)
           └─ stream s                             └─ stream s

    Among rows of a partition that are equal in that order, any may come first, as always.
    """
    if not isinstance(node, Filter):
        return None
    for condition in node.conditions:
        bound = _bound(condition, node.scope)
        if bound is None:
            continue
        column, limit = bound
        below = _numbering(node.input, column)
        if below is not None and limit >= 1:
            label = f"the first {limit} {below.label}"
            first = Sort(below.input, below.order, 0, limit, label, below.at, below.partition)
            return replace(node, input=_over(node.input, first))
    return None


def _bound(condition: Expression, scope: Scope) -> tuple[str, int] | None:
    """The column that a condition bounds from above by a number, and the number.

    >>> from pyspark.sql.types import BooleanType
    >>> from windrow.plan.columns import Part
    >>> from windrow.syntax.sqltext import SqlText
    >>> scope = Scope((Part("t", ("rn",), ("b7",)),))
    >>> [_bound(Expression(SqlText.of(text), BooleanType()), scope)
    ...     for text in ("t.rn < 4", "3 >= rn", "__w.b7 = 1", "rn >= 3", "rn + 1 < 4")]
    [('b7', 3), ('b7', 3), ('b7', 1), None, None]
    """
    tokens = tokenize(condition.text.render())
    found = parse_expression(tokens, 0, len(tokens))
    if not isinstance(found, OperationNode) or len(found.operands) != 2:
        return None
    name, number = found.operands
    operator: str | None = found.operator
    if isinstance(number, Name):
        name, number, operator = number, name, _TURNED.get(found.operator)
    if operator not in _UP_TO or not isinstance(name, Name) or not isinstance(number, Literal):
        return None
    digits = tokens.text(*number.range)
    if not digits.isdecimal():
        return None
    column = named(name, scope)
    return None if column is None else (column, int(digits) + _UP_TO[operator])


def _numbering(node: Node, column: str) -> Over | None:
    """The ROW_NUMBER node of a column, if it computes nothing else."""
    while isinstance(node, Project):
        source = next((one.column for made, one in node.outputs if made.id == column), None)
        if source is None:
            return None
        node, column = node.input, source
    if not isinstance(node, Over) or isinstance(node.input, Sort) or len(node.calls) != 1:
        return None
    ((made, _, _),) = node.calls
    ((before, _),) = node.halves
    return node if made.id == column and _ROW_NUMBER.match(before.render()) else None


def _over(node: Node, rows: Sort) -> Node:
    """The numbering, and the nodes above it, over other rows."""
    assert isinstance(node, Project | Over)
    return replace(node, input=rows if isinstance(node, Over) else _over(node.input, rows))
