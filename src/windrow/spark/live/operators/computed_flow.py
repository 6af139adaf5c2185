"""What is made of the rows of a leaf without a job of Spark's: chosen rows, values of each, look-ups, ranks.

It is read from Spark's optimized plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from windrow.kernels.computed.computed_operations import Computed, ComputedOperation
from windrow.spark.analysis.computed_columns import (
    PASS,
    ComputedReading,
    columns_read,
    not_in_arrow,
    wanted,
)
from windrow.spark.analysis.expressions import ColumnScope, read
from windrow.spark.analysis.plan_tree import SparkNode
from windrow.spark.analysis.typed_values import Typed, Unread
from windrow.spark.live.operators.lookups import LookUp, SmallTable
from windrow.spark.live.operators.ranks import RANKS, Ordered, Ranked

__all__ = ["computed"]

Tables = Callable[[Sequence[int]], "SmallTable | None"]
"""What a part of the plan is, by the way there: of each operator from the top on, which of its inputs."""


def computed(
    plan: SparkNode, leaf: SparkNode, columns: pa.Schema, result: pa.Schema, tables: Tables
) -> Computed | None:
    """What a fragment makes of the rows of its one leaf; None where Spark is needed for that.

    Parameters
    ----------
    plan
        Its optimized plan.
    leaf
        Its operator that reads the leaf.
    columns, result
        Those of its leaf, and its own.
    tables
        Of what the leaf is joined with.
    """
    try:
        found = _Reading(plan, leaf, columns, tables).of(result)
    except Unread:
        return None
    return found if not_in_arrow(found, columns) is None else None


class _Reading(ComputedReading):
    """Reads a plan of one operator above the other, from the leaf on."""

    def __init__(self, plan: SparkNode, leaf: SparkNode, columns: pa.Schema, tables: Tables) -> None:
        self.tables, self.above = tables, list(_above(plan, leaf))
        *operators, read_leaf = (node for node, _ in self.above)
        output = read_leaf.trees("output")
        if not operators or len(output) != len(columns):
            raise Unread
        names = {node.number: column.name for node, column in zip(output, columns, strict=True)}
        super().__init__(operators, names, dict(zip(names, columns.types, strict=True)))

    def operations(self, at: int) -> list[ComputedOperation]:
        """What the operator at a place does."""
        operator = self.operators[at]
        match operator.name:
            case "Join":
                return [self._look_up(at, operator.tree("condition"))]
            case "Window":
                return [self._ranked(operator)]
            case "WindowGroupLimit":  # a limit of ranks, by which a filter chooses too
                return []
        return super().operations(at)

    def _ranked(self, operator: SparkNode) -> Ranked:
        """Ranks over windows."""
        ranks = {}
        for item in operator.trees("windowExpressions"):
            (window,) = item.children
            if window.name != "WindowExpression" or window.children[0].name not in RANKS:
                raise Unread
            ranks[item.number] = window.children[0].name
        partition = [self.read(node) for node in operator.trees("partitionSpec")]
        order = [
            Ordered(
                self.read(key.children[0]),
                _is(key.fields["direction"], "Descending"),
                _is(key.fields["nullOrdering"], "NullsFirst"),
            )
            for key in operator.trees("orderSpec")
        ]
        found = Ranked(ranks, partition, order)
        self.kinds = {**self.kinds, **dict.fromkeys(ranks, pa.int32())}
        self.selected = [*self.selected, *ranks]
        return found

    def _look_up(self, at: int, condition: SparkNode | None) -> LookUp:
        """A join by an equality of the rows' with the table's, or of each row with all of the table."""
        operator, side = self.operators[at], self.above[at][1]
        kind = _object(operator.fields["joinType"])
        outer = "LeftOuter" if side == 0 else "RightOuter"
        if kind not in (("Inner", "Cross") if condition is None else ("Inner", "Cross", outer)):
            raise Unread
        other_side = operator.children[1 - side]
        if any(node.name == "MapInArrow" for node in other_side.walk()):
            raise Unread
        table = self.tables([*(each for _, each in self.above[:at]), 1 - side])
        if table is None:
            raise Unread
        kinds = dict(zip(table.numbers, table.schema.types, strict=True))
        equal = None if condition is None else self._sides(condition, kinds)
        self.kinds = {**self.kinds, **kinds}
        self.selected = [*self.selected, *kinds] if side == 0 else [*kinds, *self.selected]
        return LookUp(equal, table, kind == outer, wanted(self.operators[:at], self.selected))

    def _sides(self, condition: SparkNode, kinds: Mapping[int, pa.DataType]) -> tuple[Typed, Typed]:
        """What is equal: of the rows, and of the table."""
        if condition.name != "EqualTo":
            raise Unread
        left, right = condition.children
        if not kinds.keys().isdisjoint(columns_read(left)):
            left, right = right, left
        if not columns_read(left) or not columns_read(right):
            raise Unread
        key, other = self.read(left), read(right, ColumnScope(kinds))
        if key.kind != other.kind or pa.types.is_floating(key.kind) or pa.types.is_nested(key.kind):
            raise Unread
        return key, other


def _above(plan: SparkNode, leaf: SparkNode) -> Iterator[tuple[SparkNode, int]]:
    """The operators down to the leaf, and which input of each leads there."""
    while True:
        side = 0
        if plan.name == "Join":
            side = 0 if any(node is leaf for node in plan.children[0].walk()) else 1
        elif plan.name not in ("Project", *PASS):
            break
        yield plan, side
        plan = plan.children[side]
    if plan is not leaf:
        raise Unread
    yield plan, 0


def _object(said: Mapping[str, str]) -> str:
    """The name of an object of Spark's; empty for an instance of a class, such as an existence join."""
    return said.get("object", "").rpartition(".")[2].removesuffix("$")


def _is(said: Mapping[str, str], name: str) -> bool:
    return _object(said) == name
