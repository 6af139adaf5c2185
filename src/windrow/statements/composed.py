"""Queries with EMIT inside other statements: each is replaced by the table that it returns.

``INSERT INTO t SELECT … EMIT STREAM``, ``CREATE TABLE t AS SELECT … EMIT …``, temporary views, and queries in
brackets, over recorded logs.
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
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import RelationText as Place
from windrow.syntax.sqltext import SqlText
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
) -> Iterator[str | None]:
    """The statement with tables in place of queries; None without such queries.

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
        ``UNSUPPORTED_CLAUSE`` over unbounded streams, in a query with EMIT itself, and beside live streams.
    """
    if not places:
        yield None
        return
    around = [
        at for at in clauses_in(tokens, *query) if not any(start <= at < stop for start, stop in places)
    ]
    if around:
        raise _unsupported(tokens, places[0], "in a query with EMIT")
    parts: list[SqlText] = []
    frames, at = {}, 0
    for number, place in enumerate(places):
        span = tokens.span(*place)
        key = f"__emitted{number}"
        frames[key] = relation_inside(tokens, place, run_query).df
        parts += [verbatim(tokens, at, span.start), SqlText.of("SELECT * FROM ", Place(key))]
        at = span.stop
    text = SqlText.of(*parts, verbatim(tokens, at, len(tokens.sql)))
    with gateway.views(frames) as names, gateway.instead(text, names) as read:
        if _reads(read, _live(catalog)):
            raise _unsupported(tokens, places[0], "together with live streams")
        yield read


def relation_inside(tokens: TokenList, query: Range, run_query: RunQuery) -> Relation:
    """The complete output of a query with EMIT inside a statement.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_CLAUSE`` over unbounded streams.
    """
    with located(tokens, query) as text:
        relation = run_query(text)
    if isinstance(relation, LiveRelation):
        raise _unsupported(tokens, query, "over a live stream inside of a statement")
    return relation


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
