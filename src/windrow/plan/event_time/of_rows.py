"""Streams, SELECT and WHERE: which columns have event time."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pyspark.sql.types import IntegerType, LongType

from windrow.plan import nodes as plan
from windrow.plan.columns import Column
from windrow.plan.event_time.deriving import Derived, Deriving, number_id, watermark_id
from windrow.plan.event_time.expression_times import coalesced, event_of
from windrow.plan.event_time.facts import (
    EventColumn,
    Facts,
    Finality,
    Occurrence,
    number_at,
    watermark_at,
)
from windrow.plan.event_time.interval_joins import as_of
from windrow.plan.event_time.join_times import with_peers
from windrow.plan.event_time.notes import ALL_ROWS
from windrow.plan.event_time.refusals import unsupported

__all__ = ["of_filter", "of_input", "of_project"]

T = TypeVar("T")


def of_input(deriving: Deriving, node: plan.Input) -> Facts:
    """The rows of a stream, or of a user's table function over streams."""
    source = deriving.sources.get(node.key)
    if source is None:
        return Facts()
    if source.rowtime is None:
        if deriving.waits:
            what = f"AFTER WATERMARK of {node.label}"
            raise unsupported(deriving.tokens, what, deriving.tokens.span(*node.at))
        deriving.called_own = True
        for stream in sorted(source.streams):
            place = len(deriving.occurrences)
            deriving.occurrences[place] = Occurrence(f"{node.key}_{stream}", stream, place)
        facts = Facts(raw=False, streams=source.streams, updates=True, unbounded="of a function of one's own")
        deriving.note(node, facts, ALL_ROWS)
        return facts
    place = len(deriving.occurrences)
    (stream,) = source.streams
    deriving.occurrences[place] = Occurrence(node.key, stream, place)
    ids = {column.name.lower(): column for column in node.columns}
    time = ids.get(source.rowtime.lower())
    kind = LongType() if time is None or isinstance(time.type, IntegerType) else time.type
    deriving.hidden[node.key] = [
        Column(number_id(place), number_at(place), LongType()),
        Column(watermark_id(place), watermark_at(place), kind),
    ]
    event = EventColumn("{t}", place, greatest="{t}", zoned=source.zoned)
    facts = Facts(
        {} if time is None else {time.id: event},
        () if time is None else (time.id,),
        streams=source.streams,
        places=frozenset([place]),
        watermarks=frozenset([place]),
        lineage={
            column.id: frozenset([(place, column.name)]) for column in node.columns if source.has_punctuations
        },
        finality=Finality(frozenset([place])),
    )
    deriving.note(node, facts)
    return facts


def of_project(deriving: Deriving, node: plan.Project, judged: bool) -> Derived:
    """SELECT: columns that are copied, or computed from each row."""
    made, facts = deriving.of(node.input, judged=judged)
    events, lineage, versions = dict(facts.events), dict(facts.lineage), dict(facts.versions)
    finalizing = facts.finalizing
    for column, one in node.outputs:
        if one.column is None:
            event = None if node.is_whole else event_of(one, node.scope, facts.events.get)
            if event is None and not node.is_whole and isinstance(node.input, plan.Join):
                event = _merged(node.input, coalesced(one, node.scope), facts)
                finalizing += () if event is None else (column.id,)
            events |= {} if event is None else {column.id: event}
            continue
        _pass(events, one.column, column.id)
        _pass(lineage, one.column, column.id)
        _pass(versions, one.column, column.id)
    made = replace(node, input=made)
    facts = replace(facts, events=events, lineage=lineage, versions=versions, finalizing=finalizing)
    if any(one.column is None for _, one in node.outputs):
        deriving.note(node, facts)
    return made, facts


def _merged(join: plan.Join, columns: tuple[str, str] | None, facts: Facts) -> EventColumn | None:
    """The event time of the key of a FULL JOIN: of the columns of both sides, the one that is there.

    Rows of streams that are late for it are sought at the join. Groups have none: there it is a column of
    event time like others.
    """
    if join.kind != "full" or columns is None or not {columns, columns[::-1]} & {*join.keys}:
        return None
    mine, theirs = (facts.events.get(column) for column in columns)
    if mine is None or theirs is None or mine.merges or theirs.merges:
        return None
    if theirs.origin not in mine.origins or mine.origin not in theirs.origins:
        return None
    known = with_peers(mine, [theirs])
    return replace(known, is_optional=False, merges=columns if facts.raw else None)


def _pass(known: dict[str, T], source: str, made: str) -> None:
    """Copy the facts of a column to its copy."""
    if source in known:
        known[made] = known[source]


def of_filter(deriving: Deriving, node: plan.Filter, judged: bool) -> Derived:
    """WHERE and HAVING, which look at each row alone, and QUALIFY, which does not."""
    is_by_row = node.clause != "QUALIFY"
    made, facts = deriving.of(node.input, judged=judged and is_by_row)
    facts = as_of(facts, node.conditions, node.scope)
    return replace(node, input=made), replace(facts, raw=facts.raw and is_by_row)
