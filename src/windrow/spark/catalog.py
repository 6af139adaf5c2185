"""A session's names, besides Spark's tables and views."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Self

from pyspark.sql import DataFrame

from windrow.spark.logs.session_streams import Stream
from windrow.syntax.definitions.sql_functions import SqlFunction

if TYPE_CHECKING:
    from windrow.algebra.continuous import Continuous, Query, Reader
    from windrow.algebra.match_node import Match
    from windrow.algebra.window_node import Window
    from windrow.spark.logs.clause_view import ClauseView
    from windrow.spark.logs.named_in_session import NamedStreamEntry
    from windrow.spark.relations.time_varying_relation import TimeVarying

__all__ = ["Catalog", "CatalogDefinition", "ClauseDefinition"]


@dataclass(frozen=True)
class CatalogDefinition:
    """The query of a view, and the names of its columns."""

    reader: Reader
    query: Continuous
    names: tuple[str, ...]


@dataclass(frozen=True)
class ClauseDefinition:
    """WINDOW BY or MATCH_RECOGNIZE over a time-varying relation: the query of its rows, and the clause."""

    reader: Reader
    query: Query
    clause: Window | Match


@dataclass
class Catalog:
    """The names of a session, in lower case: streams and time-varying relations; the queries of views;
    clauses over time windows; views of windows and matches, which are streams; named streams; the user's
    table functions; SQL functions; the queries of views over recorded streams, and those with EMIT; queries
    with EMIT in the statement that is read; and the queries of views that combine rows of whole streams.
    """

    streams: dict[str, Stream] = field(default_factory=dict)
    relations: dict[str, TimeVarying] = field(default_factory=dict)
    definitions: dict[str, CatalogDefinition] = field(default_factory=dict)
    clauses: dict[str, ClauseDefinition] = field(default_factory=dict)
    sequences: dict[str, ClauseView] = field(default_factory=dict)
    named: dict[str, NamedStreamEntry] = field(default_factory=dict)
    functions: dict[str, Callable[..., DataFrame]] = field(default_factory=dict)
    sql_functions: dict[str, SqlFunction] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    emitting: dict[str, str] = field(default_factory=dict)
    emitted: dict[str, object] = field(default_factory=dict)
    expanded: dict[str, str] = field(default_factory=dict)

    @property
    def rowtimes(self) -> dict[str, str]:
        """The columns with the rowtimes of streams, by the streams' names."""
        return {name: found.rowtime for name, found in self.streams.items() if found.rowtime is not None}

    def as_it_is(self) -> Self:
        """A copy of the catalog, which the session does not change."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        return replace(self, **{name: known.copy() for name, known in own.items() if isinstance(known, dict)})

    def forget(self, name: str) -> None:
        """Drop the definition of a name, if there is one; the session leaves a named stream."""
        named = self.named.pop(name.lower(), None)
        if named is not None:
            named.close()
        self.streams.pop(name.lower(), None)
        self.relations.pop(name.lower(), None)
        self.definitions.pop(name.lower(), None)
        self.clauses.pop(name.lower(), None)
        self.sequences.pop(name.lower(), None)
        self.texts.pop(name.lower(), None)
        self.emitting.pop(name.lower(), None)
        self.expanded.pop(name.lower(), None)

    @property
    def names(self) -> frozenset[str]:
        """All names."""
        return frozenset(self.streams) | frozenset(self.relations) | frozenset(self.expanded)
