"""Reads a query over streams: finds groups and event time, and adds columns of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from windrow.algebra.aggregates import calls_aggregate
from windrow.spark.event_time.beneath import reads_stream, streams_beneath
from windrow.spark.event_time.columns import columns_of, event_of, name_of, place_in, seen, starred
from windrow.spark.event_time.facts import (
    HIDDEN,
    Closed,
    Ending,
    EventColumn,
    Facts,
    Plain,
    Settling,
    Sides,
    Timed,
    Wanted,
)
from windrow.spark.event_time.from_clause import FromClause
from windrow.spark.event_time.intervals import bounded_beside, bounded_in_joins
from windrow.spark.event_time.joins import complete_by, events_of, in_both, linked, unpaired
from windrow.spark.event_time.keys import keys_of
from windrow.spark.event_time.late import covers
from windrow.spark.event_time.lifetimes import Endless
from windrow.spark.event_time.operators import (
    ALL_ROWS,
    kept_of_groups,
    kept_of_joins,
    shown,
)
from windrow.spark.event_time.plain import (
    are_told,
    closed_by,
    closing_of,
    joined,
    keeps_by_keys,
    met,
    never_closed,
    plain_of,
    selected,
    told_in,
)
from windrow.spark.event_time.refusals import may_go, never_complete, unsupported
from windrow.spark.event_time.settling import (
    NEVER,
    Subquery,
    beside,
    calls_over,
    combined,
    cut,
    of_first_rows,
    of_over,
    spanned,
    told_only,
)
from windrow.spark.event_time.windows import told_sessions
from windrow.syntax.queries import (
    FromItem,
    Ordered,
    Select,
    SetOperation,
    Shape,
    UnknownShapeError,
    parse_query,
)
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.table_functions import LIFE
from windrow.syntax.window_calls import WindowCall

__all__ = ["EventTimes"]

_GROWING = {"inner", "semi"}  # which give no row that leaves again, of what only grows
_OF_THE_FIRST = {"inner", "left", "semi", "anti"}  # of which each row of the first side is by itself


class EventTimes(FromClause):
    """Reads one query, as :class:`FromClause` says."""

    def read(self, start: int, stop: int, body: int) -> Timed:
        """The query in a range, of which the part after WITH begins at `body`.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_QUERY``.
        AnalysisError
            ``GROUP_WITHOUT_EVENT_TIME`` where AFTER WATERMARK is asked of groups that are never complete.
        """
        facts = self._query(body, stop, Wanted(keys=True))
        events = events_of(facts)
        plain = told_in(facts)
        by_keys = are_told(plain.values(), facts.places)
        if self.watermark is not None:
            if not facts.settling.stays <= spanned(events.values()):
                events = {}
            if facts.streams and not events and not by_keys:
                if facts.settling.why is not None and not self.endless:
                    raise may_go(self.place, facts.settling.why)
                told_by = "neither event time nor the keys of its groups tell when a row is complete"
                raise never_complete(self.tokens, self.place, told_by, None)
        told = closed_by(plain.values(), facts.places) if self.watermark is not None else ()
        holds = facts.holds or never_closed(self._occurrences, facts)
        closes = facts.closes
        if self._met_by_keys and self.watermark is not None:  # what is not shown yet is needed
            closes, holds = (*closes, told), holds or (None if told else "of a join")
        query, places = (start, body), self._occurrences
        sessions = (told_sessions(self._edits, query, places, *each) for each in self._sessions)
        return Timed(
            self._edits.text(start, stop),
            tuple(self._occurrences),
            tuple(facts.keys) if facts.grouped and not facts.whole else None,
            facts.grouped or facts.counted,
            complete_by(events),
            facts.streams | {each.stream for each in places if each.place in facts.settling.stays},
            closes,
            holds,
            tuple(sessions),
            tuple(map(str, self._operators)),
            any(window.names == LIFE for _, window, *_ in self._sessions),
            self._called_own,
            tuple(plain.items()) if by_keys else (),
            tuple(sorted(facts.places)),
            told,
            tuple(dict.fromkeys(self._late.judgings)),
        )

    # -- queries -------------------------------------------------------------------------------------

    def _query(self, start: int, stop: int, wanted: Wanted) -> Facts:
        try:
            return self._shape(parse_query(self.tokens, start, stop), wanted)
        except UnknownShapeError as found:
            raise unsupported(self.tokens, str(found), self.tokens.span(start, stop)) from None

    def _shape(self, shape: Shape, wanted: Wanted) -> Facts:
        if isinstance(shape, Ordered):
            facts = self._shape(shape.query, wanted)
            asks = any(reads_stream(self.tokens, self.streams, each.expression) for each in shape.order)
            facts = of_first_rows(self.tokens, facts, [] if asks else shape.order)
            facts = replace(facts, raw=False, holds="of ORDER BY and LIMIT", updates=True, plain={})
            return self._told("first rows in order", facts, ALL_ROWS)
        if isinstance(shape, SetOperation):
            return self._set_operation(shape)
        return self._select(shape, wanted)

    def _set_operation(self, shape: SetOperation) -> Facts:
        left, right = (self._shape(side, Wanted(keys=False)) for side in (shape.left, shape.right))
        columns: list[tuple[str, EventColumn | None]] = []
        for (name, one), (_, other) in zip(left.columns or (), right.columns or (), strict=False):
            columns.append((name, in_both(one, other)))
        events = {name: event for name, event in columns if event is not None}
        is_union = shape.operator == "union" and shape.all
        told_apart = not is_union or left.grouped or right.grouped or left.whole or right.whole
        if self.watermark is not None and not events:
            raise never_complete(
                self.tokens, self.place, "the sides of a set operator have no event time in common", None
            )
        facts = Facts(
            events,
            tuple(columns) or None,
            whole=told_apart or bool(events),
            counted=told_apart,
            raw=False,
            updates=left.updates or right.updates or shape.operator == "except",
            streams=left.streams | right.streams,
            places=left.places | right.places,
            holds="of a set operator",
            settling=combined(
                left.settling, right.settling, lacking="EXCEPT" if shape.operator == "except" else None
            ),
        )
        name = f"{shape.operator} all" if shape.all else shape.operator
        return self._told(name, facts, None if is_union else ALL_ROWS)

    def _select(self, select: Select, wanted: Wanted) -> Facts:
        tokens = self.tokens
        grouped = (
            select.group_by is not None
            or select.having is not None
            or any(calls_aggregate(tokens, item) for item in select.items)
        )
        inner = Wanted(wanted.keys and not select.distinct and not grouped)
        if not grouped and not select.distinct:
            inner = replace(inner, watermark_of=wanted.watermark_of, numbers=wanted.numbers)
        judges = grouped or (select.distinct and self._late.names_columns(select))
        if judges:
            inner = replace(inner, watermark_of=frozenset(streams_beneath(self.tokens, self.streams, select)))
        sides: Sides = [(item, self._relation(item, inner)) for item in select.source]
        sides = joined(tokens, select, linked(tokens, select, sides))
        self._blocks[select.items[0][0] - 1 - select.distinct] = (select.where, sides)
        streams = frozenset().union(*(facts.streams for _, facts in sides))
        places = frozenset().union(*(facts.places for _, facts in sides))
        subqueries = self._subqueries(select)
        calls = calls_over(tokens, select) if streams else []
        holds = next((facts.holds for _, facts in sides if facts.holds), None)
        own = self._holds(sides, reads_streams=bool(subqueries), has_over=calls != [])
        meeting: tuple[tuple[Ending, ...], ...] = ()
        if own == "of a join":
            meeting = met(sides, judges=judges, waits=self.watermark is not None)
            self._met_by_keys |= any(isinstance(each, Closed) for each in chain(*meeting))
        sides, settling = beside(tokens, unpaired(sides), select.where, subqueries)
        if own == "of a subquery" or calls != []:
            sides = [(item, replace(facts, plain={})) for item, facts in sides]
        holds = holds or (own if not meeting else None if calls == [] else "of OVER")
        updates = any(facts.updates for _, facts in sides) or own == "of a subquery" or calls != []
        if len(sides) > 1 and streams:
            updates = updates or (own == "of a join" and any(item.join not in _GROWING for item, _ in sides))
            events = {name: event for _, facts in sides for name, event in facts.events.items()}
            kept = None
            if own == "of a join":
                kept = kept_of_joins(meeting)
            self._told("join", Facts(events, streams=streams, places=places, updates=updates), kept)
        if grouped:
            self._late.hide_watermarks(select, sides)
            wished = replace(wanted, keys=wanted.keys and not select.distinct)
            facts = self._groups(select, sides, settling, wished, streams)
            facts = replace(facts, **self._kept(select, sides, holds, meeting))
            if calls != []:
                facts = self._over(facts, calls, select, sides, wished)
            by = [(key, event_of(tokens, key, sides)) for key in keys_of(self.tokens, select, sides)]
            promised = [key for key, _ in by if plain_of(tokens, key, sides)]
            named = f"group by {shown(tokens, [key for key, _ in by])}" if by else "one group"
            self._told(named, facts, kept_of_groups(tokens, by, promised if keeps_by_keys(facts) else ()))
            return self._told_apart(facts, facts.holds) if select.distinct else facts
        columns = columns_of(self.tokens, select, sides)
        events = {name: event for name, event in columns or () if event is not None}
        if columns is None:
            events = starred(self.tokens, select, sides)
        if select.distinct:
            closes = (*(each for _, facts in sides for each in facts.closes), *meeting)
            plain = selected(tokens, select, sides)
            facts = Facts(
                events,
                columns,
                streams=streams,
                places=places,
                closes=closes,
                updates=updates,
                plain=plain,
                settling=settling,
            )
            if calls != []:
                facts = self._over(facts, calls, select, sides, inner)
            if judges:
                self._late.leave_copies_out(select, sides)
            return self._told_apart(facts, holds if judges else "of DISTINCT")
        hidden, watermarks, numbers = self._passed(select, sides, wanted)
        keys = {new: facts.keys[old] for _, facts, old, new in hidden if old in facts.keys}
        inside = {new: facts.events[old] for _, facts, old, new in hidden if old in facts.events}
        plain = {new: facts.plain[old] for _, facts, old, new in hidden if old in facts.plain}
        facts = Facts(
            {**events, **inside},
            columns,
            tuple(new for *_, new in hidden),
            keys,
            any(facts.grouped for _, facts in sides),
            any(facts.whole for _, facts in sides),
            any(facts.counted for _, facts in sides),
            all(facts.raw for _, facts in sides) and select.qualify is None,
            updates,
            streams,
            places,
            watermarks,
            numbers,
            (*(each for _, facts in sides for each in facts.closes), *meeting),
            holds,
            {**selected(tokens, select, sides), **plain},
            settling,
        )
        if calls != []:
            facts = self._over(facts, calls, select, sides, wanted)
        else:
            within = [*bounded_in_joins(tokens, sides), *bounded_beside(tokens, sides, subqueries)]
            parts = [(event, self._edits.piece(*part)) for event, part in within]
            facts = self._with_hidden(facts, [*self._of_several(sides), *parts], select, wanted)
        has = {"of OVER": "select with OVER", "of a subquery": "select with a subquery"}.get(own or "")
        return self._told(has or "select", facts, ALL_ROWS if has else None)

    @staticmethod
    def _of_several(sides: Sides) -> list[tuple[EventColumn, SqlText]]:
        """The columns of event time that tell of several streams, as those that a join has equal."""
        return [
            (event, SqlText.of(f"{quoted(item.alias)}." if item.alias else "", quoted(name)))
            for item, facts in seen(sides)
            for name, event in facts.events.items()
            if event.peers
        ]

    def _over(
        self, facts: Facts, calls: Sequence[WindowCall] | None, select: Select, sides: Sides, wanted: Wanted
    ) -> Facts:
        """A block with functions over windows; it also has, as hidden columns, those that still tell."""
        settling, telling = of_over(self.tokens, calls, sides, facts.settling)
        facts = replace(told_only(facts, telling), settling=settling)
        parts = [(event, self._edits.piece(*part)) for event, part in telling.items()]
        return self._with_hidden(facts, parts, select, wanted)

    def _with_hidden(
        self, facts: Facts, telling: Iterable[tuple[EventColumn, SqlText]], select: Select, wanted: Wanted
    ) -> Facts:
        """A block that has these columns too, where it is to be told when its rows stay."""
        if not wanted.keys or self.watermark is None:
            return facts
        place, last = select.items[0][0], select.items[-1][1]
        known = [*events_of(facts).values()]
        events, keys, hidden = dict(facts.events), dict(facts.keys), [*facts.hidden]
        for event, text in telling:
            if event.tells and event not in known:
                name = f"{HIDDEN}{place}_by{len(hidden)}"
                self._edits.put(last, ", ", text, f"AS {name}")
                known.append(event)
                hidden.append(name)
                events[name] = event
                keys |= {name: event} if facts.grouped else {}
        return replace(facts, events=events, keys=keys, hidden=tuple(hidden))

    def _told_apart(self, facts: Facts, holds: str | None) -> Facts:
        """A relation of which each row is there once."""
        closing = closing_of(facts.events.values(), facts.plain.values(), facts.places)
        closes = (*facts.closes, closing) if closing else facts.closes
        if not facts.places <= {each.origin for each in closing}:
            holds = holds or "of DISTINCT"
        ending = [name for name, event in facts.events.items() if event.greatest is not None]
        kept = (
            f"rows until the watermark has passed {', '.join(ending)}" if ending and not holds else ALL_ROWS
        )
        told = Facts(
            facts.events,
            facts.columns,
            whole=True,
            counted=True,
            raw=False,
            updates=facts.updates,
            streams=facts.streams,
            places=facts.places,
            closes=closes,
            holds=holds,
            plain=facts.plain,
            settling=facts.settling,
        )
        return self._told("distinct", told, kept)

    def _holds(self, sides: Sides, *, reads_streams: bool, has_over: bool) -> str | None:
        """Why rows of streams in FROM may be needed for ever; None if only groups need them."""
        of_streams = [place for place, (_, facts) in enumerate(sides) if facts.streams]
        if reads_streams or not of_streams:
            return "of a subquery"
        joins = {item.join for item, _ in sides[1:]}
        if len(of_streams) > 1 or not joins <= ({"inner"} if of_streams[0] else _OF_THE_FIRST):
            return "of a join"
        return "of OVER" if has_over else None

    def _kept(
        self, select: Select, sides: Sides, holds: str | None, meeting: tuple[tuple[Ending, ...], ...]
    ) -> dict[str, Any]:
        """Until when groups need their rows."""
        events = [event_of(self.tokens, key, sides) for key in keys_of(self.tokens, select, sides)]
        places = frozenset[int]().union(*(facts.places for _, facts in sides))
        keys = keys_of(self.tokens, select, sides)
        closing = closing_of(events, [plain_of(self.tokens, key, sides) for key in keys], places)
        inner = (*(each for _, facts in sides for each in facts.closes), *meeting)
        if not closing:
            return {"holds": holds or "of a group without a key of event time"}
        if not places <= {each.origin for each in closing}:
            holds = holds or "of a join"
        return {"closes": (*inner, closing), "holds": holds}

    def _passed(
        self, select: Select, sides: Sides, wanted: Wanted
    ) -> tuple[list[tuple[FromItem, Facts, str, str]], tuple[str, ...], tuple[str, ...]]:
        """The columns of ours that SELECT is given too: (side, facts, name there, name here), and others."""
        hidden: list[tuple[FromItem, Facts, str, str]] = []
        watermarks: list[str] = []
        numbers: list[str] = []
        place = select.items[0][0]
        last = select.items[-1][1]
        for number, (item, facts) in enumerate(sides):
            joins_one_side = item.join in ("semi", "anti")
            alias = f"{quoted(item.alias)}." if item.alias else ""
            if wanted.keys and not joins_one_side:
                for count, name in enumerate(facts.hidden):
                    new = f"{HIDDEN}{place}_{number}_{count}"
                    self._edits.put(last, f", {alias}{quoted(name)} AS {new}")
                    hidden.append((item, facts, name, new))
            if joins_one_side:
                continue
            starred = any(covers(self.tokens, each, item) for each in select.items)
            watermarks += facts.watermarks if wanted.watermark_of else ()
            numbers += facts.numbers if wanted.numbers else ()
            for name in (*facts.watermarks, *facts.numbers):
                if name in (*watermarks, *numbers) and not starred:
                    self._edits.put(last, f", {alias}{quoted(name)}")
        return hidden, tuple(watermarks), tuple(numbers)

    def _subqueries(self, select: Select) -> list[Subquery]:
        """The subqueries of a block's expressions that read streams."""
        found = []
        clauses = (
            select.where,
            select.having,
            select.qualify,
            select.group_by,
            *select.items,
            *(each.on for each in select.source),
        )
        for start, stop in (clause for clause in clauses if clause is not None):
            at = start
            while at < stop:
                if self.tokens.is_symbol(at, "(") and self.tokens.word(at + 1) in ("SELECT", "WITH"):
                    if reads_stream(self.tokens, self.streams, (at, self.tokens.partner[at])):
                        facts = self._query(at + 1, self.tokens.partner[at], Wanted(keys=False))
                        found.append(Subquery(at, facts, *self._blocks.get(at + 1, ())))
                    at = self.tokens.partner[at]
                at += 1
        return found

    # -- groups --------------------------------------------------------------------------------------

    def _groups(
        self,
        select: Select,
        sides: Sides,
        within: Settling,
        wanted: Wanted,
        streams: frozenset[str],
    ) -> Facts:
        keys = keys_of(self.tokens, select, sides)
        events = [event_of(self.tokens, key, sides) for key in keys]
        plains = [plain_of(self.tokens, key, sides) for key in keys]
        places = frozenset[int]().union(*(facts.places for _, facts in sides))
        settling = cut(within, events, "groups")
        may_end = self.watermark is None or not streams or are_told(plains, places)
        if not may_end and any(events) and NEVER in settling.whole and not self.endless:
            raise may_go(self.place, within.why or "groups by event time of one of several streams")
        if not may_end and not any(events):
            at = select.group_by or select.items[0]
            raise never_complete(
                self.tokens,
                self.place,
                "a group without a key of event time is never complete",
                self.tokens.span(*at),
                may_live=bool(keys) and all(facts.raw for _, facts in sides),
            )
        if streams and not any(events):
            self.endless.append(Endless(select, tuple(keys), sides))
        telling = [(self._edits.piece(*key), event) for key, event in zip(keys, events, strict=True) if event]
        self._late.leave_out(select, sides, telling)
        place, last = select.items[0][0], select.items[-1][1]
        hidden: dict[str, EventColumn | None] = {}
        plain: dict[str, Plain] = {}
        if wanted.keys:
            for number, (key, event, own) in enumerate(zip(keys, events, plains, strict=True)):
                name = f"{HIDDEN}{place}_{number}"
                self._edits.put(last, ", ", self._edits.piece(*key), f"AS {name}")
                hidden[name] = event
                plain |= {name: own} if own else {}
        columns: list[tuple[str, EventColumn | None]] = []
        for item in select.items:
            expression = without_alias(self.tokens, item)
            which = place_in(self.tokens, keys, expression, select.source)
            columns.append((name_of(self.tokens, item), None if which is None else events[which]))
            own = frozenset() if which is None else plains[which]
            plain |= {name_of(self.tokens, item): own} if own else {}
        known = {name: event for name, event in columns if event is not None}
        return Facts(
            known,
            tuple(columns),
            tuple(hidden),
            hidden,
            grouped=True,
            whole=False,
            raw=False,
            updates=True,
            streams=streams,
            places=places,
            plain=plain,
            settling=settling,
        )
