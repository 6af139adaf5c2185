"""Joins of streams by event time: until when rows of the one side may still meet rows of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from windrow.plan.event_time.facts import ClosedKeys, Completeness, EventColumn, Facts

__all__ = [
    "closing_by",
    "complete_by",
    "in_both",
    "instead",
    "linked",
    "marked",
    "meeting_in_time",
    "optional",
    "told_by",
]

Keys = Sequence[tuple[str, str]]
"""Columns of the left and of the right side that are equal."""

_ALONE = {"inner": (0, 1), "left": (0,), "semi": (0,), "anti": (0,), "right": (1,), "full": (0, 1)}
"""The sides of which a join shows rows without regard to the other, or only pairs."""


def closing_by(events: Iterable[EventColumn | None]) -> tuple[ClosedKeys, ...]:
    """What says that a group of a row is complete, by the keys of event time that it has.

    Of keys of several streams all must be below the watermark: only those tell that are equal to one of each.
    """
    keys = [event for event in events if event is not None]
    origins = {event.origin for event in keys if event.tells_late}
    found = []
    for event in keys:
        equal = {event.origin} | {
            each.origin for each in keys if any(origin == event.origin for origin, _ in each.peers)
        }
        if event.greatest is None or event.is_optional or not origins <= equal:
            continue
        least = event.settled or event.mapped
        found.append(ClosedKeys(event.greatest, least, event.origin, event.sessions))
        found += [ClosedKeys(last, least, origin) for origin, last in event.peers if last is not None]
    return tuple(found)


def complete_by(events: Iterable[tuple[str, EventColumn]]) -> tuple[Completeness, ...]:
    """What says that rows with these columns are complete: of streams with what is equal in all rows, too."""
    return tuple(
        Completeness(name, event.mapped, origin) for name, event in events for origin in sorted(event.origins)
    )


def linked(kind: str, keys: Keys, left: Facts, right: Facts) -> tuple[Facts, Facts]:
    """The sides of a join, of which columns of event time know those that are equal in all rows.

    Of a join that shows rows of a side without a partner, those of this side.
    """
    classes: list[set[str]] = []
    events = {**left.events, **right.events}
    for one, other in keys:
        if not (_told_by_itself(left, one) and _told_by_itself(right, other)):
            continue
        if events[one].mapped != events[other].mapped:  # a value is complete in one before it is in the other
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
                sides[place] = instead(sides[place], event, told_by(event, others))
    return sides[0], sides[1]


def _told_by_itself(facts: Facts, column: str) -> bool:
    """Whether a column is event time that rows have by themselves."""
    event = facts.events.get(column)
    return event is not None and event.greatest is not None and event.sessions is None


def told_by(event: EventColumn, others: Iterable[EventColumn]) -> EventColumn:
    """A column of event time that others are equal to in all rows."""
    telling = [each for each in others if each.tells]
    peers = [(each.origin, each.greatest) for each in telling]
    peers += [peer for each in telling for peer in each.peers]
    return replace(event, peers=tuple(dict.fromkeys([*event.peers, *peers])))


def in_both(one: EventColumn | None, other: EventColumn | None) -> EventColumn | None:
    """A column of event time of rows that are of either relation; None, if it is not alike in both."""
    if one is None or other is None or one.mapped != other.mapped:
        return None
    known = told_by(one, [other])
    return replace(known, tells=one.tells and other.tells, is_optional=one.is_optional or other.is_optional)


def optional(facts: Facts) -> Facts:
    """A side of a join that fills up its columns with NULL."""
    return marked(facts, lambda each: replace(each, is_optional=True))


def marked(facts: Facts, mark: Callable[[EventColumn], EventColumn]) -> Facts:
    """A relation of which all event time is as `mark` makes it."""
    return replace(facts, events={name: mark(each) for name, each in facts.events.items()})


def instead(facts: Facts, event: EventColumn, new: EventColumn) -> Facts:
    """A relation of which all columns of this event time are known to be of another."""
    return marked(facts, lambda each: new if each == event else each)


def meeting_in_time(left: Facts, right: Facts) -> tuple[ClosedKeys, ...]:
    """What says of rows of both sides that they meet no others: the values that are equal are complete.

    Nothing, if the sides have no column of event time in common, or it is not said of all their streams.
    """
    places = left.places | right.places
    for event in (*left.events.values(), *right.events.values()):
        if event.greatest is None or not places <= event.origins:
            continue
        found = closing_by([event])
        if places <= {each.origin for each in found}:
            return found
    return ()
