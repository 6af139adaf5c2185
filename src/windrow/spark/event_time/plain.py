"""Columns as streams have them: where these promise of values there that no row follows, rows are over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from windrow.spark.event_time.columns import column_of, name_of, seen
from windrow.spark.event_time.facts import (
    HIDDEN,
    Closed,
    Ending,
    EventColumn,
    Facts,
    Occurrence,
    Plain,
    Sides,
)
from windrow.spark.event_time.joins import closing_by, equalities, meetings
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select
from windrow.syntax.select_list import without_alias
from windrow.syntax.tokens import TokenList

__all__ = [
    "are_told",
    "closed_by",
    "closing_of",
    "joined",
    "keeps_by_keys",
    "met",
    "never_closed",
    "plain_of",
    "selected",
    "told_in",
]

_Column = tuple[int, str]
"""The number of a side, and the name of a column of it."""


def plain_of(tokens: TokenList, item: Range, sides: Sides) -> Plain:
    """Of which streams' columns an expression is the value; of none, if it is no column."""
    sides = seen(sides)
    found = column_of(tokens, item, sides, lambda facts: facts.plain)
    return frozenset() if found is None else sides[found[0]][1].plain[found[1]]


def selected(tokens: TokenList, select: Select, sides: Sides) -> dict[str, Plain]:
    """The plain columns of a SELECT without groups, but for those of ours."""
    found: dict[str, Plain] = {}
    twice: set[str] = set()
    for item in select.items:
        start, stop = item
        if tokens.is_symbol(stop - 1, "*"):
            alias = tokens[start].name.lower() if stop - start == 3 else None
            of = [facts for side, facts in sides if alias is None or alias == (side.alias or "").lower()]
            names = [(name, own) for facts in of for name, own in facts.plain.items() if name[:5] != HIDDEN]
        else:
            own = plain_of(tokens, without_alias(tokens, item), sides)
            names = [(name_of(tokens, item), own)]
        for name, own in names:
            twice |= {name} & found.keys()
            found[name] = own
    return {name: own for name, own in found.items() if own and name not in twice}


def joined(tokens: TokenList, select: Select, sides: Sides) -> Sides:
    """The relations of FROM, of which plain columns know those that are equal in all rows.

    What a join may fill up with NULL is not plain any more.
    """
    kinds = {item.join for item, _ in sides[1:]}
    if len(sides) < 2 or not any(facts.plain for _, facts in sides):
        return sides
    inner = kinds <= {"inner", "semi"}
    if not inner and (len(sides) > 2 or kinds & {"full"}):
        return [(item, replace(facts, plain={})) for item, facts in sides]
    known = {(at, name): own for at, (_, facts) in enumerate(sides) for name, own in facts.plain.items()}
    clauses = [(item.on, number + 1) for number, (item, _) in enumerate(sides)]
    clauses += [(select.where, len(sides))] if inner else []
    pairs = [*equalities(tokens, clauses, sides, lambda facts: facts.plain)]
    for _ in pairs:  # as many rounds as make what is equal to equal ones known
        for one, other in pairs:
            both = known[one] | known[other]
            known |= {each: own | both for each, own in known.items() if own & both}
    lost = {at for at, (item, _) in enumerate(sides) if item.join in ("semi", "anti", "left")}
    lost |= {0} if kinds == {"right"} else set()
    return [
        (item, replace(facts, plain={} if at in lost else {name: known[at, name] for name in facts.plain}))
        for at, (item, facts) in enumerate(sides)
    ]


def closed_by(
    plains: Iterable[Plain], places: Collection[int], *, of: Collection[int] | None = None
) -> tuple[Closed, ...]:
    """What says of the rows of streams that what they are in is over, by values that rows of it share.

    Parameters
    ----------
    plains
        Of each of the values: of which columns of streams.
    places
        Where the streams stand of which it has to be promised.
    of
        Where the streams stand of whose rows it is said, by default there.
    """
    every = [own for own in plains if own]
    found = []
    for origin in places if of is None else of:
        by = []
        for place in sorted(places):
            pairs = [
                (column, mine)
                for own in every
                for other, column in own
                for whose, mine in own
                if (other, whose) == (place, origin)
            ]
            by.append((place, tuple(sorted(dict(pairs).items()))))
        if all(pairs for _, pairs in by):
            found.append(Closed(origin, tuple(by)))
    return tuple(found)


def told_in(facts: Facts) -> dict[str, Plain]:
    """The columns of a query by whose values its groups may be promised to be over, or its rows."""
    if facts.whole:
        return {name: own for name, own in facts.plain.items() if not name.startswith(HIDDEN)}
    return {name: own for name, own in facts.plain.items() if name in facts.keys or not facts.grouped}


def closing_of(
    events: Iterable[EventColumn | None], plains: Iterable[Plain], places: frozenset[int]
) -> tuple[Ending, ...]:
    """What says that a group of a row is complete, or promised to be over."""
    by_time, promised = closing_by(events), closed_by(plains, places)
    if promised and not places <= {each.origin for each in by_time}:
        return promised
    return (*by_time, *promised)


def keeps_by_keys(facts: Facts) -> bool:
    """Whether promises say which groups are over."""
    return bool(facts.closes) and any(isinstance(each, Closed) for each in facts.closes[-1])


def never_closed(occurrences: Sequence[Occurrence], facts: Facts) -> str | None:
    """Why rows of one of several streams may be needed for ever, if nothing says when they are not."""
    if len(occurrences) == 1:
        return None
    every = {each.place for each in occurrences}
    closed = {each.origin for grouping in facts.closes for each in grouping}
    return None if every <= closed else "of several streams"


def met(sides: Sides, *, judges: bool, waits: bool) -> tuple[tuple[Ending, ...], ...]:
    """What says of rows of all sides of a join that they meet no others; nothing, if that is not known.

    Parameters
    ----------
    judges
        Whether late rows are left out above.
    waits
        Whether rows are shown when they are complete.
    """
    by_time = meetings(sides)
    # late rows are to be left out of all sides, beneath or here
    raw = {facts.raw for _, facts in sides if facts.streams}
    is_inner = all(item.join == "inner" for item, _ in sides)
    if not (raw == {False} or (raw == {True} and judges and is_inner)):
        by_time = ()
    promised = () if by_time and waits else meeting_by(sides)
    grouping: tuple[Ending, ...] = (*(by_time[0] if by_time else ()), *promised)
    return (grouping,) if grouping else ()


def meeting_by(sides: Sides) -> tuple[Closed, ...]:
    """What says of rows of the sides of a join that they meet no others; nothing, if not of all of them.

    Of joins that show rows without a partner, or each once, the row's own stream has to promise it too: rows
    beside it would else seem to be the first.
    """
    plains = [plain for _, facts in sides for plain in facts.plain.values()]
    every = frozenset[int]().union(*(facts.places for _, facts in sides))
    is_inner = all(item.join == "inner" for item, _ in sides)
    found: list[Closed] = []
    for own in (facts.places for _, facts in sides):
        others = every - own
        known = ((plain, {at for at, _ in plain}) for plain in plains)
        linked = [plain for plain, at in known if at & own and at & others]
        for origin in own if others else ():
            found += closed_by(linked, others if is_inner else others | {origin}, of=[origin])
    return tuple(found) if {each.origin for each in found} == every else ()


def are_told(plains: Iterable[Plain], places: Collection[int]) -> bool:
    """Whether there are values of columns of each of the streams."""
    told = {place for plain in plains for place, _ in plain}
    return bool(places) and told >= {*places}
