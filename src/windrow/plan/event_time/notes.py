"""What EXPLAIN says of the nodes of a query over streams: output mode, event time and state."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from windrow.plan.event_time.facts import HIDDEN, Closed, ClosedBy, ClosedKeys, EventColumn, Facts
from windrow.plan.event_time.state_ttl import TTL_BOUNDS
from windrow.plan.nodes import Node

__all__ = ["ALL_ROWS", "note", "state_of_groups", "state_of_joins"]

ALL_ROWS = "all rows"


def note(node: Node, facts: Facts, state: str | None = None) -> str:
    """The note of a node: its output mode and event time, and its state if it has any."""
    names = [column.name for column in node.columns if column.id in facts.events]
    visible = [name for name in names if not name.startswith(HIDDEN)]
    events = f"event time {', '.join(dict.fromkeys(visible))}" if visible else "no event time"
    output = f"{'updating' if facts.updates else 'append-only'}; {events}"
    return output if state is None else f"{output}; state: {state}"


def state_of_joins(meeting: Sequence[Sequence[ClosedBy]]) -> str:
    """The state of a join with these conditions."""
    kinds = {type(each) for grouping in meeting for each in grouping}
    by = {ClosedKeys: "the watermark has passed the equal columns", Closed: "punctuation closes them"}
    return f"rows until {' or '.join(by[kind] for kind in by if kind in kinds)}" if kinds else ALL_ROWS


def state_of_groups(keys: Collection[tuple[str, EventColumn | None]], punctuated: Sequence[str]) -> str:
    """The state of groups: those that event time or punctuation of their keys has not closed."""
    timed = [(key, event) for key, event in keys if event is not None and event.greatest is not None]
    if not timed:
        return f"groups until punctuation closes {', '.join(punctuated)}" if punctuated else ALL_ROWS
    passed = ", ".join(key for key, _ in timed if key != TTL_BOUNDS[1]) or "the end of their STATE LIFETIME"
    later = " by the gap" if any(event.sessions is not None for _, event in timed) else ""
    return f"groups until the watermark has passed {passed}{later}"
