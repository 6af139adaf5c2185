"""FROM and WHERE of a block: streams, tables, queries in brackets and named ones, and how they are joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql.types import StructType

from windrow.algebra.continuous import Continuous, Reader, StreamQuery, WindowedStream
from windrow.plan.columns import Column, Part
from windrow.plan.nodes import Node, Scan, StreamWindow
from windrow.plan.reader.joins import USING, joined, using
from windrow.plan.reader.rows import Rows, renamed
from windrow.plan.reader.statement import NotPlannedError, Statement
from windrow.plan.reader.subqueries import has_subquery, with_subquery
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.nodes import Cte, Range
from windrow.syntax.queries import FromItem, Select, Shape, UnknownShapeError, conjuncts, parse_query
from windrow.syntax.sqltext import SqlText

__all__ = ["Known", "Reading", "View", "from_where"]


class View(Protocol):
    """A view of a continuous query: its text, the query in it, and the names of its columns."""

    @property
    def reader(self) -> Reader:
        """The statement that made it."""

    @property
    def query(self) -> Continuous:
        """What it gives."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of its columns."""


class Known(Protocol):
    """What names stand for."""

    def stream(self, name: str) -> StructType | None:
        """The columns of a stream whose rows come; None for a view of one."""

    def view(self, name: str) -> View | None:
        """The view of this name, if it is one of a stream."""


@dataclass
class Reading:
    """A query that is read: its statement, what names stand for, and the nodes of named queries."""

    statement: Statement
    known: Known
    query: Callable[[Shape], Node]
    inside: Callable[[Reader], Reading]
    named: dict[Range, Node] = field(default_factory=dict)


def from_where(reading: Reading, select: Select) -> tuple[Rows, list[Range]]:
    """The rows of FROM, and the conditions of WHERE that are still to be held against each."""
    statement = reading.statement
    where = [] if select.where is None else conjuncts(statement.tokens, *select.where)
    asked = [part for part in where if has_subquery(statement, part)]
    where = [part for part in where if part not in asked]
    rows: Rows | None = None
    # of rows that an outer join makes WHERE is held against them after it
    is_padded = any(item.join in ("right", "full") for item in select.source)
    for item in select.source:
        one = _relation_of(reading, item)
        if rows is None:
            rows = one
        elif item.using != ():
            rows = using(statement, rows, one, item)
        else:
            rows, where = joined(statement, rows, one, item, where, is_padded=is_padded)
    assert rows is not None
    aliases = [part.alias.lower() for part in rows.parts]
    for number, alias in enumerate(aliases):
        if alias in aliases[:number]:
            raise NotPlannedError("relations of one name", select.source[number].source)
    if any(item.using != () for item in select.source):
        _refuse_own_of_using(statement, select, rows)
    for part in asked:
        rows = with_subquery(statement, rows, part, reading.query, lambda shape: from_where(reading, shape))
    return rows, where


def _relation_of(reading: Reading, item: FromItem) -> Rows:
    node = _node_of(reading, item)
    names = item.columns or tuple(column.name for column in node.columns)
    if len(names) != len(node.columns):
        raise NotPlannedError("other names for the columns than there are columns", item.source)
    if not isinstance(node, Scan | StreamWindow) or any(
        shown != column.name for shown, column in zip(names, node.columns, strict=True)
    ):
        node = renamed(reading.statement, node, names, "columns")
    alias = item.alias or f"__t{reading.statement.numbers[0]}"
    return Rows(node, (Part(alias, tuple(names), tuple(column.id for column in node.columns)),))


def _node_of(reading: Reading, item: FromItem) -> Node:
    statement = reading.statement
    known = statement.reader.inputs.get(item.source)
    if known is not None:
        return _input(reading, known, item.source)
    start, stop = item.source
    tokens = statement.tokens
    cte = statement.cte(start) if stop - start == 1 and tokens[start].is_name else None
    if cte is not None and statement.varies(cte.body):
        return _named_query(reading, cte, item.source)
    if tokens.is_symbol(start, "(") and statement.varies(item.source):
        return reading.query(parse_query(tokens, start, stop))
    if statement.varies(item.source):
        raise NotPlannedError("a function of a stream", item.source)
    return _table(statement, item.source)


