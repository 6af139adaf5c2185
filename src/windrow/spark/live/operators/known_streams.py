"""The meaning of names in a plan of a live query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pyspark.sql.types import LongType, StructField, StructType

from windrow.algebra.continuous import Input, Query
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.columns import Column
from windrow.plan.reader.reader_state import PlannedClause
from windrow.spark.catalog import Catalog, CatalogDefinition, ClauseDefinition
from windrow.spark.gateway import Gateway
from windrow.spark.relations.clauses_in_pieces import clause_in_pieces

__all__ = ["KnownStreams", "is_live"]


class KnownStreams:
    """Live streams, and views of them.

    Parameters
    ----------
    catalog
        The session's.
    gateway
        The session, if windows in brackets are read: over live windows and matches too, in time-varying
        views, and under clauses.
    made
        The columns of streams that queries make, by the keys of their windows.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        gateway: Gateway | None = None,
        made: Mapping[str, StructType] = MappingProxyType({}),
    ) -> None:
        self._catalog, self._gateway, self._made = catalog, gateway, made

    def stream(self, name: str) -> StructType | None:
        """The columns of a live stream, or of one that a query makes."""
        if name in self._made:
            return self._made[name]
        if not is_live(self._catalog, name, with_clauses=self._gateway is not None):
            return None
        stream = self._catalog.streams[name]
        return StructType([stream.frame.schema[column] for column in stream.columns])

    def fields_of(self, item: Input) -> None:
        """None: time-varying relations are streams here."""

    def view(self, name: str) -> CatalogDefinition | PlannedClause | None:
        """The view with this name, or the clause over windows in brackets whose result has it."""
        if is_live(self._catalog, name, with_clauses=self._gateway is not None):
            return None
        if self._gateway is not None and name in self._catalog.clauses:
            return self._clause(self._gateway, self._catalog.clauses[name])
        view = self._catalog.definitions.get(name)
        varies = view is not None and isinstance(view.query, Query)
        return None if varies and self._gateway is None else view

    def _clause(self, gateway: Gateway, clause: ClauseDefinition) -> PlannedClause:
        def returned(rows: Sequence[Column]) -> StructType:
            kinds = StructType([StructField(one.name, one.type) for one in rows])
            timed = kinds.add(ENTER, LongType()).add(LEAVE, LongType())
            made, _ = clause_in_pieces(gateway, clause.clause, gateway.spark.createDataFrame([], timed))
            return StructType(made.schema.fields[:-2])

        return PlannedClause(clause.reader, clause.query, clause.clause, returned)


def is_live(catalog: Catalog, name: str, *, with_clauses: bool = False) -> bool:
    """Whether a name is that of a live stream; optionally also of windows or matches."""
    stream = catalog.streams.get(name)
    if stream is not None and stream.live is not None:
        return True
    return with_clauses and name in catalog.sequences and bool(catalog.sequences[name].streams)
