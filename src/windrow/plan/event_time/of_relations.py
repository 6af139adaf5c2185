"""Joins, subqueries and set operators: the facts of rows derived from several relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windrow.plan import nodes as plan
from windrow.plan.columns import ROWS, Column, Expression, Scope
from windrow.plan.event_time.closed_columns import (
    joined,
    met,
)
from windrow.plan.event_time.deriving import Derived, Deriving
from windrow.plan.event_time.facts import (
    Closed,
    ClosedBy,
    ClosedKeys,
    EventColumn,
    Facts,
    Judging,
)
from windrow.plan.event_time.finality import LACKING, combined, lacking_in
from windrow.plan.event_time.interval_joins import JoinReach, as_of, bounded, reaches_of
from windrow.plan.event_time.join_times import Keys, in_both, linked, optional
from windrow.plan.event_time.late import not_late, without
from windrow.plan.event_time.notes import ALL_ROWS, state_of_joins
from windrow.plan.event_time.refusals import never_complete, unsupported
from windrow.plan.visible import chosen, with_columns
from windrow.syntax.sqltext import SqlText

__all__ = ["of_join", "of_set_operation", "of_subquery", "of_whole"]

_APPENDING = {"inner", "semi"}  # append-only if their sides are
_OF_THE_FIRST = {"inner", "left", "semi", "anti"}  # each row of the first side is joined by itself


def of_join(deriving: Deriving, node: plan.Join, judged: bool) -> Derived:
    """The rows of a join."""
    kind, keys = node.kind, node.keys
    is_grouped, judged = judged, judged and kind == "inner"
    (left, mine), (right, theirs) = (deriving.of(side, judged=judged) for side in (node.left, node.right))
    mine, theirs = _unmerged(mine), _unmerged(theirs)
    made = replace(node, left=left, right=right)
    if not (mine.reads_streams or theirs.reads_streams):
        return made, Facts()
    # under groups it is these that rows are late for
    reaches = reaches_of(node, mine, theirs) if deriving.waits and not is_grouped else ()
    mine, theirs = joined(kind, keys, *linked(kind, keys, mine, theirs))
    is_by_row = (
        kind in _OF_THE_FIRST if not theirs.reads_streams else kind == "inner" and not mine.reads_streams
    )
    meeting: tuple[tuple[ClosedBy, ...], ...] = ()
    if not (is_by_row or reaches):
        meeting = met(kind, mine, theirs, judges=judged, waits=deriving.waits)
        deriving.met_by_keys |= any(isinstance(each, Closed) for grouping in meeting for each in grouping)
    intervals = [] if kind in _APPENDING else [*bounded(kind, node.conditions, node.scope, mine, theirs)]
    facts = _both(mine, theirs, kind, beside=node.is_of_subquery)
    facts = replace(
        as_of(facts, node.conditions, node.scope),
        updates=facts.updates or (not is_by_row and kind not in _APPENDING),
        closes=(*facts.closes, *meeting),
        unbounded=facts.unbounded or (None if is_by_row or meeting else "of a join"),
        finality=combined(mine.finality, theirs.finality, lacking=LACKING.get(kind), of=lacking_in(kind)),
    )
    if reaches:
        made, meeting = _reaching(deriving, made, facts, reaches)
        facts = replace(facts, closes=(*facts.closes, *meeting), unbounded=mine.unbounded or theirs.unbounded)
    extended, facts = _within(deriving, made, facts, node.scope, intervals)
    is_wide = any(one.last != "{t}" or one.first != "{t}" for one in reaches)
    passed = "interval" if is_wide else "equal columns"
    deriving.note(node, facts, None if is_by_row else state_of_joins(meeting, passed))
    return extended, facts


def _unmerged(facts: Facts) -> Facts:
    """The facts without the keys that a FULL JOIN below merges: a further join may lack its rows."""
    events = {column: event for column, event in facts.events.items() if event.merges is None}
    return replace(facts, events=events, finalizing=tuple(one for one in facts.finalizing if one in events))


def _reaching(
    deriving: Deriving, made: plan.Join, facts: Facts, reaches: Sequence[JoinReach]
) -> tuple[plan.Join, tuple[tuple[ClosedBy, ...], ...]]:
    """A join without its late rows and pairs, and the conditions that close its rows.

    A row is late if it and all its possible partners were final when it arrived. A pair is late if the
    partner arrived after the row was final.
    """
    events = {
        column: one
        for each in reaches
        for column, one in zip((each.own, each.other), each.events, strict=True)
    }
    marks = deriving.marks(facts, [event.origin for event in events.values()])
    late: dict[str, list[SqlText]] = {}
    pairs, closed = list[Expression](), list[tuple[ClosedBy, ...]]()

    def below(text: str, column: str, by: EventColumn) -> SqlText:
        least = by.mapped.replace("{t}", f"{ROWS}.{marks[by.origin]}")
        return SqlText.of(f"{text.replace('{t}', f'{ROWS}.{column}')} < {least}")

    for reach in reaches:
        own, other = reach.events
        late.setdefault(reach.own, []).append(below(reach.last, reach.own, own))
        late.setdefault(reach.other, []).append(below(reach.needed, reach.other, other))
        pairs.append(not_late(below(reach.last, reach.own, other)))
        deriving.judgings += [
            Judging(reach.last.replace("{t}", own.mapped), own.mapped, own.origin),
            Judging(other.mapped, other.mapped, other.origin),
        ]
        closed.append((_closed(reach.last, own), _closed(reach.needed, other)))
    sides = []
    for side in (made.left, made.right):
        column = next(one for one in late if deriving.visible.has(side, one))
        visible = deriving.visible.showing(side, [marks[events[column].origin]])
        sides.append(without(visible, Scope(), SqlText.join(" AND ", late[column])))
    return replace(made, left=sides[0], right=sides[1], conditions=(*made.conditions, *pairs)), tuple(closed)


def _closed(until: str, event: EventColumn) -> ClosedKeys:
    return ClosedKeys(until.replace("{t}", event.greatest or ""), event.mapped, event.origin)


def _both(mine: Facts, theirs: Facts, kind: str, *, beside: bool) -> Facts:
    """The facts of rows of two relations, without those that depend on the join's conditions.

    A side whose columns are not in the result, or which is `beside` the rows in an expression, has no keys.
    """
    unbounded = mine.unbounded or theirs.unbounded
    places, updates = mine.places | theirs.places, mine.updates or theirs.updates
    closes = (*mine.closes, *theirs.closes)
    if kind in ("left", "full"):
        theirs = optional(theirs)
    if kind in ("right", "full"):
        mine = optional(mine)
    hides = kind in ("semi", "anti")
    is_alone = hides or beside
    events = dict(mine.events) if hides else {**mine.events, **theirs.events}
    finalizing = mine.finalizing if is_alone else (*mine.finalizing, *theirs.finalizing)
    finalizing = (*finalizing, *(one for one, event in events.items() if event.peers))
    keys = mine.keys if is_alone else (*mine.keys, *theirs.keys)
    is_grouped = mine.grouped or (theirs.grouped and not is_alone)
    known = {events[key] for key in keys if key in events}
    for one, event in events.items() if is_grouped else ():
        if event.peers and event.finalizes and event not in known:
            known.add(event)
            keys = (*keys, one)
    return Facts(
        events,
        tuple(dict.fromkeys(finalizing)),
        keys,
        is_grouped,
        mine.whole or (theirs.whole and not is_alone),
        mine.counted or (theirs.counted and not is_alone),
        all(facts.raw for facts in (mine, theirs) if facts.places),
        updates,
        mine.streams if hides else mine.streams | theirs.streams,
        places,
        mine.watermarks if hides else mine.watermarks | theirs.watermarks,
        closes,
        unbounded,
        {**mine.lineage, **theirs.lineage},
        versions={**mine.versions, **theirs.versions},
    )


def _within(
    deriving: Deriving,
    made: plan.Node,
    facts: Facts,
    scope: Scope,
    intervals: Sequence[tuple[EventColumn, SqlText]],
) -> Derived:
    """Rows with added columns that say until when the other side may have partners for them."""
    if not intervals or not deriving.waits:
        return made, facts
    ids = {column.id for column in made.columns}
    seen = Scope(tuple(part for part in scope.parts if ids >= set(part.columns)), scope.prefix)
    further, events = [], dict(facts.events)
    for (event, text), own in zip(intervals, deriving.fresh(len(intervals)), strict=True):
        kind = deriving.typed(text, seen, made.columns)
        further.append((Column(own, own, kind), Expression(text, kind)))
        events[own] = event
    finalizing = (*facts.finalizing, *(column.id for column, _ in further))
    keys = (*facts.keys, *(column.id for column, _ in further)) if facts.grouped else facts.keys
    extended = with_columns(made, seen, further, "until when partners may come")
    return extended, replace(facts, events=events, finalizing=finalizing, keys=keys)


def of_subquery(deriving: Deriving, node: plan.Mark | plan.Value, judged: bool) -> Derived:
    """Rows with an expression over a subquery."""
    (left, mine), (right, theirs) = (
        deriving.of(node.left, judged=judged),
        deriving.of(node.right, judged=False),
    )
    made: plan.Node = replace(node, left=left, right=right)
    if not theirs.reads_streams:
        return made, mine
    keys: Keys = ()
    if isinstance(node, plan.Mark):  # a key for which NULL counts as equal must never be NULL
        known = {**mine.events, **theirs.events}
        may_lack = {one for one, event in known.items() if event.is_optional}
        keys = [key for key in node.keys if key not in node.unknown or not may_lack & {*key}]
    mine, theirs = linked("anti", keys, mine, theirs)
    intervals = []
    if isinstance(node, plan.Mark):
        intervals = [*bounded("anti", node.conditions, node.scope, mine, theirs)]
    facts = _both(mine, theirs, "inner" if isinstance(node, plan.Value) else "anti", beside=True)
    facts = replace(
        facts,
        updates=True,
        unbounded=facts.unbounded or "of a subquery",
        lineage={},
        streams=mine.streams,
        watermarks=mine.watermarks,
        finality=combined(mine.finality, theirs.finality, lacking="a subquery"),
    )
    if isinstance(node, plan.Mark):
        made, facts = _within(deriving, made, facts, node.scope, intervals)
    deriving.note(node, facts, ALL_ROWS)
    return made, facts


def of_set_operation(deriving: Deriving, node: plan.SetOperation) -> Derived:
    """The rows of UNION, INTERSECT and EXCEPT."""
    sides = [deriving.of(side, judged=False) for side in (node.left, node.right)]
    ids = [[column.id for column in side.columns] for side in (node.left, node.right)]
    left, right = (chosen(made, own) for (made, _), own in zip(sides, ids, strict=True))
    made = replace(node, left=left, right=right)
    (_, mine), (_, theirs) = sides
    if not (mine.reads_streams or theirs.reads_streams):
        return made, Facts()
    events: dict[str, EventColumn] = {}
    for column, one, other in zip(node.columns, *ids, strict=True):
        event = in_both(mine.events.get(one), theirs.events.get(other))
        events |= {} if event is None else {column.id: event}
    is_union = node.operator == "union" and node.all
    is_counted = not is_union or any(facts.grouped or facts.whole for facts in (mine, theirs))
    if deriving.waits and not events:
        message = "the two sides of a set operator have no event-time column in the same place"
        raise never_complete(deriving.tokens, deriving.place, message, None)
    if node.keys:
        lineage = {
            column.id: mine.lineage.get(one, frozenset()) & theirs.lineage.get(other, frozenset())
            for column, one, other in zip(node.columns, *ids, strict=True)
        }
        facts = Facts(
            events,
            keys=node.keys,
            grouped=True,
            raw=False,
            updates=True,
            streams=mine.streams | theirs.streams,
            places=mine.places | theirs.places,
            closes=(*mine.closes, *theirs.closes),
            unbounded=mine.unbounded or theirs.unbounded,
            lineage={one: own for one, own in lineage.items() if own},
            finality=combined(mine.finality, theirs.finality),
        )
        deriving.note(node, facts)
        return made, facts
    lacking = "EXCEPT" if node.operator == "except" else None
    facts = Facts(
        events,
        whole=is_counted or bool(events),
        counted=is_counted,
        raw=False,
        updates=mine.updates or theirs.updates or node.operator == "except",
        streams=mine.streams | theirs.streams,
        places=mine.places | theirs.places,
        unbounded="of a set operator",
        finality=combined(mine.finality, theirs.finality, lacking=lacking),
    )
    deriving.note(node, facts, None if is_union else ALL_ROWS)
    return made, facts


def of_whole(deriving: Deriving, node: plan.Pieces) -> Derived:
    """A text over several relations that only Spark can evaluate."""
    inputs = [deriving.of(one, judged=False) for one in node.inputs]
    made = [one for one, _ in inputs]
    input_ = None if node.input is None else made.pop(0)
    beside = tuple((key, one) for (key, _), one in zip(node.beside, made, strict=True))
    found = replace(node, input=input_, beside=beside)
    known = [facts for _, facts in inputs]
    if not any(facts.reads_streams for facts in known):
        return found, Facts()
    if deriving.waits:
        span = None if node.why.at is None else deriving.tokens.span(*node.why.at)
        raise unsupported(deriving.tokens, f"AFTER WATERMARK of {node.why}", span)
    facts = Facts(
        whole=True,
        counted=True,
        raw=False,
        updates=True,
        streams=frozenset().union(*(facts.streams for facts in known)),
        places=frozenset().union(*(facts.places for facts in known)),
        unbounded="of what only Spark understands",
    )
    deriving.note(node, facts, ALL_ROWS)
    return found, facts
