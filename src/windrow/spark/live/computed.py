"""What is made of the rows of a leaf without a job of Spark's: chosen rows, values of each, look-ups, ranks.

It is read from Spark's optimized plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow.spark.live.expressions import Rows, Typed, Unread, Value, read, whole
from windrow.spark.live.lookups import LookUp, SmallTable
from windrow.spark.live.plan_tree import Node
from windrow.spark.live.ranks import RANKS, Ordered, Ranked

__all__ = ["Computed", "computed"]


@dataclass(frozen=True)
class _Choice:
    """Rows that stay."""

    condition: Value

    def of(self, rows: Rows) -> Rows:
        return rows.where(self.condition(rows))


@dataclass(frozen=True)
class _Columns:
    """Values of each row, by the numbers by which plans tell them."""

    values: Mapping[int, Value]

    def of(self, rows: Rows) -> Rows:
        columns = {number: whole(value(rows), rows.count) for number, value in self.values.items()}
        return Rows(columns, rows.count, rows.known)


_Step = _Choice | _Columns | LookUp | Ranked
_PASS = ("Filter", "Window", "WindowGroupLimit")  # what has the columns of what is below, and more


@dataclass(frozen=True)
class Computed:
    """What a fragment makes of the rows of its leaf.

    Attributes
    ----------
    columns
        Of the leaf: the numbers of those that are read, and their names.
    steps
        What is done, one after the other.
    result
        The numbers of what is given, in order.
    schema
        Names and types of that.
    """

    columns: Mapping[int, str]
    steps: Sequence[_Step]
    result: Sequence[int]
    schema: pa.Schema

    def of(self, table: pa.Table) -> pa.Table | None:
        """What it makes of these; None where Spark is to compute it: of values that overflow, or on which
        Arrow and Spark may differ, which raises ArrowInvalid.
        """
        rows = Rows({number: table.column(name) for number, name in self.columns.items()}, table.num_rows)
        try:
            for step in self.steps:
                rows = step.of(rows)
            pairs = zip(self.result, self.schema, strict=True)
            found = [rows.columns[number].cast(column.type) for number, column in pairs]
        except pa.ArrowInvalid:
            return None
        return pa.Table.from_arrays(found, schema=self.schema)


Tables = Callable[[Sequence[int]], "SmallTable | None"]
"""What a part of the plan is, by the way there: of each operator from the top on, which of its inputs."""


def computed(plan: Node, leaf: str, columns: pa.Schema, result: pa.Schema, tables: Tables) -> Computed | None:
    """What a fragment makes of the rows of its one leaf; None where Spark is needed for that.

    Parameters
    ----------
    plan
        Its optimized plan.
    leaf
        The name of the function that reads the leaf.
    columns, result
        Those of its leaf, and its own.
    tables
        Of what the leaf is joined with.
    """
    try:
        found = _Reading(plan, leaf, columns, tables).of(result)
        return None if found.of(columns.empty_table()) is None else found
    except Unread:
        return None
    except pa.ArrowNotImplementedError:
        # Which types a function of Arrow's takes depends on its version; only calling it tells, of no rows as
        # well as of many. Spark, whose expressions these are, computes such values: docs/limits.md.
        return None


class _Reading:
    """Reads a plan of one operator above the other, from the leaf on."""

    def __init__(self, plan: Node, leaf: str, columns: pa.Schema, tables: Tables) -> None:
        self.tables, self.above = tables, list(_above(plan, leaf))
        *self.operators, read_leaf = (node for node, _ in self.above)
        output = read_leaf.trees("output")
        if not self.operators or len(output) != len(columns):
            raise Unread
        self.kinds = {node.number: column.type for node, column in zip(output, columns, strict=True)}
        self.names = {node.number: column.name for node, column in zip(output, columns, strict=True)}
        self.given = list(self.kinds)
        self.again = _again(self.operators)

    def of(self, result: pa.Schema) -> Computed:
        """What is computed, of a plan with these columns."""
        steps = [step for at in reversed(range(len(self.operators))) for step in self._steps(at)]
        if [self.kinds[number] for number in self.given] != result.types:
            raise Unread
        read = {number: self.names[number] for number in _wanted(self.operators, self.names)}
        return Computed(read, steps, self.given, result)

    def _steps(self, at: int) -> list[_Step]:
        operator = self.operators[at]
        match operator.name:
            case "Project":
                return [self._columns(at)]
            case "Filter":
                return [_Choice(_boolean(self._read(_condition(operator))))]
            case "Join":
                return [self._look_up(at, _condition(operator))]
            case "Window":
                return [self._ranked(operator)]
            case _:  # a limit of ranks, by which a filter chooses too
                return []

    def _columns(self, at: int) -> _Columns:
        items = self.operators[at].trees("projectList")
        self.given = [node.number for node in items]
        made = {node.number: self._item(node) for node in items}
        self.kinds = {number: one.kind for number, one in made.items()}
        wanted = _wanted(self.operators[:at], self.given)
        return _Columns({number: made[number].value for number in wanted})

    def _ranked(self, operator: Node) -> Ranked:
        """Ranks over windows."""
        ranks = {}
        for item in operator.trees("windowExpressions"):
            (window,) = item.children
            if window.name != "WindowExpression" or window.children[0].name not in RANKS:
                raise Unread
            ranks[item.number] = window.children[0].name
        partition = [self._read(node) for node in operator.trees("partitionSpec")]
        order = [
            Ordered(
                self._read(key.children[0]),
                _is(key.fields["direction"], "Descending"),
                _is(key.fields["nullOrdering"], "NullsFirst"),
            )
            for key in operator.trees("orderSpec")
        ]
        found = Ranked(ranks, partition, order)
        self.kinds = {**self.kinds, **dict.fromkeys(ranks, pa.int32())}
        self.given = [*self.given, *ranks]
        return found

    def _look_up(self, at: int, condition: Node) -> LookUp:
        """A join by an equality of the rows' with the table's."""
        operator, side = self.operators[at], self.above[at][1]
        kind = _object(operator.fields["joinType"])
        outer = "LeftOuter" if side == 0 else "RightOuter"
        if kind not in ("Inner", "Cross", outer) or condition.name != "EqualTo":
            raise Unread
        over, other_side = self.operators[:at], operator.children[1 - side]
        if all(node.name in _PASS for node in over):  # nobody says which side comes first
            raise Unread
        if any(node.name == "MapInArrow" for node in other_side.walk()):
            raise Unread
        table = self.tables([*(each for _, each in self.above[:at]), 1 - side])
        if table is None:
            raise Unread
        kinds = dict(zip(table.numbers, table.schema.types, strict=True))
        key, other = self._sides(condition, kinds)
        if key.kind != other.kind or pa.types.is_floating(key.kind) or pa.types.is_nested(key.kind):
            raise Unread
        self.kinds = {**self.kinds, **kinds}
        self.given = list(self.kinds)
        return LookUp(key, table, other, kind == outer, _wanted(over, self.given))

    def _sides(self, condition: Node, kinds: Mapping[int, pa.DataType]) -> tuple[Typed, Typed]:
        """What is equal: of the rows, and of the table."""
        left, right = condition.children
        if not kinds.keys().isdisjoint(_numbers(left)):
            left, right = right, left
        if not _numbers(left) or not _numbers(right):
            raise Unread
        return self._read(left), read(right, kinds, frozenset())

    def _item(self, node: Node) -> Typed:
        """A value of a SELECT list."""
        return self._read(node.children[0] if node.name == "Alias" else node)

    def _read(self, node: Node) -> Typed:
        return read(node, self.kinds, self.again)


def _above(plan: Node, leaf: str) -> Iterator[tuple[Node, int]]:
    """The operators down to the leaf, and which input of each leads there."""
    while True:
        side = 0
        if plan.name == "Join":
            side = 0 if _has(plan.children[0], leaf) else 1
        elif plan.name not in ("Project", *_PASS):
            break
        yield plan, side
        plan = plan.children[side]
    if not _is_leaf(plan, leaf):
        raise Unread
    yield plan, 0


def _has(plan: Node, leaf: str) -> bool:
    return any(_is_leaf(node, leaf) for node in plan.walk())


def _is_leaf(plan: Node, leaf: str) -> bool:
    function = plan.tree("functionExpr") if plan.name == "MapInArrow" else None
    return function is not None and function.fields.get("name") == leaf


def _boolean(found: Typed) -> Value:
    if not pa.types.is_boolean(found.kind):
        raise Unread
    return found.value


def _condition(operator: Node) -> Node:
    found = operator.tree("condition")
    if found is None:
        raise Unread
    return found


def _object(said: Mapping[str, str]) -> str:
    """The name of an object of Spark's."""
    return said["object"].rpartition(".")[2].removesuffix("$")


