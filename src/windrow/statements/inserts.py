"""INSERT INTO of live queries: their rows go into a target while they run."""

from __future__ import annotations

from collections.abc import Callable

from windrow.algebra.continuous import Reader
from windrow.errors import WindrowError
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation, StartedRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import Insert, IntoStream, Table
from windrow.spark.live.session_queries import queries_of
from windrow.spark.live.sinks.into_stream import refuse_other
from windrow.statements.composed import located
from windrow.syntax.cql_clauses import parse_to_stream
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.streams.emit_clause import clauses_in
from windrow.syntax.streams.other_dialects import spelled
from windrow.syntax.tokens import TokenList

__all__ = ["gives_stream", "live_of", "refuse_stored_rows", "start_insert"]


def gives_stream(tokens: TokenList, start: int, stop: int) -> bool:
    """Whether a query returns a stream: SELECT STREAM, ISTREAM(…) and its like, EMIT STREAM."""
    if any(
        tokens.word(at) == "EMIT" and tokens.word(at + 1) == "STREAM"
        for at in clauses_in(tokens, start, stop)
    ):
        return True
    written = spelled(tokens, start, stop)
    inside = written.tokens
    last = stop - len(tokens) + len(inside)
    body = Reader(inside, frozenset(), frozenset()).after_with(start, last)
    return inside[body].start in written.selects or parse_to_stream(inside, body, last) is not None


def live_of(
    gateway: Gateway, tokens: TokenList, body: int, stop: int, run_query: Callable[[str], Relation]
) -> Relation:
    """The query of a statement, live if possible; errors are at their position in the statement."""
    gateway.prefers_live = gives_stream(tokens, body, stop)
    with located(tokens, (body, stop)) as query:
        return run_query(query)


def refuse_stored_rows(catalog: Catalog, tokens: TokenList, at: int) -> None:
    """Refuse INSERT of stored rows in a pipeline, which would repeat it at each start.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT``.
    """
    if tokens.word(at) == "INSERT" and queries_of(catalog).collected is not None:
        hint = "write SELECT STREAM …, which starts a live query; or insert the rows once with session.sql"
        raise unsupported_statement(tokens, at, "INSERT of stored rows in a pipeline", hint)


def start_insert(
    gateway: Gateway, tokens: TokenList, live: LiveRelation, sink: IntoStream | Table, target: str
) -> Relation:
    """Start the query of INSERT INTO: a row with the names of the query and its target."""
    plan = live._live
    assert plan is not None
    try:
        if isinstance(sink, IntoStream):
            refuse_other(sink, plan)
        query = queries_of(plan.catalog).insert(Insert(plan, sink, target))
    except WindrowError as error:
        if error.span is not None:
            error.sql = tokens.sql  # the query is at the same position as when it was read
        raise
    name = "" if query is None else query.name
    frame = gateway.spark.createDataFrame([(name, target)], "query STRING, target STRING")
    return StartedRelation(frame, gateway, query)
