"""Queries with EMIT inside other statements: each is replaced by the table or the stream that it returns.

It is a table in ``INSERT INTO t SELECT … EMIT STREAM``, ``CREATE TABLE t AS SELECT … EMIT …``, temporary
views, and queries in brackets, over recorded logs. In a query with EMIT it is a stream of its changes, or a
table that changes.
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
from windrow.spark.live import EmittedPlan
from windrow.spark.recorded.emission import Emitted
from windrow.statements.emitted_streams import emitted_stream
from windrow.syntax.nodes import Range
from windrow.syntax.query_parts import used_ctes, visible_ctes
from windrow.syntax.sqltext import RelationText as Place
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.streams.emit_clause import clauses_in
from windrow.syntax.tokens import TokenList, tokenize

__all__ = [
    "as_of_now",
    "emits_around",
    "located",
    "queries_inside",
    "relation_inside",
    "with_emitted",
]

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
        ``UNSUPPORTED_CLAUSE`` over unbounded streams, and beside them, if the statement has no EMIT itself.
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
            instead: str | Place = Place(f"__emitted{number}")
            if is_nested and (inner := _query(tokens, place, relation)) is not None:
                with _located_at(tokens, place):
                    read_from = emitted_stream(gateway, catalog, *inner, tokens.text(*place))
                    instead = quoted(streams.enter_context(read_from))
            elif isinstance(relation, LiveRelation):
                raise _unsupported(
                    tokens, place, "over a live stream inside of a query without EMIT", _AROUND
                )
            else:
                frames[f"__emitted{number}"] = relation.df
            parts += [verbatim(tokens, at, span.start), SqlText.of("SELECT * FROM ", instead)]
            at = span.stop
        text = SqlText.of(*parts, verbatim(tokens, at, len(tokens.sql)))
        with gateway.views(frames) as names, gateway.instead(text, names) as read:
            if not is_nested and _reads(read, _live(catalog)):
                raise _unsupported(tokens, places[0], "together with live streams", _AROUND)
            yield read


def emits_around(tokens: TokenList, query: Range, places: list[Range]) -> bool:
    """Whether a query has clauses of EMIT itself, besides those of the queries inside it."""
    return any(not any(start <= at < stop for start, stop in places) for at in clauses_in(tokens, *query))


def _query(tokens: TokenList, place: Range, relation: Relation) -> tuple[Emitted, str | None] | None:
    """A query that changes as entries arrive, and the envelope of its changes; None for a table as of a
    time.
    """
    if isinstance(relation, LiveRelation) and isinstance(plan := relation.live, EmittedPlan):
        return plan.query, plan.emit_envelope
    if not isinstance(relation, TimeVaryingRelation):
        raise _unsupported(tokens, place, "of windows or matches, in a query with EMIT,")
    is_fixed = relation.query.how.until is not None and relation.emits is None
    return None if is_fixed else (relation.query, relation.emits)


def relation_inside(tokens: TokenList, query: Range, run_query: RunQuery) -> Relation:
    """The complete output of a query with EMIT inside a statement.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_CLAUSE`` of a query that reads a query of WITH around it.
    """
    if used_ctes(tokens, visible_ctes(tokens, query[0]), query):
        raise _unsupported(tokens, query, "of a query that reads a query of WITH around it")
    with located(tokens, query) as text:
        return run_query(text)


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
        raise _unsupported(tokens, places[0], "in a live query", _AROUND)
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


_RESULT = (
    "register its result under a name: session.register('name', relation.df); if it is live, make"
    " a stream of it: session.stream('name', relation.df, rowtime='ptime', lag='0 seconds')"
)
_AROUND = "end the whole query with EMIT STREAM too"


def _unsupported(tokens: TokenList, query: Range, what: str, hint: str = _RESULT) -> NotSupportedError:
    at = clauses_in(tokens, *query)[0]
    return NotSupportedError(
        f"{tokens[at].text} {what} is not supported",
        condition="UNSUPPORTED_CLAUSE",
        sql=tokens.sql,
        span=tokens[at].span,
        hint=hint,
    )
