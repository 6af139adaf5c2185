"""What is made of the rows of one leaf without a job of Spark's: chosen rows, and values of each.

It is read from Spark's optimized plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow.spark.live.expressions import Rows, Typed, Unread, Value, read, whole
from windrow.spark.live.plan_tree import Node

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
    steps: Sequence[_Choice | _Columns]
    result: Sequence[int]
    schema: pa.Schema

    def of(self, table: pa.Table) -> pa.Table | None:
        """What it makes of these; None where Spark is to say what is wrong with them."""
        rows = Rows({number: table.column(name) for number, name in self.columns.items()}, table.num_rows)
        try:
            for step in self.steps:
                rows = step.of(rows)
            found = [
                rows.columns[number].cast(column.type)
                for number, column in zip(self.result, self.schema, strict=True)
            ]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        return pa.Table.from_arrays(found, schema=self.schema)


def computed(plan: Node, leaf: str, columns: pa.Schema, result: pa.Schema) -> Computed | None:
    """What a fragment makes of the rows of its one leaf; None where Spark is needed for that.

    Parameters
    ----------
    plan
        Its optimized plan.
    leaf
        The name of the function that reads the leaf.
    columns, result
        Those of its leaf, and its own.
    """
    above = []
    while plan.name in ("Project", "Filter"):
        above.append(plan)
        (plan,) = plan.children
    if plan.name != "MapInArrow" or not above:
        return None
    function, output = plan.tree("functionExpr"), plan.trees("output")
    if function is None or function.fields.get("name") != leaf or len(output) != len(columns):
        return None
    kinds = {node.number: column.type for node, column in zip(output, columns, strict=True)}
    names = {node.number: column.name for node, column in zip(output, columns, strict=True)}
    again = _again(above)
    steps: list[_Choice | _Columns] = []
    given = list(kinds)
    try:
        for at, operator in reversed([*enumerate(above)]):
            if operator.name == "Filter":
                condition = operator.tree("condition")
                assert condition is not None
                steps.append(_Choice(_boolean(read(condition, kinds, again))))
            else:
                items = operator.trees("projectList")
                given = [node.number for node in items]
                made = {node.number: _of_item(node, kinds, again) for node in items}
                kinds = {number: one.kind for number, one in made.items()}
                wanted = _wanted(above[:at], given)
                steps.append(_Columns({number: made[number].value for number in wanted}))
    except Unread:
        return None
    if [kinds[number] for number in given] != result.types:
        return None
    return Computed({number: names[number] for number in _wanted(above, names)}, steps, given, result)


def _boolean(found: Typed) -> Value:
    if not pa.types.is_boolean(found.kind):
        raise Unread
    return found.value


def _of_item(node: Node, kinds: Mapping[int, pa.DataType], again: frozenset[str]) -> Typed:
    """A value of a SELECT list."""
    return read(node.children[0] if node.name == "Alias" else node, kinds, again)


def _expressions(operator: Node) -> list[Node]:
    if operator.name == "Project":
        return operator.trees("projectList")
    condition = operator.tree("condition")
    return [] if condition is None else [condition]


def _again(operators: Sequence[Node]) -> frozenset[str]:
    """The keys of expressions that are in these operators more than once."""
    nodes = [node for operator in operators for tree in _expressions(operator) for node in tree.walk()]
    counts = Counter(node.key for node in nodes if node.children and node.name != "Alias")
    return frozenset(key for key, count in counts.items() if count > 1)


def _wanted(operators: Sequence[Node], below: Iterable[int]) -> list[int]:
    """Which of the columns below these operators they read or give."""
    if all(operator.name == "Filter" for operator in operators):
        return list(below)
    trees = [tree for operator in operators for tree in _expressions(operator)]
    found = {node.number for tree in trees for node in tree.walk() if node.name == "AttributeReference"}
    return [number for number in below if number in found]
