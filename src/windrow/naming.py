"""What names of a session stand for: streams, and views of them."""

from __future__ import annotations

import dataclasses

from windrow.errors import AnalysisError
from windrow.spark.continuous import Runner
from windrow.spark.gateway import Gateway
from windrow.spark.live.runner import reads
from windrow.spark.named import Named
from windrow.spark.streams import Catalog, Stream
from windrow.spark.varying import Varying
from windrow.streams import NamedStream
from windrow.syntax.sqltext import quoted

__all__ = ["forget", "refresh", "refuse_taken", "remember_named", "remember_stream"]


def remember_stream(
    gateway: Gateway, catalog: Catalog, name: str, stream: Stream, *, replace: bool = True
) -> None:
    """Give a stream a name; under it Spark knows the recorded rows as a table.

    Raises
    ------
    AnalysisError
        ``STREAM_ALREADY_EXISTS``.
    """
    if not replace:
        refuse_taken(gateway, catalog, name)
    forget(gateway, catalog, name)
    _show(gateway, catalog, dataclasses.replace(stream, name=name))


def refuse_taken(gateway: Gateway, catalog: Catalog, name: str) -> None:
    """Refuse a name that stands for something.

    Raises
    ------
    AnalysisError
        ``STREAM_ALREADY_EXISTS``.
    """
    if name.lower() in catalog.names or gateway.spark.catalog.tableExists(quoted(name)):
        raise AnalysisError(
            f"{name} already exists",
            condition="STREAM_ALREADY_EXISTS",
            sqlstate="42723",
            hint="choose another name, or CREATE OR REPLACE STREAM",
        )


def remember_named(gateway: Gateway, catalog: Catalog, name: str, stream: NamedStream) -> None:
    """Give a named stream a name; under it Spark knows the rows that have been recorded so far."""
    named = Named(gateway.spark, name, stream)
    remember_stream(gateway, catalog, name, named.as_recorded())
    catalog.named[name.lower()] = named


def refresh(gateway: Gateway, catalog: Catalog, execution: str) -> None:
    """Take in what has been recorded in named streams since, also in the views of them."""
    grown = set()
    for name, named in catalog.named.items():
        stream = named.as_recorded()
        if catalog.streams[name].frame is not stream.frame:
            _show(gateway, catalog, stream)
            grown.add(name)
    if not grown:
        return
    for name, definition in catalog.definitions.items():
        if grown.isdisjoint(reads(catalog, definition.query)):
            continue
        result = Runner(gateway, catalog, definition.reader, execution).run(definition.query)
        if isinstance(result, Varying):
            catalog.relations[name] = result.renamed(definition.names)
        elif isinstance(result, Stream):
            renamed = dataclasses.replace(result.renamed(definition.names), name=catalog.streams[name].name)
            _show(gateway, catalog, renamed)


def _show(gateway: Gateway, catalog: Catalog, stream: Stream) -> None:
    """Let queries, and Spark, know a stream by its name."""
    name = stream.name or ""
    with gateway.translated():
        live = stream.live
        rows = stream.frame if live is None or live.identity else live.frame
        rows.select(*map(quoted, stream.columns)).createOrReplaceTempView(quoted(name))
        late = stream.late_rows()
        if late is not None:
            late.createOrReplaceTempView(quoted(f"{name}_late"))
    catalog.streams[name.lower()] = stream


def forget(gateway: Gateway, catalog: Catalog, name: str) -> None:
    """Forget what has a name, and the view of its late rows."""
    known = catalog.streams.get(name.lower())
    if known is not None and known.late is not None:
        gateway.spark.catalog.dropTempView(f"{known.name}_late")
    catalog.forget(name)
