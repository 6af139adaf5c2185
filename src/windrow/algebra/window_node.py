"""The node of WINDOW BY: an input, which is SQL with references to other nodes, and what the clause says."""

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
    """An expression of the user's: its text for Spark and, where it could be taken apart, its tree.

    `part` returns the text of a range inside it. `column` replaces all of these where the Python API was
    a Column. `instead` are fields of rows that stand for columns of the query around, by where these
    are written.
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

    Of an aggregate of the user's own `counts` is the condition of the rows that count, and `distinct` are
    the arguments of which equal ones count once: Spark takes neither FILTER nor DISTINCT for it.
    """

    text: SqlText
    counts: SqlText | None = None
    distinct: SqlText | None = None


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate over the window's rows, taken out of the SELECT.

    `name` is the column that has its value. `function` is canonical and `argument` a fragment over
    the window's name as one row, where the kernel may compute it; `text` is the whole call for Spark,
    in which the window's name stands for one row. `reads` are the fields of the window's rows that it
    reads, None for all; `others` are the other variables that it reads. An aggregate of the user's own is
    called as `own` says.
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

    `rows` returns the input: a struct with the row, and the keys (:mod:`windrow.algebra.names`). `prefix`
    is the WITH list that the SELECT sees, put before any SQL made for it. `outer` is the SELECT list
    over the windows, in which the relation `key` stands for them, and `having` its HAVING; it compares the
    row variables `compared`. `around` is the query of the values around that the rows are joined with.
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
        """Those that are written, in the order LABEL, START, END."""
        return tuple(boundary for boundary in (self.label, self.start, self.end) if boundary is not None)

    def variables(self) -> tuple[Variable, ...]:
        """All variables in the order declared."""
        return tuple(variable for boundary in self.boundaries() for variable in boundary.variables)

    def positions(self) -> dict[str, tuple[Side, int]]:
        """What returns a row's position, with its side and shift: AT, and row variables that are compared."""
        found = {
            variable.name: (variable.side, 0)
            for variable in self.variables()
            if variable.role is Role.POSITION
        }
        return found | {IDENTITY + row.name: (row.side, row.role.shift) for row in self.compared}

    def visible(self, side: Side) -> tuple[Variable, ...]:
        """The variables that a predicate of this side sees: its own and those of the sides before."""
        order = (Side.LABEL, Side.START, Side.END)
        seen = order[: order.index(side) + 1]
        return tuple(variable for variable in self.variables() if variable.side in seen)
