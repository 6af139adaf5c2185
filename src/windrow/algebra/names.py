"""Names of the columns that Windrow adds to relations, kept apart from any that a user would choose."""

from __future__ import annotations

from windrow.syntax.match_recognize import parameter_marks
from windrow.syntax.sqltext import Piece, SqlText
from windrow.syntax.tokens import TokenList

__all__ = [
    "AGGREGATE",
    "IDENTITY",
    "PATTERN_CALL",
    "POSITIONAL",
    "ROW",
    "hoisted",
    "order_key",
    "partition_key",
    "verbatim",
]

ROW = "__row"
"""The struct with a row of the input."""

IDENTITY = "__row_of_"
"""Prefix of the columns that stand for row variables where two of them are compared."""

POSITIONAL = "__windrow_"
"""Prefix of the names that positional parameters are given."""

PATTERN_CALL = "__over"
"""Prefix of the columns that hold what is called over windows with patterns."""

AGGREGATE = "__aggregate"
"""Prefix of the columns that hold aggregates over a window."""


def partition_key(number: int) -> str:
    """The column of a PARTITION BY expression."""
    return f"__p{number}"


def order_key(number: int) -> str:
    """The column of an ORDER BY expression."""
    return f"__o{number}"


def hoisted(number: int) -> str:
    """A column that Spark computes for the kernel."""
    return f"__h{number}"


def verbatim(tokens: TokenList, start: int, stop: int) -> SqlText:
    """A stretch of the user's text; `?` becomes a named parameter, as pieces go to Spark in another order."""
    sql = tokens.sql
    parts = []
    markers = [tokens[at].start for at in parameter_marks(tokens)]
    for number, place in enumerate(markers):
        if start <= place < stop:
            parts += [Piece(sql[start:place], sql, start), Piece(f":{POSITIONAL}{number}", sql, place, 1)]
            start = place + 1
    return SqlText.of(*parts, Piece(sql[start:stop], sql, start))
