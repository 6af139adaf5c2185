"""A plan as EXPLAIN prints it: a line a node, what it reads below it."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Input,
    Join,
    Mark,
    Node,
    OneRow,
    Over,
    Pieces,
    Project,
    Scan,
    Session,
    SetOperation,
    Sort,
    StreamWindow,
    TimeWindows,
    Value,
)

__all__ = ["tree"]


def tree(plan: Node) -> list[str]:
    """The lines of a plan; columns that are only renamed are left out.

    A node that stands in the query twice is printed twice.
    """
    return list(_lines(plan, "", ""))


def _lines(node: Node, first: str, rest: str) -> Iterator[str]:
    if isinstance(node, TimeWindows):
        yield from _lines(node.spelled, first, rest)
        return
    if isinstance(node, Project) and node.passes_only:
        yield from _lines(node.input, first, rest)
        return
    yield f"{first}{_label(node)}"
    below = () if isinstance(node, StreamWindow) else node.inputs
    for place, one in enumerate(below, 1):
        ends = place == len(below)
        yield from _lines(one, f"{rest}{'└─ ' if ends else '├─ '}", f"{rest}{'   ' if ends else '│  '}")


def _label(node: Node) -> str:
    match node:
        case Scan():
            return f"{'stream' if node.is_stream else 'table'} {node.label}"
        case StreamWindow():
            return node.label
        case Project():
            computed = [column.name for column, one in node.outputs if one.column is None]
            return f"compute {', '.join(computed)}"
        case Aggregate():
            calls = ", ".join(dict.fromkeys(" ".join(call.column.name.split()) for call in node.calls))
            return f"{node.label}: {calls}" if calls else node.label
        case OneRow():
            return f"one row of {node.label}"
        case Input() | Mark() | Value() | Pieces():
            return node.label
        case Join() | Filter() | Over() | Session() | Distinct() | SetOperation() | Sort():
            return node.label
    raise AssertionError(node)
