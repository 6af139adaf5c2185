"""Statements about streams: CREATE STREAM, views of continuous queries, and the queries themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pyspark.sql import DataFrame

from windrow.algebra.continuous import Query, Reader, StreamQuery
from windrow.algebra.names import piece_of
from windrow.algebra.output_order import output_order, with_keys
from windrow.algebra.rewriting.changing import refuse_changing
from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, NotSupportedError, ParseError, WindrowError, no_column
from windrow.explain.explain_live import how_live
from windrow.explain.explained import explain_continuous
from windrow.relation import Relation, as_plan, no_rows
from windrow.relation_kinds import LiveRelation, StreamRelation, VaryingRelation
from windrow.spark.analysis.evaluated_lengths import nanoseconds_of
from windrow.spark.catalog import Catalog, CatalogDefinition
from windrow.spark.declared import declare, read_by, refuse_mixed
from windrow.spark.gateway import Gateway
from windrow.spark.live import (
    ContinuousPlan,
    is_blocking,
    live_stream,
    live_streams,
    over_streams_of_changes,
)
from windrow.spark.logs.session_streams import Stream
from windrow.spark.logs.table_log import TableLog
from windrow.spark.logs.table_streams import of_frame
from windrow.spark.logs.text_log import is_text_log, of_text_log, read_text_log
from windrow.spark.recorded.continuous_queries import Runner
from windrow.spark.relations.time_varying_relation import TimeVarying
from windrow.spark.scan.file_sources import read_table
from windrow.statements.definitions.view_expansion import remember_expanded
from windrow.statements.named_streams.create import create_named, refuse_changed_rows, refuse_other_stream
from windrow.statements.named_streams.insert import insert
from windrow.statements.named_streams.punctuations import punctuate
from windrow.statements.named_streams.small_files import optimize
from windrow.statements.naming import (
    forget,
    forget_unread,
    is_free,
    refresh,
    refuse_taken,
    remember_stream,
    show_endless,
    streams_shown,
)
from windrow.statements.select_stream import (
    misplaced_within,
    refuse_gathering_inside,
    run_blocking,
    selects_inside,
)
from windrow.statements.statement_context import StatementContext
from windrow.statements.stream_reader import reader_of
from windrow.syntax.definitions.create_view import View, parse_view
from windrow.syntax.lengths import Length
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.sqltext import RelationText as SourceRelation
from windrow.syntax.streams.create_stream import CreateStream, DeclaredColumn, parse_create_stream
from windrow.syntax.streams.other_dialects import Spelled, spelled
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["has_stream_words", "is_continuous", "run_continuous"]

_SIGNS = re.compile(
    r"\[\s*(now|range|rows|partition)\b|\b[idr]stream\s*\(|\bcreate\s+(or\s+replace\s+)?stream\b"
    r"|\b(drop\s+stream|show\s+streams)\b|\bchangelog\s+of\b|\bpunctuate\b|\bselect\s+stream\b",
    re.IGNORECASE,
)


_SOURCE = "__source"
_QUERIES = ("SELECT", "WITH", "FROM", "ISTREAM", "DSTREAM", "RSTREAM", "VALUES", "TABLE")


def has_stream_words(text: str) -> bool:
    """Whether a text has words that only occur in queries about streams."""
    return _SIGNS.search(text) is not None


def is_continuous(text: str, catalog: Catalog) -> bool:
    """Whether a text may be about streams: by its words and the names in it."""
    if _SIGNS.search(text):
        return True
    lower = text.lower()
    return any(name in lower for name in catalog.names)


def run_continuous(context: StatementContext) -> Relation | None:
    """Run a statement about streams; None for others.

    With EXPLAIN before it, or if the gateway only plans, nothing is created and the relation is its plan.
    """
    gateway, catalog, execution = context.gateway, context.catalog, context.execution
    tokens, run_query = context.tokens, context.run_query
    start, stop = context.statement
    if tokens.word(start) == "EXPLAIN":
        start += 1 + (tokens.word(start + 1) in ("EXTENDED", "FORMATTED", "CODEGEN", "COST"))
        gateway.plan_only = True
    is_explained = gateway.plan_only
    refresh(gateway, catalog, execution)
    create = parse_create_stream(tokens, start, stop)
    if create is not None and create.name.lower() in catalog.names:
        if gateway.reopens:
            return no_rows(gateway)
        if create.if_not_exists:
            if create.source is None:
                refuse_other_stream(gateway, catalog, tokens, create)
            return no_rows(gateway)
    if create is not None and gateway.reopens:
        create = replace(create, if_not_exists=True)
    if create is not None and create.source is None:
        plan = create_named(gateway, catalog, tokens, create)
        return as_plan(gateway, plan) if gateway.plan_only else no_rows(gateway)
    if create is not None:
        stream = _created(gateway, tokens, create)
        if gateway.plan_only:
            return as_plan(gateway, f"stream {create.name}({', '.join(stream.columns)})")
        refuse_taken(gateway, catalog, tokens, create)
        remember_stream(gateway, catalog, create.name, stream)
        return no_rows(gateway)
    if tokens.word(start) == "SHOW" and tokens.word(start + 1) == "STREAMS" and stop == start + 2:
        return Relation(streams_shown(gateway, catalog), "the streams of the session", gateway)
    dropped = _dropped(tokens, start, stop, catalog)
    if dropped is not None:
        return _drop(gateway, catalog, dropped)
    punctuated = punctuate(gateway, catalog, tokens, start, stop)
    if punctuated is not None:
        return punctuated
    optimized = optimize(gateway, catalog, tokens, start, stop)
    if optimized is not None:
        return optimized
    refuse_changed_rows(catalog, tokens, start)
    inserted = insert(gateway, catalog, tokens, (start, stop), run_query)
    if inserted is not None:
        return inserted
    nested = selects_inside(catalog, tokens, (start, stop))
    written = spelled(tokens, start, stop, nested)
    statement = start, stop - len(tokens) + len(written.tokens)
    try:
        return _run_query(context, written, statement, is_explained)
    except WindrowError as error:
        if error.sql == written.tokens.sql:
            error.sql = tokens.sql
        raise


def _run_query(
    context: StatementContext, written: Spelled, statement: Range, is_explained: bool
) -> Relation | None:
    """Run a query or a view of one; None if nothing in it changes over time."""
    gateway, catalog, execution = context.gateway, context.catalog, context.execution
    tokens, (start, stop) = written.tokens, statement
    reader = reader_of(gateway, catalog, written, statement, execution)
    view = parse_view(tokens, start, stop)
    if view is None and not _is_query(tokens, start):
        _refuse_command(reader, start, stop)
        return None
    query = reader.read(*(view.body if view is not None else (start, stop)))
    declare(gateway, catalog, written, read_by(reader.inputs.values()))
    if isinstance(query, Query) and not query.inputs:
        if view is not None and view.words.replaces and not gateway.plan_only:
            catalog.forget(view.name)  # from now on the name is of Spark's view
        if not reader.reads_unused():
            return None
        with gateway.instead(SqlText.of(piece_of(tokens, 0, query.tokens[0], " "), query.text)) as used:
            return context.run_query(used)
    if view is not None and not view.words.is_temporary:
        raise unsupported_statement(
            tokens,
            start,
            "a permanent view over a continuous query",
            "create a TEMPORARY VIEW in each session",
        )
    if isinstance(query, Query) and query.is_temporal:
        reader.refuse_bare_streams(query)
    refuse_gathering_inside(reader, query)
    refuse_changing(tokens, view.body if view is not None else (start, stop))
    live = live_streams(catalog, query)
    if live:
        refuse_mixed(catalog, query, tokens.sql)
    blocks = isinstance(query, StreamQuery) and is_blocking(reader, query.query)
    if written.within is not None and not blocks:
        raise misplaced_within(written)
    if isinstance(query, StreamQuery) and blocks:
        if view is not None and written.within is not None:
            raise misplaced_within(written)
        found = run_blocking(gateway, catalog, reader, query.query, live, written, is_explained)
        if view is None or gateway.plan_only:
            return found
        remember_expanded(gateway, catalog, written, view, found.columns)
        return no_rows(gateway)
    # hidden names of clauses end with the statement
    known = catalog.as_it_is() if catalog.clauses else catalog
    as_live = ContinuousPlan(gateway, known, live, reader, query) if live else None
    is_endless = as_live is not None and (as_live.is_endless or gateway.prefers_live)
    gateway.plan_only = gateway.plan_only or (is_endless and view is None)
    runner = Runner(gateway, catalog, reader, execution)
    if as_live is not None and isinstance(query, Query) and not query.is_temporal:
        if view is not None and as_live.is_endless:
            raise _no_view_of_changes(tokens, query)
        over, changes = over_streams_of_changes(gateway, runner, query, reader)
        is_table = isinstance(changes, StreamQuery)
        as_live = replace(as_live, reader=over, query=changes, is_table=is_table)
    result = runner.run(query)
    plan = explain_continuous(gateway, query, runner.plans, only_live=is_endless and view is None)
    names = tuple(result.columns if isinstance(result, DataFrame) else result.visible_names)
    as_live = None if as_live is None else replace(as_live, names=names)
    if as_live is not None and view is None and (is_endless or is_explained):
        plan = f"{plan}\n\n{how_live(as_live)}"
    if as_live is not None and is_endless and view is None and not is_explained:
        return LiveRelation(as_live, result, plan)
    if gateway.plan_only:
        return as_plan(gateway, plan)
    if view is not None:
        _remember_view(gateway, catalog, tokens, view, result)
        if not isinstance(result, DataFrame):
            catalog.definitions[view.name.lower()] = CatalogDefinition(
                reader, query, tuple(view.columns or result.visible_names)
            )
            show_endless(gateway, catalog, view.name)
        return no_rows(gateway)
    if isinstance(result, TimeVarying):
        assert isinstance(query, Query)
        order = output_order(tokens, *query.tokens, result.names)
        wide = None if is_explained else _sorted_by(context, tokens, query, result)
        return VaryingRelation(result, plan, gateway, live=as_live, order=order, sorted_by=wide)
    if isinstance(result, Stream):
        return StreamRelation(result, plan, gateway, live=as_live)
    return Relation(result, plan, gateway, live=as_live)


def _sorted_by(
    context: StatementContext, tokens: TokenList, query: Query, result: TimeVarying
) -> tuple[VaryingRelation, Sequence[str]] | None:
    """The relation with the keys of ORDER BY that are not selected as columns; None without such keys."""
    start, stop = query.tokens
    found = with_keys(tokens, start, stop, result.names, context.tokens)
    if found is None:
        return None
    text, place, keys = found
    error: WindrowError | None = None
    try:
        with context.gateway.instead(text) as read:
            wide = context.run_query(read)
        if isinstance(wide, VaryingRelation):
            return wide, keys
    except WindrowError as caught:
        error = caught
    raise NotSupportedError(
        f"ORDER BY {tokens.text(*place)}, which is not selected, is not supported here",
        condition="UNSUPPORTED_QUERY",
        sql=tokens.sql,
        span=tokens.span(*place),
        hint="select it, or sort the rows: relation.df.orderBy(…)",
    ) from error


def _no_view_of_changes(tokens: TokenList, query: Query) -> NotSupportedError:
    return NotSupportedError(
        "a view of CHANGELOG OF a live relation is not supported",
        condition="UNSUPPORTED_STREAM",
        sql=tokens.sql,
        span=query.span,
        hint="make a view v of the relation, and write CHANGELOG OF (SELECT * FROM v) in the query",
    )


def _is_query(tokens: TokenList, start: int) -> bool:
    return tokens.word(start) in _QUERIES or tokens.is_symbol(start, "(")


def _refuse_command(reader: Reader, start: int, stop: int) -> None:
    """Refuse INSERT and other commands with time-varying relations."""
    tokens = reader.tokens
    reader.text(start, stop)
    if reader.inputs:
        hint = "create a temporary view of the query, or a table: CREATE TABLE … AS SELECT …"
        raise unsupported_statement(tokens, start, f"{tokens[start].text} over a continuous query", hint)


def _drop(gateway: Gateway, catalog: Catalog, name: str) -> Relation:
    """Drop a stream or a time-varying view; nothing for an empty name."""
    if gateway.plan_only:
        return as_plan(gateway, f"drop {name or 'nothing'}")
    if name.lower() in catalog.streams:
        gateway.spark.catalog.dropTempView(name)
    forget(gateway, catalog, name)
    forget_unread(catalog)
    return no_rows(gateway)


def _created(gateway: Gateway, tokens: TokenList, create: CreateStream) -> Stream:
    """The stream of CREATE STREAM … FROM a table or a path."""
    (rowtime,) = (column for column in create.columns if column.is_rowtime)

    def kind(column_kind: Range | None) -> str:
        return tokens.text(*column_kind) if column_kind is not None else "BIGINT"

    assert create.source is not None
    start, stop = create.source
    promises = ("CHECK", "UNIQUE", "GROWING", "WHEN")
    for word in promises:
        if word in create.options:
            raise NotSupportedError(
                f"{word} applies only to named streams",
                condition="UNSUPPORTED_CLAUSE",
                sql=tokens.sql,
                span=tokens.span(*create.options[word]),
                hint="create a stream with LOCATION, and insert the rows into it",
            )
    for word in ("ORDERED", "UNORDERED"):
        if word in create.options:
            raise NotSupportedError(
                f"{word} does not apply to streams FROM a table"
                if not create.is_live
                else f"{word} does not apply to streams FROM STREAM",
                condition="UNSUPPORTED_CLAUSE",
                sql=tokens.sql,
                span=tokens.span(*create.options[word]),
                hint=f"leave {word} out"
                if create.is_live
                else f"leave {word} out, or create the stream FROM STREAM or with LOCATION",
            )
    types = [(column.name, kind(column.kind)) for column in create.columns]
    try:
        if stop - start == 1 and tokens[start].kind is TokenKind.STRING:
            path = tokens[start].text[1:-1]
            if is_text_log(path):
                _refuse_parts(tokens, create)
                log = read_text_log(path, width=len(types) - 1)
                scale = _scale_of(gateway, tokens, rowtime)
                return of_text_log(gateway, log, tuple(types), scale, rowtime.name)
            frame = read_table(gateway.spark, path)
        elif create.is_live:
            frame = gateway.sql(SqlText.of("SELECT * FROM STREAM ", piece_of(tokens, start, stop)))
        else:
            frame = gateway.sql(SqlText.of("TABLE ", piece_of(tokens, start, stop)))
    except (AnalysisError, ParseError) as error:
        raise error.located(tokens.sql) from None
    columns = SqlText.join(", ", (_cast(tokens, column, frame.columns) for column in create.columns))
    chosen = gateway.sql(SqlText.of("SELECT ", columns, " FROM ", SourceRelation(_SOURCE)), {_SOURCE: frame})
    parts = {column.part: column.name for column in create.columns}
    places = {column.name.lower(): tokens.span(*column.tokens) for column in create.columns}
    entries = TableLog(
        rowtime.name,
        rowtime.unit,
        parts.get("PTIME"),
        parts.get("PRODUCER"),
        parts.get("BOUND"),
        create.on_late,
        watermark=parts.get("WATERMARK"),
        punctuation=parts.get("PUNCTUATION"),
        places=places,
        sql=tokens.sql,
    )
    lag = _length_of(gateway, tokens, create.lag)
    tick = 1 if lag is None else _scale_of(gateway, tokens, rowtime).nanoseconds
    idle = _length_of(gateway, tokens, create.idle)
    future = _length_of(gateway, tokens, create.future)
    entries = replace(
        entries,
        lag=None if lag is None else int(lag // tick),
        idle=None if idle is None else int(idle // 1000),
        future=None if future is None else int(future // 1000),
        options={word: tokens.span(*place) for word, place in create.options.items()},
    )
    return live_stream(gateway.spark, chosen, entries) if create.is_live else of_frame(chosen, entries)


def _length_of(gateway: Gateway, tokens: TokenList, length: Length | None) -> Decimal | None:
    return None if length is None else nanoseconds_of(gateway, tokens, length)


def _cast(tokens: TokenList, column: DeclaredColumn, known: list[str]) -> SqlText:
    """A column of the source in its declared type; its errors are at its definition."""
    span, name = tokens.span(*column.tokens), quoted(column.name)
    if column.name.lower() not in {each.lower() for each in known}:
        raise no_column("the source has", column.name, known, sql=tokens.sql, span=span)
    if column.kind is None:
        return SqlText.of(name)
    cast = Piece(f"CAST({name} AS ", tokens.sql, span.start, span.stop - span.start)
    return SqlText.of(cast, piece_of(tokens, *column.kind), f") AS {name}")


def _refuse_parts(tokens: TokenList, create: CreateStream) -> None:
    """Refuse clauses for a recorded text that its format already defines."""
    if "LAG" in create.options:
        raise NotSupportedError(
            "a stream from a text file cannot have a LAG",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=tokens.span(*create.options["LAG"]),
            hint="leave it out: the lines of the file are in the order of their instants",
        )
    for column in create.columns:
        if column.part and not column.is_rowtime:
            raise NotSupportedError(
                f"a stream from a text file cannot declare a column of {column.part}",
                condition="UNSUPPORTED_CLAUSE",
                sql=tokens.sql,
                span=tokens.span(*column.tokens),
                hint="leave it out: the lines of the file are in order of arrival, and lines with h are"
                " bounds",
            )


def _scale_of(gateway: Gateway, tokens: TokenList, rowtime: DeclaredColumn) -> TimeScale:
    kind = piece_of(tokens, *rowtime.kind) if rowtime.kind is not None else SqlText.of("BIGINT")
    simple = gateway.sql(SqlText.of("SELECT CAST(NULL AS ", kind, ")")).schema[0].dataType.simpleString()
    scale = TimeScale.of(simple, rowtime.unit)
    if scale is None:
        raise AnalysisError(
            f"a rowtime cannot be of type {simple.upper()}",
            condition="INVALID_ROWTIME",
            sql=tokens.sql,
            span=tokens.span(*rowtime.tokens),
            hint="declare TIMESTAMP, DATE, or BIGINT with a unit",
        )
    return scale


# -- views -----------------------------------------------------------------------------------------


def _remember_view(
    gateway: Gateway,
    catalog: Catalog,
    tokens: TokenList,
    view: View,
    result: TimeVarying | Stream | DataFrame,
) -> None:
    names = result.columns if isinstance(result, DataFrame) else list(result.visible_names)
    if not is_free(gateway, catalog, tokens, view, names):
        return
    catalog.forget(view.name)
    renamed = tuple(view.columns or names)
    if isinstance(result, TimeVarying):
        catalog.relations[view.name.lower()] = result.renamed(renamed)
    elif isinstance(result, Stream):
        remember_stream(gateway, catalog, view.name, result.renamed(renamed))
    else:
        with gateway.translated():
            result.toDF(*renamed).createOrReplaceTempView(quoted(view.name))


def _dropped(tokens: TokenList, start: int, stop: int, catalog: Catalog) -> str | None:
    """The name in DROP STREAM or DROP VIEW if Windrow has it; empty if there is nothing to drop."""
    if tokens.word(start) != "DROP" or tokens.word(start + 1) not in ("STREAM", "VIEW"):
        return None
    at = start + 2
    lenient = tokens.word(at) == "IF"
    at += 2 * lenient
    if at != stop - 1 or not tokens[at].is_name:
        return None
    name = tokens[at].name
    known = catalog.streams if tokens.word(start + 1) == "STREAM" else catalog.names
    if name.lower() in known:
        return name
    if tokens.word(start + 1) == "STREAM" and lenient:
        return ""
    if tokens.word(start + 1) == "STREAM":
        raise AnalysisError(
            f"stream {name} does not exist",
            condition="UNKNOWN_STREAM",
            sqlstate="42P01",
            sql=tokens.sql,
            span=tokens[at].span,
            hint="write DROP STREAM IF EXISTS if it may not exist",
        )
    return None
