"""The node of WINDOW BY: an input, which is SQL with references to other nodes, and the clause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windrow.algebra.names import IDENTITY
from windrow.errors import Span
from windrow.syntax.expression_nodes import Expression
from windrow.syntax.nodes import OrderItem, Range, Role, Side, Variable
from windrow.syntax.sqltext import SqlText

__all__ = ["AggregateCall", "Uses", "Window", "WindowBoundary", "WindowFragment"]


@dataclass(frozen=True)
class WindowFragment:
    """A user's expression: its text for Spark and, if it could be parsed, its tree.

    `part` returns the text of a range inside it. `column` replaces all of these for a Column of the Python
    API. `instead` are fields of rows that replace outer columns, by position.
    """

    text: SqlText
    expression: Expression | None = None
    span: Span | None = None
    part: Callable[[Range], SqlText] | None = None
    column: Any = None
    instead: tuple[tuple[Span, str], ...] = ()


@dataclass(frozen=True)
class WindowBoundary:
    """LABEL, START or END, bound to its variables."""

    side: Side
    variables: tuple[Variable, ...]
    when: WindowFragment | None
    only: bool
    unbounded: bool
    span: Span


@dataclass(frozen=True)
class CallOfSpark:
    """An aggregate of rows that Spark computes.

    For a user's own aggregate, `counts` is the condition of the rows that count, and `distinct` are the
    arguments by which equal rows count once: Spark allows neither FILTER nor DISTINCT for it.
    """

    text: SqlText
    counts: SqlText | None = None
    distinct: SqlText | None = None


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate over the window's rows, extracted from the SELECT.

    `name` is the column with its value. `function` is canonical and `argument` a fragment over the window's
    name as one row, if the kernel may compute it; `text` is the whole call for Spark, in which the window's
    name is one row. `reads` are the fields of the window's rows that it reads, None for all; `others` are the
    other variables that it reads. A user's own aggregate is called as in `own`.
    """

    name: str
    function: str | None
    argument: WindowFragment | None
    ignore_nulls: bool
    parameters: tuple[float, ...]
    text: SqlText
    span: Span
    reads: frozenset[str] | None = None
    others: tuple[Uses, ...] = ()
    own: CallOfSpark | None = None


@dataclass(frozen=True)
class Uses:
    """Which fields of a variable the rest of the query reads; `fields` is None for all of them."""

    name: str
    fields: frozenset[str] | None


@dataclass(frozen=True)
class Window:
    """One WINDOW BY.

    `rows` returns the input: a struct with the row, and the keys (:mod:`windrow.algebra.names`). `prefix` is
    the WITH list that the SELECT sees, added before any SQL made for it. `outer` is the SELECT list over the
    windows, in which the relation `key` stands for them, and `having` its HAVING; it compares the row
    variables `compared`. `around` is the query of the outer values that the rows are joined with.
    """

    key: str
    sql: str
    name: str
    tumbling: bool
    prefix: SqlText
    rows: SqlText
    partition_by: tuple[WindowFragment, ...]
    order_by: tuple[tuple[WindowFragment, OrderItem], ...]
    label: WindowBoundary | None
    start: WindowBoundary
    end: WindowBoundary | None
    aggregates: tuple[AggregateCall, ...]
    uses: tuple[Uses, ...]
    compared: tuple[Variable, ...]
    having: SqlText | None
    outer: SqlText
    span: Span
    around: SqlText | None = None

    def boundaries(self) -> tuple[WindowBoundary, ...]:
        """The boundaries that are written, in the order LABEL, START, END."""
        return tuple(boundary for boundary in (self.label, self.start, self.end) if boundary is not None)

    def variables(self) -> tuple[Variable, ...]:
        """All variables in the order declared."""
        return tuple(variable for boundary in self.boundaries() for variable in boundary.variables)

    def positions(self) -> dict[str, tuple[Side, int]]:
        """The outputs that are a row's position, with its side and shift: AT, and row variables that are
        compared.
        """
        found = {
            variable.name: (variable.side, 0)
            for variable in self.variables()
            if variable.role is Role.POSITION
        }
        return found | {IDENTITY + row.name: (row.side, row.role.shift) for row in self.compared}

    def visible(self, side: Side) -> tuple[Variable, ...]:
        """The variables that a predicate of this side can see: its own and those of the sides before."""
        order = (Side.LABEL, Side.START, Side.END)
        seen = order[: order.index(side) + 1]
        return tuple(variable for variable in self.variables() if variable.side in seen)
