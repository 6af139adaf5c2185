"""What a text is: whether it has a clause of Windrow, reads streams, or is Spark's as it is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from windrow.algebra.bind import bind
from windrow.algebra.rewriting.clauses_over_variables import clauses_over_variables
from windrow.algebra.rewriting.patterns.patterns_before_windows import patterns_below
from windrow.algebra.rewriting.patterns.patterns_over_joins import patterns_over_join
from windrow.algebra.rewriting.patterns.patterns_over_results import patterns_around
from windrow.algebra.rewriting.pipes import as_nested_queries
from windrow.algebra.rewriting.pipes_over_streams import pipe_as_selects
from windrow.algebra.rewriting.subqueries_of_clauses import subqueries_of_clauses
from windrow.errors import ParseError
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import Stream
from windrow.spark.relations.table_functions_in_from import calls_table_functions
from windrow.spark.scan.files_in_text import may_name_files
from windrow.statements.clauses_over_streams import names_sequence
from windrow.statements.definitions.session_functions import (
    calls_functions,
)
from windrow.statements.stream_statements import is_continuous
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.pattern_windows import find_pattern_windows
from windrow.syntax.query_parts import split_statements
from windrow.syntax.sqltext import SqlText
from windrow.syntax.streams.apart import clauses_apart
from windrow.syntax.streams.emit_clause import has_clauses
from windrow.syntax.tokens import TokenList, tokenize

if TYPE_CHECKING:
    pass

__all__ = [
    "as_select",
    "is_of_spark",
    "is_ours",
    "matches_rows",
    "may_be_ours",
    "may_be_sequence",
    "only_statement",
    "rowtimes",
    "stream_shown",
]

# a comment may contain anything, so what follows one is read as tokens
_PATTERNS = re.compile(r"\bmatch_recognize\b|\bpattern\s*(?:\(|/\*|--)", re.IGNORECASE)
_OURS = re.compile(rf"\bwindow(?:\s+by\b|\s*(?:/\*|--))|{_PATTERNS.pattern}", re.IGNORECASE)
_WHOLE = re.compile(r"\s*(?:TABLE|SELECT\s+\*\s+FROM)\s+`?(\w+)`?\s*(?:;\s*)?", re.IGNORECASE)


def may_be_ours(text: str) -> bool:
    """Whether a text may have a clause of Windrow; its tokens decide it."""
    return _OURS.search(text) is not None


def as_select(text: str, catalog: Catalog | None = None) -> SqlText | None:
    """The text with a clause of Windrow, or a pipe over streams, as a SELECT over rows; None if it is one
    already.

    Clauses may be in a pipe, after FROM, over a join, over groups or windows of the same SELECT, below its
    windows, and in subqueries that read these.
    """
    is_pipe = catalog is not None and "|>" in text and is_continuous(text, catalog)
    if not may_be_ours(text):
        return pipe_as_selects(tokenize(text)) if is_pipe else None
    tokens = tokenize(text)
    return (
        as_nested_queries(tokens)
        or patterns_below(tokens)
        or patterns_around(tokens)
        or patterns_over_join(tokens)
        or clauses_over_variables(tokens)
        or subqueries_of_clauses(tokens)
        or (pipe_as_selects(tokens) if is_pipe else None)
    )


def is_ours(gateway: Gateway, catalog: Catalog, query: str) -> bool:
    """Whether only a Windrow session can evaluate a query."""
    if may_be_ours(query):
        found = tokenize(query)
        if as_select(query) is not None:
            return True
        return bind(found, (0, len(found)), rowtimes(catalog)) is not None
    if calls_functions(gateway, query, catalog):
        return True
    return has_clauses(query) or calls_table_functions(query, catalog.functions)


def is_of_spark(gateway: Gateway, catalog: Catalog, part: str) -> bool:
    """Whether Spark can read a part of a script as it is written."""
    is_ours = (
        may_be_ours(part)
        or has_clauses(part)
        or is_continuous(part, catalog)
        or calls_table_functions(part, catalog.functions)
        or may_name_files(part)
    )
    return not is_ours and gateway.dialect == "spark"


def may_be_sequence(text: str, catalog: Catalog) -> bool:
    """Whether a text may be about windows or matches of streams, or views of them."""
    return is_continuous(text, catalog) and (may_be_ours(text) or names_sequence(text, catalog))


def matches_rows(text: str) -> bool:
    """Whether a text has row patterns, which read a recorded stream as the table of its rows."""
    if not _PATTERNS.search(text):
        return False
    tokens = tokenize(text)
    places = [item.range for item in find_matches(tokens)]
    places += [found.range for found in find_pattern_windows(tokens)]
    apart = [inside for _, inside in clauses_apart(tokens, (0, len(tokens)))]
    return any(not any(start <= at < stop for start, stop in apart) for at, _ in places)


def stream_shown(text: str, catalog: Catalog | None) -> Stream | None:
    """The stream whose rows a text shows unchanged; None if it does more."""
    found = _WHOLE.fullmatch(text)
    return catalog.streams.get(found[1].lower()) if found is not None and catalog is not None else None


def only_statement(tokens: TokenList) -> Range:
    """The place of the statement.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR`` if there are several.
    """
    statements = split_statements(tokens)
    if len(statements) > 1:
        start, stop = statements[1]
        raise ParseError(
            "the text has more than one statement",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens.span(start, stop),
            hint="run them one by one, or as a script",
        )
    return statements[0]


def rowtimes(catalog: Catalog | None) -> dict[str, str]:
    """The rowtime columns of streams, by the names of the streams."""
    return {} if catalog is None else catalog.rowtimes
