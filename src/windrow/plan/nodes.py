"""The nodes of a plan: the operators of a query, in the order in which they run.

Nodes are immutable. Each checks, when it is made, that its inputs have the columns that it reads. A node that
the query uses twice, such as a named query of WITH, is one object. Facts about a node are derived from the
facts of its inputs (:mod:`windrow.plan.event_time`, :mod:`windrow.plan.lineage`), and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow.algebra.match_node import Match
from windrow.algebra.window_node import AggregateCall, Window
from windrow.kernels.sorting import SortKey
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.columns import ROWS, Column, Completeness, Expression, Scope
from windrow.plan.reasons import Reason
from windrow.syntax.cql_clauses import StreamWindowClause as Bracket
from windrow.syntax.expressions.window_calls import OverCall
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Piece, SqlText

__all__ = [
    "TIMES",
    "Aggregate",
    "ClauseRelation",
    "Distinct",
    "Filter",
    "GroupAggregate",
    "Input",
    "Join",
    "JoinKind",
    "Mark",
    "Node",
    "OneRow",
    "Over",
    "Pieces",
    "Project",
    "Scan",
    "SessionWindows",
    "SetOperation",
    "Sort",
    "StreamWindow",
    "TimeWindows",
    "Value",
    "walk",
]  # fmt: skip

JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]


class _Node:
    """The base of all nodes."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The relations that it reads."""
        known = vars(self)
        return tuple(known[name] for name in ("input", "left", "right") if name in known)


class _Passing(_Node):
    """A node whose output is a subset of its input rows, unchanged."""

    input: Node

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the input."""
        return self.input.columns


@dataclass(frozen=True, eq=False)
class Scan(_Node):
    """The rows of a stream or a table, at one place of a query.

    Attributes
    ----------
    name
        The stream, in lower case; of a table a key of its own.
    columns
        Its columns.
    sources
        The name of each column in the stream or table.
    table
        The query that reads the table; None for a stream.
    label, at
        How it is written, and where.
    """

    name: str
    columns: tuple[Column, ...]
    sources: tuple[str, ...]
    table: SqlText | None
    label: str
    at: Range

    @property
    def is_stream(self) -> bool:
        """Whether its rows are unbounded."""
        return self.table is None


@dataclass(frozen=True, eq=False)
class Input(_Node):
    """A relation that exists before the query runs, by its key in the statement.

    Attributes
    ----------
    key
        The key.
    columns
        Its columns.
    is_temporal
        Whether it changes over time; a table does not.
    label, at
        How it is written, and where.
    """

    key: str
    columns: tuple[Column, ...]
    is_temporal: bool
    label: str
    at: Range


@dataclass(frozen=True, eq=False)
class StreamWindow(_Passing):
    """``s [RANGE 5 MINUTES]``: the rows of a stream, each for as long as it is in the window.

    Attributes
    ----------
    input
        The stream.
    key
        The name of the window in the statement, after that of the view that contains it.
    window
        The bracket.
    partition
        The columns of PARTITION BY, of the stream; None for one that is computed.
    label, at
        How it is written, and where.
    """

    input: Scan
    key: str
    window: Bracket
    partition: tuple[str | None, ...]
    label: str
    at: Range

    @property
    def is_bare(self) -> bool:
        """Whether no window is written: its rows as they arrive."""
        return self.window.tokens[0] == self.window.tokens[1]


@dataclass(frozen=True, eq=False)
class Filter(_Passing):
    """The rows that satisfy all conditions. `clause` is WHERE, HAVING or QUALIFY."""

    input: Node
    scope: Scope
    conditions: tuple[Expression, ...]
    clause: str
    label: str

    def __post_init__(self) -> None:
        _check(self.scope, self.input)


@dataclass(frozen=True, eq=False)
class Project(_Node):
    """Columns that are passed on, renamed, or computed from each row.

    Attributes
    ----------
    input, scope
        The rows, and the names in `listed`.
    outputs
        Each column with the expression that it is.
    listed
        The SELECT list that returns the columns in their order, as the user wrote it.
    label
        Its name for users.
    is_whole
        Whether only the list as a whole returns the columns: their expressions are that.
    """

    input: Node
    scope: Scope
    outputs: tuple[tuple[Column, Expression], ...]
    listed: SqlText
    label: str
    is_whole: bool = False

    def __post_init__(self) -> None:
        _check(self.scope, self.input)
        _has(self.input, (one.column for _, one in self.outputs if one.column is not None))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it makes."""
        return tuple(column for column, _ in self.outputs)

    @property
    def passes_only(self) -> bool:
        """Whether it computes nothing."""
        return all(one.column is not None for _, one in self.outputs)


