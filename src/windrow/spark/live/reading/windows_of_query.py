"""The windows in brackets of a query, also those in the views that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.algebra.continuous import (
    ChangelogOf,
    Continuous,
    Reader,
    StreamQuery,
    WindowedStream,
)
from windrow.algebra.names import without_since
from windrow.plan.reader.sources import path_of_clause
from windrow.spark.catalog import Catalog, CatalogDefinition

__all__ = ["InnerQuery", "QueryWindow", "windows_of"]


@dataclass(frozen=True)
class InnerQuery:
    """A query that makes a stream, in this text and read through these views; `names` are those of its
    columns.
    """

    query: StreamQuery
    reader: Reader
    path: str
    names: tuple[str, ...] | None


@dataclass(frozen=True)
class QueryWindow:
    """A window at one place of a query or view.

    Attributes
    ----------
    key
        Its key in the plan of the query: a view that is read twice has two.
    item, reader
        The window, and the text in which it is written.
    made
        The query whose stream it is over, if any, and the names of its columns, if these are not the query's.
    """

    key: str
    item: WindowedStream
    reader: Reader
    made: InnerQuery | None = None

    @property
    def name(self) -> str:
        """The name of its state, in the checkpoint."""
        return f"window{self.key}"

    @property
    def text(self) -> str:
        """Its text, in one line."""
        span = self.item.span
        return " ".join(without_since(self.reader.tokens.sql[span.start : span.stop]).split())


def windows_of(
    catalog: Catalog, query: Continuous, reader: Reader, path: str = "", *, within: bool = True
) -> Iterator[QueryWindow]:
    """The windows of a query of a text.

    Parameters
    ----------
    path
        The views through which the query is read.
    within
        Whether to include windows inside queries that make streams.
    """
    relation = query.query if isinstance(query, StreamQuery) else query
    for item in relation.inputs:
        if isinstance(item, ChangelogOf):
            yield from windows_of(catalog, item.query, reader, path, within=within)
        elif isinstance(item, WindowedStream) and (view := _passing(catalog, item)) is not None:
            own = f"{path}.{str(item.source).lower()}"
            yield from windows_of(catalog, view.query, view.reader, own, within=within)
        elif isinstance(item, WindowedStream):
            made = _made(catalog, item, reader, path)
            yield QueryWindow(f"{path}{item.key}", item, reader, made)
            if made is not None and within:
                yield from windows_of(catalog, made.query, made.reader, made.path)
        elif item.name.lower() in catalog.definitions:
            name = item.name.lower()
            view = catalog.definitions[name]
            own = f"{path}.{name}{item.key}"
            yield from windows_of(catalog, view.query, view.reader, own, within=within)
        elif item.name.lower() in catalog.clauses:
            clause = catalog.clauses[item.name.lower()]
            own = f"{path}.{path_of_clause(item.key)}"
            yield from windows_of(catalog, clause.query, clause.reader, own, within=within)


def _passing(catalog: Catalog, item: WindowedStream) -> CatalogDefinition | None:
    """The view that a stream without a window is, if it passes on rows of others as they arrive."""
    view = catalog.definitions.get(str(item.source).lower()) if item.is_bare else None
    if view is None or not isinstance(view.query, StreamQuery) or view.query.kind != "RSTREAM":
        return None
    inputs = view.query.query.inputs
    passes = all(isinstance(one, WindowedStream) and one.is_bare for one in inputs)
    return view if passes and all(isinstance(one.source, str) for one in inputs) else None  # type: ignore[union-attr]


def _made(catalog: Catalog, item: WindowedStream, reader: Reader, path: str) -> InnerQuery | None:
    """The query whose stream a window is over; None for a stream that is not derived."""
    if isinstance(item.source, StreamQuery):
        names = tuple(name for name, _ in item.source.names) or None
        return InnerQuery(item.source, reader, path, names)
    view = catalog.definitions.get(item.source.lower())
    if view is None or not isinstance(view.query, StreamQuery):
        return None
    return InnerQuery(view.query, view.reader, f"{path}.{item.source.lower()}", view.names)
