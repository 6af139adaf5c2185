"""The query that SESSION is rewritten to, as one node."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.types import LongType

from windrow.algebra.rewriting.time_windows_as_sql import TICKS, sessions_of_alias
from windrow.plan.columns import ROWS, Column
from windrow.plan.nodes import Node, SessionWindows
from windrow.plan.reader.query_rows import renamed
from windrow.plan.reader.read_over import AT
from windrow.plan.reader.statement_text import StatementText
from windrow.syntax.expressions.window_calls import window_calls
from windrow.syntax.queries import Select, Shape, parse_query
from windrow.syntax.sqltext import RelationText, SqlText, quoted

__all__ = ["session_lengths", "sessions"]


def session_lengths(select: Select) -> tuple[int, int | None] | None:
    """The gap and the longest duration of a SESSION, read from its rewritten SELECT."""
    return sessions_of_alias(select.source[0].alias) if len(select.source) == 1 else None


def sessions(
    statement: StatementText, select: Select, lengths: tuple[int, int | None], query: Callable[[Shape], Node]
) -> Node:
    """The rows with their sessions; the SQL numbers sessions by counting gaps."""
    tokens, reader = statement.tokens, statement.reader
    gap, longest = lengths
    numbered = _inside(statement, select)
    while not (calls := window_calls(tokens, numbered.items, None)):
        numbered = _inside(statement, numbered)
    (call,) = calls
    timed = _inside(statement, numbered).source[0].source
    rows = query(parse_query(tokens, *timed))
    columns = {column.name.lower(): column.id for column in rows.columns}
    keys = [tokens[start].name for start, _ in call.partition]
    read = [(name, columns[name.lower()]) for name in (*keys, TICKS)]
    listed = ", ".join(f"{column} AS {quoted(name)}" for name, column in read)
    outer, inner = select.items[0][0], select.source[0].source
    names = [tokens[stop - 1].name for _, stop in select.items[1:]]
    text = SqlText.of(
        f"SELECT {', '.join(map(quoted, names))}, {AT} FROM (SELECT ",
        reader.text(outer, select.items[-1][1]),
        " FROM ",
        reader.text(inner[0], timed[0]),
        f"(SELECT {listed}, {AT} FROM ",
        RelationText(ROWS),
        ") ",
        reader.text(timed[1], inner[1]),
        ")",
    )
    found = statement.analyser.schema(text, (*rows.columns, Column(AT, AT, LongType())))
    bounds = tuple(
        Column(made, name, one.dataType)
        for made, name, one in zip(statement.fresh(len(names)), names, found, strict=False)
    )
    by = tuple(columns[key.lower()] for key in keys)
    label = f"SESSION by {', '.join(keys)}" if keys else "SESSION"
    node = SessionWindows(rows, by, columns[TICKS], gap, longest, text, bounds, label)
    visible = [column for column in node.columns if column.name != TICKS]
    return renamed(statement, node, [one.name for one in visible], "columns", [one.id for one in visible])


def _inside(statement: StatementText, select: Select) -> Select:
    """The SELECT in the FROM of a SELECT."""
    found = parse_query(statement.tokens, *select.source[0].source)
    assert isinstance(found, Select)
    return found
