"""Through which columns the rows of live streams come into a relation, as they are.

A relation that looks at each row by itself passes on what its streams promise of the columns that it passes
on; one that puts several together with UNION ALL, what all of them promise. Columns of a relation are marked
in the metadata that Spark carries along (:mod:`.rowtimes`). Of UNION ALL Spark keeps the marks of the first
part alone, so each part is asked for them in the place of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructField, StructType

from windrow.algebra.continuous import Continuous, NamedRelation, StreamQuery, WindowedStream
from windrow.spark.catalog import Catalog
from windrow.spark.clause_view import Feed
from windrow.spark.gateway import Gateway
from windrow.spark.live.blocking import is_bare
from windrow.spark.live.row_by_row import looks_at_each
from windrow.spark.live.rowtimes import columns_of, first_marked, is_marked, stub
from windrow.syntax.blocks import is_set_operator, level_around, visible_ctes, with_items
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Relation, SqlText, quoted
from windrow.syntax.streams import StreamWindow
from windrow.syntax.tokens import TokenList, tokenize

__all__ = [
    "Origin",
    "alternatives",
    "comes_at_rowtime",
    "feeds_of",
    "marked_inputs",
    "origin_of",
    "passes_on",
    "shows_instant",
]


def feeds_of(
    gateway: Gateway, text: SqlText, schema: StructType, known: Mapping[str, tuple[Feed, ...]]
) -> tuple[Feed, ...]:
    """The feeds of a query that looks at each row by itself; none if they are not known.

    Parameters
    ----------
    gateway
        Has the relations of the text as frames whose columns are marked.
    text, schema
        The query, and its columns. Fields of structs are called `row.field`.
    known
        The feeds of those relations.
    """
    kinds = {name: kind for name, kind, _, _ in columns_of(schema)}
    found: list[Feed] = []
    texts = alternatives(gateway, text) or []
    for one in texts:
        marked = list(columns_of(schema if len(texts) == 1 else gateway.sql(one).schema))
        relations = {relation for _, _, relation, _ in marked}
        feeds = known.get(relations.pop(), ()) if len(relations) == 1 else ()
        if not feeds:
            return ()
        names = {name: column for name, kind, _, column in marked if kinds.get(name) == kind}
        found += [feed.only(names) for feed in feeds]
    return tuple(found)


@dataclass(frozen=True)
class Origin:
    """Where the rows of a stream come from.

    Attributes
    ----------
    rowtime
        The column that holds their rowtime; None if none is known to.
    feeds
        The live streams behind it; none where they are not known.
    """

    rowtime: str | None
    feeds: tuple[Feed, ...] = ()


def passes_on(gateway: Gateway, catalog: Catalog, query: Continuous) -> bool:
    """Whether each row of a query is made of one row of a live stream alone, at the rowtime of that."""
    if not isinstance(query, StreamQuery) or query.kind != "RSTREAM":
        return False
    return _looks_at_each(gateway, catalog, query, lambda window: window.is_now)


def comes_at_rowtime(gateway: Gateway, catalog: Catalog, query: StreamQuery) -> bool:
    """Whether each row that enters a relation is made of one row of a live stream, at the rowtime of that."""
    if query.kind != "ISTREAM" or query.using:
        return False
    return _looks_at_each(gateway, catalog, query, _has_no_steps)


def shows_instant(gateway: Gateway, catalog: Catalog, query: StreamQuery, place: int) -> bool:
    """Whether a column of each row is the rowtime of a row that is in its window at that instant alone."""
    if query.kind == "DSTREAM":
        return False
    within = marked_inputs(gateway, catalog, query)
    for item in query.query.inputs:
        if isinstance(item, WindowedStream) and item.key in within.frames:
            if not item.window.is_now:
                within.frames[item.key] = stub(gateway.spark, _unmarked(within.frames[item.key].schema))
        elif isinstance(item, NamedRelation) and item.name.lower() in catalog.relations:
            within.frames[item.key] = catalog.relations[item.name.lower()].visible().limit(0)
        else:
            return False
    parts = alternatives(within, query.query.text) or []
    return bool(parts) and all(is_marked(within.sql(part).schema[place]) for part in parts)


def _unmarked(schema: StructType) -> StructType:
    return StructType([StructField(item.name, item.dataType, item.nullable) for item in schema])


def _has_no_steps(window: StreamWindow) -> bool:
    """Whether rows enter a window at their rowtimes."""
    return window.slide is None and (window.row_slide or 1) == 1 and window.on is None


def _looks_at_each(
    gateway: Gateway, catalog: Catalog, query: StreamQuery, fits: Callable[[StreamWindow], bool]
) -> bool:
    """Whether a query looks at each row of such windows of live streams by itself."""
    within = marked_inputs(gateway, catalog, query)
    for item in query.query.inputs:
        if not isinstance(item, WindowedStream) or not fits(item.window) or not isinstance(item.source, str):
            return False
        source = item.source.lower()
        stream, definition = catalog.streams.get(source), catalog.definitions.get(source)
        is_live = stream is not None and stream.live is not None
        if not (is_live or (definition and passes_on(gateway, catalog, definition.query))):
            return False
    text = query.query.text
    return looks_at_each(within, within.sql(text), text, shows_rowtime=False)


def marked_inputs(gateway: Gateway, catalog: Catalog, query: StreamQuery) -> Gateway:
    """A session that has the streams of a query as frames without rows, in which rowtimes are marked."""
    within = Gateway(gateway.spark, gateway.parameters)
    for item in query.query.inputs:
        source = str(item.source).lower() if isinstance(item, WindowedStream) else ""
        stream = catalog.streams.get(source)
        if stream is not None:
            columns = StructType([stream.frame.schema[one] for one in stream.columns])
            rowtime = origin_of(gateway, catalog, source).rowtime
            within.frames[item.key] = stub(within.spark, columns, rowtime)
    return within


def origin_of(gateway: Gateway, catalog: Catalog, name: str) -> Origin:
    """The origin of a live stream, or of a view of rows as they come."""
    stream, definition = catalog.streams[name], catalog.definitions.get(name)
    if stream.live is not None:
        return Origin(stream.rowtime, (Feed(name, {column: column for column in stream.columns}),))
    if definition is None or not isinstance(definition.query, StreamQuery):
        return Origin(stream.rowtime)
    query = definition.query.query
    within = Gateway(gateway.spark, gateway.parameters)
    known = {}
    for item in query.inputs:
        if not isinstance(item, WindowedStream) or not is_bare(item):
            return Origin(stream.rowtime)
        source = str(item.source).lower()
        columns = [catalog.streams[source].frame.schema[one] for one in catalog.streams[source].columns]
        behind = origin_of(gateway, catalog, source)
        within.frames[item.key] = stub(within.spark, StructType(columns), behind.rowtime, relation=item.key)
        known[item.key] = behind.feeds
    frame = within.sql(query.text)
    if not looks_at_each(within, frame, query.text):
        return Origin(stream.rowtime)
    names = dict(zip(definition.names, frame.columns, strict=True))
    feeds = feeds_of(within, query.text, frame.schema, known)
    column = first_marked(frame.schema)
    rowtime = None if column is None else definition.names[frame.columns.index(column)]
    return Origin(rowtime, tuple(feed.only(names) for feed in feeds))


def alternatives(gateway: Gateway, text: SqlText) -> list[SqlText] | None:
    """The text with each part in the place of the UNION ALL that it is in; itself if it has none of streams.

    None if other set operators put streams together.
    """
    tokens = tokenize(text.render())
    group = next((one for one in _groups(tokens) if _reads(text, tokens, *one)), None)
    if group is None:
        return [text]
    start, stop = group
    parts = _parts(tokens, start, stop)
    if parts is None:
        return None
    ctes = [text.slice(*_place(tokens, *cte.item)) for cte in visible_ctes(tokens, start)]
    within = SqlText.of("WITH ", SqlText.join(", ", ctes), " ") if ctes else SqlText()
    first = text.slice(*_place(tokens, *parts[0]))
    names = ", ".join(map(quoted, gateway.sql(SqlText.of(within, first)).columns))
    before, after = _place(tokens, start, stop)
    found: list[SqlText] = []
    for stretch in parts:
        query = text.slice(*_place(tokens, *stretch))
        rest = text.slice(after, len(tokens.sql))
        whole = SqlText.of(text.slice(0, before), "SELECT * FROM (", query, f") AS __part({names})", rest)
        inner = alternatives(gateway, whole)
        if inner is None:
            return None
        found += inner
    return found


def _groups(tokens: TokenList) -> Iterator[Range]:
    """Where queries stand that set operators put together, without the named queries before them."""
    seen = set()
    for at in range(len(tokens)):
        if not is_set_operator(tokens, at):
            continue
        start, stop = level_around(tokens, at)
        if tokens.word(start) == "WITH":
            items = with_items(tokens, start)
            start = items[-1].item[1] if items else start
        if start not in seen:
            seen.add(start)
            yield start, stop


def _parts(tokens: TokenList, start: int, stop: int) -> list[Range] | None:
    """The queries that UNION ALL puts together; None for another operator."""
    found: list[Range] = []
    begin = start
    for at in tokens.level(start, stop):
        if not is_set_operator(tokens, at):
            continue
        if tokens.word(at) != "UNION" or tokens.word(at + 1) != "ALL":
            return None
        found.append((begin, at))
        begin = at + 2
    return [*found, (begin, stop)]


def _place(tokens: TokenList, start: int, stop: int) -> Range:
    span = tokens.span(start, stop)
    return span.start, span.stop


def _reads(text: SqlText, tokens: TokenList, start: int, stop: int) -> bool:
    """Whether a stretch of the text reads relations of ours, or named queries, which may."""
    inside = text.slice(*_place(tokens, start, stop))
    names = {tokens[at].name.lower() for at in range(start, stop) if tokens[at].is_name}
    named = any(cte.name.lower() in names for cte in visible_ctes(tokens, start))
    return named or any(isinstance(part, Relation) for part in inside.parts)
