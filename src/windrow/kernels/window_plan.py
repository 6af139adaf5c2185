"""The plan of a WINDOW BY kernel: plain frozen data that is sent to the workers.

Columns have the names of the kernel's input table. A *side* is the boundary whose row is meant: ``label``,
``start`` or ``end``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from windrow.kernels.aggregates import AggregateSpec

__all__ = [
    "ColumnRef",
    "ConstantRef",
    "Elsewhere",
    "FieldOutput",
    "Number",
    "Operation",
    "Output",
    "PairExpression",
    "PositionOutput",
    "PositionRef",
    "RowOutput",
    "RowsOutput",
    "SameRow",
    "Search",
    "WindowPlan",
    "sides_of",
]


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """The value of a column at a side's row, `shift` rows on.

    Where there is no such row the value is the constant `missing`, or NULL. With `rank` the value is
    the rank of the column's value among all values of that rank group: enough to compare.
    """

    column: str
    side: str
    shift: int = 0
    missing: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class ConstantRef:
    """A value that Spark computed once for the query."""

    name: str
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """An integer that the query or the planner wrote."""

    value: int


@dataclass(frozen=True, slots=True)
class PositionRef:
    """The 1-based position of a side's row in its partition; NULL where the row is missing."""

    side: str


@dataclass(frozen=True, slots=True)
class SameRow:
    """Whether two row variables are the same row; each is (side, shift).

    NULL if either is missing; with `null_safe` two missing rows are the same.
    """

    left: tuple[str, int]
    right: tuple[str, int]
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator over operands, by Spark's rules.

    `operator` is AND OR NOT = <> < <= > >= <=> ISNULL IN BETWEEN COALESCE CASE NULL GREATEST LEAST ABS NEG +
    - * / % REQUESTED, or one of :data:`windrow.kernels.pair_functions.FUNCTIONS`; `dtype` is the numpy dtype
    in which arithmetic is done and delivered (ignored elsewhere), or ``string`` or ``decimal(p,s)``.
    Comparisons of operands of unlike dtypes are done in float64, as Spark compares an integer with a double.
    REQUESTED is a condition that Spark evaluates: its number, then the columns that it reads.
    """

    operator: str
    operands: tuple[PairExpression, ...]
    dtype: str = "bool"


PairExpression = ColumnRef | ConstantRef | Number | PositionRef | SameRow | Operation


def sides_of(expression: PairExpression) -> set[str]:
    """The sides of which an expression reads a row or its position."""
    match expression:
        case ColumnRef(side=side) | PositionRef(side=side):
            return {side}
        case SameRow(left=left, right=right):
            return {left[0], right[0]}
        case Operation(operands=operands):
            return {side for operand in operands for side in sides_of(operand)}
        case _:
            return set()


@dataclass(frozen=True, slots=True)
class Search:
    """How one boundary is found.

    `strategy` is one of

    * ``always``: the first row searched;
    * ``unbounded``: the partition's first (start) or last (end) row;
    * ``first true``: `predicate` reads only the row searched for; the first row at which it is true;
    * ``position``: the row at which `comparison` is true of (its position − the position of `base`) and
      `offset`;
    * ``monotone``: `predicate` compares values that rise along the rows: bisection, else ``scan``;
    * ``first of``: `predicate` is an OR, and `parts` are its alternatives;
    * ``scan``: `predicate` is tested row by row, for all windows at once;
    * ``given``: `column` of the label row has the 1-based position, NULL if there is none.

    `place` is the predicate's span in the query, for errors. `guard`, if not empty, is a Boolean column of
    the searched rows: where it is FALSE, the predicate is not evaluated.
    """

    strategy: str
    predicate: PairExpression | None = None
    base: str = ""
    comparison: str = ""
    offset: int = 0
    column: str = ""
    place: tuple[int, int] | None = None
    guard: str = ""
    parts: tuple[Search, ...] = ()


@dataclass(frozen=True, slots=True)
class RowOutput:
    """A row variable in the result: a struct of (field, column), NULL where the row is missing."""

    name: str
    side: str
    shift: int
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FieldOutput:
    """One column of a row variable that every window has, in the result."""

    name: str
    side: str
    column: str


@dataclass(frozen=True, slots=True)
class PositionOutput:
    """The position of a side's row, or of the row `shift` rows on, in the result."""

    name: str
    side: str
    shift: int = 0


@dataclass(frozen=True, slots=True)
class RowsOutput:
    """The window's rows in the result: an array of structs, with NULL markers if `markers`."""

    name: str
    fields: tuple[tuple[str, str], ...]
    markers: bool = True


Output = RowOutput | FieldOutput | PositionOutput | RowsOutput


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What externally evaluated predicates read, while the plan only has their results.

    `neighbours` are the rows beside a side's, as (side, shift); `positions` is whether they read positions.
    """

    neighbours: frozenset[tuple[str, int]] = frozenset()
    positions: bool = False


@dataclass(frozen=True)
class WindowPlan:
    """One bound WINDOW BY clause: the columns it reads, how boundaries are found, and its result.

    `labels` selects the label rows (without LABEL: the start rows) by a predicate over that side alone,
    None for every row. `start` is None without LABEL. `end` is None for tumbling without END.
    `aggregates` are (column, aggregate, its span in the query). `constants` is a table of one
    row. `sql` is the query, for errors. `first_only` asks for one window, at the partition's first row.
    `elsewhere` is the input of the predicates that a join plan has evaluated.
    """

    tumbling: bool
    has_label: bool
    labels: PairExpression | None
    start: Search | None
    end: Search | None
    only_start: bool
    only_end: bool
    first_only: bool
    outputs: tuple[Output, ...]
    aggregates: tuple[tuple[str, AggregateSpec, tuple[int, int]], ...]
    result: pa.Schema
    ansi: bool = True
    sql: str | None = None
    constants: pa.Table = field(default_factory=lambda: pa.table({}))
    elsewhere: Elsewhere = Elsewhere()

    def expressions(self) -> tuple[PairExpression, ...]:
        """Every predicate that is evaluated."""
        searches = [search.predicate for search in (self.start, self.end) if search is not None]
        return tuple(predicate for predicate in [self.labels, *searches] if predicate is not None)
