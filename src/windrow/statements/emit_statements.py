"""Queries that emit by processing time: which queries these are, and how they run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

from windrow.algebra.names import piece_of
from windrow.algebra.output_order import output_order
from windrow.algebra.rewriting.changing import refuse_changing
from windrow.algebra.rewriting.expand import Expander
from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, NotSupportedError, ParseError, WindrowError
from windrow.explain.explain_live import explain_emitted
from windrow.plan.event_time import Timed
from windrow.relation import Relation, as_plan
from windrow.relation_kinds import LiveRelation, TimeVaryingRelation
from windrow.spark.analysis.evaluated_lengths import ticks_of
from windrow.spark.catalog import Catalog
from windrow.spark.declared import declare, in_place, keys_of
from windrow.spark.gateway import Gateway
from windrow.spark.live import EmittedPlan
from windrow.spark.logs.arrived import nothing_arrived
from windrow.spark.logs.past_log import PAST
from windrow.spark.logs.session_streams import Stream
from windrow.spark.recorded.emission import Emitted, EmittedInside
from windrow.spark.recorded.emission_plan import PlanReading, read_plan
from windrow.spark.recorded.emission_times import Materialization, common_ptime
from windrow.spark.recorded.emit_reference import emitted_by_definition
from windrow.statements.emitted_views import emitting_text
from windrow.syntax.cql_clauses import TO_STREAM, window_at
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.streams.as_of import pasts
from windrow.syntax.streams.emit_clause import Emission, has_clauses, parse_emission
from windrow.syntax.streams.other_dialects import spelled
from windrow.syntax.tokens import TokenList, tokenize

__all__ = [
    "explaining",
    "instant_of",
    "may_be_emitted",
    "may_be_view",
    "refuse_rowtime_windows",
    "remember_view",
    "run_emission",
    "untimed",
    "without_watermark",
]

_QUERIES = ("SELECT", "WITH")

_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("date", "timestamp", "timestamp_ntz")


def may_be_emitted(text: str, catalog: Catalog) -> bool:
    """Whether a text may be a query that emits by processing time."""
    if has_clauses(text):
        return True
    lower = text.lower()
    return any(name in lower for name in _recorded(catalog)) or any(name in lower for name in catalog.texts)


def may_be_view(text: str, catalog: Catalog) -> bool:
    """Whether a text may make or drop a view of streams."""
    lower = text.lower()
    return "view" in lower and any(
        name in lower for name in (*catalog.streams, *catalog.texts, *catalog.emitting)
    )


def _recorded(catalog: Catalog) -> dict[str, Stream]:
    """The recorded streams whose rows have known processing times."""
    return {name: stream for name, stream in catalog.streams.items() if stream.timed is not None}


def _going_on(catalog: Catalog) -> dict[str, Stream]:
    """The live and the named streams."""
    return {name: stream for name, stream in catalog.streams.items() if _goes_on(stream)}


def _goes_on(stream: Stream) -> bool:
    """Whether a stream is live, or a named one."""
    return stream.live is not None


def _logs(catalog: Catalog, names: Collection[str]) -> dict[str, Stream]:
    """The streams among these names whose rows have known processing times, up to the present entries."""
    found = {}
    for name in names:
        stream = catalog.streams.get(name)
        if name in catalog.named:
            found[name] = catalog.named[name].as_arrived()
        elif stream is not None and _goes_on(stream):
            found[name] = nothing_arrived(stream)
        elif stream is not None and stream.timed is not None:
            found[name] = stream
    return found


def remember_view(catalog: Catalog, tokens: TokenList, statement: Range) -> None:
    """Store the query of a temporary view over recorded streams, until it is dropped."""
    start, stop = statement
    if tokens.word(start) == "DROP" and tokens.word(start + 1) == "VIEW" and tokens[stop - 1].is_name:
        catalog.texts.pop(tokens[stop - 1].name.lower(), None)
        catalog.emitting.pop(tokens[stop - 1].name.lower(), None)
    if tokens.word(start) != "CREATE":
        return
    at = next((at for at in range(start, min(start + 6, stop)) if tokens.word(at) == "VIEW"), stop) + 1
    at += 3 * (tokens.word(at) == "IF")
    if at >= stop or not tokens[at].is_name:
        return
    name, at = tokens[at].name, at + 1
    catalog.texts.pop(name.lower(), None)
    catalog.emitting.pop(name.lower(), None)
    columns = ""
    if tokens.is_symbol(at, "("):
        listed = tokens.split(at + 1, tokens.partner[at])
        columns = f"({', '.join(quoted(tokens[first].name) for first, _ in listed)})"
        at = tokens.partner[at] + 1
    expander = Expander(tokens, {**_recorded(catalog), **_going_on(catalog)}, catalog.texts)
    body = (at + 1, stop)
    if tokens.word(at) != "AS":
        return
    if (emitting := emitting_text(catalog, tokens, body, columns)) is not None:
        catalog.emitting[name.lower()] = emitting
        return
    if not expander.leads_to_streams(body):
        return
    if pasts(tokens, {*catalog.streams, *catalog.texts}) or _by_rowtime(tokens, body) is not None:
        return
    text = expander.text(*body).render()
    catalog.texts[name.lower()] = f"SELECT * FROM ({text}) AS v{columns}" if columns else text


@contextmanager
def without_watermark(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, statement: Range
) -> Iterator[str | None]:
    """The statement without EMIT AFTER WATERMARK, if its query changes over time by rowtime and is live; None
    for others.

    A live query that changes over time by rowtime emits its changes up to the instant before which no more
    rows arrive, so they are complete anyway. Over recorded streams a query reads all rows, including those
    above the watermark.
    """
    start = statement[0] + explaining(tokens, statement[0])
    emission = parse_emission(tokens, start, statement[1])
    others = (emission.delay, emission.as_of, emission.lateness, emission.state_ttl)
    is_alone = emission.watermark is not None and not emission.stream and others == (None,) * len(others)
    is_by_rowtime = is_alone and _by_rowtime(tokens, emission.query) is not None
    if not (is_by_rowtime and _is_live(tokens, catalog, emission)):
        yield None
        return
    end = tokens.span(*emission.query).stop
    with gateway.instead(SqlText.of(Piece(tokens.sql[:end], tokens.sql, 0))) as read:
        yield read


def _is_live(tokens: TokenList, catalog: Catalog, emission: Emission) -> bool:
    """Whether all streams and views that a query names are streaming DataFrames, without recorded rows."""
    words = {tokens[at].name.lower() for at in range(*emission.query) if tokens[at].is_name}
    named = words & {*catalog.names, *catalog.sequences}
    lives = [catalog.streams[name].live for name in named if name in catalog.streams]
    return bool(named) and len(lives) == len(named) and all(live and not live.identity for live in lives)


def _by_rowtime(tokens: TokenList, query: Range) -> str | None:
    """The part of a query that changes by rowtime; None if there is none."""
    for at in range(*query):
        word, after = tokens.word(at), tokens.word(at + 1)
        is_call = word in TO_STREAM and tokens.is_symbol(at + 1, "(")
        if window_at(tokens, at) or is_call or (word, after) == ("CHANGELOG", "OF"):
            return "windows in brackets"
        if (word, after) == ("WINDOW", "BY") or word == "MATCH_RECOGNIZE":
            return "WINDOW BY and MATCH_RECOGNIZE"
    return None


def refuse_rowtime_windows(tokens: TokenList, query: Range, at: Range | None) -> None:
    """Refuse relations that change by rowtime beside a clause at these tokens.

    Raises
    ------
    NotSupportedError
        ``MIXED_CLOCKS``.
    """
    found = _by_rowtime(tokens, query)
    if found is not None:
        raise NotSupportedError(
            f"{found} in a query with EMIT are not supported",
            condition="MIXED_CLOCKS",
            sql=tokens.sql,
            span=tokens.span(*at) if at is not None else None,
            hint="leave EMIT and AS OF SYSTEM TIME out, as these change by rowtime: call"
            " relation.changelog() for the changes, or relation.at(instant) for the rows as of an instant",
        )


def explaining(tokens: TokenList, start: int) -> int:
    """How many words precede the query: EXPLAIN, and its form."""
    explains = tokens.word(start) == "EXPLAIN"
    return explains and 1 + (tokens.word(start + 1) in ("EXTENDED", "FORMATTED", "CODEGEN", "COST"))


def run_emission(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, statement: Range, execution: str
) -> Relation | None:
    """Run a query over recorded logs that emits by processing time; None for other statements.

    A query without EMIT that has no plan is left to Spark, over recorded rows.
    """
    start, stop = statement
    explains = explaining(tokens, start)
    start += explains
    emission = parse_emission(tokens, start, stop)
    is_query = tokens.word(start) in _QUERIES or tokens.is_symbol(start, "(")
    if emission.says_how and not is_query:
        at = emission.says or statement
        hint = "run the query by itself: relation.df.write, relation.start"
        raise unsupported_statement(tokens, at[0], f"{tokens[start].text} of a query with EMIT", hint)
    if not is_query:
        return None
    says_how = _says_how(tokens, emission)
    written = spelled(tokens, start, stop) if says_how else None
    if written is not None and written.selects:
        first = (emission.says or statement)[0]
        clause = "EMIT" if emission.emit is not None else "a clause of EMIT"
        raise ParseError(
            f"SELECT STREAM cannot be combined with {clause}",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens[first].span,
            hint=f"leave STREAM out after SELECT, or leave out {clause}",
        )
    if written is not None and written.sources:
        declare(gateway, catalog, written, keys_of(written).values())
        for key in keys_of(written).values():  # whose columns Spark knows
            catalog.streams[key].frame.createOrReplaceTempView(quoted(key))
        with gateway.instead(in_place(written, 0, len(tokens))) as read:
            again = tokenize(read)
            rest = len(tokens) - statement[1]
            return run_emission(gateway, catalog, again, (statement[0], len(again) - rest), execution)
    try:
        query = _query(gateway, catalog, tokens, emission, execution)
    except WindrowError:
        if says_how:
            raise
        return None
    if query is None:
        return None
    relation = _relation(gateway, catalog, tokens, emission, query)
    if not explains and not gateway.plan_only:
        return relation
    return as_plan(gateway, relation.plan())


def _relation(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, emission: Emission, query: Emitted
) -> Relation:
    """The output of the query, which can be started live over unbounded streams."""
    live = frozenset(name for name, stream in query.sources.items() if _goes_on(stream))
    envelope = emission.envelope if emission.stream else None
    order = partial(output_order, tokens, *emission.query)
    if not live or emission.as_of is not None:
        if any(name not in catalog.named for name in live):
            assert emission.as_of is not None
            raise NotSupportedError(
                "AS OF SYSTEM TIME of a live stream is not supported",
                condition="UNSUPPORTED_STREAM",
                sql=tokens.sql,
                span=tokens.span(*emission.as_of),
                hint="start the query without it, and compute the table at an instant from the changes",
            )
        return TimeVaryingRelation(query, emission.stream, emission.envelope, gateway, order)
    plan = EmittedPlan(gateway, catalog, live, tokens.sql, query, envelope)
    beside = next((name for part in query.parts if (name := part.judged_by_inside) is not None), None)
    if beside is not None:
        if not plan.is_endless and not gateway.prefers_live:
            return TimeVaryingRelation(query, emission.stream, emission.envelope, gateway, order)
        raise NotSupportedError(
            f"groups of {beside} by the watermark of a query with EMIT inside are not supported over live"
            " streams",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=plan.span,
            hint="insert the rows of the query inside into a named stream, and read that",
        )
    explain = partial(explain_emitted, plan)
    if not plan.is_endless and not gateway.prefers_live:
        return TimeVaryingRelation(
            query, emission.stream, emission.envelope, gateway, order, live=plan, plan=explain
        )
    return LiveRelation(plan, plan.no_rows(), explain)


def _says_how(tokens: TokenList, emission: Emission) -> bool:
    """Whether a query has a clause of EMIT, or reads a stream as of a time."""
    return emission.says_how or any(
        tokens[at].is_name and tokens[at].name.startswith(PAST) for at in range(*emission.query)
    )


def _query(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, emission: Emission, execution: str
) -> Emitted | None:
    says_how = _says_how(tokens, emission)
    if says_how:
        refuse_rowtime_windows(tokens, emission.query, emission.says)
    elif _by_rowtime(tokens, emission.query) is not None:
        return None
    span = tokens.span(*emission.query)
    expander = Expander(tokens, catalog.streams, catalog.texts)
    if not expander.leads_to_streams(emission.query):
        if not says_how:
            return None
        raise _no_stream(tokens, emission)
    for index in range(*emission.query):
        _refuse_unrecorded(tokens, index, catalog, live=says_how)
    refuse_changing(tokens, emission.query)
    expanded = expander.text(*emission.query)
    with gateway.instead(expanded) as read:
        inner = tokenize(read)
        words = {token.name.lower() for token in inner.tokens if token.is_name}
        if not says_how and any(name in words for name in _going_on(catalog)):
            return None
        recorded = _logs(catalog, words)
        reading = read_plan(gateway, expanded, inner, recorded, catalog.functions)
        timed = _timed(gateway, reading, recorded, catalog.emitted, tokens, emission)
    if not timed.occurrences:
        return None
    used = {each.stream: recorded[each.stream] for each in timed.occurrences}
    place = (tokens.sql, span)
    scale = common_ptime([stream.timed for stream in used.values() if stream.timed], place)
    how = _how(gateway, tokens, emission, scale, used)
    inside = {
        name: one for name, one in catalog.emitted.items() if name in used and isinstance(one, EmittedInside)
    }
    query = Emitted(gateway, used, execution, timed, reading, how, place, emitted_by_definition, inside)
    if emission.stream and emission.envelope == "one-sql":
        query.refuse_unordered_groups()
    return query


def _timed(
    gateway: Gateway,
    reading: PlanReading,
    recorded: dict[str, Stream],
    inside: Collection[str],
    tokens: TokenList,
    emission: Emission,
) -> Timed:
    """The facts of the query, whose keys may have a state TTL; `inside` are queries with EMIT, as streams."""
    watermark = tokens[emission.watermark].span if emission.watermark is not None else None
    state_ttl = None
    if (living := emission.state_ttl) is not None:

        def length(name: str) -> int:
            return ticks_of(gateway, tokens, recorded[name].scale, "a state TTL", living)

        state_ttl = length, (tokens.sql, tokens.span(living.tokens[0] - 2, living.tokens[1]))
    timed = reading.timed(gateway, watermark, (tokens.sql, watermark), state_ttl)
    if watermark is not None:
        for each in timed.streams:
            arrival = recorded[each].timed
            silent = arrival is not None and not arrival.watermark and not arrival.may_punctuate
            if silent and not _goes_on(recorded[each]) and each not in inside:
                raise AnalysisError(
                    f"stream {each} has no watermark, so none of its rows is ever final",
                    condition="NO_WATERMARK",
                    sql=tokens.sql,
                    span=watermark,
                    hint="declare the column of watermarks: CREATE STREAM … (…, WATERMARK bound TIMESTAMP)",
                )
    return timed


def _how(
    gateway: Gateway, tokens: TokenList, emission: Emission, scale: TimeScale, used: dict[str, Stream]
) -> Materialization:
    delay = None
    if emission.delay is not None:
        delay = ticks_of(gateway, tokens, scale, "a delay", emission.delay)
    lateness: dict[str, int] = {}
    for name, stream in used.items():
        if emission.lateness is not None:
            lateness[name] = ticks_of(gateway, tokens, stream.scale, "lateness", emission.lateness)
    until = None if emission.as_of is None else instant_of(gateway, tokens, scale, emission.as_of)
    return Materialization(emission.watermark is not None, delay, lateness, until)


def instant_of(gateway: Gateway, tokens: TokenList, scale: TimeScale, at: Range) -> int:
    """The tick of AS OF SYSTEM TIME, and of FOR SYSTEM_TIME AS OF.

    Raises
    ------
    AnalysisError
        ``INVALID_INSTANT``.
    """
    written = piece_of(tokens, *at)
    kind = gateway.sql(SqlText.of("SELECT ", written, " AS t")).schema["t"].dataType.simpleString()
    known = _NUMBERS if scale.kind == "bigint" else _TIMES
    tick = None
    if kind in known or kind.startswith("string"):  # Spark casts a time to a number, and a number to a time
        made = gateway.sql(SqlText.of("SELECT CAST(", written, f" AS {scale.kind}) AS t"))
        with gateway.translated():
            tick = made.selectExpr(scale.of_column("t", scale.kind, scale.unit)).collect()[0][0]
    if tick is None:
        what = "is NULL" if kind in known or kind == "void" else f"is of type {kind.upper()}"
        raise AnalysisError(
            f"{tokens.text(at[0] - 4, at[0])} {what}",
            condition="INVALID_INSTANT",
            sql=tokens.sql,
            span=tokens.span(*at),
            hint=f"write a {scale.kind.upper()}, the type of the stream's PTIME",
        )
    return int(tick)


def _no_stream(tokens: TokenList, emission: Emission) -> AnalysisError:
    at = emission.says or emission.query
    return AnalysisError(
        "the query reads no recorded stream, so nothing arrives over time",
        condition="NOT_VARYING",
        sql=tokens.sql,
        span=tokens.span(*at),
        hint="make a stream of the table: CREATE STREAM s (…, ROWTIME ts …, PTIME at …) FROM t",
    )


def _refuse_unrecorded(tokens: TokenList, at: int, catalog: Catalog, *, live: bool) -> None:
    """Refuse a stream whose rows have no known processing times; unless `live`, also unbounded streams."""
    token = tokens[at]
    stream = catalog.streams.get(token.name.lower()) if token.is_name else None
    is_relation = stream is not None and Expander(tokens, catalog.streams, {}).leads_to_streams((at, at + 1))
    if not is_relation or stream is None or stream.timed is not None:
        return
    if live and _goes_on(stream):
        return
    raise untimed(tokens, at, token.name)


def untimed(tokens: TokenList, at: int, name: str) -> AnalysisError:
    """The error for a stream whose rows have no known processing times."""
    return AnalysisError(
        f"stream {name} has no processing times",
        condition="MISSING_PTIME",
        sql=tokens.sql,
        span=tokens[at].span,
        hint="declare the column of processing times: CREATE STREAM … (…, PTIME at TIMESTAMP)",
    )
