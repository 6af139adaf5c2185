"""Filters and projections over one leaf of a plan, read from Spark's optimized plan and run without Spark.

Joins with a small table are look-ups. Live queries add ranks
(:mod:`windrow.spark.live.operators.computed_flow`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.computed.computed_operations import (
    Computed,
    ComputedColumns,
    ComputedOperation,
    RowFilter,
)
from windrow.kernels.computed.computed_values import ComputedColumn, Value
from windrow.kernels.computed.lookups import CollectedTable, LookUp, LookUpTable
from windrow.spark.analysis.expressions import ColumnScope, Struct, read
from windrow.spark.analysis.plan_tree import SparkNode
from windrow.spark.analysis.typed_values import Span, Typed, Unread

__all__ = [
    "PASS",
    "ComputedReading",
    "FoundTable",
    "Tables",
    "columns_read",
    "condition_of",
    "not_in_arrow",
    "object_of",
    "wanted",
]

PASS = ("Filter", "Window", "WindowGroupLimit")
"""Operators whose output has all columns of their input."""

FoundTable = Callable[[Sequence[int]], LookUpTable | None]
"""A part of the plan as a table, by its path: for each operator from the top, the number of the input."""

_OWN = count(-1, -1)
"""Numbers for columns without an expression id."""


def not_in_arrow(made: Computed, columns: pa.Schema) -> str | None:
    """Arrow's error if it cannot compute something of these columns; None if it can.

    Which types a function of Arrow supports depends on its version, and only this error shows it:
    there is no list to ask. It is called once, over no rows, before the query runs. Spark, whose expressions
    these are, then computes the values, so no answer depends on it: docs/limits.md, "Performance".
    """
    try:
        is_made = made.of(columns.empty_table()) is not None
    except pa.ArrowNotImplementedError as error:
        return str(error).splitlines()[0]
    return None if is_made else "a type that a constant does not have"


@dataclass(frozen=True)
class Tables:
    """The tables that a plan joins the rows of its leaf with.

    Attributes
    ----------
    sides
        For each operator from the top, the number of the input that leads to the leaf.
    found
        A part of the plan as a table; None if it is none.
    """

    sides: Sequence[int]
    found: FoundTable


class ComputedReading:
    """Reads a plan of one operator above the other.

    Parameters
    ----------
    operators
        The operators, from the top down to the one above the leaf.
    names
        The readable columns of the leaf, by their expression ids in the plan.
    kinds
        Their types.
    spans
        The known ranges of their values.
    full
        The columns without NULL.
    certain
        Whether to read only expressions that certainly do not need Spark.
    tables
        The tables that rows are joined with; None if joins are not read.
    """

    def __init__(
        self,
        operators: Sequence[SparkNode],
        names: Mapping[int, str],
        kinds: Mapping[int, pa.DataType],
        spans: Mapping[int, Span] | None = None,
        *,
        full: Iterable[int] = (),
        certain: bool = False,
        tables: Tables | None = None,
    ) -> None:
        self.operators, self.names, self.kinds, self.full = operators, names, dict(kinds), frozenset(full)
        self.spans, self.certain, self.tables = dict(spans or {}), certain, tables
        self.structs: dict[int, Struct] = {}
        self.selected = list(names)
        self.again = _again(operators)

    def of(self, result: pa.Schema) -> Computed:
        """The operations that compute these columns.

        Raises
        ------
        Unread
            Spark must compute them.
        """
        operations = [
            operation for at in reversed(range(len(self.operators))) for operation in self.operations(at)
        ]
        kinds = [self.kinds.get(number) for number in self.selected]
        for number, kind, field in zip(self.selected, kinds, result, strict=True):
            if kind != field.type:
                raise Unread(f"{self.names.get(number, 'a column')} is of type {kind or field.type}")
        columns = {number: self.names[number] for number in wanted(self.operators, self.names)}
        return Computed(columns, operations, self.selected, result)

    def operations(self, at: int) -> list[ComputedOperation]:
        """The operations of the operator at a place."""
        operator = self.operators[at]
        match operator.name:
            case "Project":
                return [self._columns(at)]
            case "Filter":
                condition = self.read(condition_of(operator), "the filter")
                if not pa.types.is_boolean(condition.kind):
                    raise Unread
                return [RowFilter(condition.value)]
            case "Join" if self.tables is not None:
                return self._joined(at, self.tables, operator.tree("condition"))
        raise Unread

    def read(self, node: SparkNode, place: str = "the query") -> Typed:
        """Read an expression over the available columns."""
        try:
            return read(node, self._scope())
        except Unread as unread:
            raise Unread(f"{place} has {unread.what}", unread.columns) from None

    def _joined(self, at: int, tables: Tables, condition: SparkNode | None) -> list[ComputedOperation]:
        """A join by an equality of a column of the rows and one of the table, or of each row with all of the
        table.

        For an inner join, the other parts of the condition filter the pairs.
        """
        operator, side = self.operators[at], tables.sides[at]
        kind = object_of(operator.fields["joinType"])
        outer = "LeftOuter" if side == 0 else "RightOuter"
        if kind not in (("Inner", "Cross") if condition is None else ("Inner", "Cross", outer)):
            raise Unread
        other_side = operator.children[1 - side]
        if any(node.name == "MapInArrow" for node in other_side.walk()):
            raise Unread
        table = tables.found([*tables.sides[:at], 1 - side])
        if table is None:
            raise Unread
        kinds = dict(zip(table.numbers, table.schema.types, strict=True))
        equal, others = (None, []) if condition is None else self._sides(condition, kinds)
        if others and kind == outer:
            raise Unread("the outer join has more than an equality")
        self.kinds = {**self.kinds, **kinds}
        if isinstance(table, CollectedTable):
            self.spans |= dict(_spans(table))
        self.selected = [*self.selected, *kinds] if side == 0 else [*kinds, *self.selected]
        above = wanted(self.operators[:at], self.selected)
        reads = frozenset[int]().union(*map(columns_read, others))
        read = [number for number in self.selected if number in reads or number in above]
        found: list[ComputedOperation] = [LookUp(equal, table, kind == outer, read)]
        return found + [RowFilter(self.read(other, "the join").value) for other in others]

    def _sides(
        self, condition: SparkNode, kinds: Mapping[int, pa.DataType]
    ) -> tuple[tuple[Value, Value], list[SparkNode]]:
        """The equal sides of rows and table, and the rest of the condition."""
        parts = _conjuncts(condition)
        for part in parts:
            if part.name != "EqualTo":
                continue
            left, right = part.children
            if not kinds.keys().isdisjoint(columns_read(left)):
                left, right = right, left
            theirs = columns_read(right)
            if not columns_read(left) or not theirs or not theirs <= kinds.keys():
                continue
            if not kinds.keys().isdisjoint(columns_read(left)):
                continue
            key, other = self.read(left), read(right, ColumnScope(kinds, certain=self.certain))
            if key.kind == other.kind and not (
                pa.types.is_floating(key.kind) or pa.types.is_nested(key.kind)
            ):
                return (key.value, other.value), [one for one in parts if one is not part]
        raise Unread("the join has no equality of a column with one of the smaller side")

    def _columns(self, at: int) -> ComputedColumns:
        items = {node.number: node for node in self.operators[at].trees("projectList")}
        self.selected = [*items]
        scope = self._scope()
        values: dict[int, Value] = {}
        made: dict[int, Typed] = {}
        structs: dict[int, Struct] = {}
        for number in wanted(self.operators[:at], self.selected):
            node = items[number].children[0] if items[number].name == "Alias" else items[number]
            is_struct = node.name == "AttributeReference" and node.number in self.structs
            if node.name == "CreateNamedStruct" or is_struct:
                structs[number] = _Fields(node, scope, values)
            else:
                made[number] = self.read(node, "a column")
        values |= {number: one.value for number, one in made.items()}
        self.kinds = {number: one.kind for number, one in made.items()}
        self.spans = {number: one.span for number, one in made.items() if one.span is not None}
        self.full = frozenset(number for number, one in made.items() if one.is_full)
        self.structs = structs
        return ComputedColumns(values)

    def _scope(self) -> ColumnScope:
        return ColumnScope(self.kinds, self.again, self.spans, self.structs, self.certain, self.full)


class _Fields:
    """The fields of a struct computed from each row, as separate columns where they are read.

    Parameters
    ----------
    node, scope
        The struct, and the scope in which it is made.
    values
        The values of that operation, which receives the fields.
    """

    def __init__(self, node: SparkNode, scope: ColumnScope, values: dict[int, Value]) -> None:
        self.node, self.scope, self.values = node, scope, values
        self.known: dict[int, Typed] = {}

    def field(self, place: int) -> Typed:
        """One of the fields, as a column."""
        if place not in self.known:
            found = read(SparkNode("GetStructField", {"ordinal": place}, (self.node,)), self.scope)
            number = next(_OWN)
            self.values[number] = found.value
            self.known[place] = replace(found, value=ComputedColumn(number))
        return self.known[place]


def object_of(details: Mapping[str, str]) -> str:
    """The name of an object of Spark's; empty for an instance of a class, such as an existence join."""
    return details.get("object", "").rpartition(".")[2].removesuffix("$")


