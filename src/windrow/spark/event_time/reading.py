"""Reads a query over streams: finds groups and event time, and adds columns of ours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from windrow.algebra.time_windows import TimeWindow
from windrow.errors import Span
from windrow.spark.event_time.beneath import reads_stream, streams_beneath
from windrow.spark.event_time.columns import canonical, columns_of, event_of, name_of, starred
from windrow.spark.event_time.edits import Edits
from windrow.spark.event_time.facts import (
    HIDDEN,
    Closed,
    Closing,
    Ending,
    EventColumn,
    Facts,
    Occurrence,
    Plain,
    Sides,
    Timed,
    Wanted,
)
from windrow.spark.event_time.joins import complete_by, events_of, linked
from windrow.spark.event_time.keys import keys_of
from windrow.spark.event_time.late import Late, covers
from windrow.spark.event_time.lifetimes import Endless
from windrow.spark.event_time.operators import (
    ALL_ROWS,
    Operator,
    kept_of_groups,
    kept_of_joins,
    operator,
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
from windrow.spark.event_time.refusals import never_complete, unsupported
from windrow.spark.event_time.windows import greatest, mapped, settled, told_sessions
from windrow.spark.grouping import calls_aggregate, without_alias
from windrow.syntax.nodes import Range
from windrow.syntax.queries import (
    FromItem,
    Ordered,
    Select,
    SetOperation,
    Shape,
    UnknownShapeError,
    parse_query,
)
from windrow.syntax.sqltext import Relation, SqlText, quoted
from windrow.syntax.streams import alias_after
from windrow.syntax.table_functions import LIFE, WINDOWS, FunctionCall, call_at, window_call
from windrow.syntax.tokens import TokenList

__all__ = ["EventTimes"]

_GROWING = {"inner", "semi"}  # which give no row that leaves again, of what only grows
_OF_THE_FIRST = {"inner", "left", "semi", "anti"}  # of which each row of the first side is by itself


class EventTimes:
    """Reads one query.

    Parameters
    ----------
    tokens
        The text, in which named queries over streams stand where they are used.
    streams
        The columns of each stream and its rowtime's, by its name in lower case.
    window_of
        A windowing function with its lengths.
    watermark
        Where AFTER WATERMARK stands, if it does.
    place
        The user's text, and where in it errors about that clause are.
    functions
        Those of the user's own, by name.
    promising
        The streams that may promise patterns.

    Attributes
    ----------
    endless
        The groups over streams that have been read which have no key of event time.
    """

    def __init__(
        self,
        tokens: TokenList,
        streams: Mapping[str, tuple[tuple[str, ...], str]],
        window_of: Callable[[FunctionCall], TimeWindow],
        watermark: Span | None,
        place: tuple[str, Span | None],
        functions: Collection[str] = (),
        promising: Collection[str] = (),
    ) -> None:
        self.tokens, self.streams, self.window_of, self.watermark = tokens, streams, window_of, watermark
        self.place, self.functions, self.promising = place, functions, promising
        self._called_own = self._met_by_keys = False
        self._edits = Edits(tokens)
        self._late = Late(tokens, self._edits)
        self._occurrences: list[Occurrence] = []
        self.endless: list[Endless] = []
        self._operators: list[Operator] = []
        self._sessions: list[tuple[FunctionCall, TimeWindow, str, str]] = []  # of: times, numbers

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
            if self.endless:  # time does not tell of what is made of groups that it does not end
                events = {}
            if facts.streams and not any(events.values()) and not by_keys:
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
            facts.streams,
            closes,
            holds,
            tuple(sessions),
            tuple(map(str, self._operators)),
            any(window.names == LIFE for _, window, *_ in self._sessions),
            self._called_own,
            tuple(plain.items()) if by_keys else (),
            tuple(sorted(facts.places)),
            told,
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
            facts = replace(facts, raw=False, holds="of ORDER BY and LIMIT", updates=True, plain={})
            return self._told("first rows in order", facts, ALL_ROWS)
        if isinstance(shape, SetOperation):
            return self._set_operation(shape)
        return self._select(shape, wanted)

    def _set_operation(self, shape: SetOperation) -> Facts:
        left, right = (self._shape(side, Wanted(keys=False)) for side in (shape.left, shape.right))
        columns: list[tuple[str, EventColumn | None]] = []
        for (name, one), (_, other) in zip(left.columns or (), right.columns or (), strict=False):
            alike = one is not None and other is not None and one.mapped == other.mapped
            columns.append((name, one if alike else None))
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
        )
        name = f"{shape.operator} all" if shape.all else shape.operator
        return self._told(name, facts, None if is_union else ALL_ROWS)

    def _told(self, name: str, facts: Facts, keeps: str | None = None) -> Facts:
        """What an operator gives, which is remembered for EXPLAIN."""
        if facts.streams:
            self._operators.append(operator(name, facts, keeps))
        return facts

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
        streams = frozenset().union(*(facts.streams for _, facts in sides))
        places = frozenset().union(*(facts.places for _, facts in sides))
        reads_streams = self._subqueries(select)
        holds = next((facts.holds for _, facts in sides if facts.holds), None)
        own = self._holds(select, sides, reads_streams=reads_streams)
        meeting: tuple[tuple[Ending, ...], ...] = ()
        if own == "of a join":
            meeting = met(sides, judges=judges, waits=self.watermark is not None)
            self._met_by_keys |= any(isinstance(each, Closed) for each in chain(*meeting))
        if own in ("of OVER", "of a subquery"):
            sides = [(item, replace(facts, plain={})) for item, facts in sides]
        holds = holds or (None if meeting else own)
        updates = any(facts.updates for _, facts in sides) or own in ("of OVER", "of a subquery")
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
            facts = replace(
                self._groups(select, sides, wished, streams), **self._kept(select, sides, holds, meeting)
            )
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
                events, columns, streams=streams, places=places, closes=closes, updates=updates, plain=plain
            )
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
        )
        beside = {"of OVER": "select with OVER", "of a subquery": "select with a subquery"}.get(own or "")
        return self._told(beside or "select", facts, ALL_ROWS if beside else None)

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
        )
        return self._told("distinct", told, kept)

    def _holds(self, select: Select, sides: Sides, *, reads_streams: bool) -> str | None:
        """Why rows of streams in FROM may be needed for ever; None if only groups need them."""
        of_streams = [place for place, (_, facts) in enumerate(sides) if facts.streams]
        if reads_streams or not of_streams:
            return "of a subquery"
        joins = {item.join for item, _ in sides[1:]}
        if len(of_streams) > 1 or not joins <= ({"inner"} if of_streams[0] else _OF_THE_FIRST):
            return "of a join"
        words = {self.tokens.word(at) for item in select.items for at in range(*item)}
        return "of OVER" if "OVER" in words or select.qualify is not None else None

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

    def _subqueries(self, select: Select) -> bool:
        """Read the subqueries of a block's expressions; they have no part in how its rows are told.

        Whether one of them reads a stream.
        """
        found = False
        clauses = (
            select.where,
            select.having,
            select.qualify,
            *select.items,
            *(each.on for each in select.source),
        )
        for start, stop in (clause for clause in clauses if clause is not None):
            at = start
            while at < stop:
                if self.tokens.is_symbol(at, "(") and self.tokens.word(at + 1) in ("SELECT", "WITH"):
                    if reads_stream(self.tokens, self.streams, (at, self.tokens.partner[at])):
                        found = True
                        self._query(at + 1, self.tokens.partner[at], Wanted(keys=False))
                    at = self.tokens.partner[at]
                at += 1
        return found

    # -- groups --------------------------------------------------------------------------------------

    def _groups(
        self,
        select: Select,
        sides: Sides,
        wanted: Wanted,
        streams: frozenset[str],
    ) -> Facts:
        keys = keys_of(self.tokens, select, sides)
        events = [event_of(self.tokens, key, sides) for key in keys]
        plains = [plain_of(self.tokens, key, sides) for key in keys]
        places = frozenset[int]().union(*(facts.places for _, facts in sides))
        may_end = any(events) or are_told(plains, places)
        if self.watermark is not None and streams and not may_end:
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
        texts = {canonical(self.tokens, key): event for key, event in zip(keys, events, strict=True)}
        same = {canonical(self.tokens, key): own for key, own in zip(keys, plains, strict=True)}
        for item in select.items:
            expression = without_alias(self.tokens, item)
            columns.append((name_of(self.tokens, item), texts.get(canonical(self.tokens, expression))))
            own = same.get(canonical(self.tokens, expression), frozenset())
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
        )

    # -- FROM ----------------------------------------------------------------------------------------

    def _relation(self, item: FromItem, wanted: Wanted) -> Facts:
        facts = self._source(item.source, item.alias, wanted)
        if item.columns and facts.columns is not None:
            columns = tuple(
                (new.lower(), event) for new, (_, event) in zip(item.columns, facts.columns, strict=False)
            )
            if len(columns) == len(facts.columns) and not facts.hidden and not facts.watermarks:
                named = {name: event for name, event in columns if event is not None}
                names = zip((name for name, _ in facts.columns), item.columns, strict=True)
                plain = {new.lower(): facts.plain[old] for old, new in names if old in facts.plain}
                return replace(facts, columns=columns, events=named, plain=plain)
        if item.columns and facts.streams:
            raise unsupported(self.tokens, "other names for the columns", self.tokens.span(*item.source))
        return facts

    def _source(self, source: Range, alias: str | None, wanted: Wanted) -> Facts:
        tokens, (start, stop) = self.tokens, source
        call = call_at(tokens, start, [name.lower() for name in WINDOWS])
        if call is not None and call.tokens[1] == stop:
            return self._window(call, wanted)
        own = call_at(tokens, start, list(self.functions))
        if own is not None and own.tokens[1] == stop and reads_stream(self.tokens, self.streams, source):
            return self._call(own)
        if tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
            inside = start + 1
            while tokens.is_symbol(inside, "(") and tokens.partner[inside] == stop - 1 - (inside - start):
                inside += 1
            if tokens.word(inside) in ("SELECT", "WITH", "(") or tokens.is_symbol(inside, "("):
                return self._query(start, stop, wanted)
            if reads_stream(self.tokens, self.streams, source):
                raise unsupported(self.tokens, "brackets in FROM", tokens.span(start, stop))
            return Facts()
        if stop - start == 1 and tokens[start].is_name and tokens[start].name.lower() in self.streams:
            return self._stream(start, alias, wanted)
        if reads_stream(self.tokens, self.streams, source):
            raise unsupported(self.tokens, f"{tokens[start].text} over a stream", tokens.span(start, stop))
        return Facts()

    def _stream(self, at: int, alias: str | None, wanted: Wanted) -> Facts:
        """The stream that a token names."""
        token = self.tokens[at]
        name = token.name.lower()
        occurrence = Occurrence(f"__arrived{at}", name, at, wanted.watermark_of, wanted.numbers)
        self._occurrences.append(occurrence)
        text = SqlText.of(Relation(occurrence.name))
        is_data = self.tokens.word(at - 1 - self.tokens.is_symbol(at - 1, "(")) == "TABLE"
        named = alias_after(self.tokens, at + 1, len(self.tokens)) is not None
        self._edits.instead[at] = SqlText.of(
            text, " " if named or is_data else f" AS {quoted(alias or token.name)} "
        )
        names, rowtime = self.streams[name]
        event = EventColumn("{t}", at, greatest="{t}")
        columns = tuple((each.lower(), event if each == rowtime else None) for each in names)
        hidden = (rowtime.lower(),) if wanted.keys and self.watermark is not None else ()
        facts = Facts(
            {rowtime.lower(): event},
            columns,
            hidden,
            streams=frozenset([name]),
            places=frozenset([at]),
            watermarks=(occurrence.watermark,) if wanted.watermark_of else (),
            numbers=(occurrence.number,) if wanted.numbers else (),
            plain={each.lower(): frozenset([(at, each)]) for each in names if name in self.promising},
        )
        return self._told(f"stream {name}", facts)

    def _call(self, call: FunctionCall) -> Facts:
        """A function of one's own: of what it makes of streams nothing is known but what it has made."""
        if self.watermark is not None:
            raise unsupported(self.tokens, f"AFTER WATERMARK of {call.name}", self.tokens.span(*call.tokens))
        self._called_own, streams = True, frozenset[str]()
        tokens, asked = self.tokens, Wanted(keys=False)
        for table in (argument.table for argument in call.arguments if argument.table is not None):
            is_query = tokens.word(table[0]) in ("SELECT", "WITH") or tokens.is_symbol(table[0], "(")
            facts = self._query(*table, asked) if is_query else self._source(table, None, asked)
            streams |= facts.streams
        made = Facts(raw=False, streams=streams, updates=True, holds="of a function of one's own")
        return self._told(f"{call.name}, a function of one's own", made, ALL_ROWS)

    def _window(self, call: FunctionCall, wanted: Wanted) -> Facts:
        tokens = self.tokens
        parsed = window_call(tokens, call)
        start, stop = parsed.data
        is_query = tokens.word(start) in ("SELECT", "WITH") or tokens.is_symbol(start, "(")
        if parsed.kind == "SESSION":
            wanted = replace(wanted, numbers=bool(wanted.watermark_of))
        facts = self._query(start, stop, wanted) if is_query else self._source(parsed.data, None, wanted)
        if not facts.streams:
            return Facts()
        name = tokens[start].name if stop - start == 1 and tokens[start].is_name else None
        if name is not None and alias_after(tokens, call.tokens[1], len(tokens)) is None:
            self._edits.put(call.tokens[1], f"AS {quoted(name)}")
        window = self.window_of(call)
        event = facts.events.get(window.time.lower())
        added: dict[str, EventColumn | None] = dict.fromkeys(name.lower() for name in window.names)
        if event is not None:
            last = {} if event.greatest is None else greatest(window, event.greatest)
            later = {} if event.settled is None else mapped(window, event.settled)
            for each, least in mapped(window, event.mapped).items():
                tells_late = window.kind != "SESSION"
                added[each.lower()] = EventColumn(
                    least, event.origin, tells_late, last.get(each), event.sessions, later.get(each)
                )
        holds, closes = facts.holds, facts.closes
        if window.kind == "SESSION":
            if event is not None and facts.watermarks:
                self._late.leave_out_of_sessions(parsed.data, is_query, window, event, facts.watermarks)
            end = added[window.names[1].lower()]
            if event is not None and end is not None and facts.raw and len(facts.numbers) == 1:
                least = settled(window, event.mapped)
                number = len(self._sessions)
                known = replace(end, greatest="{t}", sessions=number, settled=least)
                added[window.names[1].lower()] = known
                closes = (*closes, (Closing("{t}", least, event.origin, number),))
                self._sessions.append((call, window, event.mapped, facts.numbers[0]))
            else:
                holds = holds or "of sessions, which may grow"
        events = {**facts.events, **{name: event for name, event in added.items() if event is not None}}
        columns = None if facts.columns is None else (*facts.columns, *added.items())
        is_session = window.kind == "SESSION"
        of_sessions = {key.lower() for key in window.keys}  # rows of other keys join none of these
        kept = {key: own for key, own in facts.plain.items() if not is_session or key in of_sessions}
        facts = replace(
            facts,
            plain=kept,
            events=events,
            columns=columns,
            numbers=() if is_session else facts.numbers,
            updates=facts.updates or is_session,
            holds=holds,
            closes=closes,
        )
        settled_by = "rows until the watermark has passed the end of their session by the gap"
        keeps = (settled_by if len(closes) > 0 and holds is None else ALL_ROWS) if is_session else None
        kind = "lives of keys" if window.names == LIFE else call.name
        return self._told(f"{kind} by {window.time}", facts, keeps)
