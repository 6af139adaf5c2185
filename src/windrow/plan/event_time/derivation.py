"""Event time, finality and lateness of a plan, node by node from the streams up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from windrow.algebra.rewriting.time_windows_as_sql import TimeWindow
from windrow.errors import Span
from windrow.plan import nodes as plan
from windrow.plan.event_time.closed_columns import (
    closed_by,
    cover,
    never_closed,
)
from windrow.plan.event_time.deriving import Derived, Deriving, EventTimeSource, Typed, number_id
from windrow.plan.event_time.facts import (
    HIDDEN,
    UNTIL,
    EventColumn,
    Facts,
    Lineage,
    SessionFacts,
    Timed,
)
from windrow.plan.event_time.finality import spanned, until
from windrow.plan.event_time.join_times import complete_by
from windrow.plan.event_time.of_groups import of_distinct, of_groups, refuse_ttl
from windrow.plan.event_time.of_orders import of_over, of_pieces, of_sort
from windrow.plan.event_time.of_relations import of_join, of_set_operation, of_subquery, of_whole
from windrow.plan.event_time.of_rows import of_filter, of_input, of_project
from windrow.plan.event_time.of_windows import of_session, of_windows
from windrow.plan.event_time.refusals import may_go, never_complete
from windrow.plan.format import tree
from windrow.plan.visible import chosen
from windrow.syntax.tokens import TokenList

__all__ = ["EventTimeSource", "EventTimes"]


class EventTimes:
    """Derives event time, finality and lateness of one plan.

    Parameters
    ----------
    tokens
        The text that places in the plan refer to.
    sources
        The inputs that are streams, by key; all others are constant.
    watermark
        The place of AFTER WATERMARK; None without that clause.
    place
        The user's text, and the place in it for errors about that clause.
    typed
        Computes the type of an expression over rows.
    ttl
        The state TTL of STATE LIFETIME, in ticks of a stream, and its place; None without that clause.
    """

    def __init__(
        self,
        tokens: TokenList,
        sources: Mapping[str, EventTimeSource],
        watermark: Span | None,
        place: tuple[str, Span | None],
        typed: Typed,
        ttl: tuple[Callable[[str], int], tuple[str, Span]] | None = None,
    ) -> None:
        self._deriving = Deriving(_derived, tokens, sources, watermark is not None, place, typed, ttl)

    def read(self, node: plan.Node) -> Timed:
        """Derive the facts of a query.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_QUERY``.
        AnalysisError
            ``GROUP_WITHOUT_EVENT_TIME`` and ``NEVER_COMPLETE`` for AFTER WATERMARK of a query whose rows are
            never complete, ``LIFETIME_WITHOUT_KEY``.
        """
        deriving = self._deriving
        for one in plan.walk(node):
            if isinstance(one, plan.Project):
                named = (own.column for column, own in one.outputs if column.name.startswith(UNTIL))
                deriving.until |= {own for own in named if own is not None}
        made, facts = deriving.of(node, judged=False)
        refuse_ttl(deriving)
        finalizing, lineage = _finalizing(node, facts), _lineage(node, facts)
        by_keys = cover(lineage.values(), facts.places)
        if deriving.waits:
            if not facts.finality.final <= spanned(finalizing.values()):
                finalizing = {}
            if facts.places and not finalizing and not by_keys:
                if facts.finality.why is not None and not deriving.lacks_end:
                    raise may_go(deriving.place, facts.finality.why)
                message = "no event-time column and no GROUP BY key determines when a row is final"
                raise never_complete(deriving.tokens, deriving.place, message, None)
        else:
            finalizing = {}
        closed = closed_by(lineage.values(), facts.places) if deriving.waits else ()
        sessions = tuple(self._session_facts(*each) for each in deriving.sessions)
        occurrences = tuple(deriving.occurrences[place] for place in sorted(deriving.occurrences))
        unbounded, closes = facts.unbounded or never_closed(occurrences, facts), facts.closes
        if deriving.met_by_keys and deriving.waits:  # buffered rows are needed until they are emitted
            closes, unbounded = (*closes, closed), unbounded or (None if closed else "of a join")
        has_keys = facts.grouped and not facts.whole
        keys = facts.keys if has_keys else ()
        visible, names = self._with_hidden(node, made, [*keys, *finalizing, *(lineage if by_keys else ())])
        awaited = {each.stream for each in occurrences if each.place in facts.finality.final}
        return Timed(
            visible,
            occurrences,
            tuple(names[key] for key in keys) if has_keys else None,
            facts.grouped or facts.counted,
            complete_by([(names[one], event) for one, event in finalizing.items()]),
            facts.streams | awaited,
            closes,
            unbounded,
            sessions,
            tuple(tree(node, deriving.notes)),
            deriving.has_ttl,
            deriving.called_own,
            tuple((names[one], own) for one, own in lineage.items()) if by_keys else (),
            tuple(sorted(facts.places)),
            closed,
            tuple(dict.fromkeys(deriving.judgings)),
            until([(names[key], facts.events.get(key)) for key in keys], facts),
            _has_one_row(node, frozenset(keys)) and not deriving.has_ttl,
        )

    def _with_hidden(
        self, node: plan.Node, made: plan.Node, wanted: Iterable[str]
    ) -> tuple[plan.Node, dict[str, str]]:
        """The query with additional columns under internal names, and the names of the wanted columns."""
        own = {column.id: column.name for column in node.columns}
        further = [one for one in dict.fromkeys(wanted) if one not in own]
        names = {**own, **{one: f"{HIDDEN}{number}" for number, one in enumerate(further)}}
        visible = self._deriving.visible.showing(made, further)
        return chosen(visible, [*own, *further], [names[one] for one in [*own, *further]]), names

    def _session_facts(
        self, made: plan.Node, place: int, end: str, begins: str, window: TimeWindow | None
    ) -> SessionFacts:
        """The session of each row, as a separate plan."""
        occurrence = replace(self._deriving.occurrences[place], is_numbered=True)
        number = number_id(place)
        visible = chosen(self._deriving.visible.showing(made, [number]), [number, end], ["number", "end"])
        self._deriving.occurrences[place] = occurrence
        return SessionFacts(visible, occurrence.stream, begins, window)


def _derived(deriving: Deriving, node: plan.Node, judged: bool) -> Derived:
    match node:
        case plan.Scan():
            return node, Facts()
        case plan.StreamWindow():
            raise AssertionError("a window in brackets is an input where there is EMIT")
        case plan.Input():
            return node, of_input(deriving, node)
        case plan.Filter():
            return of_filter(deriving, node, judged)
        case plan.Project():
            return of_project(deriving, node, judged)
        case plan.Join():
            return of_join(deriving, node, judged)
        case plan.Mark() | plan.Value():
            return of_subquery(deriving, node, judged)
        case plan.Aggregate():
            return of_groups(deriving, node)
        case plan.OneRow():
            made, facts = deriving.of(node.input, judged=False)
            assert isinstance(made, plan.Aggregate)
            return replace(node, input=made), facts
        case plan.Pieces() if node.input is None or node.beside:
            return of_whole(deriving, node)
        case plan.Pieces():
            return of_pieces(deriving, node)
        case plan.ClauseRelation():
            raise AssertionError("clauses are over windows in brackets, by rowtime")
        case plan.Over():
            return of_over(deriving, node)
        case plan.SessionWindows():
            return of_session(deriving, node, judged)
        case plan.TimeWindows():
            return of_windows(deriving, node, judged)
        case plan.Distinct():
            return of_distinct(deriving, node)
        case plan.SetOperation():
            return of_set_operation(deriving, node)
        case plan.Sort():
            return of_sort(deriving, node)
    assert_never(node)


def _finalizing(node: plan.Node, facts: Facts) -> dict[str, EventColumn]:
    """The columns that decide when the groups or rows of a query are complete."""
    if facts.whole:
        ids: Iterable[str] = _named_once(node)
    else:
        ids = facts.keys if facts.grouped else facts.finalizing
    found: dict[str, EventColumn] = {}
    for one in ids:
        event = facts.events.get(one)
        if event is not None and event.finalizes and event not in found.values():
            found[one] = event
    return found


def _lineage(node: plan.Node, facts: Facts) -> dict[str, Lineage]:
    """The columns of a query by whose values punctuation can close its groups or rows."""
    if facts.grouped and not facts.whole:
        ids: Iterable[str] = facts.keys
    else:
        ids = [*_named_once(node), *(() if facts.whole else facts.finalizing)]
    return {one: facts.lineage[one] for one in dict.fromkeys(ids) if facts.lineage.get(one)}


def _has_one_row(node: plan.Node, keys: frozenset[str]) -> bool:
    """Whether each combination of these columns has at most one row: they are the keys of one GROUP BY."""
    while isinstance(node, plan.Project | plan.Filter):
        node = node.input
    return isinstance(node, plan.Aggregate) and {column.id for column, _ in node.keys} <= keys


def _named_once(node: plan.Node) -> list[str]:
    names = [column.name.lower() for column in node.columns]
    return [column.id for column in node.columns if names.count(column.name.lower()) == 1]
