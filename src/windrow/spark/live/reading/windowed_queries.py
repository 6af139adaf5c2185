"""CQL over windows of live streams, planned to run in memory: :func:`planned_windows` is the entry.

SELECT over one window, with or without GROUP BY, or over two windows joined by equal columns, becomes a
:class:`~windrow.kernels.incremental.WindowOperator`. Spark computes the expressions over single rows when
rows arrive, and those over groups for the groups that change. Any other plan over such windows becomes a
program (:mod:`windrow.spark.live.operators.window_flow`). A query without a form in memory is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql.types import LongType, StructField, StructType

from windrow.algebra.continuous import (
    ChangelogOf,
    Continuous,
    NamedRelation,
    Query,
    Reader,
    StreamQuery,
)
from windrow.algebra.time_scale import TimeScale
from windrow.errors import NotSupportedError, WindrowError
from windrow.kernels.incremental import BracketWindow, WindowOperator
from windrow.plan.reader import QueryReader
from windrow.plan.reasons import Reason
from windrow.plan.rules import applied
from windrow.spark.analysis.schemas import SparkAnalyser
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.known_streams import KnownStreams, is_live
from windrow.spark.live.reading.window_lowering import WindowLowering
from windrow.spark.live.reading.windowed_query import ChangelogPart, MadeStream, WindowedQuery
from windrow.spark.live.reading.windows_of_query import InnerQuery, windows_of
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.recorded.continuous_queries import Runner
from windrow.spark.relations.changelog import as_delta
from windrow.spark.relations.time_varying_relation import AT, DIFF, columns_of
from windrow.syntax.sqltext import quoted

__all__ = ["planned_windows", "scale_of"]


def planned_windows(
    gateway: Gateway, catalog: Catalog, reader: Reader, query: Continuous, scale: TimeScale, path: str = ""
) -> WindowedQuery:
    """The query over windows, read through the views of a path.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` if it has no form in memory.
    """
    gateway = Gateway(gateway.spark, gateway.parameters)
    windows = {}
    for window in windows_of(catalog, query, reader, path):
        bracket = window.item.window
        sizes = Runner(gateway, catalog, window.reader, "batch").sizes(window.item, scale)
        length = sizes.granularity if bracket.is_now else sizes.range_
        windows[window.key] = BracketWindow(
            ROWTIME, length, sizes.slide, bracket.rows, row_slide=bracket.row_slide or 1
        )
    found = _windowed_query(gateway, catalog, reader, query, scale, windows, path)
    if isinstance(found, WindowedQuery):
        return found
    raise NotSupportedError(
        f"in a live query, {found} is not supported",
        condition="UNSUPPORTED_STREAM",
        sql=reader.tokens.sql,
        span=query.span,
        hint="cast it in a subquery in FROM, or record the streams and run the query over the recorded rows",
    )


def scale_of(gateway: Gateway, catalog: Catalog, reader: Reader, query: Continuous) -> TimeScale:
    """The unit of a live query's instants.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` for changelogs in several units.
    """
    runner = Runner(gateway, catalog, reader, "batch")
    if not isinstance(query, Query) or not query.inputs or query.is_temporal:
        return runner.scale_of(query)
    changelogs = [item for item in query.inputs if isinstance(item, ChangelogOf)]
    first, *others = [runner.scale_of(item.query) for item in changelogs]
    for item, scale in zip(changelogs[1:], others, strict=True):
        if scale != first:
            raise NotSupportedError(
                "a query over changelogs of live relations in different units is not supported",
                condition="UNSUPPORTED_STREAM",
                sql=reader.tokens.sql,
                span=item.span,
                hint="start the relation itself: its output is its changelog",
            )
    return first


def _windowed_query(
    gateway: Gateway,
    catalog: Catalog,
    reader: Reader,
    query: Continuous,
    scale: TimeScale,
    sizes: Mapping[str, BracketWindow],
    path: str = "",
) -> WindowedQuery | str:
    """The query over windows, or the part of it that has no form in memory.

    Parameters
    ----------
    sizes
        The sizes of its windows, by key; their own keys are not known yet.
    path
        The views through which it is read.
    """
    kind = query.kind if isinstance(query, StreamQuery) else None
    inner = query.query if isinstance(query, StreamQuery) else query
    if isinstance(query, Query) and not query.is_temporal:
        return _over_changelogs(gateway, catalog, reader, query, scale, sizes)
    windows = {window.key: window for window in windows_of(catalog, query, reader, path, within=False)}
    made: dict[str, MadeStream] = {}
    for window in windows.values():
        if window.made is not None:
            own = window.made
            found = _windowed_query(gateway, catalog, own.reader, own.query, scale, sizes, own.path)
            if isinstance(found, str):
                return found
            made[window.key] = _stream_of(gateway, found, own, scale)
            continue
        source = str(window.item.source).lower()
        if not is_live(catalog, source, with_clauses=True):
            made[window.key] = MadeStream(None, catalog.streams[source].on(scale))
    frames = {}
    for item in inner.inputs:
        if isinstance(item, ChangelogOf):
            return "CHANGELOG OF together with a time-varying relation"
        if isinstance(item, NamedRelation):
            frames[item.key] = catalog.relations[item.name.lower()].visible()
            continue
        key = f"{path}{item.key}"
        stream = made[key].stream if key in made else catalog.streams[str(item.source).lower()]
        frames[item.key] = stream.frame.select(*map(quoted, stream.columns))
    output = gateway.sql(inner.text, frames).schema
    names = dict(zip((name.lower() for name in output.names), columns_of(output.names), strict=True))
    using = tuple(names[name.lower()] for name, _ in query.using) if isinstance(query, StreamQuery) else ()
    schemas = {key: one.schema for key, one in made.items()}
    known = KnownStreams(catalog, gateway=gateway, made=schemas)
    readers = QueryReader(reader, SparkAnalyser(gateway), known, path=path, of_windows=True)
    read = readers.relation(inner)
    if isinstance(read, Reason):
        return str(read)
    plan = applied(read)
    items = {key: window.item for key, window in windows.items()}
    lowering = WindowLowering(gateway, catalog.streams, made, sizes, items, kind, output)
    query_of: WindowedQuery | str
    try:
        query_of = lowering.windowed(plan)
    except WindrowError as error:  # as of a name that SELECT returns
        query_of = f"an expression that has no meaning alone ({error.condition})"
    if not isinstance(query_of, WindowedQuery) or (kind == "RSTREAM" and not query_of.is_of_one_instant):
        why = query_of if isinstance(query_of, str) else "all rows at each instant"
        query_of = lowering.flowing(plan, scale, why)
    return replace(query_of, using=using) if isinstance(query_of, WindowedQuery) else query_of


def _over_changelogs(
    gateway: Gateway,
    catalog: Catalog,
    reader: Reader,
    query: Query,
    scale: TimeScale,
    sizes: Mapping[str, BracketWindow],
) -> WindowedQuery | str:
    """A query over changelogs of relations."""
    parts, frames = [], {}
    for item in query.inputs:
        assert isinstance(item, ChangelogOf)
        found = _windowed_query(gateway, catalog, reader, item.query, scale, sizes)
        if isinstance(found, str):
            return found
        columns = columns_of(found.names)
        kinds = zip(columns, found.result, strict=True)
        schema = StructType([StructField(name, field.dataType) for name, field in kinds])
        nothing = gateway.spark.createDataFrame([], schema.add(AT, LongType()).add(DIFF, LongType()))
        frames[item.key] = as_delta(nothing, columns, found.names, scale, item.key_columns)
        parts.append(ChangelogPart(item.key, found, item.key_columns))
    output = gateway.sql(query.text, frames).schema
    nodes, operator = parts[0].query.plan, WindowOperator(())
    return WindowedQuery(
        nodes, (), operator, None, tuple(output.names), output, False, text=query.text, parts=tuple(parts)
    )


def _stream_of(gateway: Gateway, windowed: WindowedQuery, inner: InnerQuery, scale: TimeScale) -> MadeStream:
    """The stream of a query, whose rows have instants of this time scale."""
    names = inner.names or windowed.names
    fields = zip(names, windowed.result, strict=True)
    schema = StructType([StructField(name, field.dataType) for name, field in fields])
    return MadeStream(windowed, Stream(gateway.spark.createDataFrame([], schema), names, scale))
