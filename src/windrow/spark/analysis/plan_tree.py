"""Spark's optimized plans as trees: what Spark will do with a DataFrame.

Spark Connect has no plan trees: there, everything that needs one is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame

from windrow.errors import WindrowError
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.plans import optimized_json, zoned_times

__all__ = ["SparkChoice", "SparkNode", "choice_of", "optimized_tree", "with_above"]

_OF_NO_MEANING = frozenset(
    {"exprId", "qualifier", "metadata", "explicitMetadata", "nonInheritableMetadataKeys"}
)


@dataclass(frozen=True, eq=False)
class SparkNode:
    """An operator or an expression.

    Attributes
    ----------
    name
        The name of Spark's class, without its package.
    fields
        Its own fields.
    children
        Its inputs, or its operands, in Spark's order.
    """

    name: str
    fields: Mapping[str, Any]
    children: tuple[SparkNode, ...]

    def trees(self, field: str) -> list[SparkNode]:
        """The expressions of a field that has several."""
        return [_tree(nodes) for nodes in self.fields[field]]

    def tree(self, field: str) -> SparkNode | None:
        """The expression of a field, if there is one."""
        nodes = self.fields.get(field)
        return _tree(nodes) if nodes else None

    @property
    def number(self) -> int:
        """The expression id of a column."""
        return int(self.fields["exprId"]["id"])

    @property
    def output(self) -> list[int] | None:
        """The expression ids of an operator's columns, if it lists them, as scans do."""
        return [node.number for node in self.trees("output")] if "output" in self.fields else None

    @property
    def function(self) -> int | None:
        """The result id of the function of an operator from `mapInArrow`."""
        called = self.tree("functionExpr") if self.name == "MapInArrow" else None
        return None if called is None else int(called.fields["resultId"]["id"])

    @cached_property
    def key(self) -> str:
        """A key that is equal for expressions with equal values in each row."""
        if self.name == "AttributeReference":
            return f"#{self.number}"
        json_fields = {name: value for name, value in self.fields.items() if name not in _OF_NO_MEANING}
        own = json.dumps(json_fields, sort_keys=True)
        return f"{self.name}{own}({', '.join(child.key for child in self.children)})"

    def walk(self) -> Iterator[SparkNode]:
        """The node and all its descendants."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class SparkChoice:
    """The selection and renaming of columns that a plan does over an operator, if it does no more.

    Attributes
    ----------
    below
        That operator, which lists its columns.
    columns
        For each column of the plan, the place of a column of `below`, and the place of a field in it; None
        for the column itself.
    """

    below: SparkNode
    columns: list[tuple[int, int | None]]


def choice_of(plan: SparkNode) -> SparkChoice | None:
    """The selection of columns that a plan makes; None if it does more."""
    below = plan.children[0] if plan.name == "Project" else plan
    output = below.output
    if output is None:
        return None
    if below is plan:
        return SparkChoice(plan, [(place, None) for place in range(len(output))])
    columns = []
    for item in plan.trees("projectList"):
        value, field = item.children[0] if item.name == "Alias" else item, None
        if value.name == "GetStructField":
            field, value = int(value.fields["ordinal"]), value.children[0]
        if value.name != "AttributeReference" or value.number not in output:
            return None
        columns.append((output.index(value.number), field))
    return SparkChoice(below, columns)


def with_above(
    plan: SparkNode, above: tuple[SparkNode, ...] = ()
) -> Iterator[tuple[SparkNode, tuple[SparkNode, ...]]]:
    """Each operator of a plan, with those above it from the nearest on."""
    yield plan, above
    for child in plan.children:
        yield from with_above(child, (plan, *above))


def optimized_tree(gateway: Gateway, frame: DataFrame) -> SparkNode | None:
    """The optimized plan of a DataFrame; None on Spark Connect, and if Spark fails to make one.

    The same error is reported when the query runs.
    """
    with suppress(WindrowError), gateway.translated():
        return _optimized(frame)
    return None


def _optimized(frame: DataFrame) -> SparkNode | None:
    json_fields = optimized_json(frame)
    if json_fields is None:
        return None
    nodes = json.loads(json_fields)
    times = [each for each in _literals(nodes) if each["dataType"] == "timestamp"]
    if times:
        # their texts are in a zone, in which one text may mean two times: Spark computes the values
        values = zoned_times(frame)
        if len(values) == len(times):
            for each, value in zip(times, values, strict=True):
                each["value"] = None if value is None else str(value)
    return _tree(nodes)


def _literals(json_fields: Any) -> Iterator[dict[str, Any]]:
    """All literals of a plan, in its order."""
    if isinstance(json_fields, dict):
        if str(json_fields.get("class")).endswith(".Literal"):
            yield json_fields
        else:
            yield from _literals([*json_fields.values()])
    elif isinstance(json_fields, list):
        for each in json_fields:
            yield from _literals(each)


def _tree(nodes: Sequence[Mapping[str, Any]]) -> SparkNode:
    rest = iter(nodes)

    def next_tree() -> SparkNode:
        json_fields = dict(next(rest))
        name, count = json_fields.pop("class").rpartition(".")[2], json_fields.pop("num-children")
        return SparkNode(name, json_fields, tuple(next_tree() for _ in range(count)))

    return next_tree()
