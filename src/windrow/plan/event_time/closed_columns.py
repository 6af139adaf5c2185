"""Unchanged columns of streams: where punctuation closes their values, it closes rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from windrow.plan.event_time.facts import Closed, ClosedBy, EventColumn, Facts, Lineage, Occurrence
from windrow.plan.event_time.join_times import Keys, closing_by, meeting_in_time

__all__ = ["closed_by", "closes_by_keys", "closing_of", "cover", "joined", "met", "never_closed"]


def joined(kind: str, keys: Keys, left: Facts, right: Facts) -> tuple[Facts, Facts]:
    """The sides of a join, with the lineage of columns that the join equates.

    Columns that a join may fill with NULL, and columns that its result lacks, lose their lineage.
    """
    known = {**left.lineage, **right.lineage}
    pairs = [(one, other) for one, other in keys if one in left.lineage and other in right.lineage]
    for _ in pairs:  # one round for each pair is enough for chains of equal columns
        for one, other in pairs:
            both = known[one] | known[other]
            known |= {each: own | both for each, own in known.items() if own & both}
    never_null = {"inner": (True, True), "right": (False, True), "full": (False, False)}.get(
        kind, (True, False)
    )
    return tuple(  # type: ignore[return-value]
        replace(facts, lineage={name: known[name] for name in facts.lineage} if is_complete else {})
        for facts, is_complete in zip((left, right), never_null, strict=True)
    )


def closed_by(
    lineages: Iterable[Lineage], places: Collection[int], *, of: Collection[int] | None = None
) -> tuple[Closed, ...]:
    """The conditions by which punctuation closes groups of rows of streams, by values that the streams share.

    Parameters
    ----------
    plains
        The lineage of each of the values.
    places
        The places of the streams whose punctuations must close them.
    of
        The places of the streams whose rows are closed; by default the same.
    """
    every = [own for own in lineages if own]
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
    events: Iterable[EventColumn | None], lineages: Iterable[Lineage], places: frozenset[int]
) -> tuple[ClosedBy, ...]:
    """The conditions by which the watermark or punctuation closes a group of a row."""
    by_time, by_keys = closing_by(events), closed_by(lineages, places)
    if by_keys and not places <= {each.origin for each in by_time}:
        return by_keys
    return (*by_time, *by_keys)


def closes_by_keys(facts: Facts) -> bool:
    """Whether punctuation closes the nearest groups."""
    return bool(facts.closes) and any(isinstance(each, Closed) for each in facts.closes[-1])


def never_closed(occurrences: Sequence[Occurrence], facts: Facts) -> str | None:
    """Why rows of one of several streams may be needed forever; None if all streams can be closed."""
    if len(occurrences) == 1:
        return None
    every = {each.place for each in occurrences}
    closed = {each.origin for grouping in facts.closes for each in grouping}
    return None if every <= closed else "of several streams"


def met(
    kind: str, left: Facts, right: Facts, *, judges: bool, waits: bool
) -> tuple[tuple[ClosedBy, ...], ...]:
    """The conditions under which rows of both sides of a join have no further partners; empty if there are
    none.

    Parameters
    ----------
    judges
        Whether a node above removes late rows.
    waits
        Whether rows are emitted when they are complete.
    """
    # late rows of both sides must be removed, below or above, by the watermark before each row
    raw = {facts.raw for facts in (left, right) if facts.places}
    judged = judges and left.places | right.places <= left.watermarks | right.watermarks
    by_time: tuple[ClosedBy, ...] = ()
    if raw == {False} or (raw == {True} and judged and kind == "inner"):
        by_time = meeting_in_time(left, right)
    by_keys = () if by_time and waits else _meeting_by(kind, left, right)
    grouping = (*by_time, *by_keys)
    return (grouping,) if grouping else ()


def _meeting_by(kind: str, left: Facts, right: Facts) -> tuple[Closed, ...]:
    """The conditions by which punctuation closes rows of the sides of a join; empty unless all are closed.

    In a join that outputs rows without a partner, or each row once, the row's own stream must be closed too.
    Otherwise a later row of that stream would look like the first.
    """
    lineages = [lineage for facts in (left, right) for lineage in facts.lineage.values()]
    every = left.places | right.places
    found: list[Closed] = []
    for own in (left.places, right.places):
        others = every - own
        known = ((lineage, {at for at, _ in lineage}) for lineage in lineages)
        linked = [lineage for lineage, at in known if at & own and at & others]
        for origin in own if others else ():
            found += closed_by(linked, others if kind == "inner" else others | {origin}, of=[origin])
    return tuple(found) if {each.origin for each in found} == every else ()


def cover(lineages: Iterable[Lineage], places: Collection[int]) -> bool:
    """Whether the values include a column of each of the streams."""
    covered = {place for lineage in lineages for place, _ in lineage}
    return bool(places) and covered >= {*places}