def _spans(table: CollectedTable) -> Iterator[tuple[int, Span]]:
    """The least and the greatest value of each integer column."""
    for number, column in zip(table.numbers, table.found.columns, strict=True):
        if pa.types.is_integer(column.type):
            ends = pc.min_max(column)
            yield number, (ends["min"].as_py() or 0, ends["max"].as_py() or 0)


def _conjuncts(condition: SparkNode) -> list[SparkNode]:
    if condition.name != "And":
        return [condition]
    return [part for child in condition.children for part in _conjuncts(child)]


def condition_of(operator: SparkNode) -> SparkNode:
    """The condition of a filter or a join."""
    found = operator.tree("condition")
    if found is None:
        raise Unread
    return found


def _expressions(operator: SparkNode) -> list[SparkNode]:
    match operator.name:
        case "Project":
            return operator.trees("projectList")
        case "Window":
            fields = ("windowExpressions", "partitionSpec", "orderSpec")
            return [tree for field in fields for tree in operator.trees(field)]
        case "WindowGroupLimit":
            return []
        case "Join":
            condition = operator.tree("condition")
            return [] if condition is None else [condition]
    return [condition_of(operator)]


def _again(operators: Sequence[SparkNode]) -> frozenset[str]:
    """The keys of expressions that occur in these operators more than once."""
    nodes = [node for operator in operators for tree in _expressions(operator) for node in tree.walk()]
    counts = Counter(node.key for node in nodes if node.children and node.name != "Alias")
    return frozenset(key for key, count in counts.items() if count > 1)


def wanted(operators: Sequence[SparkNode], below: Iterable[int]) -> list[int]:
    """The columns below these operators that they read or output."""
    if not any(operator.name == "Project" for operator in operators):
        return list(below)
    trees = [tree for operator in operators for tree in _expressions(operator)]
    found = frozenset[int]().union(*map(columns_read, trees))
    return [number for number in below if number in found]


def columns_read(tree: SparkNode) -> frozenset[int]:
    """The expression ids of the columns that an expression reads."""
    return frozenset(node.number for node in tree.walk() if node.name == "AttributeReference")
