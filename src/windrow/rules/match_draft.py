"""The draft of a bound MATCH_RECOGNIZE, and Spark's analysis for the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from windrow.algebra.match_node import Match
from windrow.algebra.navigations import Aggregation
from windrow.algebra.physical import Hoisted
from windrow.algebra.window_node import CallOfSpark
from windrow.kernels.patterns.pattern_plan import Duration, Navigation, PatternCondition, Register
from windrow.kernels.window_plan import ColumnRef
from windrow.rules.match_conditions import ConditionSource
from windrow.syntax.sqltext import SqlText

__all__ = [
    "ARGUMENT",
    "ELEMENT",
    "MATCH_NUMBER",
    "AggregateLeaf",
    "MatchAnalyzer",
    "MatchDraft",
    "ReadValue",
    "RunningLeaf",
    "SparkCondition",
    "calls_of_spark",
    "neighbour",
]

ARGUMENT = "__a"
"""Prefix of the columns for expressions over one row."""

ELEMENT = "__e"
"""The struct with an element of each list over which Spark aggregates."""


MATCH_NUMBER = "__match_number"
"""The number of the match, where Spark evaluates an aggregate with it."""


def neighbour(shift: int) -> str:
    """The struct with the row at a distance, if Spark evaluates a condition over it.

    >>> neighbour(-2)
    '__prev2'
    """
    return f"__prev{-shift}" if shift < 0 else f"__next{shift}"


class MatchAnalyzer(Protocol):
    """Spark's analysis of the rows of a MATCH_RECOGNIZE, for the rules."""

    @property
    def fields(self) -> Mapping[str, str]:
        """The row's field names with their types, in order."""

    @property
    def ansi(self) -> bool:
        """Whether the session raises errors where other modes return NULL."""

    @property
    def whole(self) -> bool:
        """Whether whole partitions are available, so that Spark can read the rows beside a row."""

    def stands_alone(self, query: SqlText) -> bool:
        """Whether a query in parentheses is not correlated."""

    def kernel_supports(self, function: str, argument: SqlText, arguments: Sequence[SqlText]) -> bool:
        """Whether the kernel computes an aggregate of this expression over the rows and their arguments."""

    def types_of(
        self, texts: Sequence[SqlText], arguments: Sequence[SqlText], sources: Sequence[ConditionSource]
    ) -> list[str]:
        """The types of expressions over the rows, their arguments, and the sources as structs of both.

        Raises
        ------
        WindrowError
            Located in the user's text, where Spark cannot analyse one of them.
        """


@dataclass(frozen=True)
class AggregateLeaf:
    """An aggregate for the kernel: `text` is the aggregate over the rows, for its type.

    With `of_spark` it is a list, over whose elements Spark computes that aggregate.
    """

    name: str
    leaf: Aggregation
    column: str | None
    text: SqlText
    of_spark: CallOfSpark | None = None

    @property
    def function(self) -> str:
        """The kernel's name of what it computes."""
        return self.leaf.function if self.of_spark is None else "collect_list"

    @property
    def ignores_nulls(self) -> bool:
        """Whether it ignores rows whose value is NULL, as filtered-out rows are."""
        return self.leaf.ignore_nulls or (self.leaf.keeps_nulls and self.leaf.filter is not None)


def calls_of_spark(leaves: Iterable[AggregateLeaf]) -> dict[str, CallOfSpark]:
    """The aggregates that Spark computes over lists, by the names of these."""
    return {leaf.name: leaf.of_spark for leaf in leaves if leaf.of_spark is not None}


RunningLeaf = AggregateLeaf


@dataclass(frozen=True)
class ReadValue:
    """A value that a condition reads: in the text a field of this variable, for the machine a column.

    Without a variable it is a column in the text.
    """

    variable: str
    field: str
    column: ColumnRef


@dataclass(frozen=True)
class SparkCondition:
    """A condition that Spark evaluates over values of the match; the machine requests it by this number."""

    number: int
    text: SqlText
    reads: tuple[ReadValue, ...]


@dataclass(frozen=True)
class MatchDraft:
    """The draft of a MATCH_RECOGNIZE.

    `arguments` are expressions over the rows, columns ``__a0`` and so on. `values` are the measures' values
    at rows, `numbers` the names of match numbers, `running` aggregates that conditions read. `scope` has
    the fields that measures read as they are, with the values that stand for them. `before` and `after` are
    the fields of the result, with the columns that have them, on either side of the measures. `texts` are
    the measures over all these. `neighbours` say how far the rows are that Spark evaluates conditions over.
    `length` is the time of WITHIN or DURATION, an expression; `duration` the columns of DURATION. `by_label`
    are columns that are another one for each variable, `of_names` those of conditions that have a constant
    for each. `requested` are the conditions that Spark evaluates.
    """

    match: Match
    arguments: tuple[SqlText, ...]
    sources: tuple[ConditionSource, ...]
    hoisted: tuple[Hoisted, ...]
    constants: tuple[tuple[str, SqlText], ...]
    shared: tuple[tuple[str, str], ...]
    conditions: tuple[PatternCondition, ...]
    registers: tuple[Register, ...]
    neighbours: tuple[int, ...]
    values: tuple[Navigation, ...]
    aggregates: tuple[AggregateLeaf, ...]
    numbers: tuple[str, ...]
    running: tuple[RunningLeaf, ...]
    scope: tuple[tuple[str, str], ...]
    before: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, SqlText], ...]
    length: SqlText | None = None
    duration: Duration | None = None
    by_label: tuple[tuple[str, tuple[str, ...]], ...] = ()
    of_names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    requested: tuple[SparkCondition, ...] = ()
