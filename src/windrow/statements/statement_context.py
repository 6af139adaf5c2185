"""A statement that is to be run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from windrow.errors import WindrowError
from windrow.relation import Relation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["StatementContext", "names_of_script"]


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


@contextmanager
def names_of_script(is_script: bool) -> Iterator[None]:
    """Say of names that are not found that windows are made before a script with conditions or loops runs."""
    try:
        yield
    except WindrowError as error:
        unknown = ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_COLUMN", "UNKNOWN_VARIABLE")
        if is_script and error.condition.startswith(unknown):
            error.hint = (
                "create the tables that windows read before the script, as windows in a script with IF or"
                " loops are planned first; or run its statements with session.script"
            )
        raise
