"""When rows of relations stay: of which streams the time must be past them, and which columns tell that.

Rows that are made of rows which only come stay. Others go again when more rows come, until none can come that
changes them:

| relation | no row like it comes or goes, when past are | it stays, when past are |
|---|---|---|
| a stream | the stream | – |
| SELECT, windows of a length | those of FROM | those of FROM |
| sessions, groups, OVER, LIMIT | those of FROM, in a column by which they are cut | the same |
| inner and semi joins, UNION, INTERSECT | those of both sides | those of both sides |
| left joins, anti joins, EXCEPT | those of both sides | those of the first, and of the second all |
| right and full joins | those of both sides | all of what a row may lack |

A column that is in none of these, as the rowtime under a rank by price, tells nothing any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from windrow.plan.columns import Completeness
from windrow.plan.event_time.facts import EventColumn, Facts, Settling
from windrow.plan.event_time.join_times import complete_by, marked

__all__ = ["LACKING", "NEVER", "combined", "cut", "lacking_in", "spanned", "told_only", "until"]

NEVER = -1
"""Stands for a stream whose time is never past."""

LACKING = {"left": "a LEFT JOIN", "right": "a RIGHT JOIN", "full": "a FULL JOIN", "anti": "an ANTI JOIN"}
"""The joins that show rows which lack a partner."""


def lacking_in(kind: str) -> tuple[int, ...]:
    """In which sides of such a join a row may lack its partner."""
    return {"right": (0,), "full": (0, 1)}.get(kind, (1,))


def spanned(events: Iterable[EventColumn | None]) -> frozenset[int]:
    """The streams of which columns tell that their time is past a row."""
    return frozenset(
        origin for event in events if event is not None and event.tells for origin in event.origins
    )


def cut(within: Settling, events: Iterable[EventColumn | None], what: str) -> Settling:
    """What is made of all rows that have some columns of event time in common."""
    told = within.whole <= spanned(events)
    whole = within.whole if told else within.whole | {NEVER}
    return Settling(whole, whole, within.why if told and within.why else what)


def combined(
    left: Settling, right: Settling, *, lacking: str | None = None, of: Collection[int] = (1,)
) -> Settling:
    """What is made of rows of two relations.

    Parameters
    ----------
    lacking
        What it is, if it shows rows that have nothing in the other relation.
    of
        In which of the two.
    """
    stays = left.stays | right.stays
    if lacking is None:
        return Settling(left.whole | right.whole, stays, left.why or right.why)
    for side, missing in enumerate((left, right)):
        stays |= missing.whole if side in of else frozenset()
    return Settling(left.whole | right.whole, stays, lacking)


def until(columns: Iterable[tuple[str, EventColumn | None]], facts: Facts) -> tuple[Completeness, ...]:
    """What says of values of columns that no row with them comes or goes any more, if the watermark does.

    Not of sessions, which may grow, and not of what an outer join may fill up with NULL.
    """
    telling = [
        (name, event)
        for name, event in columns
        if event is not None and event.tells and event.sessions is None and not event.is_optional
    ]
    waits_for = facts.settling.whole | facts.places
    return complete_by(telling) if waits_for <= spanned(event for _, event in telling) else ()


def told_only(facts: Facts, telling: Collection[EventColumn | None]) -> Facts:
    """A relation of which no other columns tell than these."""
    return marked(facts, lambda each: replace(each, tells=each.tells and each in telling))
