"""A plan as EXPLAIN prints it: one line for each node, with its inputs below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from windrow.plan.nodes import (
    Aggregate,
    ClauseRelation,
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
    SessionWindows,
    SetOperation,
    Sort,
    StreamWindow,
    TimeWindows,
    Value,
)

__all__ = ["tree"]


def tree(plan: Node, notes: Mapping[int, str] | None = None) -> list[str]:
    """The lines of a plan. Columns that are only renamed are left out.

    A node that the query uses twice is printed twice.

    Parameters
    ----------
    notes
        Notes that follow nodes, by their `id`.
    """
    return list(_lines(plan, "", "", notes or {}))


def _lines(node: Node, first: str, rest: str, notes: Mapping[int, str]) -> Iterator[str]:
    if isinstance(node, Project) and node.passes_only:
        yield from _lines(node.input, first, rest, notes)
        return
    note = f" ({notes[id(node)]})" if id(node) in notes else ""
    yield f"{first}{_label(node, notes)}{note}"
    for place, one in enumerate(below := _below(node), 1):
        ends = place == len(below)
        before, after = f"{rest}{'└─ ' if ends else '├─ '}", f"{rest}{'   ' if ends else '│  '}"
        yield from _lines(one, before, after, notes)


def _below(node: Node) -> tuple[Node, ...]:
    """The nodes that are printed below one."""
    if isinstance(node, StreamWindow):
        return ()
    return (node.rows,) if isinstance(node, TimeWindows) else node.inputs


def _label(node: Node, notes: Mapping[int, str]) -> str:
    match node:
        case Scan():
            return f"{'stream' if node.is_stream else 'table'} {node.label}"
        case StreamWindow():
            return f"stream {node.label}" if node.is_bare else node.label
        case Project():
            computed = [column.name for column, one in node.outputs if one.column is None]
            visible = [name for name in computed if not name.startswith("__")]  # others are ours
            return f"compute {', '.join(visible)}" if visible else "compute keys"
        case Aggregate():
            calls = ", ".join(dict.fromkeys(" ".join(call.column.name.split()) for call in node.calls))
            return f"{node.label}: {calls}" if calls else node.label
        case TimeWindows():
            names = {column.id: column.name for column in node.rows.columns}
            by = f" of {', '.join(names[key] for key in node.keys)}" if node.keys else ""
            return f"{node.kind} by {names[node.time]}{by}"
        case Input():
            return f"stream {node.label}" if id(node) in notes else node.label
        case OneRow():
            return f"one row of {node.label}"
        case Mark() | Value() | Pieces():
            return node.label
        case (
            Join()
            | Filter()
            | Over()
            | ClauseRelation()
            | SessionWindows()
            | Distinct()
            | SetOperation()
            | Sort()
        ):
            return node.label
    assert_never(node)
