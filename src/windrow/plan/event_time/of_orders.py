"""OVER, LIMIT, and SELECTs that only Spark can evaluate: which columns still decide when rows are final."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windrow.plan import nodes as plan
from windrow.plan.event_time.deriving import Derived, Deriving
from windrow.plan.event_time.facts import (
    EventColumn,
    Facts,
    Finality,
)
from windrow.plan.event_time.finality import cut, finalized_only_by, spanned
from windrow.plan.event_time.notes import ALL_ROWS
from windrow.plan.event_time.refusals import may_go

__all__ = ["of_over", "of_pieces", "of_sort"]


def of_over(deriving: Deriving, node: plan.Over) -> Derived:
    """Rows with functions OVER other rows."""
    made, facts = deriving.of(node.input, judged=False)
    made = replace(node, input=made)
    if not facts.reads_streams:
        return made, facts
    calls = [column.id for column, _, _ in node.calls]
    if deriving.until >= {*calls}:
        complete = facts.finality.complete
        facts = replace(
            finalized_only_by(facts, ()),
            finality=Finality(complete, complete, "versions"),
            versions={**facts.versions, **dict.fromkeys(calls, complete)},
        )
    else:
        by = {facts.events[one]: one for one in node.partition if one in facts.events}
        first = node.order[0] if node.order and all(call.looks_back for _, call, _ in node.calls) else None
        event = facts.events.get(first.column) if first is not None else None
        if not facts.finality.complete <= spanned(by):
            by = {}
        if first is not None and event is not None and not first.descending:
            is_final = facts.finality.complete <= spanned([event])
            if is_final and not (event.is_optional and first.nulls_first):
                by[event] = first.column
        facts = _finalized_by(facts, by, "OVER")
    facts = replace(
        facts,
        raw=False,
        updates=True,
        lineage={},
        watermarks=frozenset(),
        unbounded=facts.unbounded or "of OVER",
    )
    deriving.note(node, facts, ALL_ROWS)
    return made, facts


def _finalized_by(facts: Facts, finalizing: Mapping[EventColumn, str], what: str) -> Facts:
    """The facts of rows computed from several rows, which these columns still make final."""
    finalizing = {event: one for event, one in finalizing.items() if event.finalizes}
    finality = cut(facts.finality, finalizing, what)
    known = {facts.events[one] for one in (*facts.keys, *facts.finalizing) if one in facts.events}
    facts = replace(finalized_only_by(facts, finalizing), finality=finality)
    new = tuple(one for event, one in finalizing.items() if event not in known)
    keys = (*facts.keys, *new) if facts.grouped else facts.keys
    return replace(facts, finalizing=(*facts.finalizing, *new), keys=keys)


def of_pieces(deriving: Deriving, node: plan.Pieces) -> Derived:
    """A SELECT that only Spark can evaluate."""
    assert node.input is not None
    made, facts = deriving.of(node.input, judged=False)
    made = replace(node, input=made)
    if not facts.reads_streams:
        return made, Facts()
    by = {facts.events[key]: key for key in node.keys if key in facts.events}
    if not node.is_grouped:
        facts = _finalized_by(facts, by if facts.finality.complete <= spanned(by) else {}, "OVER")
        facts = replace(
            facts,
            events={**facts.events, **_passed(node, facts)},
            raw=False,
            updates=True,
            lineage={},
            watermarks=frozenset(),
            unbounded=facts.unbounded or "of OVER",
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
            unbounded=facts.unbounded or "of this form of GROUP BY",
            finality=cut(facts.finality, by, "groups"),
        )
    deriving.note(node, facts, ALL_ROWS)
    return made, facts


def of_sort(deriving: Deriving, node: plan.Sort) -> Derived:
    """ORDER BY and LIMIT. The first rows are final if the order is that of event time."""
    made, facts = deriving.of(node.input, judged=False)
    made = replace(node, input=made)
    if not facts.reads_streams:
        return made, facts
    first = node.keys[0] if node.keys else None
    by = {facts.events[one]: one for one in node.partition if one in facts.events}
    if not facts.finality.complete <= spanned(by):
        by = {}
    event = None if first is None or first.descending else facts.events.get(first.column)
    if first is not None and event is not None and not event.is_optional:
        by |= {event: first.column} if facts.finality.complete <= spanned([event]) else {}
    facts = replace(
        _finalized_by(facts, by, "LIMIT"),
        raw=False,
        unbounded=facts.unbounded or ("of OVER" if node.partition else "of ORDER BY and LIMIT"),
        updates=True,
        lineage={},
        watermarks=frozenset(),
    )
    deriving.note(node, facts, ALL_ROWS)
    return made, facts


def _passed(node: plan.Pieces, facts: Facts) -> dict[str, EventColumn]:
    """The event time of the columns that a SELECT copies."""
    return {column: facts.events[source] for column, source in node.passes if source in facts.events}
