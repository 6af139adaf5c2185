"""The streams that a query, or a view, over live streams reads, and the rowtimes of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql.types import StructType

from windrow.algebra.continuous import Continuous, NamedRelation, Reader, StreamQuery, WindowedStream
from windrow.plan.nodes import Join, Node, Scan, StreamWindow, Value, walk
from windrow.plan.passing import origins
from windrow.spark.catalog import Catalog, CatalogDefinition
from windrow.spark.gateway import Gateway
from windrow.spark.live.reading.beside import Beside, LiveRelationNode, of_query
from windrow.spark.live.reading.whole_stream_queries import is_bare
from windrow.spark.live.reading.windows_of_query import windows_of
from windrow.spark.logs.clause_view import Feed
from windrow.syntax.cql_clauses import StreamWindowClause as Bracket

__all__ = ["enters_at_rowtime", "origin_of", "passes_on", "read_live", "shows_instant"]


def origin_of(gateway: Gateway, catalog: Catalog, name: str) -> LiveRelationNode:
    """A live stream, or a view of arriving rows, as an input of queries."""
    stream, definition = catalog.streams[name], catalog.definitions.get(name)
    columns = StructType([stream.frame.schema[one] for one in stream.columns])
    of_its_own = LiveRelationNode(columns, frozenset([] if stream.rowtime is None else [stream.rowtime]))
    if stream.live is not None:
        feed = Feed(name, {column: column for column in stream.columns})
        return LiveRelationNode(columns, of_its_own.rowtimes, (feed,))
    if definition is None or not isinstance(definition.query, StreamQuery):
        return of_its_own
    query = definition.query
    if not all(is_bare(item) for item in query.query.inputs):
        return LiveRelationNode(columns, _instants_of(gateway, catalog, name, definition))
    read = read_live(gateway, catalog, query, definition.reader)
    if read.gathers or read.mixes_rowtimes or read.plan is None:
        return of_its_own
    plan_columns = [column.name for column in read.plan.columns]
    names = dict(zip(definition.names, plan_columns, strict=True))
    rowtime = next((name for name, own in names.items() if own in read.rowtimes), None)
    rowtimes = frozenset([] if rowtime is None else [rowtime])
    return LiveRelationNode(columns, rowtimes, tuple(feed.only(names) for feed in read.lineage))


def read_live(gateway: Gateway, catalog: Catalog, query: Continuous, reader: Reader) -> Beside:
    """The plan of a query over live streams, in which views are leaves."""
    inner = query.query if isinstance(query, StreamQuery) else query
    windows = [item for item in inner.inputs if isinstance(item, WindowedStream)]
    names = {str(item.source).lower() for item in windows}
    relations = {name: origin_of(gateway, catalog, name) for name in names if name in catalog.streams}
    varying = [item for item in inner.inputs if isinstance(item, NamedRelation)]
    others = {
        item.key: catalog.relations[item.name.lower()].visible().schema
        for item in varying
        if item.name.lower() in catalog.relations
    }
    return of_query(gateway, reader, query, relations, others)


def passes_on(gateway: Gateway, catalog: Catalog, query: Continuous, reader: Reader) -> bool:
    """Whether each row of a query is derived from only one row of a live stream, at its rowtime."""
    if not isinstance(query, StreamQuery) or query.kind != "RSTREAM":
        return False
    return _looks_at_each(gateway, catalog, query, reader, lambda window: window.is_now)


def enters_at_rowtime(gateway: Gateway, catalog: Catalog, query: StreamQuery, reader: Reader) -> bool:
    """Whether each row that enters a relation is derived from only one row of a live stream, at its
    rowtime.
    """
    if query.kind != "ISTREAM" or query.using:
        return False
    return _looks_at_each(gateway, catalog, query, reader, _has_no_steps)


def shows_instant(read: Beside, query: StreamQuery, place: int) -> bool:
    """Whether a column of each row is the rowtime of a row that is in its window at that instant alone."""
    if query.kind == "DSTREAM" or read.plan is None:
        return False
    column = read.plan.columns[place].id
    return read.is_rowtime(read.plan, column) and all(
        isinstance(leaf, Scan) or (isinstance(leaf, StreamWindow) and leaf.window.is_now)
        for leaf, _ in origins(read.plan, column)
    )


def _instants_of(
    gateway: Gateway, catalog: Catalog, name: str, definition: CatalogDefinition
) -> frozenset[str]:
    """The columns of a view over windows in brackets that have, in each row, the instant at which it
    arrives.
    """
    query, reader = definition.query, definition.reader
    assert isinstance(query, StreamQuery)
    read = read_live(gateway, catalog, query, reader)
    sources = [str(one.item.source).lower() for one in windows_of(catalog, query, reader) if one.made is None]
    is_after_clause = any(source in catalog.sequences for source in sources)
    scales = {catalog.streams[source].scale for source in sources if source in catalog.streams}
    if read.plan is None or is_after_clause or scales != {catalog.streams[name].scale}:
        return frozenset()
    each = enters_at_rowtime(gateway, catalog, query, reader)
    shown = [
        (each and read.is_rowtime(read.plan, column.id)) or shows_instant(read, query, place)
        for place, column in enumerate(read.plan.columns)
    ]
    return frozenset(
        own
        for own, column, is_shown in zip(definition.names, read.plan.columns, shown, strict=True)
        if is_shown and not _may_be_missing(read.plan, column.id)
    )


def _may_be_missing(node: Node, column: str) -> bool:
    """Whether an outer join, or a subquery without a row, may make a column NULL."""
    leaves = [leaf for leaf, _ in origins(node, column)]
    padded = [side for one in walk(node) for side in _padded(one)]
    return any(one is leaf for side in padded for one in walk(side) for leaf in leaves)


def _padded(node: Node) -> Sequence[Node]:
    """The inputs of a node whose columns may be NULL in its output."""
    if isinstance(node, Value):
        return [node.right]
    if not isinstance(node, Join):
        return []
    left = [node.left] if node.kind in ("right", "full") else []
    return [*left, node.right] if node.kind in ("left", "full") else left


def _has_no_steps(window: Bracket) -> bool:
    """Whether rows enter a window at their rowtimes."""
    return window.slide is None and (window.row_slide or 1) == 1 and window.on is None


def _looks_at_each(
    gateway: Gateway, catalog: Catalog, query: StreamQuery, reader: Reader, fits: Callable[[Bracket], bool]
) -> bool:
    """Whether a query processes each row of such windows of live streams alone."""
    for item in query.query.inputs:
        if not isinstance(item, WindowedStream) or not fits(item.window) or not isinstance(item.source, str):
            return False
        source = item.source.lower()
        stream, definition = catalog.streams.get(source), catalog.definitions.get(source)
        is_live = stream is not None and stream.live is not None
        if not (is_live or (definition and passes_on(gateway, catalog, definition.query, definition.reader))):
            return False
    return not read_live(gateway, catalog, query, reader).gathers
