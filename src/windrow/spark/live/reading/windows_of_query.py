"""The windows in brackets of a query, also those in the views that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.algebra.continuous import (
    ChangelogOf,
    Continuous,
    NamedRelation,
    Reader,
    StreamQuery,
    WindowedStream,
)
from windrow.spark.catalog import Catalog

__all__ = ["QueryWindow", "windows_of"]


@dataclass(frozen=True)
class QueryWindow:
    """A window where it stands in a query or in a view.

    Attributes
    ----------
    key
        By which the plan of the query knows it: a view that is read twice has two.
    item, reader
        The window, and the text in which it is written.
    """

    key: str
    item: WindowedStream
    reader: Reader

    @property
    def name(self) -> str:
        """The name of its state, in the checkpoint."""
        return f"window{self.key}"

    @property
    def text(self) -> str:
        """How it is written, in one line."""
        span = self.item.span
        return " ".join(self.reader.tokens.sql[span.start : span.stop].split())


def windows_of(catalog: Catalog, query: Continuous, reader: Reader, path: str = "") -> Iterator[QueryWindow]:
    """The windows of a query of a text.

    Parameters
    ----------
    path
        The views through which the query is read.
    """
    relation = query.query if isinstance(query, StreamQuery) else query
    for item in relation.inputs:
        if isinstance(item, ChangelogOf):
            yield from windows_of(catalog, item.query, reader, path)
            continue
        if isinstance(item, WindowedStream):
            yield QueryWindow(f"{path}{item.key}", item, reader)
            if isinstance(item.source, StreamQuery):
                yield from windows_of(catalog, item.source, reader, path)
                continue
            name, own = item.source.lower(), ""
        else:
            assert isinstance(item, NamedRelation)
            name, own = item.name.lower(), item.key
        if name in catalog.definitions:
            view = catalog.definitions[name]
            yield from windows_of(catalog, view.query, view.reader, f"{path}.{name}{own}")