@dataclass(frozen=True, eq=False)
class Join(_Node):
    """Pairs of rows whose keys are equal and which satisfy the conditions.

    Attributes
    ----------
    left, right, kind
        The sides, and the kind of join.
    keys
        Equal columns of the left and of the right side, of the same type.
    conditions
        Other conditions on pairs, over the scope of both; for an inner join, a filter above it has these.
    scope
        The names of both sides.
    label, at
        Its name for users, and the position of its condition.
    is_of_subquery
        Whether the right side is a subquery in an expression.
    """

    left: Node
    right: Node
    kind: JoinKind
    keys: tuple[tuple[str, str], ...]
    conditions: tuple[Expression, ...]
    scope: Scope
    label: str
    at: Range
    is_of_subquery: bool = False

    def __post_init__(self) -> None:
        _has(self.left, (one for one, _ in self.keys))
        _has(self.right, (other for _, other in self.keys))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of both sides; of semi and anti joins, those of the left side."""
        return (
            self.left.columns if self.kind in ("semi", "anti") else (*self.left.columns, *self.right.columns)
        )


@dataclass(frozen=True, eq=False)
class Mark(_Node):
    """Rows with a column that says whether they have a partner, as EXISTS and IN need: a mark join.

    Attributes
    ----------
    left, right, keys, conditions, scope
        The rows, and which of others are their partners, as :class:`Join` has it.
    column
        The column that is added: whether there is a partner. NULL if there is one only if NULL is equal to
        some value in `unknown`.
    unknown
        The keys whose NULL, on either side, makes the outcome unknown, as of IN where NULL is not FALSE.
    label, at
        Its name for users, and its position.
    """

    left: Node
    right: Node
    keys: tuple[tuple[str, str], ...]
    conditions: tuple[Expression, ...]
    scope: Scope
    column: Column
    unknown: tuple[tuple[str, str], ...]
    label: str
    at: Range

    def __post_init__(self) -> None:
        _has(self.left, (one for one, _ in self.keys))
        _has(self.right, (other for _, other in self.keys))
        assert {*self.unknown} <= {*self.keys}

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the left side, and the mark."""
        return (*self.left.columns, self.column)


@dataclass(frozen=True, eq=False)
class Value(_Node):
    """Rows with the columns of another relation's only row, as a scalar subquery returns.

    Attributes
    ----------
    left, right
        The rows, and the relation of at most one row.
    is_there
        Whether its row always exists; otherwise the columns are NULL without a row.
    label, at
        How the subquery is written, and where.
    """

    left: Node
    right: Node
    is_there: bool
    label: str
    at: Range

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of both sides."""
        return (*self.left.columns, *self.right.columns)


@dataclass(frozen=True, slots=True)
class GroupAggregate:
    """An aggregate of a group.

    Attributes
    ----------
    column, call
        Its output column, and the call.
    argument
        The column with its argument, if any.
    is_known
        Whether its name and form determine its meaning; others are known only to Spark.
    at
        Its position.
    """

    column: Column
    call: AggregateCall
    argument: str | None
    is_known: bool
    at: Range


@dataclass(frozen=True, eq=False)
class Aggregate(_Node):
    """GROUP BY: one row for each combination of the keys.

    Attributes
    ----------
    input
        The rows, with keys and arguments as columns. The texts of the aggregates are over its own input.
    keys
        The columns of the keys, and those of the input that they copy.
    calls
        The aggregates.
    label, at
        Its name for users, and the position of GROUP BY or the SELECT.
    around
        How many of the first keys are not in the query, but join it as a subquery with the outer query.
    until
        The conditions that make a group final: for each stream that it is derived from, any of these keys, by
        their columns in the input. Empty if there are none.
    """

    input: Project
    keys: tuple[tuple[Column, str], ...]
    calls: tuple[GroupAggregate, ...]
    label: str
    at: Range
    around: int = 0
    until: tuple[Completeness, ...] = ()

    def __post_init__(self) -> None:
        _has(self.input, (source for _, source in self.keys))
        _has(self.input, (call.argument for call in self.calls if call.argument is not None))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Keys and aggregates."""
        return (*(column for column, _ in self.keys), *(call.column for call in self.calls))


