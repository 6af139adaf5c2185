"""The reader of a CQL statement, which knows the session's names."""

from __future__ import annotations

from windrow.algebra.continuous import Reader
from windrow.spark.catalog import Catalog
from windrow.spark.declared import keys_of
from windrow.spark.gateway import Gateway
from windrow.statements.clauses_over_streams import declare_clauses
from windrow.syntax.nodes import Range
from windrow.syntax.streams.other_dialects import Spelled

__all__ = ["reader_of"]


def reader_of(
    gateway: Gateway, catalog: Catalog, written: Spelled, statement: Range, execution: str
) -> Reader:
    """The reader; queries in brackets before time windows become streams of the session.

    Raises
    ------
    WindrowError
        Where such a query cannot be a stream.
    """
    apart = declare_clauses(gateway, catalog, written.tokens, statement, execution)
    return Reader(
        written.tokens,
        frozenset(catalog.streams),
        frozenset(catalog.relations),
        selects=written.selects,
        declared={**keys_of(written), **apart},
        tables=frozenset(name for name, view in catalog.sequences.items() if not view.is_endless),
    )
