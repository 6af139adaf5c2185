"""INSERT INTO of live queries: their rows go into a target as long as they run."""

from __future__ import annotations

from collections.abc import Callable

from windrow.algebra.continuous import Reader
from windrow.errors import WindrowError
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation, StartedRelation, StreamRelation
from windrow.spark.gateway import Gateway
from windrow.spark.live import Insert, IntoStream, Table
from windrow.spark.live.queries import queries_of
from windrow.spark.live.sinks.into_stream import refuse_other
from windrow.statements.composed import located
from windrow.syntax.cql_clauses import named_columns, parse_to_stream
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.streams.emit_clause import clauses_in
from windrow.syntax.streams.other_dialects import spelled
from windrow.syntax.tokens import TokenList

__all__ = ["gives_stream", "insert_into_table", "live_of", "start_insert"]

_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "VALUES", "ISTREAM", "DSTREAM", "RSTREAM")


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
    """The query of a statement, live if it can be; errors are at their place in the statement."""
    gateway.prefers_live = gives_stream(tokens, body, stop)
    with located(tokens, (body, stop)) as query:
        return run_query(query)


def start_insert(
    gateway: Gateway, tokens: TokenList, live: LiveRelation, sink: IntoStream | Table, target: str
) -> Relation:
    """Start what INSERT INTO asks for: a row with the name of the query and of its target."""
    plan = live._live
    assert plan is not None
    try:
        if isinstance(sink, IntoStream):
            refuse_other(sink, plan)
        query = queries_of(plan.catalog).insert(Insert(plan, sink, target))
    except WindrowError as error:
        if error.span is not None:
            error.sql = tokens.sql  # the query stands in it where it stood when it was read
        raise
    name = "" if query is None else query.name
    frame = gateway.spark.createDataFrame([(name, target)], "query STRING, target STRING")
    return StartedRelation(frame, gateway, query)


def insert_into_table(
    gateway: Gateway, tokens: TokenList, statement: Range, run_query: Callable[[str], Relation]
) -> Relation | None:
    """Start a live query into a table; None for other statements, and for queries that are not live.

    Raises
    ------
    WindrowError
        Those of the query, and of :meth:`windrow.spark.live.LiveQueries.insert`.
    """
    start, stop = statement
    if tokens.word(start) != "INSERT" or tokens.word(start + 1) != "INTO":
        return None
    first = start + 2 + (tokens.word(start + 2) == "TABLE")
    at = first + 1
    while tokens.is_symbol(at, ".") and at + 1 < stop:
        at += 2
    if first >= stop or not tokens[first].is_name:
        return None
    target = tokens.text(first, at)
    columns = None
    if tokens.is_symbol(at, "(") and tokens.word(at + 1) not in _QUERIES:
        columns = [name for name, _ in named_columns(tokens, at, "INSERT INTO")]
        at = tokens.partner[at] + 1
    if at >= stop or not (tokens.word(at) in _QUERIES or tokens.is_symbol(at, "(")):
        return None
    if not gives_stream(tokens, at, stop):
        return None
    relation = live_of(gateway, tokens, at, stop, run_query)
    if relation.is_plan:
        return relation
    if not isinstance(relation, LiveRelation | StreamRelation):
        return None  # a column that is called stream
    if isinstance(relation, StreamRelation):
        hint = "write relation.df with Spark: what is recorded is there at once"
        raise unsupported_statement(tokens, start, "INSERT of a recorded stream into a table", hint)
    return start_insert(gateway, tokens, relation, Table(target, columns), target.replace("`", ""))
