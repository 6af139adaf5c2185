"""Joins of streams by event time: until when rows of the one side may still meet rows of the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from windrow.spark.event_time.facts import Closing, Completeness, EventColumn, Facts, Sides
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem, Select, conjuncts
from windrow.syntax.tokens import TokenList

__all__ = ["closing_by", "complete_by", "events_of", "linked", "meetings"]

_Column = tuple[int, str]
"""The number of a side, and the name of a column of it."""


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
        if event.greatest is None or not origins <= equal:
            continue
        least = event.settled or event.mapped
        found.append(Closing(event.greatest, least, event.origin, event.sessions))
        found += [Closing(greatest, least, origin) for origin, greatest in event.peers]
    return tuple(found)


def events_of(facts: Facts) -> Mapping[str, EventColumn | None]:
    """The columns of a query that tell when its groups, or its rows, are complete."""
    if facts.whole:
        return facts.events
    if facts.grouped:
        return facts.keys
    return {name: facts.events[name] for name in facts.hidden if name in facts.events}


def complete_by(events: Mapping[str, EventColumn | None]) -> tuple[Completeness, ...]:
    """What says that rows with these columns are complete: of streams with what is equal in all rows, too."""
    return tuple(
        Completeness(name, event.mapped, origin)
        for name, event in events.items()
        if event is not None
        for origin in dict.fromkeys((event.origin, *(origin for origin, _ in event.peers)))
    )


def linked(tokens: TokenList, select: Select, sides: Sides) -> Sides:
    """The relations of FROM, of which columns of event time know those that are equal in all rows.

    Of a join that shows rows of its first side without a partner, those of this side alone.
    """
    kinds = {item.join for item, _ in sides[1:]}
    of_the_first = len(sides) == 2 and kinds <= {"left", "semi", "anti"}
    if sum(bool(facts.streams) for _, facts in sides) < 2 or not (kinds == {"inner"} or of_the_first):
        return sides
    classes: list[set[_Column]] = []
    for one, other in _equal(tokens, select, sides):
        both = {one, other}
        for each in [each for each in classes if each & both]:
            classes.remove(each)
            both |= each
        classes.append(both)
    found = [facts for _, facts in sides]
    for columns in classes:
        known = {column: sides[column[0]][1].events[column[1]] for column in columns}
        for (side, name), event in known.items():
            if side and of_the_first:
                continue
            others = [each for column, each in known.items() if column != (side, name)]
            peers = [(each.origin, each.greatest) for each in others if each.greatest is not None]
            peers += [peer for each in others for peer in each.peers]
            new = replace(event, peers=tuple(dict.fromkeys([*event.peers, *peers])))
            found[side] = _with(found[side], name, new)
    return [(item, facts) for (item, _), facts in zip(sides, found, strict=True)]


def meetings(sides: Sides) -> tuple[tuple[Closing, ...], ...]:
    """What says of rows of all sides that they meet no others: the values that are equal are complete.

    Nothing, if the sides have no column of event time in common.
    """
    streams = [facts for _, facts in sides if facts.streams]
    for event in streams[0].events.values():
        spanned = {event.origin, *(origin for origin, _ in event.peers)}
        if event.greatest is not None and all(
            spanned & {each.origin for each in facts.events.values()} for facts in streams
        ):
            return ((*closing_by([event]),),)
    return ()


def _equal(tokens: TokenList, select: Select, sides: Sides) -> Iterator[tuple[_Column, _Column]]:
    """The columns of event time that conditions have equal."""
    clauses = [item.on for item, _ in sides]
    clauses += [select.where] if all(item.join == "inner" for item, _ in sides) else []
    for clause in (clause for clause in clauses if clause is not None):
        for start, stop in conjuncts(tokens, *clause):
            signs = [at for at in tokens.level(start, stop) if tokens.is_symbol(at, "=")]
            if len(signs) != 1:
                continue
            one, other = (_column(tokens, part, sides) for part in ((start, signs[0]), (signs[0] + 1, stop)))
            if one is None or other is None or one[0] == other[0]:
                continue
            # a value is complete in the one as it is in the other
            if len({sides[side][1].events[name].mapped for side, name in (one, other)}) == 1:
                yield one, other


def _column(tokens: TokenList, part: Range, sides: Sides) -> _Column | None:
    """The column of event time that an expression is, if it is one that rows have by themselves."""
    if part[0] >= part[1]:
        return None
    expression = parse_expression(tokens, *part)
    if not isinstance(expression, Name):
        return None
    *alias, name = (each.lower() for each in expression.parts)
    found = [place for place, (item, facts) in enumerate(sides) if _has(item, facts, alias, name)]
    if len(found) != 1:
        return None
    event = sides[found[0]][1].events[name]
    return None if event.greatest is None or event.sessions is not None else (found[0], name)


def _has(item: FromItem, facts: Facts, alias: list[str], name: str) -> bool:
    return name in facts.events and (not alias or alias == [(item.alias or "").lower()])


def _with(facts: Facts, name: str, event: EventColumn) -> Facts:
    columns = facts.columns
    if columns is not None:
        columns = tuple((each, event if each == name else old) for each, old in columns)
    keys = {
        each: event if old is not None and old == facts.events[name] else old
        for each, old in facts.keys.items()
    }
    return replace(facts, events={**facts.events, name: event}, columns=columns, keys=keys)
