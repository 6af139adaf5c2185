"""CQL over windows of live streams, planned to run in memory: :func:`planned_windows` is the entry.

A plan becomes a program over the rows that enter and leave its windows
(:mod:`windrow.spark.live.operators.window_flow`). A query without a form in memory is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql.types import LongType, StructField, StructType

from windrow.algebra.continuous import (
    CHANGELOG,
    ChangelogOf,
    Continuous,
    NamedRelation,
    Reader,
    StreamQuery,
)
from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, NotSupportedError
from windrow.kernels.incremental import BracketWindow
from windrow.plan.reader import QueryReader
from windrow.plan.reasons import Reason
from windrow.plan.rules import applied
from windrow.spark.analysis.schemas import SparkAnalyser
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.known_streams import KnownStreams, is_live
from windrow.spark.live.reading.window_lowering import WindowLowering
from windrow.spark.live.reading.windowed_query import ChangesAsRows, MadeStream, WindowedQuery
from windrow.spark.live.reading.windows_of_query import InnerQuery, windows_of
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.recorded.continuous_queries import Runner
from windrow.spark.relations.changelog import as_delta, key_columns
from windrow.spark.relations.time_varying_relation import AT, DIFF, TimeVarying, columns_of
from windrow.syntax.sqltext import quoted

__all__ = ["planned_windows"]


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
        length = 1 if window.item.is_each_change else length
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


def _of_later_instants(reader: Reader, item: ChangelogOf) -> NotSupportedError:
    """The error for a table of all changes, also of later instants, in a relation that varies in time."""
    return NotSupportedError(
        "CHANGELOG OF beside windows is not supported in a live query: it has the changes of later instants"
        " too",
        condition="UNSUPPORTED_STREAM",
        sql=reader.tokens.sql,
        span=item.span,
        hint="write a window after it, for the changes so far: CHANGELOG OF (…) [RANGE UNBOUNDED]",
    )


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
    if isinstance(query, StreamQuery) and query.kind == CHANGELOG:
        return _windowed_query(gateway, catalog, reader, query.query, scale, sizes, path)
    kind = query.kind if isinstance(query, StreamQuery) else None
    inner = query.query if isinstance(query, StreamQuery) else query
    windows = {window.key: window for window in windows_of(catalog, query, reader, path, within=False)}
    made: dict[str, MadeStream] = {}
    for window in windows.values():
        if window.made is not None:
            own = window.made
            found = _windowed_query(gateway, catalog, own.reader, own.query, scale, sizes, own.path)
            if isinstance(found, str):
                return found
            made[window.key] = _stream_of(gateway, catalog, found, own, scale)
            continue
        source = str(window.item.source).lower()
        if not is_live(catalog, source, with_clauses=True):
            made[window.key] = MadeStream(None, catalog.streams[source].on(scale))
    frames = {}
    for item in inner.inputs:
        if isinstance(item, ChangelogOf):
            raise _of_later_instants(reader, item)
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
    query_of = lowering.windowed(plan, scale)
    return replace(query_of, using=using) if isinstance(query_of, WindowedQuery) else query_of


def _stream_of(
    gateway: Gateway, catalog: Catalog, windowed: WindowedQuery, inner: InnerQuery, scale: TimeScale
) -> MadeStream:
    """The stream of a query, whose rows have instants of this time scale."""
    if inner.query.kind == CHANGELOG:
        return _changes_of(gateway, catalog, windowed, inner, scale)
    names = inner.names or windowed.names
    fields = zip(names, windowed.result, strict=True)
    schema = StructType([StructField(name, field.dataType) for name, field in fields])
    return MadeStream(windowed, Stream(gateway.spark.createDataFrame([], schema), names, scale))


def _changes_of(
    gateway: Gateway, catalog: Catalog, windowed: WindowedQuery, inner: InnerQuery, scale: TimeScale
) -> MadeStream:
    """The stream of the changes of a query, with versions and times in the query's own unit."""
    own = Runner(gateway, catalog, inner.reader, "batch").scale_of(inner.query)
    columns = columns_of(windowed.names)
    kinds = zip(columns, windowed.result, strict=True)
    schema = StructType([StructField(name, field.dataType) for name, field in kinds])
    nothing = gateway.spark.createDataFrame([], schema.add(AT, LongType()).add(DIFF, LongType()))
    rows = as_delta(nothing, columns, windowed.names, own, inner.query.using)
    key = key_columns(nothing, columns, windowed.names, inner.query.using)
    try:
        TimeVarying.refuse_twice(rows.columns)
    except AnalysisError as error:
        error.span = inner.query.span
        raise error.located(inner.reader.tokens.sql) from None
    made = replace(windowed, as_rows=ChangesAsRows(own, tuple(key)))
    return MadeStream(made, Stream(rows, tuple(rows.columns), scale))
