"""Groups, DISTINCT and keys with a state TTL: which rows are late for them, and when they are final."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from windrow.errors import AnalysisError
from windrow.plan import nodes as plan
from windrow.plan.columns import ROWS, Column, Expression, Scope
from windrow.plan.event_time.closed_columns import (
    closes_by_keys,
    closing_of,
    cover,
)
from windrow.plan.event_time.deriving import Derived, Deriving
from windrow.plan.event_time.facts import (
    EventColumn,
    Facts,
    Finality,
    Lineage,
)
from windrow.plan.event_time.finality import NEVER, cut, until
from windrow.plan.event_time.late import late_for_groups, without, without_merged_pairs, without_pairs
from windrow.plan.event_time.notes import ALL_ROWS, retained_by_groups, state_of_groups
from windrow.plan.event_time.of_windows import of_session
from windrow.plan.event_time.refusals import may_go, never_complete, unsupported
from windrow.plan.event_time.state_ttl import with_ttl
from windrow.plan.visible import chosen
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText

__all__ = ["of_distinct", "of_groups", "refuse_ttl"]


def of_groups(deriving: Deriving, node: plan.Aggregate) -> Derived:
    """GROUP BY, without the rows that are late for their groups."""
    # a group that replaces a subquery includes late rows: no group of the query was emitted without them
    made, facts = deriving.of(node.input, judged=not node.around)
    assert isinstance(made, plan.Project)
    grouping = replace(node, input=made)
    if not facts.reads_streams:
        return grouping, Facts()
    has_event = any(source in facts.events for _, source in node.keys)
    if deriving.ttl is not None and not has_event and not node.around:
        grouping, facts = _with_ttl(deriving, grouping, facts)
    keys = grouping.keys
    events = [facts.events.get(source) for _, source in keys]
    lineages = [facts.lineage.get(source, frozenset()) for _, source in keys]
    finality = cut(facts.finality, events, "groups")
    _refuse_endless(deriving, node, facts, finality, events, lineages)
    sources = [source for _, source in keys]
    over = () if node.around else until(zip(sources, events, strict=True), facts)
    grouping = replace(grouping, input=_judged(deriving, grouping, facts), until=over)
    closing = closing_of(events[node.around :], lineages, facts.places)
    unbounded = facts.unbounded
    if not closing:
        unbounded = unbounded or "of a group without a key of event time"
    elif not facts.places <= {each.origin for each in closing}:
        unbounded = unbounded or "of a join"
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
        unbounded=unbounded,
        lineage={one: own for one, own in zip(ids, lineages, strict=True) if own},
        finality=finality,
    )
    named = [column.name for column, _ in keys]
    punctuated = [name for name, own in zip(named, lineages, strict=True) if own]
    by_keys = punctuated if closes_by_keys(known) else ()
    retained = retained_by_groups(node, updates=facts.updates)
    deriving.note(node, known, state_of_groups(list(zip(named, events, strict=True)), by_keys, retained))
    return grouping, known


def _refuse_endless(
    deriving: Deriving,
    node: plan.Aggregate,
    facts: Facts,
    finality: Finality,
    events: Sequence[EventColumn | None],
    lineages: Sequence[Lineage],
) -> None:
    """Refuse AFTER WATERMARK for groups that are never complete."""
    may_end = not deriving.waits or cover(lineages, facts.places)
    if not may_end and any(events) and NEVER in finality.complete and not deriving.lacks_end:
        raise may_go(deriving.place, facts.finality.why or "groups by event time of one of several streams")
    if not may_end and not any(events):
        raise never_complete(
            deriving.tokens,
            deriving.place,
            "a group without an event-time key is never final",
            deriving.tokens.span(*node.at),
            allows_ttl=bool(node.keys) and facts.raw,
        )
    deriving.lacks_end |= not any(events)


def _judged(deriving: Deriving, node: plan.Aggregate, facts: Facts) -> plan.Project:
    """The input of groups, without the rows that are late for them.

    Groups over other groups need no such condition: their input changes only until it is complete.
    """
    inside = node.input
    outputs = {column.id: one for column, one in inside.outputs}
    timed_keys = []
    for _, source in node.keys[node.around :]:
        event, one = facts.events.get(source), outputs[source]
        if event is not None:
            text = SqlText.of(f"{ROWS}.{one.column}") if one.column is not None else one.text
            timed_keys.append((text, event))
    found = deriving.late(facts, timed_keys)
    if found is None:
        return inside
    late, marks = found
    merged = [event.merges for _, event in timed_keys if event.merges is not None]
    if merged:
        rows = _without_merged_pairs(deriving, inside.input, timed_keys, marks, node.at)
    else:
        rows = without_pairs(inside.input, late, marks, deriving.visible)
    rows = without(deriving.visible.showing(rows, marks.values()), inside.scope, late)
    return replace(inside, input=rows)


def _without_merged_pairs(
    deriving: Deriving,
    rows: plan.Node,
    timed_keys: Sequence[tuple[SqlText, EventColumn]],
    marks: Mapping[int, str],
    at: Range | None,
) -> plan.Node:
    """As :func:`without_pairs`, for keys of a FULL JOIN whose columns are merged above it."""
    pairs = [(SqlText.of(f"{ROWS}.{event.merges[0]}"), event) for _, event in timed_keys if event.merges]
    made = without_merged_pairs(rows, [event.merges for _, event in timed_keys],
                                late_for_groups(pairs, marks), marks, deriving.visible)  # fmt: skip
    if made is None:
        what = "groups by the merged key of a FULL JOIN and other event time, or with others between them"
        span = None if at is None else deriving.tokens.span(*at)
        raise unsupported(deriving.tokens, what, span, "group by the key alone")
    return made


def of_distinct(deriving: Deriving, node: plan.Distinct) -> Derived:
    """DISTINCT, without late rows."""
    made, facts = deriving.of(node.input, judged=not node.around)
    ids = [column.id for column in node.input.columns]
    own = [one for one in ids[node.around :] if one in facts.events]
    if deriving.ttl is not None and facts.reads_streams and not own and not node.around:
        return deriving.of(_as_groups(deriving, node), judged=False)
    if facts.reads_streams:
        timed_keys = [(SqlText.of(f"{ROWS}.{one}"), facts.events[one]) for one in own]
        found = deriving.late(facts, timed_keys)
        if found is not None:
            late, marks = found
            if any(event.merges for _, event in timed_keys):
                made = _without_merged_pairs(deriving, made, timed_keys, marks, None)
            made = without(deriving.visible.showing(made, marks.values()), Scope(), late)
    made = replace(node, input=chosen(made, ids))
    if not facts.reads_streams:
        return made, Facts()
    events = {one: facts.events[one] for one in ids if one in facts.events}
    lineage = {one: facts.lineage[one] for one in ids if one in facts.lineage}
    closing = closing_of([facts.events[one] for one in own], lineage.values(), facts.places)
    unbounded = facts.unbounded
    if not facts.places <= {each.origin for each in closing}:
        unbounded = unbounded or "of DISTINCT"
    known = Facts(
        events,
        whole=not node.around,
        counted=not node.around,
        raw=bool(node.around),
        updates=facts.updates,
        streams=facts.streams,
        places=facts.places,
        closes=(*facts.closes, closing) if closing else facts.closes,
        unbounded=unbounded,
        lineage=lineage,
        finality=facts.finality,
    )
    names = {column.id: column.name for column in node.columns}
    timed = ", ".join(names[one] for one in own if events[one].greatest is not None)
    state = f"rows until the watermark has passed {timed}" if timed and not unbounded else ALL_ROWS
    deriving.note(node, known, state)
    return made, known


def _as_groups(deriving: Deriving, node: plan.Distinct) -> plan.Project:
    """DISTINCT as groups by all columns.

    ::

        DISTINCT k   →   columns
        └─ s             └─ GROUP BY k
                            └─ s
    """
    rows = chosen(node.input, [column.id for column in node.columns])
    passed = tuple(_passed(column, column.id) for column in rows.columns)
    listed = SqlText.join(", ", [one.text for _, one in passed])
    inside = plan.Project(rows, Scope(), passed, listed, "columns")
    made = deriving.fresh(len(node.columns))
    keys = tuple(
        (Column(own, column.name, column.type), column.id)
        for own, column in zip(made, node.columns, strict=True)
    )
    whole = (0, len(deriving.tokens))
    groups = plan.Aggregate(
        inside, keys, (), f"GROUP BY {', '.join(one.name for one in node.columns)}", whole
    )
    outputs = tuple(_passed(column, own) for column, own in zip(node.columns, made, strict=True))
    listed = SqlText.join(", ", [one.text for _, one in outputs])
    return plan.Project(groups, Scope(), outputs, listed, "columns")


def _passed(column: Column, source: str) -> tuple[Column, Expression]:
    return column, Expression(SqlText.of(f"{ROWS}.{source}"), column.type, source)


def _with_ttl(deriving: Deriving, node: plan.Aggregate, facts: Facts) -> tuple[plan.Aggregate, Facts]:
    """Groups without event time, with the state TTL of their keys."""
    assert deriving.ttl is not None
    if not node.keys or not facts.raw:
        return node, facts
    if len(facts.places) != 1:
        hint = "group by a window of time too, as of TUMBLE; or leave STATE LIFETIME out"
        raise unsupported(
            deriving.tokens, "STATE LIFETIME of groups over a join", deriving.tokens.span(*node.at), hint
        )
    (place,) = facts.places
    time = next((one for one, event in facts.events.items() if event.mapped == "{t}"), None)
    if time is None:
        hint = "select the rowtime of the stream in the subquery in FROM"
        what = "STATE LIFETIME of groups over rows without a rowtime"
        raise unsupported(deriving.tokens, what, deriving.tokens.span(*node.at), hint)
    deriving.has_ttl = True
    length = deriving.ttl[0](deriving.occurrences[place].stream)
    living = with_ttl(node, time, length, deriving.fresh, deriving.visible)
    session = living.input.input
    made, known = _ttl_session(deriving, session, facts)
    return replace(living, input=replace(living.input, input=made)), known


def _ttl_session(deriving: Deriving, session: plan.Node, facts: Facts) -> Derived:
    assert isinstance(session, plan.SessionWindows)
    deriving.add(session.input, facts)
    made, known = of_session(deriving, session, judged=True)
    return made, replace(known, lineage=facts.lineage)


def refuse_ttl(deriving: Deriving) -> None:
    """Refuse STATE LIFETIME in a query without a key that can have one."""
    if deriving.ttl is None or deriving.has_ttl:
        return
    text, span = deriving.ttl[1]
    raise AnalysisError(
        "STATE LIFETIME applies only to GROUP BY with a key and without event time, which the query lacks",
        condition="LIFETIME_WITHOUT_KEY",
        sql=text,
        span=span,
        hint="leave it out, as the watermark drops groups by event time; or GROUP BY a key, such as an id",
    )
