"""Groups, DISTINCT and keys that live for a while: which rows are late for them, and when they are final."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windrow.errors import AnalysisError
from windrow.plan import nodes as plan
from windrow.plan.columns import ROWS, Scope
from windrow.plan.event_time.deriving import Derived, Deriving
from windrow.plan.event_time.facts import (
    EventColumn,
    Facts,
    Plain,
    Settling,
)
from windrow.plan.event_time.finality import NEVER, cut, until
from windrow.plan.event_time.late import without, without_pairs
from windrow.plan.event_time.lifetimes import with_lives
from windrow.plan.event_time.notes import ALL_ROWS, kept_of_groups
from windrow.plan.event_time.of_windows import of_session
from windrow.plan.event_time.promised_columns import (
    are_told,
    closing_of,
    keeps_by_keys,
)
from windrow.plan.event_time.refusals import may_go, never_complete, unsupported
from windrow.plan.shown import chosen
from windrow.syntax.sqltext import SqlText

__all__ = ["of_distinct", "of_groups", "refuse_lifetime"]


def of_groups(deriving: Deriving, node: plan.Aggregate) -> Derived:
    """The groups of rows, without those that are late for them."""
    # late rows count for what a subquery becomes: no group of the query has been told without them
    made, facts = deriving.of(node.input, judged=not node.around)
    assert isinstance(made, plan.Project)
    grouping = replace(node, input=made)
    if not facts.varies:
        return grouping, Facts()
    has_event = any(source in facts.events for _, source in node.keys)
    if deriving.lifetime is not None and not has_event and not node.around:
        grouping, facts = _living(deriving, grouping, facts)
    keys = grouping.keys
    events = [facts.events.get(source) for _, source in keys]
    plains = [facts.plain.get(source, frozenset()) for _, source in keys]
    settling = cut(facts.settling, events, "groups")
    _refuse_endless(deriving, node, facts, settling, events, plains)
    sources = [source for _, source in keys]
    over = () if node.around else until(zip(sources, events, strict=True), facts)
    grouping = replace(grouping, input=_judged(deriving, grouping, facts), until=over)
    closing = closing_of(events[node.around :], plains, facts.places)
    holds = facts.holds
    if not closing:
        holds = holds or "of a group without a key of event time"
    elif not facts.places <= {each.origin for each in closing}:
        holds = holds or "of a join"
    ids = [column.id for column, _ in keys]
    known = Facts(
        {one: event for one, event in zip(ids, events, strict=True) if event is not None},
        keys=tuple(ids),
        grouped=True,
        raw=bool(node.around),
        updates=True,
        streams=facts.streams,
        places=facts.places,
        closes=(*facts.closes, closing) if closing else (),
        holds=holds,
        plain={one: own for one, own in zip(ids, plains, strict=True) if own},
        settling=settling,
    )
    named = [column.name for column, _ in keys]
    promised = [name for name, own in zip(named, plains, strict=True) if own]
    kept = kept_of_groups(list(zip(named, events, strict=True)), promised if keeps_by_keys(known) else ())
    deriving.said(node, known, kept)
    return grouping, known


def _refuse_endless(
    deriving: Deriving,
    node: plan.Aggregate,
    facts: Facts,
    settling: Settling,
    events: Sequence[EventColumn | None],
    plains: Sequence[Plain],
) -> None:
    """Refuse AFTER WATERMARK of groups that are never complete."""
    may_end = not deriving.waits or are_told(plains, facts.places)
    if not may_end and any(events) and NEVER in settling.whole and not deriving.lacks_end:
        raise may_go(deriving.place, facts.settling.why or "groups by event time of one of several streams")
    if not may_end and not any(events):
        raise never_complete(
            deriving.tokens,
            deriving.place,
            "a group without a key of event time is never complete",
            deriving.tokens.span(*node.at),
            may_live=bool(node.keys) and facts.raw,
        )
    deriving.lacks_end |= not any(events)


def _judged(deriving: Deriving, node: plan.Aggregate, facts: Facts) -> plan.Project:
    """What groups read, without the rows that are late for them.

    Groups of what has been grouped change only before that is complete.
    """
    inside = node.input
    outputs = {column.id: one for column, one in inside.outputs}
    telling = []
    for _, source in node.keys[node.around :]:
        event, one = facts.events.get(source), outputs[source]
        if event is not None:
            text = SqlText.of(f"{ROWS}.{one.column}") if one.column is not None else one.text
            telling.append((text, event))
    found = deriving.late(facts, telling)
    if found is None:
        return inside
    late, marks = found
    rows = without_pairs(inside.input, late, marks, deriving.shown)
    rows = without(deriving.shown.showing(rows, marks.values()), inside.scope, late)
    return replace(inside, input=rows)


def of_distinct(deriving: Deriving, node: plan.Distinct) -> Derived:
    """Different rows, without late copies."""
    made, facts = deriving.of(node.input, judged=not node.around)
    ids = [column.id for column in node.input.columns]
    own = [one for one in ids[node.around :] if one in facts.events]
    if facts.varies:
        telling = [(SqlText.of(f"{ROWS}.{one}"), facts.events[one]) for one in own]
        found = deriving.late(facts, telling)
        if found is not None:
            late, marks = found
            made = without(deriving.shown.showing(made, marks.values()), Scope(), late)
    made = replace(node, input=chosen(made, ids))
    if not facts.varies:
        return made, Facts()
    events = {one: facts.events[one] for one in ids if one in facts.events}
    plain = {one: facts.plain[one] for one in ids if one in facts.plain}
    closing = closing_of([facts.events[one] for one in own], plain.values(), facts.places)
    holds = facts.holds
    if not facts.places <= {each.origin for each in closing}:
        holds = holds or "of DISTINCT"
    known = Facts(
        events,
        whole=not node.around,
        counted=not node.around,
        raw=bool(node.around),
        updates=facts.updates,
        streams=facts.streams,
        places=facts.places,
        closes=(*facts.closes, closing) if closing else facts.closes,
        holds=holds,
        plain=plain,
        settling=facts.settling,
    )
    names = {column.id: column.name for column in node.columns}
    ending = [names[one] for one in own if events[one].greatest is not None]
    kept = f"rows until the watermark has passed {', '.join(ending)}" if ending and not holds else ALL_ROWS
    deriving.said(node, known, kept)
    return made, known


def _living(deriving: Deriving, node: plan.Aggregate, facts: Facts) -> tuple[plan.Aggregate, Facts]:
    """Groups that nothing else ends, of which the keys have a lifetime."""
    assert deriving.lifetime is not None
    if not node.keys or not facts.raw:
        return node, facts
    if len(facts.places) != 1:
        hint = "join in a query that shows the rowtime of one stream"
        raise unsupported(
            deriving.tokens, "STATE LIFETIME of a group over a join", deriving.tokens.span(*node.at), hint
        )
    (place,) = facts.places
    time = next((one for one, event in facts.events.items() if event.mapped == "{t}"), None)
    if time is None:
        hint = "select the rowtime of the one stream in it in the query in FROM"
        what = "STATE LIFETIME of a group over rows that do not show their rowtime"
        raise unsupported(deriving.tokens, what, deriving.tokens.span(*node.at), hint)
    deriving.has_lives = True
    length = deriving.lifetime[0](deriving.occurrences[place].stream)
    living = with_lives(node, time, length, deriving.fresh, deriving.shown)
    session = living.input.input
    made, known = _session_of_lives(deriving, session, facts)
    return replace(living, input=replace(living.input, input=made)), known


def _session_of_lives(deriving: Deriving, session: plan.Node, facts: Facts) -> Derived:
    assert isinstance(session, plan.Session)
    deriving.given(session.input, facts)
    made, known = of_session(deriving, session, judged=True)
    return made, replace(known, plain=facts.plain)


def refuse_lifetime(deriving: Deriving) -> None:
    """Refuse a lifetime where no key can have one."""
    if deriving.lifetime is None or deriving.has_lives:
        return
    text, span = deriving.lifetime[1]
    raise AnalysisError(
        "STATE LIFETIME is of the keys of groups without event time, and no rows are grouped so",
        condition="LIFETIME_WITHOUT_KEY",
        sql=text,
        span=span,
        hint="groups by event time end with the watermark: leave it out; or GROUP BY a key, as an id",
    )
