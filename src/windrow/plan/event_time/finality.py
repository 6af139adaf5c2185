"""When rows of relations are final: which streams' watermarks must have passed, and which columns decide it.

Rows that are derived from inserts alone are final at once. All others can be retracted, until no row can
arrive that changes them. "Complete" is stronger than final: no equal row is inserted or retracted any more.

| relation | a row is complete once these watermarks have passed | it is final once these have passed |
|---|---|---|
| a stream | the stream's | none |
| SELECT, windows of a length | those of FROM | those of FROM |
| sessions, groups, OVER, LIMIT | those of FROM, in a column that is a key | the same |
| inner and semi joins, UNION, INTERSECT | those of both sides | those of both sides |
| left joins, anti joins, EXCEPT | those of both sides | those of the first side, and all of the second |
| right and full joins | those of both sides | all of the sides in which a partner may be missing |

A column that is no key of such a relation, such as the rowtime under a rank by price, decides nothing above
it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from windrow.plan.columns import Completeness
from windrow.plan.event_time.facts import EventColumn, Facts, Finality
from windrow.plan.event_time.join_times import complete_by, marked

__all__ = ["LACKING", "NEVER", "combined", "cut", "finalized_only_by", "lacking_in", "spanned", "until"]

NEVER = -1
"""Stands for a stream whose watermark never passes a row."""

LACKING = {"left": "a LEFT JOIN", "right": "a RIGHT JOIN", "full": "a FULL JOIN", "anti": "an ANTI JOIN"}
"""The joins that output rows without a partner."""


def lacking_in(kind: str) -> tuple[int, ...]:
    """The sides of such a join in which a partner may be missing."""
    return {"right": (0,), "full": (0, 1)}.get(kind, (1,))


def spanned(events: Iterable[EventColumn | None]) -> frozenset[int]:
    """The streams whose watermarks have passed a row once they have passed it in these columns."""
    return frozenset(
        origin for event in events if event is not None and event.finalizes for origin in event.origins
    )


def cut(within: Finality, events: Iterable[EventColumn | None], what: str) -> Finality:
    """The finality of rows computed from all rows that share the values of some event-time columns."""
    decides = within.complete <= spanned(events)
    complete = within.complete if decides else within.complete | {NEVER}
    return Finality(complete, complete, within.why if decides and within.why else what)


def combined(
    left: Finality, right: Finality, *, lacking: str | None = None, of: Collection[int] = (1,)
) -> Finality:
    """The finality of rows computed from the rows of two relations.

    Parameters
    ----------
    lacking
        The name of the operator, if it outputs rows without a partner.
    of
        The sides in which the partner may be missing.
    """
    final = left.final | right.final
    if lacking is None:
        return Finality(left.complete | right.complete, final, left.why or right.why)
    for side, missing in enumerate((left, right)):
        final |= missing.complete if side in of else frozenset()
    return Finality(left.complete | right.complete, final, lacking)


def until(columns: Iterable[tuple[str, EventColumn | None]], facts: Facts) -> tuple[Completeness, ...]:
    """The conditions by which the watermark makes values of columns final; empty if it does not.

    Session ends do not count, because sessions may grow. Nor do columns that an outer join may fill with
    NULL.
    """
    finalizing = [
        (name, event)
        for name, event in columns
        if event is not None and event.finalizes and event.sessions is None and not event.is_optional
    ]
    waits_for = facts.finality.complete | facts.places
    return complete_by(finalizing) if waits_for <= spanned(event for _, event in finalizing) else ()


def finalized_only_by(facts: Facts, finalizing: Collection[EventColumn | None]) -> Facts:
    """The facts of a relation in which only these columns decide when rows are final."""
    return marked(facts, lambda each: replace(each, finalizes=each.finalizes and each in finalizing))
