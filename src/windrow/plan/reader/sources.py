"""FROM and WHERE of a SELECT: streams, tables, subqueries and named queries, and their joins."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql.types import StructType

from windrow.algebra.continuous import Input as QueryInput
from windrow.algebra.continuous import NamedRelation, StreamQuery, WindowedStream
from windrow.algebra.match_node import Match
from windrow.plan.columns import ROWS, Column, Part
from windrow.plan.nodes import ClauseRelation, Input, Node, Scan, StreamWindow
from windrow.plan.reader.query_rows import BlockRows, name_around, names_of, renamed
from windrow.plan.reader.read_joins import equality, joined, paired, using
from windrow.plan.reader.read_pivots import turned
from windrow.plan.reader.reader_state import PlannedClause, PlannedView, ReaderState
from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.plan.reader.subqueries_as_joins import (
    decided,
    has_subquery,
    lateral,
    reads_around,
    subqueries_in_on,
)
from windrow.plan.reasons import Reason
from windrow.syntax.expression_nodes import Name
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import Cte, Range
from windrow.syntax.queries import FromItem, Select, conjuncts, is_query, parse_query
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText, quoted

__all__ = ["from_where", "input_of", "path_of_clause", "relation_of"]


def from_where(
    reading: ReaderState, select: Select, around: BlockRows | None = None
) -> tuple[BlockRows, list[Range]]:
    """The rows of FROM, and the conditions of WHERE that are not applied yet.

    In a correlated subquery, each of its rows is joined with those `around`.
    """
    statement = reading.statement
    where = [] if select.where is None else conjuncts(statement.tokens, *select.where)
    deferred = [part for part in where if has_subquery(statement, part)]
    where = [part for part in where if part not in deferred]
    rows: BlockRows | None = None
    is_beside = around is not None and bool(select.source) and reads_around(reading, select.source[0])
    if around is not None and is_beside:
        if any(item.join in ("right", "full") for item in select.source):
            raise UnreadError("RIGHT or FULL JOIN with a correlated subquery", select.source[0].source)
        rows = around
    # of rows that an outer join makes WHERE is checked against them after it
    is_padded = any(item.join in ("right", "full") for item in select.source)
    for item in select.source:
        if rows is not None and (item.lateral or item is select.source[0]):
            rows, further = lateral(reading, rows, item)
            where += further
            continue
        one = relation_of(reading, item)
        if rows is None:
            rows = one
        elif item.using != ():
            rows = using(statement, rows, one, item)
            _name_own(statement, select, rows)
        else:
            rows, one = subqueries_in_on(reading, select, rows, one, item)
            rows, where = joined(statement, rows, one, item, where, is_padded=is_padded)
    if rows is None:
        rows = BlockRows(_one_row(statement, select.items[0]), ())
    aliases = [part.alias.lower() for part in rows.relations]
    for number, alias in enumerate(aliases):
        if alias in aliases[:number]:
            raise UnreadError("two relations of the same name", select.source[number].source)
    _spell_stars(statement, select, rows)
    if around is not None and is_beside:
        _name_around(statement, select, rows)
    elif around is not None:
        rows, where = _beside(statement, select, around, rows, where)
    for part in deferred:
        rows, rest = decided(reading, select, rows, part)
        where += [] if rest is None else [rest]
    # as written: a condition may guard the next one against rows for which it fails
    return rows, sorted(where)


def _name_around(statement: StatementText, select: Select, rows: BlockRows) -> None:
    clauses = [select.where, select.group_by, select.having, select.window, select.qualify]
    stretches = [without_alias(statement.tokens, item) for item in select.items]
    name_around(statement, [*stretches, *(clause for clause in clauses if clause is not None)], rows)


def _beside(
    statement: StatementText, select: Select, around: BlockRows, rows: BlockRows, where: list[Range]
) -> tuple[BlockRows, list[Range]]:
    """The rows of a subquery joined with those of the outer query, by the equalities of WHERE."""
    _name_around(statement, select, replace(rows, around=around.around))
    keys, rest = [], []
    outer = around.by_ids()
    for part in where:
        pair = equality(statement, outer, rows, part)
        if pair is None:
            rest.append(part)
            continue
        outer, rows, key = pair
        keys.append(key)
    place = select.source[0].source if select.source else select.items[0]
    both = paired(statement, outer, rows, keys, "inner", "JOIN of a subquery", place)
    return replace(both, around=around.around), rest


def relation_of(reading: ReaderState, item: FromItem) -> BlockRows:
    """The rows of a relation in FROM."""
    node = _node_of(reading, item)
    names = names_of(item, node.columns)
    if not isinstance(node, Scan | StreamWindow | Input) or any(
        name != column.name for name, column in zip(names, node.columns, strict=True)
    ):
        node = renamed(reading.statement, node, names, "columns")
    alias = item.alias or f"__t{reading.statement.numbers[0]}"
    return BlockRows(node, (Part(alias, tuple(names), tuple(column.id for column in node.columns)),))


def _node_of(reading: ReaderState, item: FromItem) -> Node:
    statement = reading.statement
    if item.turned is not None and statement.is_temporal(item.source):
        inner, clause = item.turned
        return turned(statement, relation_of(reading, inner), clause)
    known = statement.reader.inputs.get(item.source)
    if known is not None:
        return input_of(reading, known, item.source)
    start, stop = item.source
    tokens = statement.tokens
    cte = statement.cte(start) if stop - start == 1 and tokens[start].is_name else None
    if cte is not None and statement.is_temporal(cte.body):
        return _named_query(reading, cte, item.source)
    if tokens.is_symbol(start, "(") and statement.is_temporal(item.source):
        return reading.bracket(item.source)
    if statement.is_temporal(item.source):
        raise UnreadError("a function of a stream", item.source)
    return _table(statement, item.source)


def _named_query(reading: ReaderState, cte: Cte, source: Range) -> Node:
    tokens = reading.statement.tokens
    if cte.recursive:
        raise UnreadError("WITH RECURSIVE", source)
    if cte.body not in reading.named:
        reading.named[cte.body] = reading.bracket(cte.body)
    node, at = reading.named[cte.body], cte.item[0] + 1
    if not tokens.is_symbol(at, "("):
        return node
    names = tuple(tokens[first].name for first, _ in tokens.split(at + 1, tokens.partner[at]))
    names = names_of(FromItem(source, None, names), node.columns)
    return renamed(reading.statement, node, names, "columns")


def input_of(reading: ReaderState, item: QueryInput, source: Range) -> Node:
    """A relation, a stream with or without a window, or a view."""
    known = reading.known.fields_of(item)
    if known is not None:
        fields, is_temporal = known
        ids = reading.statement.fresh(len(fields))
        columns = tuple(Column(own, one.name, one.dataType) for own, one in zip(ids, fields, strict=True))
        return Input(item.key, columns, is_temporal, reading.statement.written(source), source)
    if isinstance(item, NamedRelation):
        view = reading.known.view(item.name.lower())
        if view is not None:
            return _view(reading, item.name, item.key, view, source)
    if not isinstance(item, WindowedStream):
        raise UnreadError("a time-varying relation", source)
    own = f"{reading.path}{item.key}"  # by which a stream is known that a query makes
    kinds, label = reading.known.stream(own), reading.statement.written(source)
    what = "a time-varying relation"
    if kinds is None and isinstance(item.source, str):
        own = label = item.source.lower()
        view = reading.known.view(own)
        if view is not None and not isinstance(view, PlannedClause) and item.is_bare:
            return _view(reading, item.source, "", view, source)
        what = "a view over recorded streams" if view is None else "a window of a view"
        kinds = reading.known.stream(own) if view is None else None
    if kinds is None:
        raise UnreadError(what, source)
    scan = replace(_scan(reading.statement, own, kinds, None, source), label=label)
    if item.is_bare and not reading.of_windows:
        return scan
    partition = []
    for key in item.window.partition_by:
        parsed = parse_expression(reading.statement.tokens, *key)
        path = parsed.parts[-1].lower() if isinstance(parsed, Name) else None
        partition.append(next((one.id for one in scan.columns if one.name.lower() == path), None))
    label = reading.statement.written(source)
    name = f"{reading.path}{item.key}"
    return StreamWindow(scan, name, item.window, tuple(partition), label, source)


def _scan(statement: StatementText, name: str, kinds: StructType, table: SqlText | None, at: Range) -> Scan:
    ids = statement.fresh(len(kinds))
    columns = tuple(Column(made, one.name, one.dataType) for made, one in zip(ids, kinds, strict=True))
    label = name if table is None else statement.written(at)
    return Scan(name, columns, tuple(kinds.names), table, label, at)


def _view(
    reading: ReaderState, name: str, key: str, view: PlannedView | PlannedClause, source: Range
) -> Node:
    """The rows of a view, with or without windows, read from its own text."""
    if isinstance(view, PlannedClause):
        return _clause(reading, key, view, source)
    query, reader = view.query, view.reader
    inside = reading.inside(reader, f"{reading.path}.{name.lower()}{key}")
    node: Node | Reason
    if isinstance(query, StreamQuery):
        start, stop = query.query.tokens
        body = reader.after_with(start, stop)
        node = inside.statement.attempt(lambda: inside.query(parse_query(reader.tokens, body, stop)))
    else:
        node = inside.relation(query)
    if isinstance(node, Reason):
        raise UnreadError(f"view {name}, with {node}", source)
    return renamed(reading.statement, node, list(view.names), "columns")


def _clause(reading: ReaderState, key: str, clause: PlannedClause, source: Range) -> Node:
    """The result of WINDOW BY or MATCH_RECOGNIZE over the rows of a query, read from its own text."""
    rows = reading.inside(clause.reader, f"{reading.path}.{path_of_clause(key)}").relation(clause.query)
    if isinstance(rows, Reason):
        raise UnreadError(f"what a clause reads, with {rows}", source)
    kinds = clause.returned(rows.columns)
    ids = reading.statement.fresh(len(kinds))
    columns = tuple(Column(own, one.name, one.dataType) for own, one in zip(ids, kinds, strict=True))
    words = "MATCH_RECOGNIZE" if isinstance(clause.clause, Match) else "WINDOW BY"
    return ClauseRelation(rows, clause.clause, columns, words, source)


def path_of_clause(key: str) -> str:
    """The path of the input of a clause in messages: its hidden name differs between sessions."""
    return f"clause{key}"


def _table(statement: StatementText, source: Range) -> Node:
    """A static table: it is complete when the query starts."""
    text = SqlText.of(statement.prefix(source[0]), "SELECT * FROM ", statement.reader.text(*source))
    kinds = statement.analyser.schema(text)
    return _scan(statement, f"__table{statement.numbers[0]}_{source[0]}", kinds, text, source)


def _one_row(statement: StatementText, at: Range) -> Scan:
    """The one row of a SELECT without FROM."""
    text = SqlText.of("SELECT 1 AS one")
    scan = _scan(statement, f"__row{statement.numbers[0]}", statement.analyser.schema(text), text, at)
    return replace(scan, label="of one row")


def _spell_stars(statement: StatementText, select: Select, rows: BlockRows) -> None:
    """Expand stars inside expressions to the relations of FROM alone: ``struct(*)``."""
    tokens = statement.tokens
    clauses = [select.where, select.group_by, select.having, select.window, select.qualify]
    star = ", ".join(f"{quoted(part.alias)}.*" for part in rows.parts)
    # Spark takes no star of a relation in COUNT
    named = ", ".join(f"{quoted(part.alias)}.{quoted(name)}" for part in rows.parts for name in part.names)
    for start, stop in [*select.items, *(clause for clause in clauses if clause is not None)]:
        at = start + tokens.is_symbol(start, "*")
        while at < stop:
            if tokens.is_symbol(at, "(") and is_query(tokens, at):
                at = tokens.partner[at]
            elif statement.is_inner_star(at) and (len(rows.parts) == 1 or tokens.word(at + 1) != "EXCEPT"):
                statement.instead[at, at + 1] = named if statement.is_counted(at) else star
            at += 1


def _name_own(statement: StatementText, select: Select, rows: BlockRows) -> None:
    """Substitute the columns of USING that are named with their relations.

    Raises
    ------
    UnreadError
        For a star of one of the relations.
    """
    tokens = statement.tokens
    aliases = {part.alias.lower() for part in rows.own}
    clauses = [select.where, select.group_by, select.having, select.window, select.qualify]
    clauses += [item.on for item in select.source]
    for start, stop in [*select.items, *(clause for clause in clauses if clause is not None)]:
        at = start
        while at < stop - 2:
            if tokens.is_symbol(at, "(") and is_query(tokens, at):  # names there may be its own relations'
                at = tokens.partner[at]
            is_path = (
                tokens[at].is_name and tokens.is_symbol(at + 1, ".") and not tokens.is_symbol(at - 1, ".")
            )
            if is_path and tokens[at].name.lower() in aliases:
                if tokens.is_symbol(at + 2, "*") and (at, at + 3) in select.items:
                    at += 3
                    continue
                if tokens.is_symbol(at + 2, "*"):
                    what = "t.* of a relation that is joined with USING"
                    raise UnreadError(what, (at, at + 3), "name the columns")
                path = Name((tokens[at].name, tokens[at + 2].name), (at, at + 3))
                known, column = BlockRows(rows.node, rows.parts).resolved(path), rows.resolved(path)
                if known is None and column is not None:
                    statement.instead[path.range] = f"{ROWS}.{column}"
                    statement.columns_at[path.range] = column
            at += 1
