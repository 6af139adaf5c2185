"""The plan of a MATCH_RECOGNIZE kernel: plain frozen data that is sent to the workers.

Labels are the pattern's variables by number. A condition is an expression of
:mod:`windrow.kernels.window_plan` whose sides are ``row``, the row that is tried, and ``r0``, ``r1`` …, the
rows (or labels) in the registers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.patterns.program import PatternProgram
from windrow.kernels.patterns.tree import Tree
from windrow.kernels.window_plan import ColumnRef, Number, Operation, PairExpression

__all__ = [
    "ANSWER",
    "CLASSIFIER",
    "LABELS",
    "NUMBERS",
    "REQUESTED",
    "STATE",
    "Aggregated",
    "Answers",
    "Duration",
    "MatchNumber",
    "MatchPlan",
    "Measure",
    "Navigation",
    "PatternCondition",
    "PatternFrame",
    "Register",
    "asks_spark",
    "is_asking",
    "register_side",
    "requested_column",
    "requests_of",
]  # fmt: skip

CLASSIFIER = "__classifier"
"""The column of the variables' names in a measure."""

NUMBERS = "__numbers"
"""The column that a condition reads from a register of a count or a match number: the number itself."""

LABELS = "__labels"
"""The column that a condition reads from a register of a label."""

STATE = "__state"
"""The column of the result with the kind of a row: 0 in a match, 1 an empty match, 2 an unmatched row."""

REQUESTED = "REQUESTED"
"""The operator of a condition that Spark evaluates, and the column with its number in requests."""

ANSWER = "answer"
"""The column with Spark's result."""

Members = frozenset[int] | None


def register_side(number: int) -> str:
    """The side of conditions that stands for a register.

    >>> register_side(3)
    'r3'
    """
    return f"r{number}"


def requested_column(number: int, place: int) -> str:
    """The column of requests with the operand at this place of the condition of this number.

    >>> requested_column(0, 2)
    'a0_2'
    """
    return f"a{number}_{place}"


def requests_of(expression: PairExpression) -> dict[int, tuple[ColumnRef, ...]]:
    """The conditions that Spark evaluates, by their numbers, with the columns that they read."""
    if not isinstance(expression, Operation):
        return {}
    if expression.operator != REQUESTED:
        return {number: refs for part in expression.operands for number, refs in requests_of(part).items()}
    number, *refs = expression.operands
    assert isinstance(number, Number)
    return {number.value: tuple(ref for ref in refs if isinstance(ref, ColumnRef))}


@dataclass(frozen=True, slots=True)
class Register:
    """A value that a thread retains about the rows of `members`.

    `kind` is ``row`` or ``label``, of the first or the last row but `offset`; ``count``, their number;
    ``rows``, the number of their list, ``labelled rows``, that of their list with labels; ``number``, the
    match number. Registers of one chain follow each other, from offset 0 on. With a negative `shift`, a label
    is that of so many rows earlier in the match.
    """

    members: Members
    from_first: bool = False
    offset: int = 0
    kind: str = "row"
    shift: int = 0


@dataclass(frozen=True, slots=True)
class PatternCondition:
    """The condition of a label, and its place in the query, for errors."""

    label: int
    expression: PairExpression
    place: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Navigation:
    """A value at one row of a match: FIRST or LAST of `members` but `offset`, then `shift` rows on.

    `column` may be `CLASSIFIER`. With `final`, it is evaluated at the last row of the match.
    """

    name: str
    members: Members
    from_first: bool
    offset: int
    shift: int
    final: bool
    column: str


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate over the rows of `members` so far, or of the whole match if `final`."""

    name: str
    members: Members
    final: bool
    spec: AggregateSpec


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """The match's number in its partition, from 1."""

    name: str


Measure = Navigation | Aggregated | MatchNumber


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration: the match has all rows from its first one on whose `key` is below the first row's `due`.

    Both are columns; keys increase along the rows. A match is known once no later key can be below its limit.
    """

    key: str
    due: str


@dataclass(frozen=True, slots=True)
class PatternFrame:
    """A match for each row that is not skipped, which takes and reads only rows from there on.

    `following` is how many rows after the row it may reach; None means all. A match begins at the row or,
    with `seek`, at the first row from there on at which one does.
    """

    following: int | None
    seek: bool


@dataclass(frozen=True, eq=False)
class Answers:
    """Spark's results for the conditions that it evaluates: tables of values and answers, by number.

    With `most`, the plan's result is the further values to evaluate, about this many at most: those that the
    search for matches needs, or those of `of_all` rows (:mod:`windrow.kernels.patterns.requests`).
    """

    tables: tuple[tuple[int, pa.Table], ...]
    most: int | None = None
    of_all: bool = False


@dataclass(frozen=True)
class MatchPlan:
    """One MATCH_RECOGNIZE clause, bound.

    `program` is the pattern for the machine; without it, the `tree` is enough. `labels` are the variables'
    names. `targets` are the labels to skip to. `outputs` are (name, column) of the columns that the result
    copies from a row: the output row under `all_rows`, otherwise the first row of the match. `running` are
    aggregates that conditions read, as columns of these names over registers of lists of rows. `skip_place`
    is the place of the targets in the query. With `every`, all ways to match are matches. With a `frame`, the
    result has a row for each row of the table. `by_label` are columns of measures that read another column of
    the table for each label, `of_names` columns of conditions with a constant for each label. `answers` are
    Spark's, for the conditions that it evaluates.
    """

    program: PatternProgram
    labels: tuple[str, ...]
    conditions: tuple[PatternCondition, ...]
    registers: tuple[Register, ...]
    skip: str
    targets: frozenset[int]
    all_rows: bool
    shows_empty: bool
    with_unmatched: bool
    outputs: tuple[tuple[str, str], ...]
    measures: tuple[Measure, ...]
    running: tuple[tuple[str, AggregateSpec], ...]
    result: pa.Schema
    ansi: bool = True
    sql: str | None = None
    skip_place: tuple[int, int] | None = None
    constants: pa.Table = field(default_factory=lambda: pa.table({}))
    every: bool = False
    duration: Duration | None = None
    frame: PatternFrame | None = None
    tree: Tree | None = None
    by_label: tuple[tuple[str, tuple[str, ...]], ...] = ()
    of_names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    answers: Answers | None = None


def is_asking(plan: MatchPlan) -> bool:
    """Whether the search looks for values that Spark must evaluate, not for matches."""
    return plan.answers is not None and plan.answers.most is not None


def asks_spark(plan: MatchPlan) -> bool:
    """Whether Spark evaluates conditions; then matches cannot be found in slices."""
    return any(requests_of(condition.expression) for condition in plan.conditions)
