"""The plan of a MATCH_RECOGNIZE kernel: plain frozen data that travels to the workers.

Labels are the pattern's variables by number. A condition is an expression of
:mod:`windrow.kernels.window_plan` whose sides are ``row``, the row that is tried, and ``r0``, ``r1`` …, the
rows (or labels) that the registers contain.
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
"""Stands for the column of the variables' names in a measure."""

NUMBERS = "__numbers"
"""The column of a condition that a register of a count or a match's number reads: the number itself."""

LABELS = "__labels"
"""The column of a condition that a register of a label reads."""

STATE = "__state"
"""The column of the result that says what a row is: 0 of a match, 1 an empty match, 2 an unmatched row."""

REQUESTED = "REQUESTED"
"""The operator of a condition that Spark evaluates, and the column with its number where it is asked for."""

ANSWER = "answer"
"""The column of what Spark found."""

Members = frozenset[int] | None


def register_side(number: int) -> str:
    """The side of a condition that a register is.

    >>> register_side(3)
    'r3'
    """
    return f"r{number}"


def requested_column(number: int, place: int) -> str:
    """The column of values that the condition of this number is asked for, in this place of its operands.

    >>> requested_column(0, 2)
    'a0_2'
    """
    return f"a{number}_{place}"


def requests_of(expression: PairExpression) -> dict[int, tuple[ColumnRef, ...]]:
    """The conditions that Spark evaluates, by their numbers, with what they read."""
    if not isinstance(expression, Operation):
        return {}
    if expression.operator != REQUESTED:
        return {number: refs for part in expression.operands for number, refs in requests_of(part).items()}
    number, *refs = expression.operands
    assert isinstance(number, Number)
    return {number.value: tuple(ref for ref in refs if isinstance(ref, ColumnRef))}


@dataclass(frozen=True, slots=True)
class Register:
    """What a thread retains, of the rows of `members`.

    `kind` is ``row`` or ``label``, of the first or the last row but `offset`; ``count``, how many there
    are; ``rows``, the number of their list, ``labelled rows`` that of their list with their labels;
    ``number``, that of the match. Registers of one chain follow
    each other, from offset 0 on. With a `shift`, which is negative, a label is that of so many rows before
    in the match.
    """

    members: Members
    from_first: bool = False
    offset: int = 0
    kind: str = "row"
    shift: int = 0


@dataclass(frozen=True, slots=True)
class PatternCondition:
    """The condition of a label, and its stretch of the query, for errors."""

    label: int
    expression: PairExpression
    place: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Navigation:
    """A value at one row of a match: FIRST or LAST of `members` but `offset`, then `shift` rows on.

    `column` may be `CLASSIFIER`. `final` ones are seen from the last row of the match.
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
    """That a match has all rows from its first one on whose `key` is below the first row's `due`.

    Both are columns; keys rise along the rows. A match is known where it is known that no key below that
    will come.
    """

    key: str
    due: str


@dataclass(frozen=True, slots=True)
class PatternFrame:
    """A match for each row that is not skipped, which takes and reads rows from there on alone.

    `following` is how many rows after the row it may reach, None for all. A match begins at the row or, with
    `seek`, at the first row from there on at which one does.
    """

    following: int | None
    seek: bool


@dataclass(frozen=True, eq=False)
class Answers:
    """What Spark found of conditions that it evaluates: by their numbers, tables of values and answers.

    With `most`, the plan's result is what else these conditions are asked for, at most so much of it and a
    bit: by the search for matches, or by one `of_all` rows (:mod:`windrow.kernels.patterns.requests`).
    """

    tables: tuple[tuple[int, pa.Table], ...]
    most: int | None = None
    of_all: bool = False


@dataclass(frozen=True)
class MatchPlan:
    """One MATCH_RECOGNIZE clause, bound.

    `program` is the pattern for the machine, without which its `tree` may do. `labels` are the variables'
    names. `targets` are the labels to skip to. `outputs` are (name, column) of what the result has of the row
    itself: the row of the output under `all_rows`, else the first row of the match. `running` are aggregates
    that conditions read, as columns of these names over registers of lists of rows. `skip_place` is the
    stretch of the query that names the targets. With `every` all ways to match are matches. With a `frame`
    the result has a row for each row of the table. `by_label` are columns of measures that are another column
    of the table for each label, `of_names` columns of conditions with a constant for each label. Spark's
    `answers` are of the conditions that it evaluates.
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
    """Whether the search is for what Spark is to be asked, and not for matches."""
    return plan.answers is not None and plan.answers.most is not None


def asks_spark(plan: MatchPlan) -> bool:
    """Whether Spark evaluates conditions: of rows at the edges of slices it is not asked."""
    return any(requests_of(condition.expression) for condition in plan.conditions)
