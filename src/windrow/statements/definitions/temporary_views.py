"""Views, cached tables and stored results of queries over windows: their queries, and what is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.errors import ParseError
from windrow.spark.gateway import Gateway
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import quoted
from windrow.syntax.tokens import TokenList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["create_view", "query_of", "view_query"]


def query_of(tokens: TokenList, statement: Range) -> Range:
    """The query of CREATE TABLE … AS and INSERT INTO …, the statement itself otherwise."""
    start, stop = statement
    if tokens.word(start) not in ("CREATE", "INSERT", "REPLACE"):
        return statement
    for index in tokens.level(start, stop):
        if tokens.word(index) in ("SELECT", "WITH") and tokens.word(index + 1) != "SCHEMA":
            return index, stop
    return statement


def view_query(tokens: TokenList, statement: Range) -> Range | None:
    """The query of CREATE TEMPORARY VIEW or CACHE TABLE, None for any other statement.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT`` for views and functions that Spark would store as text.
    """
    start, stop = statement
    words = [tokens.word(index) for index in range(start, min(start + 6, stop))]
    if words[:1] == ["CACHE"]:
        return _cached_query(tokens, statement)
    if words[:1] == ["CREATE"] and "FUNCTION" in words:
        hint = "write CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN …"
        raise unsupported_statement(tokens, start, "a SQL function over windows", hint)
    if words[:1] == ["CREATE"] and "MATERIALIZED" in words:
        raise unsupported_statement(
            tokens,
            start,
            "a materialized view over windows",
            "write CREATE TABLE … AS, or CREATE TEMPORARY VIEW",
        )
    if words[:1] != ["CREATE"] or "VIEW" not in words:
        return None
    kind = words[1 : words.index("VIEW")]
    if not {"TEMP", "TEMPORARY"} & set(kind):
        return None
    for index in tokens.level(start + len(kind) + 2, stop):
        if tokens.word(index) == "AS":
            return index + 1, stop
    return None


def _cached_query(tokens: TokenList, statement: Range) -> Range | None:
    """The query of CACHE TABLE, before which AS may stand."""
    start, stop = statement
    level = tokens.level(start, stop)
    name = next(index for index in level if tokens.word(index) == "TABLE") + 1
    for index in level:
        if index > name and tokens.word(index) in ("AS", "SELECT", "WITH", "FROM", "TABLE", "VALUES"):
            return index + (tokens.word(index) == "AS"), stop
    return None


def create_view(gateway: Gateway, tokens: TokenList, head: Range, frame: DataFrame) -> DataFrame:
    """Register the windows' DataFrame under the view's name, as the words before AS say."""
    words = [tokens.word(index) for index in range(*head)]
    caches = words[0] == "CACHE"
    at = head[0] + words.index("TABLE" if caches else "VIEW") + 1
    if_not_exists = tokens.word(at) == "IF"
    at += 3 if if_not_exists else 0
    name = tokens[at].name
    if tokens.is_symbol(at + 1, "("):
        columns = [tokens[start].name for start, _ in tokens.split(at + 2, tokens.partner[at + 1])]
        if len(columns) != len(frame.columns):
            raise ParseError(
                f"view has {len(columns)} column names, but its query has {len(frame.columns)} columns",
                condition="CREATE_VIEW_COLUMN_ARITY_MISMATCH",
                sqlstate="21S01",
                sql=tokens.sql,
                span=tokens.span(at + 1, tokens.partner[at + 1] + 1),
                hint="write one name for each column of the query",
            )
        frame = frame.toDF(*columns)
    with gateway.translated():
        is_global = "GLOBAL" in words
        known = f"global_temp.{quoted(name)}" if is_global else quoted(name)
        if is_global:
            create = frame.createOrReplaceGlobalTempView if "REPLACE" in words else frame.createGlobalTempView
        else:
            create = frame.createOrReplaceTempView if "REPLACE" in words else frame.createTempView
        if not (if_not_exists and gateway.spark.catalog.tableExists(known)):
            create(quoted(name))
        if caches:
            span = tokens.span(head[0], head[1] - (words[-1] == "AS"))
            gateway.spark.sql(tokens.sql[span.start : span.stop])
    return gateway.spark.sql("SELECT 1 WHERE FALSE").select()
