"""INSERT INTO a named stream."""

from __future__ import annotations

from collections.abc import Callable

from windrow.errors import (
    AnalysisError,
    ExecutionError,
    InputError,
    ParseError,
    Span,
    WindrowError,
)
from windrow.relation import Relation, as_plan
from windrow.relation_kinds import LiveRelation, StreamRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import IntoStream
from windrow.spark.logs.columns_taken import TextPlace, columns_named, columns_taken
from windrow.spark.logs.named_in_session import NamedStreamEntry
from windrow.statements.inserts import live_of, refuse_stored_rows, start_insert
from windrow.statements.named_streams.stream_rows import no_named_stream
from windrow.streams import Receipt
from windrow.syntax.cql_clauses import named_columns
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.streams.commands import by_name
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
        ``UNKNOWN_COLUMN``, ``DUPLICATE_COLUMN``, ``NULL_ROWTIME``, and those of the query and of
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
    query = live_of(gateway, tokens, body, stop, _with_nulls(tokens, body, run_query))
    place = tokens.span(body, stop)
    if query.is_plan:
        columns = []
    elif columns is None:
        columns = _columns_by_name(tokens, named, query, place)
    if isinstance(query, LiveRelation):
        return start_insert(gateway, tokens, query, IntoStream(named.stream, columns), named.name)
    if not query.is_plan:
        refuse_stored_rows(catalog, tokens, start)
    receipt = _inserted(gateway, tokens, named, columns, query, place)
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
    rowtime = named.stream.definition.rowtime.column
    try:
        if rowtime not in columns:
            raise InputError(
                f"the rows have no rowtime {rowtime}",
                condition="NULL_ROWTIME",
                hint=f"set {rowtime} of every row; nothing was inserted",
            )
        with gateway.translated():
            typed = named.in_types(rows, columns)
            return None if gateway.plan_only else named.insert(typed.toArrow())
    except (InputError, ExecutionError) as error:
        if error.span is None:
            error.sql, error.span = tokens.sql, place
        raise


def _columns(tokens: TokenList, at: int, named: NamedStreamEntry) -> tuple[int, list[str] | None]:
    """The token at which the rows begin, and their columns; None if these are found by name."""
    if by_name(tokens, at):
        return at + 2, None
    known = named.stream.definition.columns.names
    if not tokens.is_symbol(at, "(") or tokens.word(at + 1) in _QUERIES or tokens.is_symbol(at + 1, "("):
        return at, list(known)
    listed = named_columns(tokens, at, "INSERT INTO")
    return tokens.partner[at] + 1, columns_named(f"stream {named.name}", known, listed, tokens.sql)


def _columns_by_name(tokens: TokenList, named: NamedStreamEntry, query: Relation, place: Span) -> list[str]:
    """The columns of the stream that have the names of a query's columns."""
    if isinstance(query, LiveRelation):
        assert query.live is not None
        query.live.refuse_no_stream()
        own = query.live.stream_columns
    else:
        own = query.df.columns[isinstance(query, StreamRelation) :]  # which shows its rowtime first
    columns = named.stream.definition.columns.names
    return columns_named(f"stream {named.name}", columns, ((name, place) for name in own), tokens.sql)


def _with_nulls(
    tokens: TokenList, body: int, run_query: Callable[[str], Relation]
) -> Callable[[str], Relation]:
    """Run a query with NULL, the default of all columns, for each DEFAULT in its rows of VALUES."""
    while tokens.is_symbol(body, "("):
        body += 1
    found = list(tokens.places("DEFAULT")) if tokens.word(body) == "VALUES" else []
    places = [at for at in found if _is_value(tokens, body, at)]
    if not found:
        return run_query

    def run(query: str) -> Relation:
        text = query
        for span in (tokens[at].span for at in places):
            text = text[: span.start] + "NULL".ljust(span.stop - span.start) + text[span.stop :]
        try:
            return run_query(text)
        except WindrowError as error:
            if error.sql == text:
                error.sql = query
            starts = {tokens[at].start for at in found}
            if error.condition.startswith("UNRESOLVED_COLUMN") and error.span and error.span.start in starts:
                error.hint = "write DEFAULT alone as a value; it is NULL for each column of a stream"
            raise

    return run


def _is_value(tokens: TokenList, body: int, at: int) -> bool:
    """Whether a token is a whole value in a row of VALUES."""
    row = tokens.parent[at]
    if row != tokens.parent[body]:
        begins_row = tokens.word(row - 1) == "VALUES" or tokens.is_symbol(row - 1, ",")
        if row < body or tokens.parent[row] != tokens.parent[body] or not begins_row:
            return False
    is_first = at - 1 in (body, row) or tokens.is_symbol(at - 1, ",")
    return is_first and (at + 1 == len(tokens) or tokens[at + 1].text in (",", ")", ";"))
