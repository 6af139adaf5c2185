"""Event time, finality and lateness of a plan, node by node from the streams up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql.types import DataType, IntegerType, LongType

from windrow.algebra.time_windows import TimeWindow
from windrow.errors import AnalysisError, Span
from windrow.plan import nodes as plan
from windrow.plan.columns import ROWS, Column, Expression, Scope
from windrow.plan.event_time.expressions import event_of
from windrow.plan.event_time.facts import (
    HIDDEN,
    UNTIL,
    Closed,
    Closing,
    Ending,
    EventColumn,
    Facts,
    Judging,
    Occurrence,
    Plain,
    Sessions,
    Settling,
    Timed,
    number_at,
    watermark_at,
)
from windrow.plan.event_time.finality import LACKING, NEVER, combined, cut, lacking_in, spanned, told_only
from windrow.plan.event_time.intervals import as_of, bounded
from windrow.plan.event_time.joins import Keys, complete_by, in_both, linked, optional
from windrow.plan.event_time.late import late_for_groups, late_for_sessions, without, without_pairs
from windrow.plan.event_time.lifetimes import with_lives
from windrow.plan.event_time.notes import ALL_ROWS, kept_of_groups, kept_of_joins, note
from windrow.plan.event_time.promises import (
    are_told,
    closed_by,
    closing_of,
    joined,
    keeps_by_keys,
    met,
    never_closed,
)
from windrow.plan.event_time.refusals import may_go, never_complete, unsupported
from windrow.plan.event_time.windows import greatest, mapped, settled, window_of
from windrow.plan.format import tree
from windrow.plan.shown import Shown, chosen, over_rows, with_columns
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["EventTimes", "Source"]

_GROWING = {"inner", "semi"}  # which give no row that leaves again, of what only grows
_OF_THE_FIRST = {"inner", "left", "semi", "anti"}  # of which each row of the first side is by itself

T = TypeVar("T")
Typed = Callable[[SqlText, Scope, Sequence[Column]], DataType]
Derived = tuple[plan.Node, Facts]


@dataclass(frozen=True)
class Source:
    """What an input of a plan is.

    Attributes
    ----------
    streams
        The stream, in lower case; of a function of one's own those that it reads.
    rowtime
        The column of the stream's rowtime; None for a function.
    promises
        Whether the stream may promise patterns.
    clocks
        The type of the rowtime, where it goes by a zone that sets clocks.
    """

    streams: frozenset[str]
    rowtime: str | None
    promises: bool = False
    clocks: str | None = None


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
        sources: Mapping[str, Source],
        watermark: Span | None,
        place: tuple[str, Span | None],
        typed: Typed,
        lifetime: tuple[Callable[[str], int], tuple[str, Span]] | None = None,
    ) -> None:
        self._tokens, self._sources, self._waits, self._place = tokens, sources, watermark is not None, place
        self._typed, self._lifetime = typed, lifetime
        self._occurrences: dict[int, Occurrence] = {}
        self._hidden: dict[str, list[Column]] = {}
        self._shown = Shown(self._hidden)
        self._known: dict[int, tuple[plan.Node, Derived]] = {}
        self._notes: dict[int, str] = {}
        self._until: set[str] = set()
        self._judgings: list[Judging] = []
        self._sessions: list[tuple[plan.Node, int, str, str, TimeWindow | None]] = []
        self._made_ids = 0
        self._called_own = self._met_by_keys = self._has_lives = self._lacks_end = False

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
        for one in plan.walk(node):
            if isinstance(one, plan.Project):
                named = (own.column for column, own in one.outputs if column.name.startswith(UNTIL))
                self._until |= {own for own in named if own is not None}
        made, facts = self._of(node, judged=False)
        self._refuse_lifetime()
        telling, plain = self._telling(node, facts), self._plain(node, facts)
        by_keys = are_told(plain.values(), facts.places)
        if self._waits:
            if not facts.settling.stays <= spanned(telling.values()):
                telling = {}
            if facts.places and not telling and not by_keys:
                if facts.settling.why is not None and not self._lacks_end:
                    raise may_go(self._place, facts.settling.why)
                told_by = "neither event time nor the keys of its groups tell when a row is complete"
                raise never_complete(self._tokens, self._place, told_by, None)
        else:
            telling = {}
        told = closed_by(plain.values(), facts.places) if self._waits else ()
        sessions = tuple(self._told_sessions(*each) for each in self._sessions)
        occurrences = tuple(self._occurrences[place] for place in sorted(self._occurrences))
        holds, closes = facts.holds or never_closed(occurrences, facts), facts.closes
        if self._met_by_keys and self._waits:  # what is not shown yet is needed
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
            tuple(tree(node, self._notes)),
            self._has_lives,
            self._called_own,
            tuple((names[one], own) for one, own in plain.items()) if by_keys else (),
            tuple(sorted(facts.places)),
            told,
            tuple(dict.fromkeys(self._judgings)),
        )

    def _telling(self, node: plan.Node, facts: Facts) -> dict[str, EventColumn]:
        """The columns that tell when groups of a query, or its rows, are complete."""
        if facts.whole:
            ids: Iterable[str] = self._named_once(node)
        else:
            ids = facts.keys if facts.grouped else facts.telling
        found: dict[str, EventColumn] = {}
        for one in ids:
            event = facts.events.get(one)
            if event is not None and event.tells and event not in found.values():
                found[one] = event
        return found

    def _plain(self, node: plan.Node, facts: Facts) -> dict[str, Plain]:
        """The columns of a query by whose values its groups may be promised to be over, or its rows."""
        if facts.grouped and not facts.whole:
            ids: Iterable[str] = facts.keys
        else:
            ids = [*self._named_once(node), *(() if facts.whole else facts.telling)]
        return {one: facts.plain[one] for one in dict.fromkeys(ids) if facts.plain.get(one)}

    @staticmethod
    def _named_once(node: plan.Node) -> list[str]:
        names = [column.name.lower() for column in node.columns]
        return [column.id for column in node.columns if names.count(column.name.lower()) == 1]

    def _with_hidden(
        self, node: plan.Node, made: plan.Node, wanted: Iterable[str]
    ) -> tuple[plan.Node, dict[str, str]]:
        """The query with further columns under names of ours, and the names of all these."""
        own = {column.id: column.name for column in node.columns}
        further = [one for one in dict.fromkeys(wanted) if one not in own]
        names = {**own, **{one: f"{HIDDEN}{number}" for number, one in enumerate(further)}}
        shown = self._shown.showing(made, further)
        return chosen(shown, [*own, *further], [names[one] for one in [*own, *further]]), names

    def _told_sessions(
        self, made: plan.Node, place: int, end: str, begins: str, window: TimeWindow | None
    ) -> Sessions:
        """Which session each row is in, as a plan of its own."""
        occurrence = replace(self._occurrences[place], is_numbered=True)
        number = _number_id(place)
        shown = chosen(self._shown.showing(made, [number]), [number, end], ["number", "end"])
        self._occurrences[place] = occurrence
        return Sessions(shown, occurrence.stream, begins, window)

    def _fresh(self, count: int) -> list[str]:
        self._made_ids += 1
        return [f"e{self._made_ids}_{at}" for at in range(count)]

    # -- nodes ---------------------------------------------------------------------------------------

    def _of(self, node: plan.Node, *, judged: bool) -> Derived:
        """A node with what is added to it, and what is known of it.

        Parameters
        ----------
        judged
            Whether rows that are late for groups are left out above.
        """
        if id(node) not in self._known:
            self._known[id(node)] = node, self._derived(node, judged)
        return self._known[id(node)][1]

    def _derived(self, node: plan.Node, judged: bool) -> Derived:
        match node:
            case plan.Scan():
                return node, Facts()
            case plan.Input():
                return node, self._input(node)
            case plan.Filter():
                made, facts = self._of(node.input, judged=judged and node.clause != "QUALIFY")
                facts = as_of(facts, node.conditions, node.scope)
                raw = facts.raw and node.clause != "QUALIFY"
                return replace(node, input=made), replace(facts, raw=raw)
            case plan.Project():
                return self._project(node, judged)
            case plan.Join():
                return self._join(node, judged)
            case plan.Mark() | plan.Value():
                return self._subquery(node, judged)
            case plan.Aggregate():
                return self._aggregate(node)
            case plan.OneRow():
                made, facts = self._of(node.input, judged=False)
                assert isinstance(made, plan.Aggregate)
                return replace(node, input=made), facts
            case plan.Pieces() if node.input is None or node.beside:
                return self._whole(node)
            case plan.Pieces():
                return self._pieces(node)
            case plan.Over():
                return self._over(node)
            case plan.Session():
                return self._session(node, judged)
            case plan.TimeWindows():
                return self._windows(node, judged)
            case plan.Distinct():
                return self._distinct(node)
            case plan.SetOperation():
                return self._set_operation(node)
            case plan.Sort():
                return self._sort(node)
        raise AssertionError(node)

    def _said(self, node: plan.Node, facts: Facts, keeps: str | None = None) -> None:
        """Remember for EXPLAIN what a node gives and keeps."""
        if facts.varies:
            self._notes[id(node)] = note(node, facts, keeps)

    def _input(self, node: plan.Input) -> Facts:
        source = self._sources.get(node.key)
        if source is None:
            return Facts()
        if source.rowtime is None:
            if self._waits:
                what = f"AFTER WATERMARK of {node.label}"
                raise unsupported(self._tokens, what, self._tokens.span(*node.at))
            self._called_own = True
            for stream in sorted(source.streams):
                place = len(self._occurrences)
                self._occurrences[place] = Occurrence(f"{node.key}_{stream}", stream, place)
            facts = Facts(raw=False, streams=source.streams, updates=True, holds="of a function of one's own")
            self._said(node, facts, ALL_ROWS)
            return facts
        place = len(self._occurrences)
        (stream,) = source.streams
        self._occurrences[place] = Occurrence(node.key, stream, place)
        ids = {column.name.lower(): column for column in node.columns}
        time = ids.get(source.rowtime.lower())
        kind = LongType() if time is None or isinstance(time.type, IntegerType) else time.type
        self._hidden[node.key] = [
            Column(_number_id(place), number_at(place), LongType()),
            Column(_watermark_id(place), watermark_at(place), kind),
        ]
        event = EventColumn("{t}", place, greatest="{t}", clocks=source.clocks)
        facts = Facts(
            {} if time is None else {time.id: event},
            () if time is None else (time.id,),
            streams=source.streams,
            places=frozenset([place]),
            watermarks=frozenset([place]),
            plain={
                column.id: frozenset([(place, column.name)]) for column in node.columns if source.promises
            },
            settling=Settling(frozenset([place])),
        )
        self._said(node, facts)
        return facts

    def _project(self, node: plan.Project, judged: bool) -> Derived:
        made, facts = self._of(node.input, judged=judged)
        events, plain, versions = dict(facts.events), dict(facts.plain), dict(facts.versions)
        for column, one in node.outputs:
            if one.column is None:
                event = None if node.is_whole else event_of(one, node.scope, facts.events.get)
                events |= {} if event is None else {column.id: event}
                continue
            _pass(events, one.column, column.id)
            _pass(plain, one.column, column.id)
            _pass(versions, one.column, column.id)
        made = replace(node, input=made)
        facts = replace(facts, events=events, plain=plain, versions=versions)
        if any(one.column is None for _, one in node.outputs):
            self._said(node, facts)
        return made, facts

    # -- several relations ---------------------------------------------------------------------------

    def _join(self, node: plan.Join, judged: bool) -> Derived:
        kind, keys = node.kind, node.keys
        judged = judged and kind == "inner"
        (left, mine), (right, theirs) = (self._of(side, judged=judged) for side in (node.left, node.right))
        made: plan.Node = replace(node, left=left, right=right)
        if not (mine.varies or theirs.varies):
            return made, Facts()
        mine, theirs = joined(kind, keys, *linked(kind, keys, mine, theirs))
        is_by_row = kind in _OF_THE_FIRST if not theirs.varies else kind == "inner" and not mine.varies
        meeting: tuple[tuple[Ending, ...], ...] = ()
        if not is_by_row:
            meeting = met(kind, mine, theirs, judges=judged, waits=self._waits)
            self._met_by_keys |= any(isinstance(each, Closed) for grouping in meeting for each in grouping)
        intervals = [] if kind in _GROWING else [*bounded(kind, node.conditions, node.scope, mine, theirs)]
        facts = self._both(mine, theirs, kind, beside=node.is_of_subquery)
        facts = replace(
            as_of(facts, node.conditions, node.scope),
            updates=facts.updates or (not is_by_row and kind not in _GROWING),
            closes=(*facts.closes, *meeting),
            holds=facts.holds or (None if is_by_row or meeting else "of a join"),
            settling=combined(mine.settling, theirs.settling, lacking=LACKING.get(kind), of=lacking_in(kind)),
        )
        made, facts = self._within(made, facts, node.scope, intervals)
        self._said(node, facts, None if is_by_row else kept_of_joins(meeting))
        return made, facts

    def _both(self, mine: Facts, theirs: Facts, kind: str, *, beside: bool) -> Facts:
        """What is known of the rows of two relations, but for how these are joined.

        Of a side whose columns are not shown, or which is `beside` the rows in an expression, no keys are.
        """
        holds = mine.holds or theirs.holds
        places, updates = mine.places | theirs.places, mine.updates or theirs.updates
        closes = (*mine.closes, *theirs.closes)
        if kind in ("left", "full"):
            theirs = optional(theirs)
        if kind in ("right", "full"):
            mine = optional(mine)
        hides = kind in ("semi", "anti")
        is_alone = hides or beside
        events = dict(mine.events) if hides else {**mine.events, **theirs.events}
        telling = mine.telling if is_alone else (*mine.telling, *theirs.telling)
        telling = (*telling, *(one for one, event in events.items() if event.peers))
        keys = mine.keys if is_alone else (*mine.keys, *theirs.keys)
        is_grouped = mine.grouped or (theirs.grouped and not is_alone)
        known = {events[key] for key in keys if key in events}
        for one, event in events.items() if is_grouped else ():
            if event.peers and event.tells and event not in known:
                known.add(event)
                keys = (*keys, one)
        return Facts(
            events,
            tuple(dict.fromkeys(telling)),
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
            holds,
            {**mine.plain, **theirs.plain},
            versions={**mine.versions, **theirs.versions},
        )

    def _within(
        self,
        made: plan.Node,
        facts: Facts,
        scope: Scope,
        intervals: Sequence[tuple[EventColumn, SqlText]],
    ) -> Derived:
        """Rows with columns that say until when another side may have partners for them."""
        if not intervals or not self._waits:
            return made, facts
        ids = {column.id for column in made.columns}
        seen = Scope(tuple(part for part in scope.parts if ids >= set(part.columns)), scope.prefix)
        further, events = [], dict(facts.events)
        for (event, text), own in zip(intervals, self._fresh(len(intervals)), strict=True):
            kind = self._typed(text, seen, made.columns)
            further.append((Column(own, own, kind), Expression(text, kind)))
            events[own] = event
        telling = (*facts.telling, *(column.id for column, _ in further))
        keys = (*facts.keys, *(column.id for column, _ in further)) if facts.grouped else facts.keys
        extended = with_columns(made, seen, further, "until when partners may come")
        return extended, replace(facts, events=events, telling=telling, keys=keys)

    def _subquery(self, node: plan.Mark | plan.Value, judged: bool) -> Derived:
        """Rows beside a subquery in an expression that reads other rows."""
        (left, mine), (right, theirs) = (
            self._of(node.left, judged=judged),
            self._of(node.right, judged=False),
        )
        made: plan.Node = replace(node, left=left, right=right)
        if not theirs.varies:
            return made, mine
        keys: Keys = ()
        if isinstance(node, plan.Mark):  # where NULL counts as equal, columns are that never are NULL
            known = {**mine.events, **theirs.events}
            may_lack = {one for one, event in known.items() if event.is_optional}
            keys = [key for key in node.keys if key != node.unknown or not may_lack & {*key}]
        mine, theirs = linked("anti", keys, mine, theirs)
        intervals = []
        if isinstance(node, plan.Mark):
            intervals = [*bounded("anti", node.conditions, node.scope, mine, theirs)]
        facts = self._both(mine, theirs, "inner" if isinstance(node, plan.Value) else "anti", beside=True)
        facts = replace(
            facts,
            updates=True,
            holds=facts.holds or "of a subquery",
            plain={},
            streams=mine.streams,
            watermarks=mine.watermarks,
            settling=combined(mine.settling, theirs.settling, lacking="a subquery"),
        )
        if isinstance(node, plan.Mark):
            made, facts = self._within(made, facts, node.scope, intervals)
        self._said(node, facts, ALL_ROWS)
        return made, facts

    def _set_operation(self, node: plan.SetOperation) -> Derived:
        sides = [self._of(side, judged=False) for side in (node.left, node.right)]
        ids = [[column.id for column in side.columns] for side in (node.left, node.right)]
        left, right = (chosen(made, own) for (made, _), own in zip(sides, ids, strict=True))
        made = replace(node, left=left, right=right)
        (_, mine), (_, theirs) = sides
        if not (mine.varies or theirs.varies):
            return made, Facts()
        events: dict[str, EventColumn] = {}
        for column, one, other in zip(node.columns, *ids, strict=True):
            event = in_both(mine.events.get(one), theirs.events.get(other))
            events |= {} if event is None else {column.id: event}
        is_union = node.operator == "union" and node.all
        told_apart = not is_union or any(facts.grouped or facts.whole for facts in (mine, theirs))
        if self._waits and not events:
            told_by = "the sides of a set operator have no event time in common"
            raise never_complete(self._tokens, self._place, told_by, None)
        lacking = "EXCEPT" if node.operator == "except" else None
        facts = Facts(
            events,
            whole=told_apart or bool(events),
            counted=told_apart,
            raw=False,
            updates=mine.updates or theirs.updates or node.operator == "except",
            streams=mine.streams | theirs.streams,
            places=mine.places | theirs.places,
            holds="of a set operator",
            settling=combined(mine.settling, theirs.settling, lacking=lacking),
        )
        self._said(node, facts, None if is_union else ALL_ROWS)
        return made, facts

    # -- several rows --------------------------------------------------------------------------------

    def _aggregate(self, node: plan.Aggregate) -> Derived:
        # late rows count for what a subquery becomes: no group of the query has been told without them
        made, facts = self._of(node.input, judged=not node.around)
        assert isinstance(made, plan.Project)
        grouping = replace(node, input=made)
        if not facts.varies:
            return grouping, Facts()
        has_event = any(source in facts.events for _, source in node.keys)
        if self._lifetime is not None and not has_event and not node.around:
            grouping, facts = self._living(grouping, facts)
        keys = grouping.keys
        events = [facts.events.get(source) for _, source in keys]
        plains = [facts.plain.get(source, frozenset()) for _, source in keys]
        settling = cut(facts.settling, events, "groups")
        self._refuse_endless(node, facts, settling, events, plains)
        grouping = replace(grouping, input=self._judged(grouping, facts))
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
        self._said(node, known, kept)
        return grouping, known

    def _refuse_endless(
        self,
        node: plan.Aggregate,
        facts: Facts,
        settling: Settling,
        events: Sequence[EventColumn | None],
        plains: Sequence[Plain],
    ) -> None:
        """Refuse AFTER WATERMARK of groups that are never complete."""
        may_end = not self._waits or are_told(plains, facts.places)
        if not may_end and any(events) and NEVER in settling.whole and not self._lacks_end:
            raise may_go(self._place, facts.settling.why or "groups by event time of one of several streams")
        if not may_end and not any(events):
            raise never_complete(
                self._tokens,
                self._place,
                "a group without a key of event time is never complete",
                self._tokens.span(*node.at),
                may_live=bool(node.keys) and facts.raw,
            )
        self._lacks_end |= not any(events)

    def _judged(self, node: plan.Aggregate, facts: Facts) -> plan.Project:
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
        found = self._late(facts, telling)
        if found is None:
            return inside
        late, marks = found
        rows = without_pairs(inside.input, late, marks, self._shown)
        rows = without(self._shown.showing(rows, marks.values()), inside.scope, late)
        return replace(inside, input=rows)

    def _late(
        self, facts: Facts, telling: Sequence[tuple[SqlText, EventColumn]]
    ) -> tuple[SqlText, dict[int, str]] | None:
        """The condition by which rows are late for groups, and the columns with the watermarks in it."""
        telling = [each for each in telling if each[1].tells_late and each[1].origins & facts.watermarks]
        origins = {at for _, event in telling for at in event.origins} & facts.watermarks
        if not origins or not facts.raw:
            return None
        for _, event in telling:
            judged = (Judging(event.mapped, event.mapped, at) for at in sorted(event.origins & origins))
            self._judgings.extend(judged)
        marks = self._marks(facts, origins)
        return late_for_groups(telling, marks), marks

    def _marks(self, facts: Facts, origins: Iterable[int]) -> dict[int, str]:
        """The columns with the watermarks of streams, which their rows have from now on."""
        for at in origins:
            self._occurrences[at] = replace(self._occurrences[at], watermark_of=facts.streams)
        return {at: _watermark_id(at) for at in sorted(origins)}

    def _distinct(self, node: plan.Distinct) -> Derived:
        made, facts = self._of(node.input, judged=not node.around)
        ids = [column.id for column in node.input.columns]
        own = [one for one in ids[node.around :] if one in facts.events]
        if facts.varies:
            telling = [(SqlText.of(f"{ROWS}.{one}"), facts.events[one]) for one in own]
            found = self._late(facts, telling)
            if found is not None:
                late, marks = found
                made = without(self._shown.showing(made, marks.values()), Scope(), late)
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
        kept = (
            f"rows until the watermark has passed {', '.join(ending)}" if ending and not holds else ALL_ROWS
        )
        self._said(node, known, kept)
        return made, known

    def _over(self, node: plan.Over) -> Derived:
        made, facts = self._of(node.input, judged=False)
        made = replace(node, input=made)
        if not facts.varies:
            return made, facts
        calls = [column.id for column, _, _ in node.calls]
        if self._until >= {*calls}:
            whole = facts.settling.whole
            facts = replace(
                told_only(facts, ()),
                settling=Settling(whole, whole, "versions"),
                versions={**facts.versions, **dict.fromkeys(calls, whole)},
            )
        else:
            by = {facts.events[one]: one for one in node.partition if one in facts.events}
            first = (
                node.order[0] if node.order and all(call.looks_back for _, call, _ in node.calls) else None
            )
            event = facts.events.get(first.column) if first is not None else None
            if not facts.settling.whole <= spanned(by):
                by = {}
            if first is not None and event is not None and not first.descending:
                is_told = facts.settling.whole <= spanned([event])
                if is_told and not (event.is_optional and first.nulls_first):
                    by[event] = first.column
            facts = self._told_by(facts, by)
        facts = replace(
            facts, raw=False, updates=True, plain={}, watermarks=frozenset(), holds=facts.holds or "of OVER"
        )
        self._said(node, facts, ALL_ROWS)
        return made, facts

    @staticmethod
    def _told_by(facts: Facts, telling: Mapping[EventColumn, str]) -> Facts:
        """Rows that have values over others, of which these columns still tell."""
        telling = {event: one for event, one in telling.items() if event.tells}
        settling = cut(facts.settling, telling, "OVER")
        known = {facts.events[one] for one in (*facts.keys, *facts.telling) if one in facts.events}
        facts = replace(told_only(facts, telling), settling=settling)
        new = tuple(one for event, one in telling.items() if event not in known)
        keys = (*facts.keys, *new) if facts.grouped else facts.keys
        return replace(facts, telling=(*facts.telling, *new), keys=keys)

    def _whole(self, node: plan.Pieces) -> Derived:
        """A text over several relations, of which only Spark knows what it does with them."""
        inputs = [self._of(one, judged=False) for one in node.inputs]
        made = [one for one, _ in inputs]
        input_ = None if node.input is None else made.pop(0)
        beside = tuple((key, one) for (key, _), one in zip(node.beside, made, strict=True))
        found = replace(node, input=input_, beside=beside)
        known = [facts for _, facts in inputs]
        if not any(facts.varies for facts in known):
            return found, Facts()
        if self._waits:
            at = getattr(node.why, "at", None)
            span = None if at is None else self._tokens.span(*at)
            raise unsupported(self._tokens, f"AFTER WATERMARK of {node.why}", span)
        facts = Facts(
            whole=True,
            counted=True,
            raw=False,
            updates=True,
            streams=frozenset().union(*(facts.streams for facts in known)),
            places=frozenset().union(*(facts.places for facts in known)),
            holds="of what only Spark understands",
        )
        self._said(node, facts, ALL_ROWS)
        return found, facts

    def _pieces(self, node: plan.Pieces) -> Derived:
        """A block that only Spark understands."""
        assert node.input is not None
        made, facts = self._of(node.input, judged=False)
        made = replace(node, input=made)
        if not facts.varies:
            return made, Facts()
        by = {facts.events[key]: key for key in node.keys if key in facts.events}
        if not node.is_grouped:
            facts = self._told_by(facts, by if facts.settling.whole <= spanned(by) else {})
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
            if self._waits and not by:
                raise may_go(self._place, "this form of GROUP BY")
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
        self._said(node, facts, ALL_ROWS)
        return made, facts

    def _sort(self, node: plan.Sort) -> Derived:
        """The first rows of a relation, which stay if they are the first in time."""
        made, facts = self._of(node.input, judged=False)
        made = replace(node, input=made)
        if not facts.varies:
            return made, facts
        first = node.keys[0] if node.keys else None
        event = None if first is None or first.descending else facts.events.get(first.column)
        is_told = event is not None and not event.is_optional and facts.settling.whole <= spanned([event])
        telling = [event] if is_told else []
        facts = replace(
            told_only(facts, telling),
            settling=cut(facts.settling, telling, "LIMIT"),
            raw=False,
            holds="of ORDER BY and LIMIT",
            updates=True,
            plain={},
            watermarks=frozenset(),
        )
        self._said(node, facts, ALL_ROWS)
        return made, facts

    # -- windows of time -----------------------------------------------------------------------------

    def _windows(self, node: plan.TimeWindows, judged: bool) -> Derived:
        is_session = node.kind == "SESSION"
        rows, facts = self._of(node.rows, judged=judged and not is_session)
        if not facts.places:
            return over_rows(node, rows), facts
        count = len(node.rows.columns)
        window = window_of(node, next(one for one in node.rows.columns if one.id == node.time))
        own = {one.id: made.id for one, made in zip(node.rows.columns, node.columns, strict=False)}
        bounds = {column.name: column.id for column in node.columns[count:]}
        event = facts.events.get(node.time)
        added = _bounds(window, event, bounds)
        if is_session and event is not None and judged:
            rows = self._judged_sessions(rows, facts, window, node.time, event)
        made = over_rows(node, rows)
        if is_session:
            keys = {*node.keys, *(own[key] for key in node.keys)}
            is_plain = isinstance(node.rows, plan.Input)
            facts = _under(facts, own)
            facts = self._in_sessions(made, facts, window, event, added, bounds, keys, is_plain, judged)
        else:
            facts = _under(facts, own)
            facts = replace(facts, events={**facts.events, **added})
        self._said(node, facts, self._kept_of_sessions(facts) if is_session else None)
        return made, facts

    def _session(self, node: plan.Session, judged: bool) -> Derived:
        """Sessions of a longest duration, and lives of keys."""
        rows, facts = self._of(node.input, judged=False)
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
        event = facts.events.get(time)
        bounds = {column.name: column.id for column in node.bounds}
        added = _bounds(window, event, bounds)
        if event is not None and judged:
            rows = self._judged_sessions(self._shown.showing(rows, [time]), facts, window, time, event)
            made = replace(node, input=chosen(rows, [column.id for column in node.input.columns]))
        facts = self._in_sessions(
            made, facts, window, event, added, bounds, {*node.keys}, is_plain=False, judged=judged
        )
        self._said(node, facts, self._kept_of_sessions(facts))
        return made, facts

    def _judged_sessions(
        self, rows: plan.Node, facts: Facts, window: TimeWindow, time: str, event: EventColumn
    ) -> plan.Node:
        """Rows without those that alone would make a session that is complete."""
        origins = sorted(event.origins & facts.watermarks)
        if not origins:
            return rows
        ids = [column.id for column in rows.columns]
        marks = self._marks(facts, origins)
        late, of_row, least = late_for_sessions(window, time, event, marks)
        self._judgings.extend(Judging(of_row, least, at) for at in origins)
        return chosen(without(self._shown.showing(rows, marks.values()), Scope(), late), ids)

    def _in_sessions(
        self,
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
        """Rows in sessions: these are in another one when that grows, so its end tells, and nothing else."""
        holds, closes = facts.holds, facts.closes
        end = bounds[window.names[1]]
        if event is not None and end in added and judged and facts.raw and len(facts.watermarks) == 1:
            least, number = settled(window, event.mapped), len(self._sessions)
            added[end] = replace(added[end], greatest="{t}", sessions=number, settled=least)
            closes = (*closes, (Closing("{t}", least, event.origin, number),))
            self._sessions.append((made, event.origin, end, event.mapped, window if is_plain else None))
        else:
            holds = holds or "of sessions, which may grow"
        telling = (*facts.telling, end) if facts.telling and not facts.grouped else facts.telling
        settling = cut(facts.settling, added.values(), "sessions")
        facts = told_only(facts, ())
        return replace(
            facts,
            events={**facts.events, **added},
            telling=telling,
            plain={one: own for one, own in facts.plain.items() if one in keys},
            updates=True,
            holds=holds,
            closes=closes,
            settling=settling,
        )

    @staticmethod
    def _kept_of_sessions(facts: Facts) -> str:
        settled_by = "rows until the watermark has passed the end of their session by the gap"
        return settled_by if facts.closes and facts.holds is None else ALL_ROWS

    # -- lifetimes -----------------------------------------------------------------------------------

    def _living(self, node: plan.Aggregate, facts: Facts) -> tuple[plan.Aggregate, Facts]:
        """Groups that nothing else ends, of which the keys have a lifetime."""
        assert self._lifetime is not None
        if not node.keys or not facts.raw:
            return node, facts
        if len(facts.places) != 1:
            hint = "join in a query that shows the rowtime of one stream"
            raise unsupported(
                self._tokens, "STATE LIFETIME of a group over a join", self._tokens.span(*node.at), hint
            )
        (place,) = facts.places
        time = next((one for one, event in facts.events.items() if event.mapped == "{t}"), None)
        if time is None:
            hint = "select the rowtime of the one stream in it in the query in FROM"
            what = "STATE LIFETIME of a group over rows that do not show their rowtime"
            raise unsupported(self._tokens, what, self._tokens.span(*node.at), hint)
        self._has_lives = True
        length = self._lifetime[0](self._occurrences[place].stream)
        living = with_lives(node, time, length, self._fresh, self._shown)
        session = living.input.input
        made, known = self._session_of_lives(session, facts)
        return replace(living, input=replace(living.input, input=made)), known

    def _session_of_lives(self, session: plan.Node, facts: Facts) -> Derived:
        assert isinstance(session, plan.Session)
        self._known[id(session.input)] = session.input, (session.input, facts)
        made, known = self._session(session, judged=True)
        return made, replace(known, plain=facts.plain)

    def _refuse_lifetime(self) -> None:
        """Refuse a lifetime where no key can have one."""
        if self._lifetime is None or self._has_lives:
            return
        text, span = self._lifetime[1]
        raise AnalysisError(
            "STATE LIFETIME is of the keys of groups without event time, and no rows are grouped so",
            condition="LIFETIME_WITHOUT_KEY",
            sql=text,
            span=span,
            hint="groups by event time end with the watermark: leave it out; or GROUP BY a key, as an id",
        )


def _passed(node: plan.Pieces, facts: Facts) -> dict[str, EventColumn]:
    """The event time of the columns that a block passes on."""
    return {column: facts.events[source] for column, source in node.passes if source in facts.events}


def _watermark_id(place: int) -> str:
    return f"w{place}"


def _number_id(place: int) -> str:
    return f"n{place}"


def _pass(known: dict[str, T], source: str, made: str) -> None:
    """Let what is known of a column be known of one that it is passed on as."""
    if source in known:
        known[made] = known[source]


def _under(facts: Facts, own: Mapping[str, str]) -> Facts:
    """What is known of columns, of those that are called differently above too."""
    return replace(
        facts,
        events={**facts.events, **{own[one]: each for one, each in facts.events.items() if one in own}},
        plain={**facts.plain, **{own[one]: each for one, each in facts.plain.items() if one in own}},
    )


def _bounds(window: TimeWindow, event: EventColumn | None, ids: Mapping[str, str]) -> dict[str, EventColumn]:
    """The event time of begin and end of windows."""
    if event is None:
        return {}
    last = {} if event.greatest is None else greatest(window, event.greatest)
    later = {} if event.settled is None else mapped(window, event.settled)
    equal = [(at, {} if of is None else greatest(window, of)) for at, of in event.peers]
    return {
        ids[name]: replace(
            event,
            mapped=least,
            tells_late=window.kind != "SESSION",
            greatest=last.get(name),
            settled=later.get(name),
            peers=tuple((at, of.get(name)) for at, of in equal),
            made=ids[name],
        )
        for name, least in mapped(window, event.mapped).items()
    }
