"""Event time, finality and lateness of a plan, node by node from the streams up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from windrow.algebra.rewriting.time_windows_as_sql import TimeWindow
from windrow.errors import Span
from windrow.plan import nodes as plan
from windrow.plan.event_time.deriving import Derived, Deriving, EventTimeSource, Typed, number_id
from windrow.plan.event_time.facts import (
    HIDDEN,
    UNTIL,
    EventColumn,
    Facts,
    Plain,
    SessionFacts,
    Timed,
)
from windrow.plan.event_time.finality import spanned, until
from windrow.plan.event_time.join_times import complete_by
from windrow.plan.event_time.of_groups import of_distinct, of_groups, refuse_lifetime
from windrow.plan.event_time.of_orders import of_over, of_pieces, of_sort
from windrow.plan.event_time.of_relations import of_join, of_set_operation, of_subquery, of_whole
from windrow.plan.event_time.of_rows import of_filter, of_input, of_project
from windrow.plan.event_time.of_windows import of_session, of_windows
from windrow.plan.event_time.promised_columns import (
    are_told,
    closed_by,
    never_closed,
)
from windrow.plan.event_time.refusals import may_go, never_complete
from windrow.plan.format import tree
from windrow.plan.shown import chosen
from windrow.syntax.tokens import TokenList

__all__ = ["EventTimeSource", "EventTimes"]


class EventTimes:
    """Derives what is known of one plan.

    Parameters
    ----------
    tokens
        The text that places in the plan are of.
    sources
        What inputs are, by key; others do not vary.
    watermark
        Where AFTER WATERMARK stands, if it does.
    place
        The user's text, and where in it errors about that clause are.
    typed
        The type of an expression over rows.
    lifetime
        The lifetime of keys in ticks of a stream, and where it is declared; None without.
    """

    def __init__(
        self,
        tokens: TokenList,
        sources: Mapping[str, EventTimeSource],
        watermark: Span | None,
        place: tuple[str, Span | None],
        typed: Typed,
        lifetime: tuple[Callable[[str], int], tuple[str, Span]] | None = None,
    ) -> None:
        self._deriving = Deriving(_derived, tokens, sources, watermark is not None, place, typed, lifetime)

    def read(self, node: plan.Node) -> Timed:
        """What is known of a query.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_QUERY``.
        AnalysisError
            ``GROUP_WITHOUT_EVENT_TIME`` and ``NEVER_COMPLETE`` where AFTER WATERMARK is asked of what is
            never complete, ``LIFETIME_WITHOUT_KEY``.
        """
        deriving = self._deriving
        for one in plan.walk(node):
            if isinstance(one, plan.Project):
                named = (own.column for column, own in one.outputs if column.name.startswith(UNTIL))
                deriving.until |= {own for own in named if own is not None}
        made, facts = deriving.of(node, judged=False)
        refuse_lifetime(deriving)
        telling, plain = _telling(node, facts), _plain(node, facts)
        by_keys = are_told(plain.values(), facts.places)
        if deriving.waits:
            if not facts.settling.stays <= spanned(telling.values()):
                telling = {}
            if facts.places and not telling and not by_keys:
                if facts.settling.why is not None and not deriving.lacks_end:
                    raise may_go(deriving.place, facts.settling.why)
                told_by = "neither event time nor the keys of its groups tell when a row is complete"
                raise never_complete(deriving.tokens, deriving.place, told_by, None)
        else:
            telling = {}
        told = closed_by(plain.values(), facts.places) if deriving.waits else ()
        sessions = tuple(self._told_sessions(*each) for each in deriving.sessions)
        occurrences = tuple(deriving.occurrences[place] for place in sorted(deriving.occurrences))
        holds, closes = facts.holds or never_closed(occurrences, facts), facts.closes
        if deriving.met_by_keys and deriving.waits:  # what is not shown yet is needed
            closes, holds = (*closes, told), holds or (None if told else "of a join")
        has_keys = facts.grouped and not facts.whole
        keys = facts.keys if has_keys else ()
        shown, names = self._with_hidden(node, made, [*keys, *telling, *(plain if by_keys else ())])
        of_settling = {each.stream for each in occurrences if each.place in facts.settling.stays}
        return Timed(
            shown,
            occurrences,
            tuple(names[key] for key in keys) if has_keys else None,
            facts.grouped or facts.counted,
            complete_by([(names[one], event) for one, event in telling.items()]),
            facts.streams | of_settling,
            closes,
            holds,
            sessions,
            tuple(tree(node, deriving.notes)),
            deriving.has_lives,
            deriving.called_own,
            tuple((names[one], own) for one, own in plain.items()) if by_keys else (),
            tuple(sorted(facts.places)),
            told,
            tuple(dict.fromkeys(deriving.judgings)),
            until([(names[key], facts.events.get(key)) for key in keys], facts),
        )

    def _with_hidden(
        self, node: plan.Node, made: plan.Node, wanted: Iterable[str]
    ) -> tuple[plan.Node, dict[str, str]]:
        """The query with further columns under names of ours, and the names of all these."""
        own = {column.id: column.name for column in node.columns}
        further = [one for one in dict.fromkeys(wanted) if one not in own]
        names = {**own, **{one: f"{HIDDEN}{number}" for number, one in enumerate(further)}}
        shown = self._deriving.shown.showing(made, further)
        return chosen(shown, [*own, *further], [names[one] for one in [*own, *further]]), names

    def _told_sessions(
        self, made: plan.Node, place: int, end: str, begins: str, window: TimeWindow | None
    ) -> SessionFacts:
        """Which session each row is in, as a plan of its own."""
        occurrence = replace(self._deriving.occurrences[place], is_numbered=True)
        number = number_id(place)
        shown = chosen(self._deriving.shown.showing(made, [number]), [number, end], ["number", "end"])
        self._deriving.occurrences[place] = occurrence
        return SessionFacts(shown, occurrence.stream, begins, window)


def _derived(deriving: Deriving, node: plan.Node, judged: bool) -> Derived:
    match node:
        case plan.Scan():
            return node, Facts()
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
        case plan.Over():
            return of_over(deriving, node)
        case plan.Session():
            return of_session(deriving, node, judged)
        case plan.TimeWindows():
            return of_windows(deriving, node, judged)
        case plan.Distinct():
            return of_distinct(deriving, node)
        case plan.SetOperation():
            return of_set_operation(deriving, node)
        case plan.Sort():
            return of_sort(deriving, node)
    raise AssertionError(node)


def _telling(node: plan.Node, facts: Facts) -> dict[str, EventColumn]:
    """The columns that tell when groups of a query, or its rows, are complete."""
    if facts.whole:
        ids: Iterable[str] = _named_once(node)
    else:
        ids = facts.keys if facts.grouped else facts.telling
    found: dict[str, EventColumn] = {}
    for one in ids:
        event = facts.events.get(one)
        if event is not None and event.tells and event not in found.values():
            found[one] = event
    return found


def _plain(node: plan.Node, facts: Facts) -> dict[str, Plain]:
    """The columns of a query by whose values its groups may be promised to be over, or its rows."""
    if facts.grouped and not facts.whole:
        ids: Iterable[str] = facts.keys
    else:
        ids = [*_named_once(node), *(() if facts.whole else facts.telling)]
    return {one: facts.plain[one] for one in dict.fromkeys(ids) if facts.plain.get(one)}


def _named_once(node: plan.Node) -> list[str]:
    names = [column.name.lower() for column in node.columns]
    return [column.id for column in node.columns if names.count(column.name.lower()) == 1]
