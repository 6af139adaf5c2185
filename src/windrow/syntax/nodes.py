"""The nodes that the parser makes of a text: frozen trees of ranges of tokens.

A range ``(start, stop)`` has token indices of one :class:`~windrow.syntax.tokens.TokenList`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from windrow.errors import Span

__all__ = [
    "BlockText",
    "BoundaryClause",
    "Cte",
    "OrderItem",
    "Range",
    "Role",
    "Side",
    "Variable",
    "WindowClause",
    "is_within",
]

Range = tuple[int, int]


def is_within(inside: Range, around: Range) -> bool:
    """Whether a range is within another one, or equal to it.

    >>> is_within((2, 4), (1, 4)), is_within((2, 4), (3, 4))
    (True, False)
    """
    return around[0] <= inside[0] and inside[1] <= around[1]


class Side(Enum):
    """The boundary whose row a variable names."""

    LABEL = "label"
    START = "start"
    END = "end"


class Role(Enum):
    """The value of a variable in relation to that row."""

    ROW = "AS"
    POSITION = "AT"
    PREVIOUS = "PREV AS"
    NEXT = "NEXT AS"

    @property
    def shift(self) -> int:
        """How far the variable's row is from the boundary's row, in rows."""
        return {Role.PREVIOUS: -1, Role.NEXT: 1}.get(self, 0)


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared window variable."""

    name: str
    side: Side
    role: Role
    span: Span


@dataclass(frozen=True, slots=True)
class BoundaryClause:
    """LABEL, START or END as written; `when` is the predicate's range, None for true."""

    side: Side
    span: Span
    variables: tuple[Variable, ...] = ()
    when: Range | None = None
    only: bool = False
    unbounded: bool = False


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One ORDER BY key of the window's sequences."""

    expression: Range
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class WindowClause:
    """A WINDOW BY clause. `end` is None only for a tumbling window without END."""

    name: str
    name_span: Span
    span: Span
    tumbling: bool
    partition_by: tuple[Range, ...]
    order_by: tuple[OrderItem, ...]
    label: BoundaryClause | None
    start: BoundaryClause
    end: BoundaryClause | None

    def boundaries(self) -> Iterator[BoundaryClause]:
        """The boundaries that are written, in the order LABEL, START, END."""
        yield from (boundary for boundary in (self.label, self.start, self.end) if boundary is not None)

    def variables(self) -> Iterator[Variable]:
        """All variables in the order declared, without the window itself."""
        for boundary in self.boundaries():
            yield from boundary.variables


@dataclass(frozen=True, slots=True)
class Cte:
    """A named query of a WITH list: the whole item's range, and its body's inside the parentheses."""

    name: str
    item: Range
    body: Range
    recursive: bool


@dataclass(frozen=True, slots=True)
class BlockText:
    """A SELECT with a WINDOW BY clause: its token range and its parts.

    `source` is FROM … WHERE … as written, without groups with QUALIFY and named windows, which stand in
    `group_over` beside groups; `group_by`, `let` and `group_having` are the ranges after those words;
    `having` likewise after the clause, of HAVING or WHERE; `groups_after` are GROUP BY and HAVING of windows,
    with their words; `tail` has ORDER BY, LIMIT and the like with
    their words, empty where they belong to a set operation around the SELECT. `ctes` are the named
    queries that the SELECT sees, outermost first.
    """

    range: Range
    select: Range
    source: Range
    group_by: Range | None
    let: Range | None
    group_having: Range | None
    group_over: Range | None
    clause: WindowClause
    having: Range | None
    groups_after: Range | None
    tail: Range
    ctes: tuple[Cte, ...]
