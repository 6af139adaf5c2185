"""Time windows and sessions: the event time of their columns, and which rows are late for sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windrow.algebra.rewriting.time_windows_as_sql import TimeWindow
from windrow.plan import nodes as plan
from windrow.plan.columns import Scope
from windrow.plan.event_time.deriving import Derived, Deriving
from windrow.plan.event_time.facts import (
    ClosedKeys,
    EventColumn,
    Facts,
    Judging,
)
from windrow.plan.event_time.finality import cut, finalized_only_by
from windrow.plan.event_time.late import late_for_sessions, without
from windrow.plan.event_time.notes import ALL_ROWS
from windrow.plan.event_time.window_times import greatest, least_open, mapped, window_of
from windrow.plan.visible import chosen, over_rows

__all__ = ["of_session", "of_windows"]


def of_windows(deriving: Deriving, node: plan.TimeWindows, judged: bool) -> Derived:
    """Rows with their time windows."""
    is_session = node.kind == "SESSION"
    rows, facts = deriving.of(node.rows, judged=judged and not is_session)
    if not facts.places:
        return over_rows(node, rows), facts
    count = len(node.rows.columns)
    window = window_of(node, next(one for one in node.rows.columns if one.id == node.time))
    own = {one.id: made.id for one, made in zip(node.rows.columns, node.columns, strict=False)}
    bounds = {column.name: column.id for column in node.columns[count:]}
    event = _alone(facts.events.get(node.time))
    added = _bounds(window, event, bounds)
    if is_session and event is not None and judged:
        rows = _judged_sessions(deriving, rows, facts, window, node.time, event)
    made = over_rows(node, rows)
    if is_session:
        keys = {*node.keys, *(own[key] for key in node.keys)}
        is_plain = isinstance(node.rows, plan.Input)
        facts = _under(facts, own)
        facts = _in_sessions(deriving, made, facts, window, event, added, bounds, keys, is_plain, judged)
    else:
        facts = _under(facts, own)
        facts = replace(facts, events={**facts.events, **added})
    deriving.note(node, facts, _state_of_sessions(facts) if is_session else None)
    return made, facts


def of_session(deriving: Deriving, node: plan.SessionWindows, judged: bool) -> Derived:
    """Sessions with a longest duration, also those of STATE LIFETIME."""
    rows, facts = deriving.of(node.input, judged=False)
    made: plan.Node = replace(node, input=rows)
    if not facts.places:
        return made, facts
    below = node.input
    assert isinstance(below, plan.Project)
    ticks = next(one for column, one in below.outputs if column.id == node.time)
    time = next((one.column for column, one in below.outputs if column.id == ticks.rises_with), None)
    time = time or ticks.rises_with or ""
    kinds = {column.id: column for one in plan.walk(below) for column in one.columns}
    window = window_of(node, kinds[time])
    event = _alone(facts.events.get(time))
    bounds = {column.name: column.id for column in node.bounds}
    added = _bounds(window, event, bounds)
    if event is not None and judged:
        rows = _judged_sessions(deriving, deriving.visible.showing(rows, [time]), facts, window, time, event)
        made = replace(node, input=chosen(rows, [column.id for column in node.input.columns]))
    facts = _in_sessions(
        deriving, made, facts, window, event, added, bounds, {*node.keys}, is_plain=False, judged=judged
    )
    deriving.note(node, facts, _state_of_sessions(facts))
    return made, facts


def _judged_sessions(
    deriving: Deriving, rows: plan.Node, facts: Facts, window: TimeWindow, time: str, event: EventColumn
) -> plan.Node:
    """Rows except those whose session alone would be complete."""
    origins = sorted(event.origins & facts.watermarks)
    if not origins:
        return rows
    ids = [column.id for column in rows.columns]
    marks = deriving.marks(facts, origins)
    late, of_row, least = late_for_sessions(window, time, event, marks)
    deriving.judgings.extend(Judging(of_row, least, at) for at in origins)
    return chosen(without(deriving.visible.showing(rows, marks.values()), Scope(), late), ids)


def _in_sessions(
    deriving: Deriving,
    made: plan.Node,
    facts: Facts,
    window: TimeWindow,
    event: EventColumn | None,
    added: dict[str, EventColumn],
    bounds: Mapping[str, str],
    keys: set[str],
    is_plain: bool,
    judged: bool,
) -> Facts:
    """The facts of rows in sessions. A session that grows takes over its rows: only its end is final."""
    unbounded, closes = facts.unbounded, facts.closes
    end = bounds[window.names[1]]
    if event is not None and end in added and judged and facts.raw and len(facts.watermarks) == 1:
        least, number = least_open(window, event.mapped), len(deriving.sessions)
        added[end] = replace(added[end], greatest="{t}", sessions=number, least_open=least)
        closes = (*closes, (ClosedKeys("{t}", least, event.origin, number),))
        deriving.sessions.append((made, event.origin, end, event.mapped, window if is_plain else None))
    else:
        unbounded = unbounded or "of sessions, which may grow"
    finalizing = (*facts.finalizing, end) if facts.finalizing and not facts.grouped else facts.finalizing
    finality = cut(facts.finality, added.values(), "sessions")
    facts = finalized_only_by(facts, ())
    return replace(
        facts,
        events={**facts.events, **added},
        finalizing=finalizing,
        lineage={one: own for one, own in facts.lineage.items() if one in keys},
        updates=True,
        unbounded=unbounded,
        closes=closes,
        finality=finality,
    )


def _state_of_sessions(facts: Facts) -> str:
    bounded = "rows until the watermark has passed the end of their session by the gap"
    return bounded if facts.closes and facts.unbounded is None else ALL_ROWS


def _under(facts: Facts, own: Mapping[str, str]) -> Facts:
    """The facts, also under the ids that the columns have above."""
    return replace(
        facts,
        events={**facts.events, **{own[one]: each for one, each in facts.events.items() if one in own}},
        lineage={**facts.lineage, **{own[one]: each for one, each in facts.lineage.items() if one in own}},
    )


def _bounds(window: TimeWindow, event: EventColumn | None, ids: Mapping[str, str]) -> dict[str, EventColumn]:
    """The event time of the begin and end of windows."""
    if event is None:
        return {}
    last = {} if event.greatest is None else greatest(window, event.greatest)
    later = {} if event.least_open is None else mapped(window, event.least_open)
    equal = [(at, {} if of is None else greatest(window, of)) for at, of in event.peers]
    return {
        ids[name]: replace(
            event,
            mapped=least,
            decides_late=window.kind != "SESSION",
            greatest=last.get(name),
            least_open=later.get(name),
            peers=tuple((at, of.get(name)) for at, of in equal),
            made=ids[name],
        )
        for name, least in mapped(window, event.mapped).items()
    }


def _alone(event: EventColumn | None) -> EventColumn | None:
    """A column of event time that is one of a stream, not of both sides of a FULL JOIN."""
    return event if event is None or event.merges is None else None