def _is(said: Mapping[str, str], name: str) -> bool:
    return _object(said) == name


def _expressions(operator: Node) -> list[Node]:
    match operator.name:
        case "Project":
            return operator.trees("projectList")
        case "Window":
            fields = ("windowExpressions", "partitionSpec", "orderSpec")
            return [tree for field in fields for tree in operator.trees(field)]
        case "WindowGroupLimit":
            return []
    return [_condition(operator)]


def _again(operators: Sequence[Node]) -> frozenset[str]:
    """The keys of expressions that are in these operators more than once."""
    nodes = [node for operator in operators for tree in _expressions(operator) for node in tree.walk()]
    counts = Counter(node.key for node in nodes if node.children and node.name != "Alias")
    return frozenset(key for key, count in counts.items() if count > 1)


def _wanted(operators: Sequence[Node], below: Iterable[int]) -> list[int]:
    """Which of the columns below these operators they read or give."""
    if all(operator.name in _PASS for operator in operators):
        return list(below)
    trees = [tree for operator in operators for tree in _expressions(operator)]
    found = frozenset[int]().union(*map(_numbers, trees))
    return [number for number in below if number in found]


def _numbers(tree: Node) -> frozenset[int]:
    """Of the columns that an expression reads."""
    return frozenset(node.number for node in tree.walk() if node.name == "AttributeReference")
