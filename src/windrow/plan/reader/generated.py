"""Functions in FROM that return rows for each row: LATERAL VIEW, and LATERAL before a call."""

from __future__ import annotations

from dataclasses import replace

from windrow.plan.columns import ROWS, Column, Expression, Part
from windrow.plan.nodes import Project
from windrow.plan.reader.query_rows import BlockRows, names_of, passed
from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.syntax.queries import FromItem
from windrow.syntax.sqltext import SqlText

__all__ = ["generated"]

_OUTER = {"explode", "posexplode", "inline", "variant_explode"}
"""Functions whose OUTER form returns a row of NULLs where they return no row."""
_KNOWN = {*_OUTER, *(f"{name}_outer" for name in _OUTER), "stack", "json_tuple"}


def generated(statement: StatementText, rows: BlockRows, item: FromItem) -> BlockRows:
    """Each row, joined with the rows that a function returns for it.

    A projection makes none, one or several rows of each input row::

        FROM s LATERAL VIEW explode(tags) t AS tag   →   columns of s, explode(tags) AS tag
                                                         └─ s

    Raises
    ------
    UnreadError
        For functions that are not known to process each row alone.
    """
    tokens, (start, stop) = statement.tokens, item.source
    name = tokens[start].name.lower()
    is_outer = item.join == "left"
    if name not in _KNOWN or (is_outer and name not in _OUTER) or (is_outer and item.on is not None):
        raise UnreadError(f"LATERAL {name}", item.source)
    called = statement.text(item.source)
    if is_outer:
        called = SqlText.of(f"{name}_outer", statement.text((start + 1, stop)))
    scope = rows.scope(statement.prefix(start))
    fields = statement.analyser.schema(scope.select(called), rows.node.columns).fields
    ids = statement.fresh(len(fields))
    made = [Column(own, one.name, one.dataType) for own, one in zip(ids, fields, strict=True)]
    names = names_of(item, made)
    made = [column.named(name) for column, name in zip(made, names, strict=True)]
    own = [f"{ROWS}.{column.id}" for column in rows.node.columns]
    whole = SqlText.of(", ".join(own), ", ", called, f" AS ({', '.join(ids)})")
    outputs = (*passed(rows.node.columns), *((column, Expression(whole, column.type)) for column in made))
    label = f"LATERAL {statement.written(item.source)}"
    node = Project(rows.node, scope, outputs, whole, label, is_whole=True)
    alias = item.alias or f"__t{statement.numbers[0]}"
    return replace(rows, node=node, parts=(*rows.parts, Part(alias, names, tuple(ids))))
