"""Queries with EMIT inside other statements: each is replaced by the table or the stream that it returns.

It is a table in ``INSERT INTO t SELECT … EMIT STREAM``, ``CREATE TABLE t AS SELECT … EMIT …``, temporary
views, and queries in brackets, over recorded logs. It is a stream in FROM of a query with EMIT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager

from pyspark.sql import DataFrame

from windrow.algebra.names import verbatim
from windrow.algebra.rewriting.expand import Expander
from windrow.errors import NotSupportedError, WindrowError
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation, TimeVaryingRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.statements.emitted_streams import stream_of_changes
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import Range
from windrow.syntax.query_parts import used_ctes, visible_ctes
from windrow.syntax.sqltext import RelationText as Place
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.streams.emit_clause import clauses_in
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["as_of_now", "emits_around", "located", "queries_inside", "relation_inside", "with_emitted"]

RunQuery = Callable[[str], Relation]


@contextmanager
def with_emitted(
    gateway: Gateway,
    catalog: Catalog,
    tokens: TokenList,
    places: list[Range],
    query: Range,
    run_query: RunQuery,
) -> Iterator[str | None]:
    """The statement with tables or streams in place of queries; None without such queries.

    Parameters
    ----------
    places
        The queries, by :func:`queries_inside`.
    query
        The query of INSERT INTO and CREATE TABLE … AS, or the whole statement.
    run_query
        Runs a query, whose positions are those of the statement.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_CLAUSE`` over unbounded streams, in a query with EMIT other than as a relation of FROM,
        and beside live streams.
    """
    if not places:
        yield None
        return
    is_nested = emits_around(tokens, query, places)
    parts: list[SqlText] = []
    frames, at = dict[str, DataFrame](), 0
    with ExitStack() as streams:
        for number, place in enumerate(places):
            span = tokens.span(*place)
            relation = relation_inside(tokens, place, run_query)
            if is_nested:
                changes = _stream_in_from(tokens, place, relation)
                with _located_at(tokens, place):
                    read_from = stream_of_changes(gateway, catalog, changes, tokens.text(*place))
                    instead: str | Place = quoted(streams.enter_context(read_from))
            else:
                instead = Place(f"__emitted{number}")
                frames[f"__emitted{number}"] = relation.df
            parts += [verbatim(tokens, at, span.start), SqlText.of("SELECT * FROM ", instead)]
            at = span.stop
        text = SqlText.of(*parts, verbatim(tokens, at, len(tokens.sql)))
        with gateway.views(frames) as names, gateway.instead(text, names) as read:
            if _reads(read, _live(catalog, besides=is_nested)):
                raise _unsupported(tokens, places[0], "together with live streams")
            yield read


def emits_around(tokens: TokenList, query: Range, places: list[Range]) -> bool:
    """Whether a query has clauses of EMIT itself, besides those of the queries inside it."""
    return any(not any(start <= at < stop for start, stop in places) for at in clauses_in(tokens, *query))


def _stream_in_from(tokens: TokenList, place: Range, relation: Relation) -> TimeVaryingRelation:
    """A query whose changes are a recorded stream, where a relation may stand."""
    if (
        not isinstance(relation, TimeVaryingRelation)
        or relation._live is not None
        or not relation.is_stream_of("one-sql")
    ):
        raise _unsupported(tokens, place, "in a query with EMIT, other than EMIT STREAM of recorded streams,")
    before = place[0] - 1
    is_relation = tokens.word(before - 1) == "TABLE" or begins_relation(tokens, before)
    is_alone = tokens.word(0) in ("SELECT", "WITH", "FROM", "EXPLAIN") or tokens.is_symbol(0, "(")
    if not (is_alone and tokens.is_symbol(before, "(") and is_relation):
        raise _unsupported(tokens, place, "in a query with EMIT, other than in FROM of a query by itself,")
    return relation


def relation_inside(tokens: TokenList, query: Range, run_query: RunQuery) -> Relation:
    """The complete output of a query with EMIT inside a statement.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_CLAUSE`` over unbounded streams, and of a query that reads a query of WITH around it.
    """
    if used_ctes(tokens, visible_ctes(tokens, query[0]), query):
        raise _unsupported(tokens, query, "of a query that reads a query of WITH around it")
    with located(tokens, query) as text:
        relation = run_query(text)
    if isinstance(relation, LiveRelation):
        raise _unsupported(tokens, query, "over a live stream inside of a statement")
    return relation


@contextmanager
def _located_at(tokens: TokenList, query: Range) -> Iterator[None]:
    """Errors without a place have that of the query's clause."""
    try:
        yield
    except WindrowError as error:
        if error.span is None:
            error.sql, error.span = tokens.sql, tokens[clauses_in(tokens, *query)[0]].span
        raise


@contextmanager
def located(tokens: TokenList, query: Range) -> Iterator[str]:
    """The text of a query in a statement, preceded by blanks, so that positions are those of the
    statement.
    """
    span = tokens.span(*query)
    text = re.sub(r"[^\n]", " ", tokens.sql[: span.start]) + tokens.sql[span.start : span.stop]
    try:
        yield text
    except WindrowError as error:
        if error.sql == text:
            error.sql = tokens.sql
        raise


def queries_inside(tokens: TokenList, query: Range) -> list[Range]:
    """The outermost queries with clauses of EMIT inside a statement."""
    start, stop = query
    own = tokens.parent[start] if start < stop else -1
    found: list[Range] = []
    for at in clauses_in(tokens, *query):
        bracket = tokens.parent[at]
        if bracket > own:
            found.append((bracket + 1, tokens.partner[bracket]))
    return sorted({one for one in found if not any(_is_inside(one, other) for other in found)})


def _is_inside(one: Range, other: Range) -> bool:
    return one != other and other[0] <= one[0] and one[1] <= other[1]


def as_of_now(gateway: Gateway, tokens: TokenList, places: list[Range], relation: Relation) -> Relation:
    """A query around such tables, which are as of the end of the logs.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_CLAUSE`` of a live query.
    """
    if isinstance(relation, LiveRelation):
        raise _unsupported(tokens, places[0], "in a live query")
    relation._live = None
    return (
        Relation(relation.df, relation.plan(), gateway)
        if isinstance(relation, TimeVaryingRelation)
        else relation
    )


def _live(catalog: Catalog, *, besides: bool) -> set[str]:
    """The streams without recorded rows, `besides` also named ones, and the views of them."""
    streams = (name for name, stream in catalog.streams.items() if stream.live)
    live = {name for name in streams if besides or name not in catalog.named}
    return live | {name for name, text in catalog.texts.items() if _reads(text, live)}


def _reads(text: str, streams: Collection[str]) -> bool:
    tokens = tokenize(text)
    return Expander(tokens, streams, {}).leads_to_streams((0, len(tokens)))


def _unsupported(tokens: TokenList, query: Range, what: str) -> NotSupportedError:
    at = clauses_in(tokens, *query)[0]
    return NotSupportedError(
        f"{tokens[at].text} {what} is not supported",
        condition="UNSUPPORTED_CLAUSE",
        sql=tokens.sql,
        span=tokens[at].span,
        hint="register its result under a name: session.register('name', relation.df); if it is live, make"
        " a stream of it: session.stream('name', relation.df, rowtime='ptime', lag='0 seconds')",
    )
