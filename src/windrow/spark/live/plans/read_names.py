"""The streams, views and windows that a query reads, also through views."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.algebra.continuous import (
    ChangelogOf,
    Continuous,
    NamedRelation,
    Reader,
    StreamQuery,
    WindowedStream,
)
from windrow.spark.catalog import Catalog
from windrow.spark.live.operators.known_streams import is_live
from windrow.spark.live.reading.windows_of_query import QueryWindow, windows_of

__all__ = ["live_streams", "live_windows", "reads", "sequences_of", "views_of"]


def live_streams(catalog: Catalog, query: Continuous) -> frozenset[str]:
    """The names of the live streams that a query reads, also through views."""
    found = {name for name in reads(catalog, query) if is_live(catalog, name)}
    for name in sequences_of(catalog, query):
        found |= catalog.sequences[name].streams
    return frozenset(found)


def views_of(catalog: Catalog, query: Continuous) -> frozenset[str]:
    """The names of the views that a query reads, also through others."""
    found = {name for name in reads(catalog, query) if name in catalog.definitions}
    for name in sequences_of(catalog, query):
        found |= {name, *catalog.sequences[name].views}
    return frozenset(found)


def sequences_of(catalog: Catalog, query: Continuous) -> frozenset[str]:
    """The streams of windows and matches that a query reads, also through views of other queries."""
    return frozenset(name for name in reads(catalog, query) if name in catalog.sequences)


def live_windows(catalog: Catalog, query: Continuous, reader: Reader) -> Iterator[QueryWindow]:
    """The windows in a query of live streams, and of streams that clauses or queries make, also in views."""
    for window in windows_of(catalog, query, reader):
        if window.made is not None or is_live(catalog, str(window.item.source).lower(), with_clauses=True):
            yield window


def reads(catalog: Catalog, query: Continuous) -> Iterator[str]:
    """The names that a query reads, also through views, except those of windows and matches."""
    inputs = query.query.inputs if isinstance(query, StreamQuery) else query.inputs
    for item in inputs:
        if isinstance(item, ChangelogOf):
            yield from reads(catalog, item.query)
        elif isinstance(item, WindowedStream) and isinstance(item.source, StreamQuery):
            yield from reads(catalog, item.source)
        else:
            name = item.name if isinstance(item, NamedRelation) else str(item.source)
            yield name.lower()
            if name.lower() in catalog.definitions:
                yield from reads(catalog, catalog.definitions[name.lower()].query)
            if name.lower() in catalog.clauses:
                yield from reads(catalog, catalog.clauses[name.lower()].query)
