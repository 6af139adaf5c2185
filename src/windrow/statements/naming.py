"""The meaning of names in a session: streams, and views of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pyspark.sql import DataFrame

from windrow.errors import AnalysisError, ParseError
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import SequenceView
from windrow.spark.live.input.source import endless
from windrow.spark.live.plans.read_names import live_streams, reads
from windrow.spark.logs.named_in_session import NamedStreamEntry
from windrow.spark.logs.session_streams import Stream
from windrow.spark.recorded.continuous_queries import Runner
from windrow.spark.relations.time_varying_relation import TimeVarying
from windrow.statements.clause_relations import relation_of_clause
from windrow.streams import NamedStream
from windrow.syntax.definitions.create_view import View
from windrow.syntax.sqltext import quoted
from windrow.syntax.streams.create_stream import CreateStream
from windrow.syntax.tokens import TokenList

__all__ = [
    "forget",
    "forget_unread",
    "is_free",
    "refresh",
    "refuse_taken",
    "remember_named",
    "remember_sequence",
    "remember_stream",
    "show_endless",
    "streams_shown",
]

_HIDDEN = "__windrow"
"""The prefix of names that a session generates."""


def remember_stream(gateway: Gateway, catalog: Catalog, name: str, stream: Stream) -> None:
    """Name a stream; Spark has the recorded rows as a table with this name."""
    forget(gateway, catalog, name)
    _show(gateway, catalog, dataclasses.replace(stream, name=name))


def refuse_taken(gateway: Gateway, catalog: Catalog, tokens: TokenList, create: CreateStream) -> None:
    """Refuse a name that is in use, unless the statement replaces it.

    Raises
    ------
    AnalysisError
        ``STREAM_ALREADY_EXISTS``.
    """
    name = create.name
    if create.replace:
        return
    if name.lower() in catalog.names or gateway.spark.catalog.tableExists(quoted(name)):
        raise AnalysisError(
            f"{name} already exists",
            condition="STREAM_ALREADY_EXISTS",
            sqlstate="42723",
            sql=tokens.sql,
            span=tokens[create.target].span,
            hint="choose another name, or write CREATE OR REPLACE STREAM",
        )


def remember_named(gateway: Gateway, catalog: Catalog, name: str, stream: NamedStream) -> None:
    """Register a named stream; Spark has the rows recorded so far as a table with this name."""
    named = NamedStreamEntry(gateway.spark, name, stream)
    remember_stream(gateway, catalog, name, named.as_recorded())
    catalog.named[name.lower()] = named


def refresh(gateway: Gateway, catalog: Catalog, execution: str) -> None:
    """Load the entries recorded in named streams since the last time, also for the views of them."""
    grown = set()
    for name, named in catalog.named.items():
        stream = named.as_recorded()
        if catalog.streams[name].frame is not stream.frame:
            _show(gateway, catalog, stream)
            grown.add(name)
    if not grown:
        return
    seen = set(grown)
    for name in [*catalog.definitions, *catalog.sequences]:
        _renew(gateway, catalog, name, execution, grown, seen)


def _renew(
    gateway: Gateway, catalog: Catalog, name: str, execution: str, grown: set[str], seen: set[str]
) -> None:
    """Evaluate a view again, after those that it reads, if one of them has grown."""
    if name in seen:
        return
    seen.add(name)
    definition, view = catalog.definitions.get(name), catalog.sequences.get(name)
    clause = catalog.clauses.get(name)
    query = clause.query if clause is not None else None if definition is None else definition.query
    inside = view.read if view is not None else set() if query is None else set(reads(catalog, query))
    for other in inside:
        _renew(gateway, catalog, other, execution, grown, seen)
    if grown.isdisjoint(inside):
        return
    grown.add(name)
    if view is not None:
        _show(gateway, catalog, view.recorded())
        return
    if clause is not None:
        catalog.relations[name] = relation_of_clause(gateway, catalog, clause, execution)[0]
        return
    assert definition is not None
    result = Runner(gateway, catalog, definition.reader, execution).run(definition.query)
    if isinstance(result, TimeVarying):
        catalog.relations[name] = result.renamed(definition.names)
    elif isinstance(result, Stream):
        renamed = dataclasses.replace(result.renamed(definition.names), name=catalog.streams[name].name)
        _show(gateway, catalog, renamed)
        show_endless(gateway, catalog, name)


def show_endless(gateway: Gateway, catalog: Catalog, name: str) -> None:
    """Raise an error when a view of a live stream is read as a table: it has no rows there."""
    name = name.lower()
    definition, stream = catalog.definitions.get(name), catalog.streams.get(name)
    if definition is None or stream is None:
        return
    if all(each in catalog.named for each in live_streams(catalog, definition.query)):
        return
    rows = stream.frame.select(*map(quoted, stream.columns))
    with gateway.translated():
        endless(gateway.spark, rows.schema).createOrReplaceTempView(quoted(stream.name or name))


def remember_sequence(gateway: Gateway, catalog: Catalog, view: SequenceView) -> None:
    """Name a view of windows or matches."""
    forget(gateway, catalog, view.name)
    _show(gateway, catalog, view.recorded())
    catalog.sequences[view.name.lower()] = view
    if view.is_endless:  # what reads it as a table has an error that it streams
        with gateway.translated():
            shown = endless(gateway.spark, view.plan.outer.schema).toDF(*view.names)
            shown.createOrReplaceTempView(quoted(view.name))


def is_free(gateway: Gateway, catalog: Catalog, tokens: TokenList, view: View, names: Sequence[str]) -> bool:
    """Whether to create a view with these columns; False if an existing one stays.

    Raises
    ------
    AnalysisError
        ``TEMP_TABLE_OR_VIEW_ALREADY_EXISTS``.
    ParseError
        ``CREATE_VIEW_COLUMN_ARITY_MISMATCH``.
    """
    exists = view.name.lower() in catalog.names or gateway.spark.catalog.tableExists(quoted(view.name))
    if exists and view.words.if_not_exists:
        return False
    if exists and not view.words.replaces:
        raise AnalysisError(
            f"view {view.name} already exists",
            condition="TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
            sqlstate="42P07",
            sql=tokens.sql,
            span=tokens[view.words.name_at].span,
            hint="choose another name, or write CREATE OR REPLACE TEMPORARY VIEW",
        )
    if view.columns and len(view.columns) != len(names):
        raise ParseError(
            f"view has {len(view.columns)} column names, but its query has {len(names)} columns",
            condition="CREATE_VIEW_COLUMN_ARITY_MISMATCH",
            sqlstate="21S01",
            sql=tokens.sql,
            span=tokens[view.words.name_at].span,
            hint="write one name for each column of the query",
        )
    return True


def _show(gateway: Gateway, catalog: Catalog, stream: Stream) -> None:
    """Make a stream available by its name to queries, and to Spark."""
    name = stream.name or ""
    with gateway.translated():
        live = stream.live
        if live is None:
            rows = stream.frame if stream.table is None else stream.table
        else:
            rows = stream.frame if live.identity else live.frame
        rows.select(*map(quoted, stream.columns)).createOrReplaceTempView(quoted(name))
        late = stream.late_rows()
        if late is not None:
            late.createOrReplaceTempView(quoted(f"{name}_late"))
    catalog.streams[name.lower()] = stream


def streams_shown(gateway: Gateway, catalog: Catalog) -> DataFrame:
    """The named streams in order: name, kind, rowtime column, and all columns.

    The kind is ``named``, ``view`` of a query over streams, ``live``, or ``recorded``.
    """
    rows = []
    for name, stream in sorted(catalog.streams.items()):
        if stream.name is None or name.startswith(_HIDDEN):
            continue
        is_view = name in catalog.definitions or name in catalog.sequences
        kinds = {"named": name in catalog.named, "view": is_view, "live": stream.live is not None}
        kind = next((kind for kind, applies in kinds.items() if applies), "recorded")
        kinds_of_columns = dict(stream.frame.dtypes)
        columns = ", ".join(f"{one} {kinds_of_columns[one]}" for one in stream.columns)
        rows.append((stream.name, kind, stream.rowtime, columns))
    return gateway.spark.createDataFrame(rows, "name STRING, kind STRING, rowtime STRING, columns STRING")


def forget(gateway: Gateway, catalog: Catalog, name: str) -> None:
    """Drop the definition of a name, and the view of its late rows."""
    known = catalog.streams.get(name.lower())
    if known is not None and known.late is not None:
        gateway.spark.catalog.dropTempView(f"{known.name}_late")
    catalog.forget(name)


def forget_unread(catalog: Catalog) -> None:
    """Drop the clauses over windows in brackets that no view reads: those of finished statements and dropped
    views.
    """
    queries = [one.query for one in catalog.definitions.values()]
    queries += [one.query for one in catalog.clauses.values()]
    read = {name for query in queries for name in reads(catalog, query)}
    unread = [name for name in catalog.clauses if name not in read]
    for name in unread:
        catalog.forget(name)
    if unread:
        forget_unread(catalog)
