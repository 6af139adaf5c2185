"""The views of arriving rows that clauses read, planned like queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live.reading.windowed_queries import planned_windows
from windrow.spark.live.reading.windowed_query import WindowedQuery

__all__ = ["planned_views", "views_behind"]


def views_behind(catalog: Catalog, read: Iterable[str]) -> frozenset[str]:
    """The views among the streams that clauses read, including those behind windows and matches."""
    found: set[str] = set()
    for name in read:
        if name in catalog.sequences:
            found |= views_behind(catalog, catalog.sequences[name].read)
        elif name in catalog.definitions:
            found.add(name)
    return frozenset(found)


def planned_views(gateway: Gateway, catalog: Catalog, names: Collection[str]) -> dict[str, WindowedQuery]:
    """The views of these names.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` for a view that no operator makes.
    """
    found = {}
    for name in sorted(names):
        view, scale = catalog.definitions[name], catalog.streams[name].scale
        found[name] = planned_windows(gateway, catalog, view.reader, view.query, scale, f".{name}")
    return found
