"""Permanent views of queries with clauses of ours: ``CREATE VIEW v AS SELECT … WINDOW BY …``.

Spark's catalog has the view with its columns; the query is in the view's properties. What Spark itself reads
of the view is an error that says who can read it. A statement of ours has the query where the name stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from windrow.algebra.names import verbatim
from windrow.errors import AnalysisError
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.views import SPARK_CATALOG, stored_view
from windrow.statements.composed import RunQuery, located
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.definitions.create_words import create_words
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_relations import parameter_marks
from windrow.syntax.query_parts import visible_ctes
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.streams.table_functions import is_table_argument, refuse_table_in_brackets
from windrow.syntax.tokens import TokenKind, TokenList, tokenize

__all__ = ["create_stored_view", "with_stored_views"]

_QUERY = "windrow.query"
"""The property with the number of the parts of the query, and before a dot and their numbers those."""
_PART = 3_000
"""Characters of a part: metastores take 4,000 for the value of a property."""
_MARK = "is a view of Windrow"
_MAY = re.compile(r"\b(?:from|join|table)\b", re.IGNORECASE)
_STATEMENTS = ("SELECT", "WITH", "FROM", "TABLE", "EXPLAIN", "INSERT", "CREATE", "CACHE", "")
_BEFORE_TABLE = (
    "",
    "AS",
    "ALL",
    "DISTINCT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "EXPLAIN",
    "EXTENDED",
    "FORMATTED",
)
"""Words before TABLE where that is not of another statement, as in DESCRIBE TABLE v; none before brackets."""
_MOST = 100
"""So many views stand inside of each other at most, as in Spark."""


@dataclass(frozen=True)
class _Name:
    """The name of a relation in FROM, JOIN or TABLE: its parts, and the tokens that it stands on.

    Attributes
    ----------
    table
        The token of TABLE before it; None in FROM and JOIN.
    is_cte
        Whether it is that of a named query.
    """

    parts: tuple[str, ...]
    at: Range
    table: int | None = None
    is_cte: bool = False

    def is_query(self, tokens: TokenList) -> bool:
        """Whether it is ``TABLE v`` as a query: not an argument of a function."""
        is_next = self.table is not None and self.table == self.at[0] - 1
        return is_next and not is_table_argument(tokens, self.at[0] - 1)


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
    for name in _names(tokens):
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
                f"more than {_MOST} views read each other",
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


def _names(tokens: TokenList, within: Range | None = None) -> Iterator[_Name]:
    """The names of relations, but of functions."""
    start, stop = within or (0, len(tokens))
    for at in range(start, stop):
        if not tokens[at].is_name or tokens.is_symbol(at - 1, "."):
            continue
        bracket = tokens.is_symbol(at - 1, "(")
        word = at - 1 - bracket
        is_data = tokens.word(word) == "TABLE" and tokens.word(word - 1) in _BEFORE_TABLE
        if not is_data and not begins_relation(tokens, at):
            continue
        last, parts = at + 1, [tokens[at].name]
        while tokens.is_symbol(last, ".") and last + 1 < stop and tokens[last + 1].is_name:
            parts.append(tokens[last + 1].name)
            last += 2
        if tokens.is_symbol(last, "("):
            continue
        is_cte = len(parts) == 1 and _is_named_query(tokens, at)
        yield _Name(tuple(parts), (at, last), word if is_data else None, is_cte)


def _is_named_query(tokens: TokenList, at: int) -> bool:
    name = tokens[at].name.lower()
    return any(cte.name.lower() == name for cte in visible_ctes(tokens, at))


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
    """CREATE VIEW of a query with a clause of ours, or over such a view; None for any other statement.

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
    if (len(name.parts) == 3 and name.parts[0].lower() != SPARK_CATALOG) or (
        len(name.parts) < 3 and gateway.spark.catalog.currentCatalog() != SPARK_CATALOG
    ):
        what = "a permanent view over windows in another catalog than spark_catalog"
        raise unsupported_statement(tokens, statement[0], what, f"name it {SPARK_CATALOG}.database.view")
    marks = [at for at in parameter_marks(tokens) if body[0] <= at < body[1]]
    marks += [
        at
        for at in range(*body)
        if tokens.is_symbol(at, ":") and at + 1 < body[1] and tokens[at + 1].name in gateway.parameters
    ]
    if marks:
        raise unsupported_statement(tokens, marks[0], "a permanent view with parameters", "write the values")
    query = _qualified(gateway, catalog, tokens, body)
    _refuse_recursion(gateway, tokens, name, query)
    with located(tokens, body) as asked:
        planned = run_query(asked)
    if isinstance(planned, LiveRelation):
        hint = "create a TEMPORARY VIEW in each session"
        raise unsupported_statement(tokens, statement[0], "a permanent view of a live stream", hint)
    if gateway.plan_only:
        return planned
    names = planned.schema.names
    columns = [tokens[first].name for first, _ in _columns(tokens, name)] or names
    if len(columns) == len(names):  # else Spark refuses the view; columns that tables get later are not in it
        listed = (f"{quoted(one)} AS {quoted(column)}" for one, column in zip(names, columns, strict=True))
        query = f"SELECT {', '.join(listed)} FROM ({query})"
    shown = ".".join(_whole(gateway, name.parts))
    message = (
        f"{shown} {_MARK}, which Spark alone cannot evaluate: read it by windrow.Session(spark).sql(…), or"
        " store its rows with CREATE TABLE … AS SELECT"
    )
    nulls = ", ".join(
        f"CAST(NULL AS {_ddl(field.dataType)}) AS {quoted(field.name)}" for field in planned.schema.fields
    )
    fails = SqlText.of(f"SELECT {nulls} FROM VALUES (1) WHERE raise_error({_text(message)}) IS NULL")
    frame = gateway.sql(
        SqlText.of(_with_properties(tokens, (statement[0], body[0] - 1), query), " AS ", fails)
    )
    return Relation(frame, f"a permanent view: {shown}", gateway)