def _named_query(reading: Reading, cte: Cte, source: Range) -> Node:
    tokens = reading.statement.tokens
    if cte.recursive:
        raise NotPlannedError("WITH RECURSIVE", source)
    if cte.body not in reading.named:
        reading.named[cte.body] = reading.query(parse_query(tokens, *cte.body))
    node, at = reading.named[cte.body], cte.item[0] + 1
    if not tokens.is_symbol(at, "("):
        return node
    names = [tokens[first].name for first, _ in tokens.split(at + 1, tokens.partner[at])]
    if len(names) != len(node.columns):
        raise NotPlannedError("other names for the columns than there are columns", source)
    return renamed(reading.statement, node, names, "columns")


def _input(reading: Reading, item: object, source: Range) -> Node:
    """A stream, with or without a window, or a view of one."""
    if not isinstance(item, WindowedStream) or not isinstance(item.source, str):
        raise NotPlannedError("a relation that varies", source)
    name = item.source.lower()
    view = reading.known.view(name)
    is_bare = item.window.tokens[0] == item.window.tokens[1]
    if view is not None and isinstance(view.query, StreamQuery):
        if not is_bare:
            raise NotPlannedError("a window of a view", source)
        return _view(reading, item.source, view, view.query, source)
    kinds = reading.known.stream(name)
    if kinds is None:
        raise NotPlannedError("a view of something recorded", source)
    scan = _scan(reading.statement, name, kinds, None, source)
    if is_bare:
        return scan
    partition = []
    for key in item.window.partition_by:
        parsed = parse_expression(reading.statement.tokens, *key)
        path = parsed.parts[-1].lower() if isinstance(parsed, Name) else None
        partition.append(next((one.id for one in scan.columns if one.name.lower() == path), None))
    label = reading.statement.written(source)
    return StreamWindow(scan, item.key, item.window, tuple(partition), label, source)


def _scan(statement: Statement, name: str, kinds: StructType, table: SqlText | None, at: Range) -> Scan:
    ids = statement.fresh(len(kinds))
    columns = tuple(Column(made, one.name, one.dataType) for made, one in zip(ids, kinds, strict=True))
    label = name if table is None else statement.written(at)
    return Scan(name, columns, tuple(kinds.names), table, label, at)


def _view(reading: Reading, name: str, view: View, query: StreamQuery, source: Range) -> Node:
    """The rows of a view of streams without windows, read from its own text."""
    (start, stop), reader = query.query.tokens, view.reader
    inside = reading.inside(reader)
    try:
        node = inside.query(parse_query(reader.tokens, reader.after_with(start, stop), stop))
    except (NotPlannedError, UnknownShapeError) as found:
        raise NotPlannedError(f"view {name}, with {found}", source) from None
    columns = [column.named(shown) for column, shown in zip(node.columns, view.names, strict=True)]
    return renamed(reading.statement, node, [column.name for column in columns], "columns")


def _table(statement: Statement, source: Range) -> Node:
    """A table beside the streams: all of it is there when the query starts."""
    text = SqlText.of(statement.prefix(source[0]), "SELECT * FROM ", statement.reader.text(*source))
    kinds = statement.analyser.schema(text)
    return _scan(statement, f"__table{statement.numbers[0]}_{source[0]}", kinds, text, source)


def _refuse_own_of_using(statement: Statement, select: Select, rows: Rows) -> None:
    """Refuse columns of USING with the name of a relation before them, and all columns of a relation."""
    merged = {name.lower() for part in rows.parts if part.alias.startswith(USING) for name in part.names}
    aliases = {item.alias.lower() for item in select.source if item.alias is not None}
    clauses = (select.where, select.group_by, select.having, select.window, select.qualify)
    tokens = statement.tokens
    for start, stop in [*select.items, *(clause for clause in clauses if clause is not None)]:
        for at in range(start, stop - 2):
            is_of_one = tokens[at].is_name and tokens[at].name.lower() in aliases
            if not is_of_one or not tokens.is_symbol(at + 1, "."):
                continue
            column = tokens[at + 2]
            if column.is_symbol("*") or (column.is_name and column.name.lower() in merged):
                what = f"{statement.written((at, at + 3))} beside USING"
                raise NotPlannedError(what, (at, at + 3), "leave out the relation's name; or write ON")
