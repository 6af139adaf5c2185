"""Operators that feed each other: a step of all inputs goes through them in one go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from windrow.kernels.punctuated.step import Step

__all__ = ["Flow", "FlowCarry", "Node", "Operator", "Place"]

Place: TypeAlias = "int | str"
"""Where a step comes from: a node by its number, or an input of the flow by its name."""


class Operator(Protocol):
    """What :mod:`windrow.kernels.punctuated` has."""

    @property
    def advance(self) -> Any:
        """Takes its carry (None at first) and a step of each input; gives a step and its carry."""


@dataclass(frozen=True)
class Node:
    """An operator in a flow.

    Attributes
    ----------
    name
        What people know it by, such as ``GROUP BY auction``.
    operator
        What it does.
    inputs
        Where its steps come from: nodes before it, or inputs of the flow.
    """

    name: str
    operator: Operator
    inputs: tuple[Place, ...]


@dataclass
class FlowCarry:
    """What the operators keep, in their order."""

    carries: list[Any]

    @property
    def kept(self) -> list[tuple[int, ...]]:
        """How many rows each keeps."""
        return [carry.kept for carry in self.carries]


@dataclass(frozen=True)
class Flow:
    """A query of operators over punctuated streams.

    Attributes
    ----------
    nodes
        Each after those that feed it; the last gives the query's rows. What is fed by one input twice is so
        in one step.
    """

    nodes: tuple[Node, ...]

    def advance(self, carry: FlowCarry | None, inputs: Mapping[str, Step]) -> tuple[Step, FlowCarry]:
        """Take a step of every input; the carry that is given is used up."""
        carries = [None] * len(self.nodes) if carry is None else carry.carries
        given: dict[Place, Step] = dict(inputs.items())
        after = []
        for number, (node, before) in enumerate(zip(self.nodes, carries, strict=True)):
            given[number], kept = node.operator.advance(before, *(given[place] for place in node.inputs))
            after.append(kept)
        return given[len(self.nodes) - 1], FlowCarry(after)
