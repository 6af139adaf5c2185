"""Names of the columns that Windrow adds to relations, unlike any that a user would choose."""

from __future__ import annotations

import re

from windrow.syntax.patterns.match_relations import parameter_marks
from windrow.syntax.sqltext import Piece, SqlText
from windrow.syntax.tokens import TokenList

__all__ = [
    "AGGREGATE",
    "IDENTITY",
    "IS_ROW",
    "OUTER",
    "PATTERN_CALL",
    "POSITIONAL",
    "QUALIFIED",
    "ROW",
    "SINCE",
    "as_written",
    "hoisted",
    "of_relation",
    "order_key",
    "partition_key",
    "piece_of",
    "twin",
    "verbatim",
    "visible_field",
    "without_since",
]

ROW = "__row"
"""The struct with a row of the input."""

IS_ROW = "__is_row_of_window"
"""Whether a row belongs to a window, and is not the row of NULLs that stands for an empty one."""

SINCE = "__since"
"""The rowtime of a window, or of a match, in a query that does not select it."""

IDENTITY = "__row_of_"
"""Prefix of the columns that stand for row variables that are compared with each other."""

QUALIFIED = "__of_"
"""Prefix of a variable's rows, and of their fields, for fields that are read with a qualifier: ``s.r.k``."""

_TWIN = re.compile(r"__twin\d+_(.*)", re.DOTALL)
_WRITTEN = re.compile(rf"`?{QUALIFIED}([^`.]+)`?\.`{QUALIFIED}([^`]*)`")

_AS_SINCE = re.compile(rf"\s*,[^,()]* AS {SINCE}\b")
_EXCEPT_SINCE = re.compile(rf" EXCEPT \({SINCE}\)")

OUTER = "__outer"
"""The relation of the values of outer columns."""

_OF_AROUND = re.compile(rf"(?:`?(?:{QUALIFIED}\w+|{OUTER})`?\.)?`{QUALIFIED}{OUTER}\d*\.([^`]*)`")

POSITIONAL = "__windrow_"
"""Prefix of the names of positional parameters."""

_PARAMETER = re.compile(rf":{POSITIONAL}\d+\b")

PATTERN_CALL = "__over"
"""Prefix of the columns for calls over windows with patterns."""

AGGREGATE = "__aggregate"
"""Prefix of the columns for aggregates over a window."""


def partition_key(number: int) -> str:
    """The column of a PARTITION BY expression."""
    return f"__p{number}"


def order_key(number: int) -> str:
    """The column of an ORDER BY expression."""
    return f"__o{number}"


def hoisted(number: int) -> str:
    """A column that Spark computes for the kernel."""
    return f"__h{number}"


def of_relation(relation: str, column: str) -> str:
    """The field of a row for a column of one of the relations in FROM."""
    return f"{QUALIFIED}{relation}.{column}"


def twin(number: int, field: str) -> str:
    """The field of a row for one of several columns with the same name."""
    return f"__twin{number}_{field}"


def visible_field(field: str) -> str | None:
    """The user's name of a field of a row; None for one that is only read with a qualifier.

    >>> visible_field("day"), visible_field(twin(2, "day")), visible_field(of_relation("r", "day"))
    ('day', 'day', None)
    """
    if field.startswith(QUALIFIED):
        return None
    found = _TWIN.fullmatch(field)
    return found[1] if found is not None else field


def as_written(text: str) -> str:
    """SQL over rows in which fields stand with their relations, and parameters, as users write them.

    >>> as_written(f"`{QUALIFIED}s`.`{of_relation('r', 'day')}` > 2")
    's.r.day > 2'
    >>> as_written(f"v > `{of_relation(OUTER, 't.day')}` + :{POSITIONAL}0")
    'v > `t.day` + ?'
    """
    return _PARAMETER.sub("?", _WRITTEN.sub(r"\1.\2", _OF_AROUND.sub(r"`\1`", text)))


def without_since(text: str) -> str:
    """SQL without the rowtime of windows that a query does not select, as its author wrote it.

    >>> without_since("SELECT * EXCEPT (__since) FROM (SELECT s.k , `s`.ts AS __since FROM t)")
    'SELECT * FROM (SELECT s.k FROM t)'
    """
    return _EXCEPT_SINCE.sub("", _AS_SINCE.sub("", text))


def piece_of(tokens: TokenList, start: int, stop: int, after: str = "") -> SqlText:
    """The text of these tokens as it is written, followed by `after`; empty without tokens."""
    if start >= stop:
        return SqlText()
    span = tokens.span(start, stop)
    return SqlText.of(verbatim(tokens, span.start, span.stop), after)


def verbatim(tokens: TokenList, start: int, stop: int) -> SqlText:
    """A part of the user's text; `?` becomes a named parameter, because pieces may be reordered for Spark."""
    sql = tokens.sql
    parts = []
    markers = [tokens[at].start for at in parameter_marks(tokens)]
    for number, place in enumerate(markers):
        if start <= place < stop:
            parts += [Piece(sql[start:place], sql, start), Piece(f":{POSITIONAL}{number}", sql, place, 1)]
            start = place + 1
    return SqlText.of(*parts, Piece(sql[start:stop], sql, start))
