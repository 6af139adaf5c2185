"""Statements that write rows of a query into a table: CREATE TABLE … AS, INSERT INTO, INSERT OVERWRITE."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.syntax.cql_clauses import named_columns
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["Command", "by_name", "parse_command"]

_QUERIES = ("SELECT", "WITH", "FROM", "ISTREAM", "DSTREAM", "RSTREAM")


@dataclass(frozen=True)
class Command:
    """Such a statement.

    Attributes
    ----------
    table
        The name of the table.
    query
        The query.
    columns
        The columns that INSERT lists; None without a list, and of CREATE TABLE.
    kind
        ``CREATE``, ``REPLACE``, ``INTO`` or ``OVERWRITE``.
    by_name
        Whether INSERT finds the columns by the names of the query's: ``BY NAME``.
    """

    table: Range
    query: Range
    columns: list[str] | None
    kind: str
    by_name: bool = False


def parse_command(tokens: TokenList, start: int, stop: int) -> Command | None:
    """The command; None for any other statement.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR`` for columns that are no names.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("INSERT INTO TABLE a.b (x, y) SELECT 1, 2")
    >>> command = parse_command(tokens, 0, len(tokens))
    >>> tokens.text(*command.table), command.columns, tokens.text(*command.query)
    ('a.b', ['x', 'y'], 'SELECT 1, 2')
    >>> tokens = tokenize("CREATE TABLE IF NOT EXISTS t USING parquet AS ISTREAM(SELECT 1)")
    >>> tokens.text(*parse_command(tokens, 0, len(tokens)).query)
    'ISTREAM(SELECT 1)'
    >>> tokens = tokenize("CREATE OR REPLACE TABLE t AS SELECT 1")
    >>> parse_command(tokens, 0, len(tokens)).kind
    'REPLACE'
    """
    word, at = tokens.word(start), start + 1
    if word == "INSERT":
        kind = tokens.word(at)
        at += 1 + (tokens.word(at + 1) == "TABLE")
        table = _name(tokens, at, stop)
        return (
            None if table is None or kind not in ("INTO", "OVERWRITE") else _insert(tokens, table, kind, stop)
        )
    if word not in ("CREATE", "REPLACE"):
        return None
    kind = "REPLACE" if tokens.word(at) == "OR" else word
    at += 2 * (tokens.word(at) == "OR")
    if tokens.word(at) != "TABLE":
        return None
    at += 1 + 3 * (tokens.word(at + 1) == "IF")
    table = _name(tokens, at, stop)
    if table is None:
        return None
    for place in tokens.level(table[1], stop):
        if tokens.word(place) == "AS" and _begins_query(tokens, place + 1):
            return Command(table, (place + 1, stop), None, kind)
        if place > table[1] and tokens.word(place) in ("SELECT", "WITH") and _begins_query(tokens, place):
            return Command(table, (place, stop), None, kind)
    return None


def _insert(tokens: TokenList, table: Range, kind: str, stop: int) -> Command | None:
    columns = None
    for place in tokens.level(table[1], stop):
        if _begins_query(tokens, place):
            return Command(table, (place, stop), columns, kind, by_name(tokens, table[1]))
        if place == table[1] and tokens.is_symbol(place, "("):
            columns = [name for name, _ in named_columns(tokens, place, "INSERT INTO")]
    return None


def by_name(tokens: TokenList, at: int) -> bool:
    """Whether BY NAME stands at a token."""
    return tokens.word(at) == "BY" and tokens.word(at + 1) == "NAME"


def _name(tokens: TokenList, at: int, stop: int) -> Range | None:
    """The name of a table that begins at a token."""
    if at >= stop or not tokens[at].is_name:
        return None
    end = at + 1
    while tokens.is_symbol(end, ".") and end + 1 < stop:
        end += 2
    return at, end


def _begins_query(tokens: TokenList, at: int) -> bool:
    while tokens.is_symbol(at, "("):
        at += 1
    return tokens.word(at) in _QUERIES and tokens.word(at + 1) != "SCHEMA"