@dataclass(frozen=True, eq=False)
class OneRow(_Node):
    """The only row of a scalar subquery; several rows are an error.

    Attributes
    ----------
    input
        The groups of its rows: their keys, and the aggregates `count`, how many rows there are, and `value`.
    count, value
        These columns.
    label, at
        How the subquery is written, and where.
    written
        The same, with the text in which it is written, which may be that of a view.
    """

    input: Aggregate
    count: str
    value: Column
    label: str
    at: Range
    written: Piece

    def __post_init__(self) -> None:
        _has(self.input, (self.count, self.value.id))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The keys, and the value."""
        return tuple(column for column in self.input.columns if column.id != self.count)


@dataclass(frozen=True, eq=False)
class Pieces(_Node):
    """A SELECT, or a whole query, that reads several rows in a way that only Spark understands.

    Spark evaluates it once for each interval in which the rows with equal keys do not change.

    Attributes
    ----------
    input
        The rows; None if they are the intervals themselves, over the time of all relations in the text.
    beside
        Other relations that the text reads, by their keys in it: their rows have the times of pieces too.
    keys
        Columns of the input: the SELECT never reads rows together that differ in them.
    halves
        The SELECT over the rows, with those of each interval, :data:`TIMES`, separate: the text before and
        after the list that ends with these times.
    empty
        The SELECT over no rows, if that returns a row; otherwise None.
    columns
        Its output.
    why
        The reason why no other node applies.
    label
        How it is written.
    is_grouped
        Whether it returns a row for a group, by the keys if it has any; else one for each row.
    passes
        Its columns that copy columns of the input, or keys, with their sources.
    """

    input: Node | None
    beside: tuple[tuple[str, Node], ...]
    keys: tuple[str, ...]
    halves: tuple[SqlText, SqlText]
    empty: SqlText | None
    columns: tuple[Column, ...]
    why: Reason
    label: str
    is_grouped: bool
    passes: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        assert not (self.keys and self.beside), (
            "a node with other inputs has no keys: its pieces end where any input changes"
        )
        if self.input is not None:
            _has(self.input, (*self.keys, *(source for _, source in self.passes)))

    @property
    def text(self) -> SqlText:
        """The SELECT over the rows of these intervals; its last columns are the interval's bounds."""
        return SqlText.of(self.halves[0], f", {TIMES}", self.halves[1])

    @property
    def inputs(self) -> tuple[Node, ...]:
        """All relations that the text reads."""
        return (*(() if self.input is None else (self.input,)), *(one for _, one in self.beside))


@dataclass(frozen=True, eq=False)
class ClauseRelation(_Node):
    """WINDOW BY or MATCH_RECOGNIZE over a time-varying relation: over its rows at each instant.

    Attributes
    ----------
    input
        The input of the clause: each row as a struct, and the keys of its partitions and order.
    clause
        The clause.
    columns
        Its output, under the names in the outer query.
    label, at
        How it is written, and where.
    """

    input: Node
    clause: Window | Match
    columns: tuple[Column, ...]
    label: str
    at: Range


TIMES = f"{ROWS}.{ENTER}, {ROWS}.{LEAVE}"
"""In texts over intervals, the interval of a row."""


