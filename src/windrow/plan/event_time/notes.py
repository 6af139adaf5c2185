"""EXPLAIN's notes about nodes of a query over streams: output mode, event time and state."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql.types import BooleanType

from windrow.kernels.aggregates import FUNCTIONS
from windrow.plan.arrow_types import arrow_type
from windrow.plan.event_time.facts import HIDDEN, Closed, ClosedBy, ClosedKeys, EventColumn, Facts
from windrow.plan.event_time.state_ttl import TTL_BOUNDS
from windrow.plan.nodes import Aggregate, Node

__all__ = ["ALL_ROWS", "note", "retained_by_groups", "state_of_groups", "state_of_joins"]

ALL_ROWS, ALL_GROUPS = "all rows", "all groups"


def note(node: Node, facts: Facts, state: str | None = None) -> str:
    """The note of a node: its output mode and event time, and its state if it has any."""
    names = [column.name for column in node.columns if column.id in facts.events]
    visible = [name for name in names if not name.startswith(HIDDEN)]
    events = f"event time {', '.join(dict.fromkeys(visible))}" if visible else "no event time"
    output = f"{'updating' if facts.updates else 'append-only'}; {events}"
    return output if state is None else f"{output}; state: {state}"


def state_of_joins(meeting: Sequence[Sequence[ClosedBy]], passed: str = "equal columns") -> str:
    """The state of a join with these conditions, and the part of it that the watermark passes."""
    kinds = {type(each) for grouping in meeting for each in grouping}
    by = {ClosedKeys: f"the watermark has passed the {passed}", Closed: "punctuation closes them"}
    return f"rows until {' or '.join(by[kind] for kind in by if kind in kinds)}" if kinds else ALL_ROWS


def retained_by_groups(node: Aggregate, *, updates: bool) -> str:
    """What is retained of groups that nothing closes: their aggregates, or all rows where one needs these."""
    kinds = {column.id: column.type for column in node.input.columns}
    for call in node.calls:
        function = FUNCTIONS.get(call.call.function or "")
        kind = arrow_type(kinds.get(call.argument or "", BooleanType()))
        if not call.is_known or function is None or kind is None:
            return ALL_ROWS
        if not function.is_incremental(kind, appends=not updates):
            return ALL_ROWS
    return ALL_GROUPS


def state_of_groups(
    keys: Collection[tuple[str, EventColumn | None]], punctuated: Sequence[str], retained: str
) -> str:
    """The state of groups: the groups that event time or punctuation has not closed; otherwise `retained`."""
    timed = [(key, event) for key, event in keys if event is not None and event.greatest is not None]
    if not timed:
        return f"groups until punctuation closes {', '.join(punctuated)}" if punctuated else retained
    passed = ", ".join(key for key, _ in timed if key != TTL_BOUNDS[1]) or "the end of their STATE LIFETIME"
    later = " by the gap" if any(event.sessions is not None for _, event in timed) else ""
    return f"groups until the watermark has passed {passed}{later}"
