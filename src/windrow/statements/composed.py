"""Queries with EMIT inside other statements: each is replaced by the table or the stream that it returns.

It is a table in ``INSERT INTO t SELECT … EMIT STREAM``, ``CREATE TABLE t AS SELECT … EMIT …``, temporary
views, and queries in brackets, over recorded logs. It is a stream over live ones, and in queries with EMIT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from windrow.algebra.names import verbatim
from windrow.algebra.rewriting.expand import Expander
from windrow.errors import NotSupportedError, WindrowError
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation, TimeVaryingRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.statements.emitted_streams import is_stream_of_changes, stream_of_changes
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import RelationText as Place
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.streams.emit_clause import clauses_in
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["as_of_now", "located", "queries_inside", "relation_inside", "with_emitted"]

RunQuery = Callable[[str], Relation]


@contextmanager
def with_emitted(
    gateway: Gateway,
    catalog: Catalog,
    tokens: TokenList,
    places: list[Range],
    query: Range,
    run_query: RunQuery,
) -> Iterator[tuple[str, bool] | None]:
    """The statement with tables or streams in place of queries, and whether some are streams; None without
    such queries.

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
        ``UNSUPPORTED_CLAUSE`` of a stream that is no relation of FROM, and of a table beside live streams.
    """
    if not places:
        yield None
        return
    around = [
        at for at in clauses_in(tokens, *query) if not any(start <= at < stop for start, stop in places)
    ]
    parts: list[SqlText] = []
    frames, at = {}, 0
    for number, place in enumerate(places):
        span = tokens.span(*place)
        relation = relation_inside(tokens, place, run_query)
        if around or isinstance(relation, LiveRelation):
            name = _as_stream(gateway, catalog, tokens, place, query, relation)
            instead = SqlText.of("SELECT * FROM ", quoted(name))
        else:
            key = f"__emitted{number}"
            frames[key] = relation.df
            instead = SqlText.of("SELECT * FROM ", Place(key))
        parts += [verbatim(tokens, at, span.start), instead]
        at = span.stop
    text = SqlText.of(*parts, verbatim(tokens, at, len(tokens.sql)))
    with gateway.views(frames) as names, gateway.instead(text, names) as read:
        if frames and _reads(read, _live(catalog)):
            raise _unsupported(tokens, places[0], "together with live streams")
        yield read, len(frames) < len(places)


def _as_stream(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, place: Range, query: Range, relation: Relation
) -> str:
    """The name of the stream of a query's changes, where a relation may stand."""
    start, _ = place
    if not is_stream_of_changes(relation):
        raise _unsupported(tokens, place, "other than EMIT STREAM as a stream of another query")
    is_relation = tokens.word(start - 2) == "TABLE" or begins_relation(tokens, start - 1)
    if place != query and not (tokens.is_symbol(start - 1, "(") and is_relation):
        raise _unsupported(tokens, place, "outside of FROM in a query over streams")
    try:
        return stream_of_changes(gateway, catalog, relation, tokens.text(*place))
    except WindrowError as error:
        if error.span is None:
            error.sql, error.span = tokens.sql, tokens[clauses_in(tokens, *place)[0]].span
        raise


def relation_inside(tokens: TokenList, query: Range, run_query: RunQuery) -> Relation:
    """The output of a query with EMIT inside a statement."""
    with located(tokens, query) as text:
        return run_query(text)


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


def _live(catalog: Catalog) -> set[str]:
    """The streams without recorded rows, and the views of them."""
    live = {name for name, stream in catalog.streams.items() if stream.live and name not in catalog.named}
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