@dataclass(frozen=True, eq=False)
class Over(_Node):
    """Rows with the results of functions over the partitions that they are in.

    Attributes
    ----------
    input, scope
        The rows, and the names in `calls`.
    partition, order
        The columns of the input by which rows are partitioned and ordered.
    calls
        The functions, all with the same partition and order, with their output columns.
    label, at
        Its name for users, and the position of the first function.
    halves
        The text of each function up to the expressions of PARTITION BY, and from there on.
    """

    input: Node
    scope: Scope
    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, OverCall, Expression], ...]
    label: str
    at: Range
    halves: tuple[tuple[SqlText, SqlText], ...]

    def parted(self, further: str) -> list[SqlText]:
        """The texts of the functions; rows that differ in the additional columns are in different
        partitions.
        """
        between = f"{further}, " if self.partition else f"PARTITION BY {further} "
        return [SqlText.of(before, between, after) for before, after in self.halves]

    def __post_init__(self) -> None:
        _check(self.scope, self.input)
        _has(self.input, (*self.partition, *(key.column for key in self.order)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the input, and one for each function."""
        return (*self.input.columns, *(column for column, _, _ in self.calls))


@dataclass(frozen=True, eq=False)
class SessionWindows(_Node):
    """Rows with the begin and end of their session.

    Attributes
    ----------
    input
        The rows, with their time in ticks.
    keys, time
        Columns of the input: of each combination of the keys there are sessions of their own.
    gap, longest
        In ticks: the time without rows that ends a session, and its longest duration.
    text
        The query for begin and end of all rows, over these with a column ``__at`` that numbers them.
    bounds
        The columns that are added.
    label
        Its name for users.
    """

    input: Node
    keys: tuple[str, ...]
    time: str
    gap: int
    longest: int | None
    text: SqlText
    bounds: tuple[Column, ...]
    label: str

    def __post_init__(self) -> None:
        _has(self.input, (*self.keys, self.time))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the input, begin and end."""
        return (*self.input.columns, *self.bounds)


@dataclass(frozen=True, eq=False)
class TimeWindows(_Node):
    """The time windows that rows are in: TUMBLE, HOP, CUMULATE or SESSION.

    Attributes
    ----------
    spelled
        The same in other nodes, which compute the windows of the rows.
    rows
        The rows, whose columns come first.
    kind, lengths
        The windowing function, and its lengths in ticks, as for
        :class:`windrow.algebra.rewriting.time_windows_as_sql.TimeWindow`.
    time, keys
        Columns of the rows: their time, and the keys of separate sessions.
    """

    spelled: Node
    rows: Node
    kind: str
    lengths: Mapping[str, int]
    time: str
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        _has(self.rows, (self.time, *self.keys))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the rows, begin and end, and for some windows the last instant."""
        return self.spelled.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The one input."""
        return (self.spelled,)


@dataclass(frozen=True, eq=False)
class Distinct(_Passing):
    """Each distinct row once.

    Attributes
    ----------
    input
        The rows.
    label
        Its name for users.
    around
        How many of the first columns are not in the query, but join it as a subquery with the outer query.
    """

    input: Node
    label: str
    around: int = 0


@dataclass(frozen=True, eq=False)
class SetOperation(_Node):
    """UNION, INTERSECT or EXCEPT, of bags if `all`; both sides have the same ids and types.

    For groups by several sets of keys, `keys` are the columns that distinguish the sets; otherwise they are
    empty.
    """

    left: Node
    right: Node
    operator: Literal["union", "intersect", "except"]
    all: bool
    columns: tuple[Column, ...]
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _has(self, self.keys)
        kinds = [[column.type for column in node.columns] for node in (self.left, self.right, self)]
        assert kinds[0] == kinds[1] == kinds[2], "sides of a set operator differ in their types"

    @property
    def label(self) -> str:
        """The name of the operator in SQL."""
        return self.operator.upper() + (" ALL" if self.all else "")


@dataclass(frozen=True, eq=False)
class Sort(_Passing):
    """ORDER BY with OFFSET and LIMIT: in that order, at most `limit` rows from `offset` on.

    With `partition`, OFFSET and LIMIT apply to each combination of the values of these columns.
    """

    input: Node
    keys: tuple[SortKey, ...]
    offset: int
    limit: int | None
    label: str
    at: Range
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _has(self.input, (*self.partition, *(key.column for key in self.keys)))


Node: TypeAlias = (
    "Scan | Input | StreamWindow | Filter | Project | Join | Mark | Value | Aggregate | OneRow | Pieces"
    " | ClauseRelation | Over | SessionWindows | TimeWindows | Distinct | SetOperation | Sort"
)


def walk(node: Node) -> list[Node]:
    """All nodes of a plan, each once, after its inputs."""
    found: dict[int, Node] = {}

    def visit(one: Node) -> None:
        if id(one) in found:
            return
        for inner in one.inputs:
            visit(inner)
        found[id(one)] = one

    visit(node)
    return list(found.values())


def _check(scope: Scope, node: Node) -> None:
    """Assert that a node has the columns that a scope names."""
    _has(node, (column for part in scope.parts for column in part.columns))


def _has(node: Node, columns: Iterable[str]) -> None:
    known = {column.id for column in node.columns}
    missing = [column for column in columns if column not in known]
    assert not missing, f"a {type(node).__name__} has no column {', '.join(missing)}"
