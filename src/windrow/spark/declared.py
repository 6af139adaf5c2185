"""Streams that a statement declares: FROM STREAM t WATERMARK ts DELAY OF INTERVAL … FUTURE …."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from urllib.parse import quote

from windrow.algebra.continuous import (
    ChangelogOf,
    Continuous,
    Input,
    NamedRelation,
    StreamQuery,
    WindowedStream,
)
from windrow.algebra.names import piece_of, verbatim
from windrow.algebra.rewriting.changing import refuse_changing
from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, NotSupportedError, Span
from windrow.spark.analysis.evaluated_lengths import nanoseconds_of
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live.input.source import live_stream
from windrow.spark.logs.session_streams import Stream
from windrow.spark.logs.table_log import TableLog
from windrow.spark.logs.table_streams import of_frame
from windrow.syntax.cql_clauses import alias_after
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.streams.other_dialects import Spelled, Watermark
from windrow.syntax.tokens import TokenList

__all__ = ["declare", "in_place", "keys_of", "read_by", "refuse_mixed"]


def keys_of(written: Spelled) -> Mapping[int, str]:
    """The session's names for the declared streams, by their positions."""
    tokens = written.written
    if tokens is None:
        return {}
    return {at: _key(tokens, source) for at, source in written.sources.items() if source.column is not None}


def read_by(inputs: Iterable[Input]) -> frozenset[str]:
    """The names of the streams with windows."""
    return frozenset(
        item.source
        for item in inputs
        if isinstance(item, WindowedStream) and not isinstance(item.source, StreamQuery)
    )


def in_place(written: Spelled, start: int, stop: int) -> SqlText:
    """A part of the text as written, with the names of declared streams replaced."""
    tokens, keys = written.written, keys_of(written)
    assert tokens is not None
    parts: list[Piece | SqlText | str] = []
    at = tokens.span(start, stop).start
    for place, source in sorted(written.sources.items()):
        first, last = source.name
        parts.append(verbatim(tokens, at, tokens[first - 1].start))
        at = tokens[last - 1].stop
        if place not in keys:
            parts.append(verbatim(tokens, tokens[first].start, at))
            continue
        assert source.delay is not None
        named = tokens[first]
        key = Piece(quoted(keys[place]), tokens.sql, named.start, at - named.start)
        is_named = alias_after(tokens, source.end, stop) is not None
        parts += [key, " " if is_named else f" AS {quoted(tokens[last - 1].name)} "]
        at = tokens[source.end - 1].stop
    return SqlText.of(*parts, verbatim(tokens, at, tokens.span(start, stop).stop))


