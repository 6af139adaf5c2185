"""A graph of operators: a micro-batch of all inputs passes through it in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from windrow.kernels.operator_state import of_other_operators
from windrow.kernels.punctuated.delta import Delta

__all__ = ["FlowCarry", "Operator", "OperatorGraph", "OperatorNode", "Place"]

_MARK = "SymmetricJoin mark"
"""The kind of operators that versions without stored kinds did not have."""

Place: TypeAlias = "int | str"
"""The source of a delta: a node by its number, or an input of the graph by its name."""


class Operator(Protocol):
    """An operator of :mod:`windrow.kernels.punctuated`."""

    @property
    def advance(self) -> Any:
        """Takes a carry (None at first) and a delta of each input; returns a delta and the new carry."""


@dataclass(frozen=True)
class OperatorNode:
    """A node of the graph.

    Attributes
    ----------
    name
        Its name for users, such as ``GROUP BY auction``.
    operator
        Its operator.
    inputs
        Its sources: earlier nodes, or inputs of the graph.
    """

    name: str
    operator: Operator
    inputs: tuple[Place, ...]


@dataclass
class FlowCarry:
    """The operators' carries, and the kinds of the operators, in the order of the nodes.

    Earlier versions have stored no kinds.
    """

    carries: list[Any]
    kinds: list[str] | None = None

    @property
    def retained(self) -> list[tuple[int, ...]]:
        """The number of rows that each operator retains."""
        return [carry.retained for carry in self.carries]


@dataclass(frozen=True)
class OperatorGraph:
    """A query of operators over punctuated streams.

    Attributes
    ----------
    nodes
        Each after its sources; the last one emits the query's rows. An input that several nodes read reaches
        all of them in the same micro-batch.
    """

    nodes: tuple[OperatorNode, ...]

    @property
    def kinds(self) -> list[str]:
        """The kinds of the operators."""
        operators = [node.operator for node in self.nodes]
        return [f"{type(one).__name__} {getattr(one, 'kind', '')}".strip() for one in operators]

    def check(self, carry: FlowCarry) -> None:
        """Refuse the carry of another graph, as an earlier version may have had.

        Raises
        ------
        InputError
            ``CHECKPOINT_VERSION``.
        """
        known = carry.kinds
        is_same = len(carry.carries) == len(self.nodes) if known is None else known == self.kinds
        if not is_same or (known is None and _MARK in self.kinds):
            raise of_other_operators()

    def advance(self, carry: FlowCarry | None, inputs: Mapping[str, Delta]) -> tuple[Delta, FlowCarry]:
        """Process a micro-batch of every input; consumes the carry."""
        carries = [None] * len(self.nodes) if carry is None else carry.carries
        deltas: dict[Place, Delta] = dict(inputs.items())
        after = []
        for number, (node, before) in enumerate(zip(self.nodes, carries, strict=True)):
            deltas[number], retained = node.operator.advance(
                before, *(deltas[place] for place in node.inputs)
            )
            after.append(retained)
        return deltas[len(self.nodes) - 1], FlowCarry(after, self.kinds)
