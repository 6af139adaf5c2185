"""Computation on the rows of a leaf without a Spark job: filters, expressions, look-ups, ranks.

It is read from Spark's optimized plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from windrow.kernels.computed.computed_operations import Computed, ComputedOperation
from windrow.spark.analysis.computed_columns import (
    PASS,
    ComputedReading,
    FoundTable,
    Tables,
    not_in_arrow,
    object_of,
)
from windrow.spark.analysis.plan_tree import SparkNode
from windrow.spark.analysis.typed_values import Unread
from windrow.spark.live.operators.ranks import RANKS, Ordered, Ranked

__all__ = ["computed"]


def computed(
    plan: SparkNode, leaf: SparkNode, columns: pa.Schema, result: pa.Schema, tables: FoundTable
) -> Computed | str:
    """The computation of a fragment on the rows of its only leaf; or what Spark is needed for, empty if that
    is not known.

    Parameters
    ----------
    plan
        Its optimized plan.
    leaf
        Its operator that reads the leaf.
    columns, result
        The columns of its leaf, and its own.
    tables
        The tables that the leaf is joined with.
    """
    try:
        found = _Reading(plan, leaf, columns, tables).of(result)
    except Unread as unread:
        return unread.what  # the names of columns are not the user's
    return found if not_in_arrow(found, columns) is None else ""


class _Reading(ComputedReading):
    """Reads a plan of one operator above the other, from the leaf on."""

    def __init__(self, plan: SparkNode, leaf: SparkNode, columns: pa.Schema, tables: FoundTable) -> None:
        *operators, (read_leaf, _) = _above(plan, leaf)
        output = read_leaf.trees("output")
        if not operators or len(output) != len(columns):
            raise Unread
        names = {node.number: column.name for node, column in zip(output, columns, strict=True)}
        super().__init__(
            [node for node, _ in operators],
            names,
            dict(zip(names, columns.types, strict=True)),
            tables=Tables([side for _, side in operators], tables),
        )

    def operations(self, at: int) -> list[ComputedOperation]:
        """The operations of the operator at a place."""
        operator = self.operators[at]
        match operator.name:
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


def _is(details: Mapping[str, str], name: str) -> bool:
    return object_of(details) == name