def declare(gateway: Gateway, catalog: Catalog, written: Spelled, used: Collection[str]) -> None:
    """Create the declared streams that are used, under the names of :func:`keys_of`.

    Raises
    ------
    WindrowError
        ``UNSUPPORTED_STREAM`` for a source that is not streaming, ``UNKNOWN_ROWTIME``, ``INVALID_ROWTIME``.
    """
    tokens = written.written
    for source in written.sources.values():
        if tokens is None or source.column is None or source.delay is None:
            continue
        key = _key(tokens, source)
        if key not in used or key in catalog.streams:
            continue
        span = tokens.span(*source.name)
        name = tokens.text(*source.name)
        recorded = catalog.streams.get(name.lower())
        if recorded is not None and _takes_lag(recorded, tokens[source.column].name, source.expression):
            made = _lagging(gateway, tokens, recorded, source)
            catalog.streams[key] = replace(made, name=recorded.name)
            continue
        if name.lower() in catalog.streams:
            raise NotSupportedError(
                f"{name} is already a stream with a lag of its own",
                condition="UNSUPPORTED_STREAM",
                sql=tokens.sql,
                span=span,
                hint=f"leave the WATERMARK out: FROM {name} [RANGE …]",
            )
        column = tokens[source.column]
        computed = SqlText()
        if source.expression is not None:
            refuse_changing(tokens, source.expression)
            value = piece_of(tokens, *source.expression)
            computed = SqlText.of(", (", value, f") AS {quoted(column.name)}")
        table = piece_of(tokens, *source.name)
        frame = gateway.sql(SqlText.of("SELECT *", computed, " FROM STREAM ", table))
        if not frame.isStreaming:
            raise NotSupportedError(
                f"{name} is not a streaming table or view",
                condition="UNSUPPORTED_STREAM",
                sql=tokens.sql,
                span=span,
                hint="leave STREAM out to read the table; or make a stream of it, with its order of arrival:"
                " CREATE STREAM … (…, PTIME at TIMESTAMP) FROM …",
            )
        kinds = {field.name.lower(): field.dataType.simpleString() for field in frame.schema}
        if len(kinds) < len(frame.columns):
            raise AnalysisError(
                f"{name} already has a column {column.name}",
                condition="DUPLICATE_COLUMN",
                sql=tokens.sql,
                span=column.span,
                hint="choose another name for the computed column",
            )
        scale = TimeScale.of(kinds.get(column.name.lower(), ""))
        delay = nanoseconds_of(gateway, tokens, source.delay)
        lag = None if scale is None else int(delay // scale.nanoseconds)
        future = None
        if source.future is not None:
            future = int(nanoseconds_of(gateway, tokens, source.future) // 1000)
        places = {column.name.lower(): column.span}
        log = TableLog(column.name, places=places, sql=tokens.sql, lag=lag, future=future)
        catalog.streams[key] = live_stream(gateway.spark, frame, log)


def _takes_lag(stream: Stream, column: str, expression: Range | None) -> bool:
    """Whether a stream is that of a table, by this rowtime."""
    is_rowtime = expression is None and (stream.rowtime or "").lower() == column.lower()
    return stream.made_of is not None and is_rowtime


def _lagging(gateway: Gateway, tokens: TokenList, recorded: Stream, source: Watermark) -> Stream:
    """The stream of the same table with the declared lag, and limit of the future."""
    assert recorded.made_of is not None
    assert source.delay is not None
    frame, log = recorded.made_of
    lag = int(nanoseconds_of(gateway, tokens, source.delay) // recorded.scale.nanoseconds)
    options = {"LAG": tokens.span(*source.delay.tokens)}
    if source.future is not None:
        options["FUTURE"] = tokens.span(*source.future.tokens)
        log = replace(log, future=int(nanoseconds_of(gateway, tokens, source.future) // 1000))
    return of_frame(frame, replace(log, lag=lag, options=options, places={}, sql=tokens.sql))


def refuse_mixed(catalog: Catalog, query: Continuous, sql: str) -> None:
    """Refuse a live query over streams whose rowtimes have an order by the session's time zone alone.

    Raises
    ------
    AnalysisError
        ``MIXED_ROWTIMES``.
    """
    found = {kind: (name, span) for name, kind, span in _kinds(catalog, query)}
    local = next((kind for kind in found if kind in ("date", "timestamp_ntz")), None)
    if local is not None and "timestamp" in found:
        last = max((local, "timestamp"), key=lambda kind: found[kind][1].start)
        other = "timestamp" if last == local else local
        raise AnalysisError(
            f"rowtimes of {found[last][0]} are of type {last.upper()}, but those of {found[other][0]} are of"
            f" type {other.upper()}: their order depends on the session's time zone",
            condition="MIXED_ROWTIMES",
            sql=sql,
            span=found[last][1],
            hint="cast one of them to the type of the other where the stream is made",
        )


def _kinds(catalog: Catalog, query: Continuous) -> Iterable[tuple[str, str, Span]]:
    relation = query.query if isinstance(query, StreamQuery) else query
    for item in relation.inputs:
        if isinstance(item, ChangelogOf):
            yield from _kinds(catalog, item.query)
        elif isinstance(item, NamedRelation):
            yield item.name, catalog.relations[item.name.lower()].scale.kind, item.span
        elif isinstance(item.source, StreamQuery):
            yield from _kinds(catalog, item.source)
        else:
            stream = catalog.streams[item.source.lower()]
            yield stream.name or item.source, stream.scale.kind, item.span


def _key(tokens: TokenList, source: Watermark) -> str:
    assert source.column is not None
    assert source.delay is not None
    expression = [] if source.expression is None else [tokens.text(*source.expression)]
    name, length = tokens.text(*source.name), tokens.text(*source.delay.tokens)
    parts = [name, *expression, tokens[source.column].name, length]
    if source.future is not None:
        parts.append(f"future {tokens.text(*source.future.tokens)}")
    # streams are looked up by names in lower case
    return quote("-".join(" ".join(part.split()) for part in parts), safe=" '-").lower()
