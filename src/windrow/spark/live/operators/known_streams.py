"""What the names in a plan of a live query stand for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql.types import StructType

from windrow.algebra.continuous import Input, Query
from windrow.spark.catalog import Catalog, CatalogDefinition

__all__ = ["KnownStreams", "is_live"]


class KnownStreams:
    """Live streams, and views of them.

    Parameters
    ----------
    catalog
        The session's.
    over_windows
        Whether windows in brackets are read: of live windows and matches too, and in time-varying views.
    made
        The columns of streams that queries make, by the keys of their windows.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        over_windows: bool = False,
        made: Mapping[str, StructType] = MappingProxyType({}),
    ) -> None:
        self._catalog, self._over_windows, self._made = catalog, over_windows, made

    def stream(self, name: str) -> StructType | None:
        """The columns of a live stream, or of one that a query makes."""
        if name in self._made:
            return self._made[name]
        if not is_live(self._catalog, name, with_clauses=self._over_windows):
            return None
        stream = self._catalog.streams[name]
        return StructType([stream.frame.schema[column] for column in stream.columns])

    def fields_of(self, item: Input) -> None:
        """None: what changes over time is a stream."""

    def view(self, name: str) -> CatalogDefinition | None:
        """The view of this name."""
        if is_live(self._catalog, name, with_clauses=self._over_windows):
            return None
        view = self._catalog.definitions.get(name)
        varies = view is not None and isinstance(view.query, Query)
        return None if varies and not self._over_windows else view


def is_live(catalog: Catalog, name: str, *, with_clauses: bool = False) -> bool:
    """Whether a name is that of a live stream; or also of windows or matches of some."""
    stream = catalog.streams.get(name)
    if stream is not None and stream.live is not None:
        return True
    return with_clauses and name in catalog.sequences and bool(catalog.sequences[name].streams)
