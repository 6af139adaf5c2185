"""Permanent views of queries with clauses of ours: ``CREATE VIEW v AS SELECT … WINDOW BY …``.

Spark's catalog has the view with its columns; the query is in the view's properties. What Spark itself reads
of the view is an error that says who can read it. A statement of ours has the query where the name stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame

from windrow.algebra.names import piece_of, verbatim
from windrow.errors import AnalysisError
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.views import stored_view
from windrow.statements.composed import RunQuery, located
from windrow.statements.definitions.stored_text import (
    RelationName,
    ddl,
    is_temporary,
    literal,
    names_of_relations,
    qualified,
    refuse_unstored,
    whole_name,
)
from windrow.syntax.cql_clauses import alias_after
from windrow.syntax.definitions.create_words import create_words
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.streams.table_functions import is_table_argument, refuse_table_in_brackets
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["altered_as_created", "create_stored_view", "shown_as_created", "with_stored_views"]

_QUERY = "windrow.query"
"""The property with the number of the parts of the query, and before a dot and their numbers those."""
_PART = 3_000
"""Characters of a part: metastores take 4,000 for the value of a property."""
_MARK = "is a view of Windrow"
_MAY = re.compile(r"\b(?:from|join|table)\b", re.IGNORECASE)
_STATEMENTS = ("SELECT", "WITH", "FROM", "TABLE", "EXPLAIN", "INSERT", "CREATE", "CACHE", "")
_MOST = 100
"""So many views stand inside of each other at most, as in Spark."""


@contextmanager
def with_stored_views(gateway: Gateway, catalog: Catalog | None, text: str) -> Iterator[str]:
    """The statement with the queries of permanent views of ours where their names stand.

    ``TABLE v`` of a named query and of what the session has is ``SELECT * FROM v``.

    Raises
    ------
    AnalysisError
        ``VIEW_EXCEED_MAX_NESTED_DEPTH``.
    ParseError
        ``PARSE_SYNTAX_ERROR`` for ``TABLE (v)`` that is no argument of a table function.
    """
    found = None
    if _MAY.search(text):
        tokens = tokenize(text)
        if tokens.word(0) in _STATEMENTS:
            found = _expanded(gateway, tokens, frozenset((catalog or Catalog()).names), 0)
    if found is None:
        yield text
        return
    with gateway.instead(found) as read:
        yield read


def _expanded(gateway: Gateway, tokens: TokenList, hidden: frozenset[str], depth: int) -> SqlText | None:
    """The text with queries for names; None if it names no such view."""
    parts: list[SqlText | Piece | str] = []
    done = 0
    for name in names_of_relations(tokens):
        first, last = name.at
        if name.is_cte or (len(name.parts) == 1 and name.parts[0].lower() in hidden):
            if name.is_query(tokens):  # which only Spark would read
                word = tokens[first - 1]
                piece = Piece("SELECT * FROM", tokens.sql, word.start, len(word.text))
                parts += [verbatim(tokens, done, word.start), piece]
                done = word.stop
            continue
        query = _query_of(gateway, name.parts)
        if query is None:
            continue
        if depth == _MOST:
            raise AnalysisError(
                f"views are nested more than {_MOST} deep",
                condition="VIEW_EXCEED_MAX_NESTED_DEPTH",
                sqlstate="54K00",
                sql=tokens.sql,
                span=tokens.span(first, last),
                hint="store one of them as a table",
            )
        inner = tokenize(query)
        nested = _expanded(gateway, inner, frozenset(), depth + 1)
        query = query if nested is None else nested.render()
        alias = f" AS {quoted(name.parts[-1])}"
        body, start = f"({query})", tokens[first].start
        if name.is_query(tokens):
            start = tokens[first - 1].start
            body = f"SELECT * FROM {body}{alias}"
        elif name.table is not None:
            if not is_table_argument(tokens, name.table):
                refuse_table_in_brackets(tokens, name.table)
            body = f"SELECT * FROM {body}{alias}"
            body = body if tokens.is_symbol(first - 1, "(") else f"({body})"
        elif alias_after(tokens, last, len(tokens)) is None:
            body += f"{alias} "
        end = tokens[last - 1].stop
        parts += [verbatim(tokens, done, start), Piece(body, tokens.sql, start, end - start)]
        done = end
    return SqlText.of(*parts, verbatim(tokens, done, len(tokens.sql))) if parts else None


def _query_of(gateway: Gateway, name: Sequence[str]) -> str | None:
    """The query of a permanent view of ours; None of whatever else has the name."""
    found = stored_view(gateway.spark, name)
    if found is None or _MARK not in found.body:  # ALTER VIEW … AS leaves the properties
        return None
    parts = int(found.properties.get(_QUERY, 0))
    return "".join(found.properties[f"{_QUERY}.{part}"] for part in range(parts)) or None


def create_stored_view(
    gateway: Gateway,
    catalog: Catalog,
    tokens: TokenList,
    statement: Range,
    run_query: RunQuery,
    is_ours: Callable[[str], bool],
) -> Relation | None:
    """CREATE VIEW and ALTER VIEW of a query with a clause of ours, or over such a view; None for any other
    statement.

    Parameters
    ----------
    run_query
        Plans a query, of which places are those of the statement.
    is_ours
        Whether a text may have a clause of ours.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT`` for a query with parameters, over live streams, or in another catalog.
    AnalysisError
        ``INVALID_TEMP_OBJ_REFERENCE`` for a query that reads what this session alone has; Spark's errors.
    """
    head = _head(tokens, statement)
    if head is None:
        return None
    name, body = head
    text = tokens.text(*body)
    if not is_ours(text) and _expanded(gateway, tokenize(text), frozenset(catalog.names), 0) is None:
        return None
    refuse_unstored(gateway, tokens, statement[0], name.parts, body, "a permanent view")
    query = qualified(gateway, catalog, tokens, body, "a permanent view")
    _refuse_recursion(gateway, tokens, name, query)
    with located(tokens, body) as asked:
        planned = run_query(asked)
    if isinstance(planned, LiveRelation):
        hint = "create a TEMPORARY VIEW in each session"
        raise unsupported_statement(tokens, statement[0], "a permanent view over a live stream", hint)
    if gateway.plan_only:
        return planned
    names = planned.schema.names
    columns = [tokens[first].name for first, _ in _columns(tokens, name)] or names
    if len(columns) == len(names):  # else Spark refuses the view; columns that tables get later are not in it
        listed = (f"{quoted(one)} AS {quoted(column)}" for one, column in zip(names, columns, strict=True))
        query = f"SELECT {', '.join(listed)} FROM ({query})"
    shown = ".".join(whole_name(gateway, name.parts))
    message = (
        f"{shown} {_MARK}, which Spark alone cannot evaluate: read it by windrow.Session(spark).sql(…), or"
        " store its rows with CREATE TABLE … AS SELECT"
    )
    nulls = ", ".join(
        f"CAST(NULL AS {ddl(field.dataType)}) AS {quoted(field.name)}" for field in planned.schema.fields
    )
    fails = SqlText.of(f"SELECT {nulls} FROM VALUES (1) WHERE raise_error({literal(message)}) IS NULL")
    if tokens.word(statement[0]) == "ALTER":
        view = piece_of(tokens, *name.at, " ")
        # between both Spark has the old text, by which readers know whether these properties are of it
        gateway.sql(SqlText.of("ALTER VIEW ", view, f" SET TBLPROPERTIES ({_properties(query)})"))
        frame = gateway.sql(SqlText.of("ALTER VIEW ", view, " AS ", fails))
    else:
        before = _with_properties(tokens, (statement[0], body[0] - 1), query)
        frame = gateway.sql(SqlText.of(before, " AS ", fails))
    return Relation(frame, f"a permanent view: {shown}", gateway)


def altered_as_created(
    gateway: Gateway, catalog: Catalog, text: str, is_ours: Callable[[str], bool]
) -> SqlText | None:
    """``CREATE OR REPLACE TEMPORARY VIEW v AS …`` for ALTER VIEW of a temporary view, if it has a query with
    a clause of ours or is to get one; None for any other statement.
    """
    tokens = tokenize(text)
    found = _altered(tokens, (0, len(tokens)))
    if found is None:
        return None
    (name, body), kind = found, ""
    if len(name.parts) == 2 and name.parts[0].lower() == "global_temp":
        kind = "GLOBAL "
    elif len(name.parts) > 1:
        return None
    view = name.parts[-1].lower()
    known = (catalog.relations, catalog.definitions, catalog.sequences, catalog.expanded, catalog.texts)
    is_known = not kind and any(view in views for views in known)
    if not is_known and not (is_ours(tokens.text(*body)) and (kind or is_temporary(gateway, view))):
        return None
    at = name.at[1] - 1
    head = f"CREATE OR REPLACE {kind}TEMPORARY VIEW "
    return SqlText.of(
        head, piece_of(tokens, at, at + 1), " AS ", verbatim(tokens, tokens[body[0]].start, len(text))
    )


def shown_as_created(gateway: Gateway, text: str) -> DataFrame | None:
    """SHOW CREATE TABLE of a permanent view of ours, with its query; None for any other statement."""
    tokens = tokenize(text)
    if [tokens.word(at) for at in range(3)] != ["SHOW", "CREATE", "TABLE"] or not tokens.is_name(3):
        return None
    name = _named(tokens, 3, len(tokens))
    query = _query_of(gateway, name.parts)
    if query is None:
        return None
    (row,) = gateway.sql(SqlText.of(piece_of(tokens, 0, len(tokens)))).collect()
    shown = tokenize(row[0])
    end = next(at for at in shown.level(0, len(shown)) if shown.word(at) == "AS")
    head, at = row[0][: shown[end].stop], shown.places("TBLPROPERTIES")
    if at:
        first, last = at[0] + 2, shown.partner[at[0] + 1]
        pairs = [shown.text(*pair) for pair in shown.split(first, last)]
        own = [pair for pair in pairs if not pair.startswith(f"'{_QUERY}")]
        listed = f"TBLPROPERTIES (\n  {f',{chr(10)}  '.join(own)})\n" if own else ""
        rest = head[shown[last].stop :].lstrip()
        head = f"{head[: shown[at[0]].start]}{listed}{rest}"
    return gateway.spark.createDataFrame([(f"{head} {query}\n",)], "createtab_stmt STRING")


def _head(tokens: TokenList, statement: Range) -> tuple[RelationName, Range] | None:
    """The name of CREATE [OR REPLACE] VIEW or ALTER VIEW and its query; None for temporary views and other
    statements.
    """
    if tokens.word(statement[0]) == "ALTER":
        return _altered(tokens, statement)
    words, stop = create_words(tokens, *statement, "VIEW"), statement[1]
    if words is None or words.is_temporary:
        return None
    name = _named(tokens, words.name_at, stop)
    body = next((index + 1 for index in tokens.level(name.at[1], stop) if tokens.word(index) == "AS"), None)
    return None if body is None or body >= stop else (name, (body, stop))


def _altered(tokens: TokenList, statement: Range) -> tuple[RelationName, Range] | None:
    """The name of ``ALTER VIEW v [AS] query`` and its query."""
    start, stop = statement
    if [tokens.word(start), tokens.word(start + 1)] != ["ALTER", "VIEW"] or not tokens.is_name(start + 2):
        return None
    name = _named(tokens, start + 2, stop)
    at = name.at[1] + (tokens.word(name.at[1]) == "AS")
    is_query = tokens.word(at) in ("SELECT", "WITH", "FROM", "TABLE", "VALUES") or tokens.is_symbol(at, "(")
    return (name, (at, stop)) if is_query and tokens.word(at + 1) != "SCHEMA" else None


def _named(tokens: TokenList, at: int, stop: int) -> RelationName:
    """The name of up to three parts that begins at a token."""
    last, parts = at + 1, [tokens[at].name]
    while tokens.is_symbol(last, ".") and last + 1 < stop:
        parts.append(tokens[last + 1].name)
        last += 2
    return RelationName(tuple(parts), (at, last))


def _columns(tokens: TokenList, name: RelationName) -> list[Range]:
    """The columns that follow the name of a view, with their comments."""
    bracket = name.at[1]
    return tokens.split(bracket + 1, tokens.partner[bracket]) if tokens.is_symbol(bracket, "(") else []


def _refuse_recursion(
    gateway: Gateway, tokens: TokenList, view: RelationName, query: str, depth: int = 0
) -> None:
    """Refuse a query that reads the view which it is to be, itself or by other views."""
    whole = [part.lower() for part in whole_name(gateway, view.parts)]
    for name in names_of_relations(tokenize(query)):
        if name.is_cte:
            continue
        if [part.lower() for part in whole_name(gateway, name.parts)] == whole:
            shown = ".".join(view.parts)
            raise AnalysisError(
                f"view {shown} reads itself",
                condition="RECURSIVE_VIEW",
                sqlstate="42K0H",
                sql=tokens.sql,
                span=tokens.span(*view.at),
                hint="rename it",
            )
        inner = _query_of(gateway, name.parts) if depth < _MOST else None
        if inner is not None:
            _refuse_recursion(gateway, tokens, view, inner, depth + 1)


def _properties(query: str) -> str:
    """The query in parts, as properties."""
    parts = [query[at : at + _PART] for at in range(0, len(query), _PART)]
    pairs = {_QUERY: str(len(parts)), **{f"{_QUERY}.{number}": part for number, part in enumerate(parts)}}
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in pairs.items())


def _with_properties(tokens: TokenList, head: Range, query: str) -> SqlText:
    """The words before AS, with the query among the properties."""
    listed = _properties(query)
    start, stop = tokens[head[0]].start, tokens[head[1] - 1].stop
    for at in tokens.level(*head):
        if tokens.word(at) == "TBLPROPERTIES" and tokens.is_symbol(at + 1, "("):
            cut = tokens[at + 1].stop
            return SqlText.of(verbatim(tokens, start, cut), f"{listed}, ", verbatim(tokens, cut, stop))
    return SqlText.of(verbatim(tokens, start, stop), f" TBLPROPERTIES ({listed})")
