"""INSERT INTO a named stream."""

from __future__ import annotations

from collections.abc import Callable

from windrow.errors import (
    AnalysisError,
    ParseError,
    Span,
)
from windrow.relation import Relation, as_plan
from windrow.relation_kinds import LiveRelation, StreamRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import IntoStream
from windrow.spark.live.session_queries import queries_of
from windrow.spark.logs.columns_taken import TextPlace, columns_taken
from windrow.spark.logs.named_in_session import NamedStreamEntry
from windrow.statements.inserts import live_of, start_insert
from windrow.statements.named_streams.stream_rows import no_named_stream
from windrow.streams import Receipt
from windrow.syntax.cql_clauses import named_columns
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["insert"]

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "ISTREAM", "DSTREAM", "RSTREAM")


def insert(
    gateway: Gateway,
    catalog: Catalog,
    tokens: TokenList,
    statement: Range,
    run_query: Callable[[str], Relation],
) -> Relation | None:
    """Insert rows into a stream; returns the counts of inserted and late rows, None for other statements.

    Raises
    ------
    WindrowError
        ``UNSUPPORTED_STREAM``, ``UNSUPPORTED_STATEMENT``, ``INSERT_COLUMN_ARITY_MISMATCH``,
        ``UNKNOWN_COLUMN``, ``DUPLICATE_COLUMN``, and those of the query and of
        :meth:`windrow.streams.Producer.insert`.
    """
    start, stop = statement
    if tokens.word(start) != "INSERT" or tokens.word(start + 1) not in ("INTO", "OVERWRITE"):
        return None
    at = start + 2 + (tokens.word(start + 2) == "TABLE")
    if at >= stop or not tokens[at].is_name or tokens[at].name.lower() not in catalog.streams:
        return None
    named = catalog.named.get(tokens[at].name.lower())
    if named is None:
        raise no_named_stream(catalog, tokens, tokens[at].name, (at, at + 1))
    if tokens.word(start + 1) == "OVERWRITE":
        hint = "add rows with INSERT INTO, or create a stream in another folder"
        raise unsupported_statement(tokens, start + 1, "replacing the rows of a stream", hint)
    body, columns = _columns(tokens, at + 1, named)
    if body >= stop or not (tokens.word(body) in _QUERIES or tokens.is_symbol(body, "(")):
        raise ParseError(
            "expected the rows to insert",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens.span(min(body, stop - 1), stop),
            hint="write INSERT INTO s VALUES (…), or INSERT INTO s SELECT …",
        )
    query = live_of(gateway, tokens, body, stop, run_query)
    if isinstance(query, LiveRelation):
        return start_insert(gateway, tokens, query, IntoStream(named.stream, columns), named.name)
    if queries_of(catalog).collected is not None and not query.is_plan:
        hint = "insert the rows once with session.sql; a pipeline would insert them again at each start"
        raise unsupported_statement(tokens, start, "INSERT of stored rows in a pipeline", hint)
    receipt = _inserted(gateway, tokens, named, columns, query, tokens.span(body, stop))
    if receipt is None:
        return as_plan(gateway, f"insert into stream {named.name}")
    counts = {"inserted": receipt.admitted, "late": receipt.late, "rejected": receipt.rejected}
    if named.stream.definition.ordering.future is not None:
        counts["quarantined"] = receipt.quarantined
    columns_of_counts = ", ".join(f"{name} BIGINT" for name in counts)
    frame = gateway.spark.createDataFrame([tuple(counts.values())], columns_of_counts)
    inserted = Relation(frame, "done when it was run", gateway)
    inserted.written_from = query
    return inserted


def _inserted(
    gateway: Gateway,
    tokens: TokenList,
    named: NamedStreamEntry,
    columns: list[str],
    query: Relation,
    place: Span,
) -> Receipt | None:
    if query.is_plan:
        return None
    rows = query.df
    if isinstance(query, StreamRelation):  # which shows its rowtime first
        own = named.stream.definition.rowtime.column
        taken = columns_taken(named.stream, rows.columns[1:], columns, TextPlace(tokens.sql, place))
        has_own = own in taken
        columns = [*taken] if has_own else [own, *taken]
        numbered = rows.toDF(*(f"c{place}" for place in range(len(rows.columns))))
        rows = numbered.select(*numbered.columns[1:]) if has_own else numbered
    if len(rows.columns) != len(columns):
        raise AnalysisError(
            f"rows have {len(rows.columns)} columns, but are inserted into {len(columns)}:"
            f" {', '.join(columns)}",
            condition="INSERT_COLUMN_ARITY_MISMATCH",
            sqlstate="21S01",
            sql=tokens.sql,
            span=place,
            hint="name the columns of the rows: INSERT INTO s (a, b) …",
        )
    with gateway.translated():
        typed = named.in_types(rows, columns)
        return None if gateway.plan_only else named.insert(typed.toArrow())


def _columns(tokens: TokenList, at: int, named: NamedStreamEntry) -> tuple[int, list[str]]:
    """The token at which the rows begin, and their columns."""
    known = {name.lower(): name for name in named.stream.definition.columns.names}
    if not tokens.is_symbol(at, "(") or tokens.word(at + 1) in _QUERIES or tokens.is_symbol(at + 1, "("):
        return at, list(known.values())
    found: list[str] = []
    for name, span in named_columns(tokens, at, "INSERT INTO"):
        column = known.get(name.lower())
        if column is None or column in found:
            raise AnalysisError(
                f"stream {named.name} has no column {name}"
                if column is None
                else f"column {name} is listed twice",
                condition="UNKNOWN_COLUMN" if column is None else "DUPLICATE_COLUMN",
                sqlstate="42703" if column is None else "42701",
                sql=tokens.sql,
                span=span,
                hint=f"use one of the columns {', '.join(known.values())}"
                if column is None
                else "list each column once",
            )
        found.append(column)
    return tokens.partner[at] + 1, found
