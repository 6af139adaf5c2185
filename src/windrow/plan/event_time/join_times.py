"""Joins of streams by event time: until when rows of one side can find partners in the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from windrow.plan.event_time.facts import ClosedKeys, Completeness, EventColumn, Facts

__all__ = [
    "closing_by",
    "complete_by",
    "in_both",
    "instead",
    "is_own_event_time",
    "linked",
    "marked",
    "meeting_in_time",
    "optional",
    "with_peers",
]

Keys = Sequence[tuple[str, str]]
"""Columns of the left and of the right side that are equal."""

_ALONE = {"inner": (0, 1), "left": (0,), "semi": (0,), "anti": (0,), "right": (1,), "full": (0, 1)}
"""The sides of which every row, with or without a partner, can be in the result; both for inner joins."""


def closing_by(events: Iterable[EventColumn | None]) -> tuple[ClosedKeys, ...]:
    """The conditions by which the watermark closes the group of a row, by the group's event-time keys.

    Keys of several streams must all be below the watermark. So only a key that equals one of each stream
    decides.
    """
    keys = [event for event in events if event is not None]
    origins = {event.origin for event in keys if event.decides_late}
    found = []
    for event in keys:
        equal = {event.origin} | {
            each.origin for each in keys if any(origin == event.origin for origin, _ in each.peers)
        }
        if event.greatest is None or event.is_optional or not origins <= equal:
            continue
        least = event.least_open or event.mapped
        found.append(ClosedKeys(event.greatest, least, event.origin, event.sessions))
        found += [ClosedKeys(last, least, origin) for origin, last in event.peers if last is not None]
    return tuple(found)


def complete_by(events: Iterable[tuple[str, EventColumn]]) -> tuple[Completeness, ...]:
    """The conditions under which rows with these columns are complete, also for the streams of their
    peers.
    """
    return tuple(
        Completeness(name, event.mapped, origin) for name, event in events for origin in sorted(event.origins)
    )


def linked(kind: str, keys: Keys, left: Facts, right: Facts) -> tuple[Facts, Facts]:
    """The sides of a join, where event-time columns have the columns that the join equates with them as
    peers.

    In an outer join, only those of the side whose rows are all in the result.
    """
    classes: list[set[str]] = []
    events = {**left.events, **right.events}
    for one, other in keys:
        if not (is_own_event_time(left, one) and is_own_event_time(right, other)):
            continue
        if events[one].mapped != events[other].mapped:  # a value is complete in one side before the other
            continue
        both = {one, other}
        for each in [each for each in classes if each & both]:
            classes.remove(each)
            both |= each
        classes.append(both)
    sides = [left, right]
    for columns in classes:
        for place in _ALONE[kind]:
            for own in sorted(columns & sides[place].events.keys()):
                others = [events[each] for each in sorted(columns) if each != own]
                event = events[own]
                sides[place] = instead(sides[place], event, with_peers(event, others))
    return sides[0], sides[1]


def is_own_event_time(facts: Facts, column: str) -> bool:
    """Whether a column is event time that depends on the row alone."""
    event = facts.events.get(column)
    return event is not None and event.greatest is not None and event.sessions is None


def with_peers(event: EventColumn, others: Iterable[EventColumn]) -> EventColumn:
    """An event-time column that equals others in all rows."""
    finalizing = [each for each in others if each.finalizes]
    peers = [(each.origin, each.greatest) for each in finalizing]
    peers += [peer for each in finalizing for peer in each.peers]
    return replace(event, peers=tuple(dict.fromkeys([*event.peers, *peers])))


def in_both(one: EventColumn | None, other: EventColumn | None) -> EventColumn | None:
    """The event time of a column of a union; None if its two sides have it in different forms."""
    if one is None or other is None or one.mapped != other.mapped:
        return None
    known = with_peers(one, [other])
    return replace(
        known, finalizes=one.finalizes and other.finalizes, is_optional=one.is_optional or other.is_optional
    )


def optional(facts: Facts) -> Facts:
    """The facts of a side of an outer join whose columns may be NULL."""
    return marked(facts, lambda each: replace(each, is_optional=True))


def marked(facts: Facts, mark: Callable[[EventColumn], EventColumn]) -> Facts:
    """The facts with `mark` applied to all event-time columns."""
    return replace(facts, events={name: mark(each) for name, each in facts.events.items()})


def instead(facts: Facts, event: EventColumn, new: EventColumn) -> Facts:
    """The facts with one event time replaced by another in all columns."""
    return marked(facts, lambda each: new if each == event else each)


def meeting_in_time(left: Facts, right: Facts) -> tuple[ClosedKeys, ...]:
    """The conditions by which the watermark closes rows of both sides: the equal values are complete.

    Empty if the sides have no common event-time column, or one of the streams has no condition.
    """
    places = left.places | right.places
    for event in (*left.events.values(), *right.events.values()):
        if event.greatest is None or not places <= event.origins:
            continue
        found = closing_by([event])
        if places <= {each.origin for each in found}:
            return found
    return ()
