"""Columns as streams have them: where these promise of values there that no row follows, rows are over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from windrow.plan.event_time.facts import Closed, Ending, EventColumn, Facts, Occurrence, Plain
from windrow.plan.event_time.join_times import Keys, closing_by, meeting_in_time

__all__ = ["are_told", "closed_by", "closing_of", "joined", "keeps_by_keys", "met", "never_closed"]


def joined(kind: str, keys: Keys, left: Facts, right: Facts) -> tuple[Facts, Facts]:
    """The sides of a join, of which plain columns know those that are equal in all rows.

    What a join may fill up with NULL is not plain any more, nor what it does not show.
    """
    known = {**left.plain, **right.plain}
    pairs = [(one, other) for one, other in keys if one in left.plain and other in right.plain]
    for _ in pairs:  # as many rounds as make what is equal to equal ones known
        for one, other in pairs:
            both = known[one] | known[other]
            known |= {each: own | both for each, own in known.items() if own & both}
    kept = {"inner": (True, True), "right": (False, True), "full": (False, False)}.get(kind, (True, False))
    return tuple(  # type: ignore[return-value]
        replace(facts, plain={name: known[name] for name in facts.plain} if is_kept else {})
        for facts, is_kept in zip((left, right), kept, strict=True)
    )


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


def met(kind: str, left: Facts, right: Facts, *, judges: bool, waits: bool) -> tuple[tuple[Ending, ...], ...]:
    """What says of rows of both sides of a join that they meet no others; nothing, if that is not known.

    Parameters
    ----------
    judges
        Whether late rows are left out above.
    waits
        Whether rows are shown when they are complete.
    """
    # late rows are to be left out of both sides, beneath or above, by the watermark before each
    raw = {facts.raw for facts in (left, right) if facts.places}
    judged = judges and left.places | right.places <= left.watermarks | right.watermarks
    by_time: tuple[Ending, ...] = ()
    if raw == {False} or (raw == {True} and judged and kind == "inner"):
        by_time = meeting_in_time(left, right)
    promised = () if by_time and waits else _meeting_by(kind, left, right)
    grouping = (*by_time, *promised)
    return (grouping,) if grouping else ()


def _meeting_by(kind: str, left: Facts, right: Facts) -> tuple[Closed, ...]:
    """What says of rows of the sides of a join that they meet no others; nothing, if not of all of them.

    Of joins that show rows without a partner, or each once, the row's own stream has to promise it too: rows
    beside it would else seem to be the first.
    """
    plains = [plain for facts in (left, right) for plain in facts.plain.values()]
    every = left.places | right.places
    found: list[Closed] = []
    for own in (left.places, right.places):
        others = every - own
        known = ((plain, {at for at, _ in plain}) for plain in plains)
        linked = [plain for plain, at in known if at & own and at & others]
        for origin in own if others else ():
            found += closed_by(linked, others if kind == "inner" else others | {origin}, of=[origin])
    return tuple(found) if {each.origin for each in found} == every else ()


def are_told(plains: Iterable[Plain], places: Collection[int]) -> bool:
    """Whether there are values of columns of each of the streams."""
    told = {place for plain in plains for place, _ in plain}
    return bool(places) and told >= {*places}
