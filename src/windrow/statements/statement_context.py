"""A statement that is to be run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windrow.relation import Relation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["StatementContext"]


@dataclass(frozen=True)
class StatementContext:
    """A statement, and what running it takes.

    Attributes
    ----------
    gateway, catalog
        The session, and its streams.
    tokens, statement
        The text, and where the statement is in it.
    execution
        Who evaluates clauses: ``"batch"`` or ``"reference"``.
    run_query
        Runs a query that stands in the statement, as a text.
    """

    gateway: Gateway
    catalog: Catalog
    tokens: TokenList
    statement: Range
    execution: str
    run_query: Callable[[str], Relation]
