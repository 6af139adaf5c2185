"""SELECT STREAM over whole streams, and inside of queries.

Over recorded streams it is a table; live it emits the rows that punctuation makes final.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from windrow.algebra.continuous import ChangelogOf, Continuous, Query, Reader, StreamQuery, WindowedStream
from windrow.algebra.names import verbatim
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.nested_streams import nested_selects, without_words
from windrow.errors import AnalysisError, NotSupportedError, Span, WindrowError
from windrow.explain.explain_live import how_blocking
from windrow.relation import Relation, as_plan
from windrow.relation_kinds import LiveRelation
from windrow.spark.analysis.evaluated_lengths import nanoseconds_of
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import WholeStreamsPlan, is_blocking
from windrow.spark.logs.session_streams import Stream
from windrow.statements.clauses_over_streams import has_windows_of_time
from windrow.syntax.cql_clauses import TO_STREAM, alias_after, begins_relation
from windrow.syntax.nodes import Range
from windrow.syntax.query_parts import begins_window_by, level_around
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.streams.other_dialects import Spelled
from windrow.syntax.tokens import TokenList, tokenize

__all__ = [
    "may_stand_below_clauses",
    "misplaced_within",
    "refuse_gathering_inside",
    "run_blocking",
    "selects_inside",
    "with_streams_as_rows",
    "with_streams_below_clauses",
]

_IN_BRACKETS = re.compile(r"\(\s*(select\s+stream\b|[idr]stream\s*\()", re.IGNORECASE)
_BELOW = "__windrow_below_"


def may_stand_below_clauses(text: str) -> bool:
    """Whether a text may have a stream in brackets."""
    return _IN_BRACKETS.search(text) is not None


def selects_inside(catalog: Catalog, tokens: TokenList, statement: Range) -> list[int]:
    """The SELECTs of SELECT STREAM in FROM and WITH.

    Raises
    ------
    AnalysisError
        ``STREAM_WHERE_RELATION_IS_NEEDED`` in a subquery of an expression.
    """
    return nested_selects(tokens, statement, {*catalog.names, *catalog.texts})


@contextmanager
def with_streams_as_rows(gateway: Gateway, catalog: Catalog, text: str) -> Iterator[str | None]:
    """The text without STREAM in FROM and WITH, if streams are read as their rows there; None for others.

    This applies to named streams, in a statement without windows in brackets.
    """
    tokens = tokenize(text)
    statement = (0, len(tokens))
    selects = selects_inside(catalog, tokens, statement)
    if not selects or has_windows_of_time(tokens, statement, catalog):
        yield None
        return
    with gateway.instead(without_words(tokens, selects)) as read:
        yield read


@contextmanager
def with_streams_below_clauses(
    gateway: Gateway, catalog: Catalog, text: str, run_query: Callable[[str, Catalog], Relation]
) -> Iterator[tuple[str, Catalog] | None]:
    """The text with a name in place of each ``(SELECT STREAM … [window] …)`` and ``(ISTREAM(…))`` whose rows
    a clause reads, and the catalog with these names; None for others.

    Parameters
    ----------
    run_query
        Runs a statement with such a catalog.
    """
    tokens = tokenize(text)
    start = 1 if tokens.word(0) == "EXPLAIN" else 0
    streams = [at for at in range(start, len(tokens)) if tokens.word(at) in TO_STREAM]
    read = [
        at
        for at in (*selects_inside(catalog, tokens, (start, len(tokens))), *streams)
        if tokens.parent[at] == at - 1
        and begins_relation(tokens, at - 1)
        and has_windows_of_time(tokens, (at, tokens.partner[at - 1]), catalog)
        and _is_below_clause(tokens, at - 1)
    ]
    if not read:
        yield None
        return
    # a view reads them later, other names end with the statement
    known = catalog if tokens.word(0) == "CREATE" else catalog.as_it_is()
    edits = Edits(tokens)
    asked = gateway.plan_only, gateway.checks, gateway.prefers_live
    for at in read:
        close = tokens.partner[at - 1]
        inside = verbatim(tokens, tokens[at].start, tokens[close].start)
        name = f"{_BELOW}{hashlib.sha256(inside.render().encode()).hexdigest()[:16]}"
        gateway.plan_only = gateway.checks = gateway.prefers_live = False
        try:
            with gateway.instead(
                SqlText.of(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS ", inside)
            ) as create:
                run_query(create, known)
        finally:
            gateway.plan_only, gateway.checks, gateway.prefers_live = asked
        edits.instead.update({one: SqlText() for one in range(at, close + 1)})
        edits.instead[at - 1] = SqlText.of(f"{name} ")
    with gateway.instead(edits.text(0, len(tokens))) as named:
        yield named, known


def _is_below_clause(tokens: TokenList, bracket: int) -> bool:
    """Whether a clause reads the rows of a query in brackets, and of nothing else."""
    close = tokens.partner[bracket]
    alias = alias_after(tokens, close + 1, len(tokens))
    after = close + 1 if alias is None else alias + 1
    if tokens.word(after) == "MATCH_RECOGNIZE" or tokens.word(close + 1) == "MATCH_RECOGNIZE":
        return True
    level = tokens.level(close + 1, level_around(tokens, bracket)[1])
    clause = next((at for at in level if begins_window_by(tokens, at)), None)
    beside = {tokens.word(at) for at in level if clause is not None and at < clause} & {"JOIN", "LATERAL"}
    has_comma = tokens.is_symbol(after, ",")
    return clause is not None and tokens.word(bracket - 1) == "FROM" and not beside and not has_comma


def refuse_gathering_inside(reader: Reader, query: Continuous) -> None:
    """Refuse SELECT STREAM in FROM that groups, joins or orders whole streams: its rows have no rowtime.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM``.
    """
    inner = query.query if isinstance(query, StreamQuery) else query
    for item in inner.inputs:
        if isinstance(item, WindowedStream) and isinstance(item.source, StreamQuery):
            if is_blocking(reader, item.source.query):
                hint = "add windows to its streams: SELECT STREAM … FROM s [RANGE UNBOUNDED] …"
                raise _expanded_inside(reader, item.source.span, hint)
            refuse_gathering_inside(reader, item.source)
        elif isinstance(item, ChangelogOf):
            refuse_gathering_inside(reader, item.query)


def _expanded_inside(reader: Reader, span: Span, hint: str) -> NotSupportedError:
    return NotSupportedError(
        "GROUP BY, joins or ORDER BY over whole streams, around or inside a stream in FROM, are not"
        " supported",
        condition="UNSUPPORTED_STREAM",
        sql=reader.tokens.sql,
        span=span,
        hint=hint,
    )


def run_blocking(
    gateway: Gateway,
    catalog: Catalog,
    reader: Reader,
    query: Query,
    live: frozenset[str],
    written: Spelled,
    is_explained: bool,
) -> Relation:
    """Run a query over streams without windows that groups, joins, combines or orders their rows.

    Over recorded rows it is the query over all of them, as if all keys were then closed.
    """
    within = _within(gateway, catalog, query, written)
    rows = {}
    for item in query.inputs:
        assert isinstance(item, WindowedStream)
        if isinstance(item.source, StreamQuery):
            raise _expanded_inside(reader, item.span, "add a window: (SELECT STREAM …) [RANGE UNBOUNDED]")
        stream = _recorded(catalog, item.source.lower(), within)
        rows[item.key] = stream.frame.select(*map(quoted, stream.columns))
    try:
        frame = gateway.sql(query.text, rows)
    except WindrowError as error:
        raise error.located(reader.tokens.sql) from error.__cause__
    text_of_plan = "over all recorded rows, as if all keys were closed"
    if not live:
        return Relation(frame, text_of_plan, gateway)
    text = None if written.written is None else written.written.sql
    plan = WholeStreamsPlan(gateway, catalog, live, reader, query, tuple(frame.columns), within, text)
    is_endless = plan.is_endless or gateway.prefers_live
    if within:
        _refuse_other_order(plan, written)
    if is_explained:
        return as_plan(gateway, how_blocking(plan))
    if is_endless:
        return LiveRelation(plan, frame, how_blocking(plan))
    return Relation(frame, text_of_plan, gateway, live=plan)


def misplaced_within(written: Spelled) -> NotSupportedError:
    """The error for WITHIN after an input that is not a stream."""
    tokens, within = written.written, written.within
    assert tokens is not None
    assert within is not None
    return NotSupportedError(
        "ORDER BY … WITHIN is supported only over a single stream without a window",
        condition="UNSUPPORTED_STREAM",
        sql=tokens.sql,
        span=tokens.span(within.tokens[0] - 1, within.tokens[1]),
        hint="write SELECT STREAM … FROM s ORDER BY ts WITHIN INTERVAL '2' MINUTE, by the rowtime of s",
    )


def _within(gateway: Gateway, catalog: Catalog, query: Query, written: Spelled) -> dict[str, int]:
    """The disorder allowed by WITHIN, in ticks of the stream's time scale."""
    tokens, within = written.written, written.within
    if tokens is None or within is None:
        return {}
    names = {str(item.source).lower() for item in query.inputs if isinstance(item, WindowedStream)}
    if len(query.inputs) != 1:
        raise misplaced_within(written)
    (name,) = names
    stream = catalog.streams[name]
    length = nanoseconds_of(gateway, tokens, within)
    if length % stream.scale.nanoseconds:
        raise AnalysisError(
            f"the length is not a whole number of {stream.scale.unit.lower()}s, the unit of rowtimes",
            condition="INVALID_WINDOW_SIZE",
            sql=tokens.sql,
            span=tokens.span(*within.tokens),
            hint=f"write a whole number of {stream.scale.unit.lower()}s",
        )
    if name not in catalog.named and stream.live is None:
        raise misplaced_within(written)
    return {name: stream.scale.ticks(length)}


def _recorded(catalog: Catalog, name: str, within: dict[str, int]) -> Stream:
    """The recorded rows of a stream, except those too late for ORDER BY … WITHIN."""
    stream = catalog.streams[name]
    named = catalog.named.get(name)
    if name in within and named is not None:
        return dataclasses.replace(stream, frame=named.recorded_within(within[name]))
    return stream


def _refuse_other_order(plan: WholeStreamsPlan, written: Spelled) -> None:
    """Refuse WITHIN if the first key is not the rowtime, or the query does more than order rows."""
    (name,) = plan.within
    rowtime = plan.catalog.streams[name].rowtime
    first = plan.blocking.sorted_by
    origin = None if first is None else plan.blocking.lineage.same.get(first)
    if origin != (name, rowtime) or not plan.blocking.only_orders:
        raise misplaced_within(written)
