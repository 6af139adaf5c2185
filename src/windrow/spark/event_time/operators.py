"""What EXPLAIN says of each operator of a query over streams: what it gives, knows of time, and keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windrow.spark.event_time.facts import HIDDEN, Closed, Closing, Ending, EventColumn, Facts
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["ALL_ROWS", "Operator", "kept_of_groups", "kept_of_joins", "operator", "shown"]

ALL_ROWS = "all rows"


@dataclass(frozen=True)
class Operator:
    """An operator.

    Attributes
    ----------
    name
        What it does.
    updates
        Whether rows leave again what it gives.
    events
        The columns that are event time.
    keeps
        What it keeps and until when, if it keeps anything.
    """

    name: str
    updates: bool
    events: tuple[str, ...]
    keeps: str | None = None

    def __str__(self) -> str:
        events = f"event time {', '.join(self.events)}" if self.events else "no event time"
        told = f"{self.name}: {'updating' if self.updates else 'append-only'}, {events}"
        return told if self.keeps is None else f"{told}, keeps {self.keeps}"


def operator(name: str, facts: Facts, keeps: str | None = None) -> Operator:
    """The operator that gives what this is known of."""
    events = tuple(each for each in facts.events if not each.startswith(HIDDEN))
    return Operator(name, facts.updates, events, keeps)


def shown(tokens: TokenList, parts: Iterable[Range]) -> str:
    """Expressions of the user's on one line."""
    texts = (" ".join(tokens.text(*part).split()) for part in parts)
    return ", ".join(text for text in texts if HIDDEN not in text)


def kept_of_joins(meeting: Sequence[Sequence[Ending]]) -> str:
    """What joins keep, where that is known."""
    kinds = {type(each) for grouping in meeting for each in grouping}
    by = {Closing: "the watermark has passed what is equal", Closed: "no row of what is equal is to come"}
    return f"rows until {' or '.join(by[kind] for kind in by if kind in kinds)}" if kinds else ALL_ROWS


def kept_of_groups(
    tokens: TokenList, keys: Iterable[tuple[Range, EventColumn | None]], promised: Sequence[Range]
) -> str:
    """What groups keep: those that may still change, if keys of event time say which, or promises of keys."""
    ending = [(key, event) for key, event in keys if event is not None and event.greatest is not None]
    if not ending:
        return f"groups until no row of {shown(tokens, promised)} is to come" if promised else ALL_ROWS
    told = shown(tokens, [key for key, _ in ending]) or "the end of their life"
    later = " by the gap" if any(event.sessions is not None for _, event in ending) else ""
    return f"groups until the watermark has passed {told}{later}"