def _head(tokens: TokenList, statement: Range) -> tuple[_Name, Range] | None:
    """The name of CREATE [OR REPLACE] VIEW and its query; None for temporary views and other statements."""
    words, stop = create_words(tokens, *statement, "VIEW"), statement[1]
    if words is None or words.is_temporary:
        return None
    at = words.name_at
    last, parts = at + 1, [tokens[at].name]
    while tokens.is_symbol(last, ".") and last + 1 < stop:
        parts.append(tokens[last + 1].name)
        last += 2
    body = next((index + 1 for index in tokens.level(last, stop) if tokens.word(index) == "AS"), None)
    return None if body is None or body >= stop else (_Name(tuple(parts), (at, last)), (body, stop))


def _columns(tokens: TokenList, name: _Name) -> list[Range]:
    """The columns that follow the name of a view, with their comments."""
    bracket = name.at[1]
    return tokens.split(bracket + 1, tokens.partner[bracket]) if tokens.is_symbol(bracket, "(") else []


def _qualified(gateway: Gateway, catalog: Catalog, tokens: TokenList, body: Range) -> str:
    """The query with the database and catalog of each table, as the current ones change."""
    spark = gateway.spark
    parts: list[str] = []
    done = tokens[body[0]].start
    for at in range(*body):
        if tokens[at].kind is TokenKind.STRING and begins_relation(tokens, at):
            raise _of_this_session(
                tokens, (at, at + 1), f"the file {tokens[at].text}", "csv.`path`, parquet.`path`"
            )
    for name in _names(tokens, body):
        first, last = name.at
        if name.is_cte:
            continue
        alone = name.parts[0] if len(name.parts) == 1 else ""
        if alone and (alone.lower() in catalog.names or _is_temporary(gateway, alone)):
            hint = "store it as a table or a permanent view first, or create a TEMPORARY VIEW"
            raise _of_this_session(tokens, name.at, f"the temporary view {alone}", hint)
        if not spark.catalog.tableExists(".".join(map(quoted, name.parts))):
            continue  # a path of files, or nothing, which Spark reports
        parts += [tokens.sql[done : tokens[first].start], ".".join(map(quoted, _whole(gateway, name.parts)))]
        done = tokens[last - 1].stop
    return "".join([*parts, tokens.sql[done : tokens[body[1] - 1].stop]])


def _refuse_recursion(gateway: Gateway, tokens: TokenList, view: _Name, query: str, depth: int = 0) -> None:
    """Refuse a query that reads the view which it is to be, itself or by other views."""
    whole = [part.lower() for part in _whole(gateway, view.parts)]
    for name in _names(tokenize(query)):
        if name.is_cte:
            continue
        if [part.lower() for part in _whole(gateway, name.parts)] == whole:
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


def _whole(gateway: Gateway, name: Sequence[str]) -> list[str]:
    """A name with its catalog and database."""
    catalog = gateway.spark.catalog
    known = [catalog.currentCatalog(), catalog.currentDatabase()]
    return [*known[: max(3 - len(name), 0)], *name]


def _is_temporary(gateway: Gateway, name: str) -> bool:
    catalog = gateway.spark.catalog
    return catalog.tableExists(quoted(name)) and catalog.getTable(quoted(name)).isTemporary


def _of_this_session(tokens: TokenList, at: Range, what: str, hint: str) -> AnalysisError:
    return AnalysisError(
        f"a permanent view cannot read {what}, which this session alone has",
        condition="INVALID_TEMP_OBJ_REFERENCE",
        sqlstate="42K0F",
        sql=tokens.sql,
        span=tokens.span(*at),
        hint=hint,
    )


def _with_properties(tokens: TokenList, head: Range, query: str) -> SqlText:
    """The words before AS, with the query among the properties."""
    parts = [query[at : at + _PART] for at in range(0, len(query), _PART)]
    pairs = {_QUERY: str(len(parts)), **{f"{_QUERY}.{number}": part for number, part in enumerate(parts)}}
    listed = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in pairs.items())
    start, stop = tokens[head[0]].start, tokens[head[1] - 1].stop
    for at in tokens.level(*head):
        if tokens.word(at) == "TBLPROPERTIES" and tokens.is_symbol(at + 1, "("):
            cut = tokens[at + 1].stop
            return SqlText.of(verbatim(tokens, start, cut), f"{listed}, ", verbatim(tokens, cut, stop))
    return SqlText.of(verbatim(tokens, start, stop), f" TBLPROPERTIES ({listed})")


def _text(value: str) -> str:
    """A text in Spark's SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _ddl(kind: DataType) -> str:
    """A type as Spark's SQL writes it, with the names of fields in backquotes.

    >>> from pyspark.sql.types import IntegerType
    >>> _ddl(ArrayType(StructType().add("a b", IntegerType())))
    'ARRAY<STRUCT<`a b`: int>>'
    """
    match kind:
        case StructType():
            fields = ", ".join(f"{quoted(field.name)}: {_ddl(field.dataType)}" for field in kind.fields)
            return f"STRUCT<{fields}>"
        case ArrayType():
            return f"ARRAY<{_ddl(kind.elementType)}>"
        case MapType():
            return f"MAP<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
        case _:
            return str(kind.simpleString())
