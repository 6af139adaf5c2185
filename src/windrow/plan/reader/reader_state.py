"""The state that the parts of the reader share while they read a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql.types import StructField, StructType

from windrow.algebra.continuous import Continuous, Query, Reader
from windrow.algebra.continuous import Input as QueryInput
from windrow.algebra.match_node import Match
from windrow.algebra.window_node import Window
from windrow.plan.columns import Column
from windrow.plan.nodes import Node
from windrow.plan.reader.query_rows import BlockRows
from windrow.plan.reader.statement_text import StatementText
from windrow.plan.reasons import Reason
from windrow.syntax.nodes import Range
from windrow.syntax.queries import OrderedBlock, Select, SetOperationText, Shape

__all__ = ["KnownNames", "PlannedClause", "PlannedView", "ReaderState"]


class PlannedView(Protocol):
    """A view of a continuous query: its text, the query in it, and its column names."""

    @property
    def reader(self) -> Reader:
        """The reader of the statement that made it."""

    @property
    def query(self) -> Continuous:
        """Its query."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""


@dataclass(frozen=True)
class PlannedClause:
    """A clause over a time-varying relation.

    Attributes
    ----------
    reader, query
        The statement that contains it, and the input of the clause.
    clause
        The clause.
    returned
        The columns that it returns over such rows.
    """

    reader: Reader
    query: Query
    clause: Window | Match
    returned: Callable[[Sequence[Column]], StructType]


class KnownNames(Protocol):
    """The meaning of names in a statement."""

    def stream(self, name: str) -> StructType | None:
        """The columns of a stream with this name; None for a view of a stream."""

    def view(self, name: str) -> PlannedView | PlannedClause | None:
        """The view with this name, or the clause whose result has it, if its text is to be read."""

    def fields_of(self, item: QueryInput) -> tuple[Sequence[StructField], bool] | None:
        """The columns of a relation that exists before the query runs, and whether it changes over time; None
        for others.
        """


class FromWhere(Protocol):
    """Reads FROM and WHERE of a SELECT."""

    def __call__(
        self, reading: ReaderState, select: Select, around: BlockRows | None = None
    ) -> tuple[BlockRows, list[Range]]:
        """The rows, joined with the outer rows `around` of a subquery, and the conditions that are not
        applied yet.
        """


class Unnested(Protocol):
    """Reads subqueries in parts of a SELECT."""

    def __call__(
        self,
        reading: ReaderState,
        select: Select,
        rows: BlockRows,
        stretches: Iterable[Range],
        *,
        is_condition: bool = False,
    ) -> BlockRows:
        """The rows with columns for them, which replace them in the text."""


@dataclass
class ReaderState:
    """The state of a reader for one query.

    Attributes
    ----------
    statement, known
        Its statement, and the meaning of names.
    query
        Reads a query inside it.
    shape
        The shape of a query in brackets, which may have a WITH list.
    bracket
        Reads a query in brackets, or a named one.
    united
        A set operator over two plans, whose columns correspond by position.
    bounds
        The values of OFFSET and LIMIT.
    from_where
        Reads FROM and WHERE of a SELECT: the rows, and the conditions that are still to be checked against
        each.
    unnested
        The rows with columns for the subqueries in parts of a SELECT.
    inside
        Reads the text of a view that is read through these views.
    relation
        Reads a query of the statement.
    named
        The nodes of named queries.
    outside
        The brackets directly around the query.
    path
        The views through which the statement is read.
    of_windows
        Whether a stream without a window is one of an instant.
    """

    statement: StatementText
    known: KnownNames
    query: Callable[[Shape], Node]
    shape: Callable[[Range], Shape]
    bracket: Callable[[Range], Node]
    united: Callable[[SetOperationText, Node, Node], Node]
    bounds: Callable[[OrderedBlock], tuple[int, int | None]]
    from_where: FromWhere
    unnested: Unnested
    inside: Callable[[Reader, str], ReaderState]
    relation: Callable[[Query], Node | Reason]
    named: dict[Range, Node] = field(default_factory=dict)
    outside: frozenset[int] = frozenset()
    path: str = ""
    of_windows: bool = False
