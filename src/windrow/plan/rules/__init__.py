"""Rules that rewrite a plan to a better one with the same rows; each is a function in its own file.

A rule looks at one node, after its inputs, and returns a replacement or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from windrow.plan.nodes import (
    Aggregate,
    Input,
    Join,
    Mark,
    Node,
    OneRow,
    Pieces,
    Project,
    Scan,
    SetOperation,
    StreamWindow,
    TimeWindows,
    Value,
    walk,
)
from windrow.plan.rules.first_rows import first_rows
from windrow.plan.rules.join_all_pairs import join_all_pairs
from windrow.plan.rules.join_marks import join_marks
from windrow.plan.rules.join_values import join_values
from windrow.plan.rules.keys_once import keys_once
from windrow.plan.rules.push_filters import push_filters

__all__ = ["BY_KEYS", "RULES", "TIMED", "Rule", "applied"]

Rule: TypeAlias = Callable[[Node], "Node | None"]

RULES: tuple[Rule, ...] = (push_filters,)
"""Rules for all plans."""

TIMED: tuple[Rule, ...] = (first_rows,)
"""Rules for queries with EMIT, where each instant is a separate table."""

BY_KEYS: tuple[Rule, ...] = (*RULES, join_all_pairs, join_values, join_marks, keys_once)
"""Rules for operators that join only by keys."""


def applied(plan: Node, rules: tuple[Rule, ...] = RULES) -> Node:
    """The plan after all rules, applied from its leaves up until none changes a node."""
    made: dict[int, Node] = {}
    for node in walk(plan):
        found = _over(node, [made[id(one)] for one in node.inputs])
        made[id(node)] = _final(found, rules)
    return made[id(plan)]


def _final(node: Node, rules: tuple[Rule, ...]) -> Node:
    better = next((one for rule in rules if (one := rule(node)) is not None), None)
    return node if better is None else applied(better, rules)


def _over(node: Node, inputs: list[Node]) -> Node:
    """The node over other inputs with the same columns."""
    if all(one is other for one, other in zip(node.inputs, inputs, strict=True)):
        return node
    match node:
        case Scan() | Input() | StreamWindow():
            return node
        case Join() | Mark() | Value() | SetOperation():
            return replace(node, left=inputs[0], right=inputs[1])
        case TimeWindows():
            return replace(node, spelled=inputs[0])
        case Pieces():
            keys = [key for key, _ in node.beside]
            beside = tuple(zip(keys, inputs[len(inputs) - len(keys) :], strict=True))
            return replace(node, input=None if node.input is None else inputs[0], beside=beside)
        case Aggregate():
            assert isinstance(inputs[0], Project)
            return replace(node, input=inputs[0])
        case OneRow():
            assert isinstance(inputs[0], Aggregate)
            return replace(node, input=inputs[0])
    return replace(node, input=inputs[0])
