"""OVER, the first rows in an order, and blocks that only Spark understands: which columns still tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windrow.plan import nodes as plan
from windrow.plan.event_time.deriving import Derived, Deriving
from windrow.plan.event_time.facts import (
    EventColumn,
    Facts,
    Settling,
)
from windrow.plan.event_time.finality import cut, spanned, told_only
from windrow.plan.event_time.notes import ALL_ROWS
from windrow.plan.event_time.refusals import may_go

__all__ = ["of_over", "of_pieces", "of_sort"]


def of_over(deriving: Deriving, node: plan.Over) -> Derived:
    """Rows with values over others."""
    made, facts = deriving.of(node.input, judged=False)
    made = replace(node, input=made)
    if not facts.varies:
        return made, facts
    calls = [column.id for column, _, _ in node.calls]
    if deriving.until >= {*calls}:
        whole = facts.settling.whole
        facts = replace(
            told_only(facts, ()),
            settling=Settling(whole, whole, "versions"),
            versions={**facts.versions, **dict.fromkeys(calls, whole)},
        )
    else:
        by = {facts.events[one]: one for one in node.partition if one in facts.events}
        first = node.order[0] if node.order and all(call.looks_back for _, call, _ in node.calls) else None
        event = facts.events.get(first.column) if first is not None else None
        if not facts.settling.whole <= spanned(by):
            by = {}
        if first is not None and event is not None and not first.descending:
            is_told = facts.settling.whole <= spanned([event])
            if is_told and not (event.is_optional and first.nulls_first):
                by[event] = first.column
        facts = _told_by(facts, by)
    facts = replace(
        facts, raw=False, updates=True, plain={}, watermarks=frozenset(), holds=facts.holds or "of OVER"
    )
    deriving.said(node, facts, ALL_ROWS)
    return made, facts


def _told_by(facts: Facts, telling: Mapping[EventColumn, str]) -> Facts:
    """Rows that have values over others, of which these columns still tell."""
    telling = {event: one for event, one in telling.items() if event.tells}
    settling = cut(facts.settling, telling, "OVER")
    known = {facts.events[one] for one in (*facts.keys, *facts.telling) if one in facts.events}
    facts = replace(told_only(facts, telling), settling=settling)
    new = tuple(one for event, one in telling.items() if event not in known)
    keys = (*facts.keys, *new) if facts.grouped else facts.keys
    return replace(facts, telling=(*facts.telling, *new), keys=keys)


def of_pieces(deriving: Deriving, node: plan.Pieces) -> Derived:
    """A block that only Spark understands."""
    assert node.input is not None
    made, facts = deriving.of(node.input, judged=False)
    made = replace(node, input=made)
    if not facts.varies:
        return made, Facts()
    by = {facts.events[key]: key for key in node.keys if key in facts.events}
    if not node.is_grouped:
        facts = _told_by(facts, by if facts.settling.whole <= spanned(by) else {})
        facts = replace(
            facts,
            events={**facts.events, **_passed(node, facts)},
            raw=False,
            updates=True,
            plain={},
            watermarks=frozenset(),
            holds=facts.holds or "of OVER",
        )
    else:
        if deriving.waits and not by:
            raise may_go(deriving.place, "this form of GROUP BY")
        facts = Facts(
            {**{key: event for event, key in by.items()}, **_passed(node, facts)},
            keys=node.keys,
            grouped=bool(node.keys),
            whole=not node.keys,
            counted=True,
            raw=False,
            updates=True,
            streams=facts.streams,
            places=facts.places,
            closes=facts.closes,
            holds=facts.holds or "of this form of GROUP BY",
            settling=cut(facts.settling, by, "groups"),
        )
    deriving.said(node, facts, ALL_ROWS)
    return made, facts


def of_sort(deriving: Deriving, node: plan.Sort) -> Derived:
    """The first rows of a relation, which stay if they are the first in time."""
    made, facts = deriving.of(node.input, judged=False)
    made = replace(node, input=made)
    if not facts.varies:
        return made, facts
    first = node.keys[0] if node.keys else None
    event = None if first is None or first.descending else facts.events.get(first.column)
    is_told = event is not None and not event.is_optional and facts.settling.whole <= spanned([event])
    telling = [event] if is_told else []
    by = [facts.events[one] for one in node.partition if one in facts.events]
    telling += by if facts.settling.whole <= spanned(by) else []
    facts = replace(
        told_only(facts, telling),
        settling=cut(facts.settling, telling, "LIMIT"),
        raw=False,
        holds=facts.holds or ("of OVER" if node.partition else "of ORDER BY and LIMIT"),
        updates=True,
        plain={},
        watermarks=frozenset(),
    )
    deriving.said(node, facts, ALL_ROWS)
    return made, facts


def _passed(node: plan.Pieces, facts: Facts) -> dict[str, EventColumn]:
    """The event time of the columns that a block passes on."""
    return {column: facts.events[source] for column, source in node.passes if source in facts.events}
