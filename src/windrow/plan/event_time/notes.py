"""What EXPLAIN says of the nodes of a query over streams: what each gives, knows of time, and keeps."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from windrow.plan.event_time.facts import HIDDEN, Closed, ClosedKeys, Ending, EventColumn, Facts
from windrow.plan.event_time.lifetimes import LIFE
from windrow.plan.nodes import Node

__all__ = ["ALL_ROWS", "kept_of_groups", "kept_of_joins", "note"]

ALL_ROWS = "all rows"


def note(node: Node, facts: Facts, keeps: str | None = None) -> str:
    """What is known of a node, and what it keeps."""
    names = [column.name for column in node.columns if column.id in facts.events]
    shown = [name for name in names if not name.startswith(HIDDEN)]
    events = f"event time {', '.join(dict.fromkeys(shown))}" if shown else "no event time"
    told = f"{'updating' if facts.updates else 'append-only'}; {events}"
    return told if keeps is None else f"{told}; keeps {keeps}"


def kept_of_joins(meeting: Sequence[Sequence[Ending]]) -> str:
    """What joins keep, where that is known."""
    kinds = {type(each) for grouping in meeting for each in grouping}
    by = {ClosedKeys: "the watermark has passed what is equal", Closed: "no row of what is equal is to come"}
    return f"rows until {' or '.join(by[kind] for kind in by if kind in kinds)}" if kinds else ALL_ROWS


def kept_of_groups(keys: Collection[tuple[str, EventColumn | None]], promised: Sequence[str]) -> str:
    """What groups keep: those that may still change, if keys of event time say which, or promises of keys."""
    ending = [(key, event) for key, event in keys if event is not None and event.greatest is not None]
    if not ending:
        return f"groups until no row of {', '.join(promised)} is to come" if promised else ALL_ROWS
    told = ", ".join(key for key, _ in ending if key != LIFE[1]) or "the end of their life"
    later = " by the gap" if any(event.sessions is not None for _, event in ending) else ""
    return f"groups until the watermark has passed {told}{later}"
