"""Spark's optimized plans as trees, with the types of all literals: texts of plans do not show these."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame

from windrow.spark.jvm.plans import optimized_json, zoned_times

__all__ = ["Node", "optimized_tree"]

_OF_NO_MEANING = frozenset(
    {"exprId", "qualifier", "metadata", "explicitMetadata", "nonInheritableMetadataKeys"}
)


@dataclass(frozen=True, eq=False)
class Node:
    """An operator or an expression.

    Attributes
    ----------
    name
        Of Spark's class, without its package.
    fields
        What it says of itself.
    children
        Its inputs, or its operands, in Spark's order.
    """

    name: str
    fields: Mapping[str, Any]
    children: tuple[Node, ...]

    def trees(self, field: str) -> list[Node]:
        """The expressions of a field that has several."""
        return [_tree(nodes) for nodes in self.fields[field]]

    def tree(self, field: str) -> Node | None:
        """The expression of a field, if there is one."""
        nodes = self.fields.get(field)
        return _tree(nodes) if nodes else None

    @property
    def number(self) -> int:
        """By which plans tell a column."""
        return int(self.fields["exprId"]["id"])

    @cached_property
    def key(self) -> str:
        """Equal for expressions that give equal values of a row."""
        if self.name == "AttributeReference":
            return f"#{self.number}"
        said = {name: value for name, value in self.fields.items() if name not in _OF_NO_MEANING}
        own = json.dumps(said, sort_keys=True)
        return f"{self.name}{own}({', '.join(child.key for child in self.children)})"

    def walk(self) -> Iterator[Node]:
        """It, and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def optimized_tree(frame: DataFrame) -> Node | None:
    """The optimized plan of a DataFrame; None on Spark Connect."""
    said = optimized_json(frame)
    if said is None:
        return None
    nodes = json.loads(said)
    times = [each for each in _literals(nodes) if each["dataType"] == "timestamp"]
    if times:
        # texts of them are of a zone, in which one may stand for two times: they are asked for
        values = zoned_times(frame)
        if len(values) == len(times):
            for each, value in zip(times, values, strict=True):
                each["value"] = None if value is None else str(value)
    return _tree(nodes)


def _literals(said: Any) -> Iterator[dict[str, Any]]:
    """All literals of a plan, in its order."""
    if isinstance(said, dict):
        if str(said.get("class")).endswith(".Literal"):
            yield said
        else:
            yield from _literals([*said.values()])
    elif isinstance(said, list):
        for each in said:
            yield from _literals(each)


def _tree(nodes: Sequence[Mapping[str, Any]]) -> Node:
    rest = iter(nodes)

    def next_tree() -> Node:
        said = dict(next(rest))
        name, count = said.pop("class").rpartition(".")[2], said.pop("num-children")
        return Node(name, said, tuple(next_tree() for _ in range(count)))

    return next_tree()
