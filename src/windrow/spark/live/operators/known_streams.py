"""What the names in a plan of a live query stand for."""

from __future__ import annotations

from pyspark.sql.types import StructType

from windrow.algebra.continuous import Input
from windrow.spark.catalog import Catalog, CatalogDefinition

__all__ = ["KnownStreams"]


class KnownStreams:
    """Live streams, and views of them.

    Parameters
    ----------
    catalog
        The session's.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def stream(self, name: str) -> StructType | None:
        """The columns of a live stream."""
        stream = self._catalog.streams.get(name)
        if stream is None or stream.live is None:
            return None
        return StructType([stream.frame.schema[column] for column in stream.columns])

    def given(self, item: Input) -> None:
        """None: what varies is a stream."""

    def view(self, name: str) -> CatalogDefinition | None:
        """The view of this name."""
        stream = self._catalog.streams.get(name)
        is_live = stream is not None and stream.live is not None
        return None if is_live else self._catalog.definitions.get(name)
