"""Joins of streams by event time: until when rows of the one side may still meet rows of the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from windrow.spark.event_time.columns import column_of
from windrow.spark.event_time.facts import HIDDEN, Closing, Completeness, EventColumn, Facts, Sides
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select, conjuncts
from windrow.syntax.tokens import TokenList

__all__ = [
    "closing_by",
    "complete_by",
    "equal_parts",
    "equalities",
    "events_of",
    "in_both",
    "instead",
    "linked",
    "marked",
    "meetings",
    "told_by",
    "unpaired",
]

_Column = tuple[int, str]
"""The number of a side, and the name of a column of it."""

_ALONE = ({"left", "semi", "anti", "full"}, {"right", "full"})
"""The joins that show rows of the first of two sides, and of the second, without regard to the other."""


def closing_by(events: Iterable[EventColumn | None]) -> tuple[Closing, ...]:
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
        found.append(Closing(event.greatest, least, event.origin, event.sessions))
        found += [Closing(last, least, origin) for origin, last in event.peers if last is not None]
    return tuple(found)


def events_of(facts: Facts) -> dict[str, EventColumn]:
    """The columns of a query that tell when its groups, or its rows, are complete."""
    known: Mapping[str, EventColumn | None] = facts.events
    if facts.grouped and not facts.whole:
        known = facts.keys
    elif not facts.whole:
        known = {name: facts.events[name] for name in facts.hidden if name in facts.events}
    return {name: event for name, event in known.items() if event is not None and event.tells}


def complete_by(events: Mapping[str, EventColumn]) -> tuple[Completeness, ...]:
    """What says that rows with these columns are complete: of streams with what is equal in all rows, too."""
    return tuple(
        Completeness(name, event.mapped, origin)
        for name, event in events.items()
        for origin in sorted(event.origins)
    )


def linked(tokens: TokenList, select: Select, sides: Sides) -> Sides:
    """The relations of FROM, of which columns of event time know those that are equal in all rows.

    Of a join that shows rows of a side without a partner, those of this side.
    """
    kinds = {item.join for item, _ in sides[1:]}
    streams = [number for number, (_, facts) in enumerate(sides) if facts.streams]
    beside = {item.join for number, (item, _) in enumerate(sides) if number and number not in streams}
    is_pair = len(streams) == 2 and streams[0] == 0 and not beside & {"right", "full"}
    if len(streams) < 2 or not (kinds == {"inner"} or is_pair):
        return sides
    kind = sides[streams[1]][0].join
    alone = {streams[side] for side in (0, 1) if is_pair and kind in _ALONE[side]} or {*range(len(sides))}
    classes: list[set[_Column]] = []
    holding = [number for number, (item, facts) in enumerate(sides) if item.join == "inner" or facts.streams]
    clauses = [(sides[number][0].on, number + 1) for number in holding]
    clauses += [(select.where, len(sides))] if kinds == {"inner"} else []
    for one, other in equalities(tokens, clauses, sides, _told_by_itself):
        known = {sides[side][1].events[name].mapped for side, name in (one, other)}
        if len(known) > 1:  # a value is complete in the one before it is in the other
            continue
        both = {one, other}
        for each in [each for each in classes if each & both]:
            classes.remove(each)
            both |= each
        classes.append(both)
    found = [facts for _, facts in sides]
    for columns in classes:
        events = {column: sides[column[0]][1].events[column[1]] for column in columns}
        for side, name in (column for column in events if column[0] in alone):
            others = [each for column, each in events.items() if column != (side, name)]
            found[side] = instead(found[side], events[side, name], told_by(events[side, name], others))
    return [(item, facts) for (item, _), facts in zip(sides, found, strict=True)]


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


def unpaired(sides: Sides) -> Sides:
    """The relations of FROM, of which columns know where a join may leave them NULL."""
    found = []
    for number, (item, facts) in enumerate(sides):
        later = {each.join for each, _ in sides[number + 1 :]}
        may_lack = item.join in ("left", "full") or later & {"right", "full"}
        found.append(
            (item, marked(facts, lambda each: replace(each, is_optional=True)) if may_lack else facts)
        )
    return found


def marked(facts: Facts, mark: Callable[[EventColumn], EventColumn]) -> Facts:
    """A relation of which all event time is as `mark` makes it."""
    return replace(
        facts,
        events={name: mark(each) for name, each in facts.events.items()},
        columns=facts.columns and tuple((name, each and mark(each)) for name, each in facts.columns),
        keys={name: each and mark(each) for name, each in facts.keys.items()},
    )


def instead(facts: Facts, event: EventColumn, new: EventColumn) -> Facts:
    """A relation of which all columns of this event time are known to be of another."""
    return marked(facts, lambda each: new if each == event else each)


def meetings(sides: Sides) -> tuple[tuple[Closing, ...], ...]:
    """What says of rows of all sides that they meet no others: the values that are equal are complete.

    Nothing, if the sides have no column of event time in common.
    """
    streams = [facts for _, facts in sides if facts.streams]
    for event in (event for facts in streams for event in facts.events.values()):
        if event.greatest is not None and all(
            event.origins & {each.origin for each in facts.events.values()} for facts in streams
        ):
            return ((*closing_by([event]),),)
    return ()


def equalities(
    tokens: TokenList,
    clauses: Iterable[tuple[Range | None, int]],
    sides: Sides,
    names: Callable[[Facts], Collection[str]],
) -> Iterator[tuple[_Column, _Column]]:
    """The columns of different sides that conditions, USING and NATURAL have equal.

    Parameters
    ----------
    clauses
        Conditions, each with how many of the sides it sees.
    names
        The columns of a side that are meant.
    """
    for clause, count in clauses:
        for parts in equal_parts(tokens, clause):
            one, other = (column_of(tokens, part, sides[:count], names) for part in parts)
            if one is not None and other is not None and one[0] != other[0]:
                yield one, other
    for number, (item, facts) in enumerate(sides):
        own = [name for name in names(facts) if not name.startswith(HIDDEN)] if number else []
        shared = [name.lower() for name in item.using] if item.using is not None else own
        for name in (name for name in shared if name in own):
            first = next((at for at, (_, each) in enumerate(sides[:number]) if name in names(each)), None)
            if first is not None:
                yield (first, name), (number, name)


def equal_parts(tokens: TokenList, clause: Range | None) -> Iterator[tuple[Range, Range]]:
    """The expressions that a condition has equal."""
    for start, stop in [] if clause is None else conjuncts(tokens, *clause):
        signs = [at for at in tokens.level(start, stop) if tokens.is_symbol(at, "=")]
        if len(signs) == 1 and start < signs[0] < stop - 1:
            yield (start, signs[0]), (signs[0] + 1, stop)


def _told_by_itself(facts: Facts) -> list[str]:
    """The columns of event time that rows have by themselves."""
    return [name for name, event in facts.events.items() if event.greatest and event.sessions is None]
