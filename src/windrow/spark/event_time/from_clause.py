"""The relations of FROM: streams, windows of time over them, functions of one's own, and queries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from windrow.algebra.time_windows import TimeWindow
from windrow.errors import Span
from windrow.spark.event_time.beneath import reads_stream
from windrow.spark.event_time.edits import Edits
from windrow.spark.event_time.facts import Closing, EventColumn, Facts, Occurrence, Settling, Sides, Wanted
from windrow.spark.event_time.late import Late
from windrow.spark.event_time.lifetimes import Endless
from windrow.spark.event_time.operators import ALL_ROWS, Operator, operator
from windrow.spark.event_time.refusals import unsupported
from windrow.spark.event_time.settling import cut, told_only
from windrow.spark.event_time.windows import greatest, mapped, settled
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem
from windrow.syntax.sqltext import Relation, SqlText, quoted
from windrow.syntax.streams import alias_after
from windrow.syntax.table_functions import LIFE, WINDOWS, FunctionCall, call_at, window_call
from windrow.syntax.tokens import TokenList

__all__ = ["FromClause"]


class FromClause:
    """What is known of the relations of FROM; what is known of queries there is for others to say.

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
    clocks
        The type of the rowtime of streams, by name in lower case, where it goes by a zone that sets clocks.

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
        clocks: Mapping[str, str] | None = None,
    ) -> None:
        self.tokens, self.streams, self.window_of, self.watermark = tokens, streams, window_of, watermark
        self.place, self.functions, self.promising = place, functions, promising
        self._clocks = clocks or {}
        self._called_own = self._met_by_keys = False
        self._edits = Edits(tokens)
        self._late = Late(tokens, self._edits)
        self._occurrences: list[Occurrence] = []
        self.endless: list[Endless] = []
        self._operators: list[Operator] = []
        self._blocks: dict[int, tuple[Range | None, Sides]] = {}  # WHERE and FROM, by where SELECT stands
        self._sessions: list[tuple[FunctionCall, TimeWindow, str, str]] = []  # of: times, numbers

    @abstractmethod
    def _query(self, start: int, stop: int, wanted: Wanted) -> Facts:
        """What is known of a query."""

    def _told(self, name: str, facts: Facts, keeps: str | None = None) -> Facts:
        """What an operator gives, which is remembered for EXPLAIN."""
        if facts.streams:
            self._operators.append(operator(name, facts, keeps))
        return facts

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
        event = EventColumn("{t}", at, greatest="{t}", clocks=self._clocks.get(name))
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
            settling=Settling(frozenset([at])),
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
            equal = [(at, {} if of is None else greatest(window, of)) for at, of in event.peers]
            for each, least in mapped(window, event.mapped).items():
                added[each.lower()] = replace(
                    event,
                    mapped=least,
                    tells_late=window.kind != "SESSION",
                    greatest=last.get(each),
                    settled=later.get(each),
                    peers=tuple((at, of.get(each)) for at, of in equal),
                    made=call.tokens[0],
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
        is_session = window.kind == "SESSION"
        hidden, settling = facts.hidden, facts.settling
        if is_session:  # rows are in another session when that grows: its end tells, and no other column
            facts, settling = told_only(facts, ()), cut(settling, added.values(), "sessions")
            hidden = (*hidden, window.names[1].lower()) if hidden and not facts.grouped else hidden
        events = {**facts.events, **{name: event for name, event in added.items() if event is not None}}
        columns = None if facts.columns is None else (*facts.columns, *added.items())
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
            hidden=hidden,
            settling=settling,
        )
        settled_by = "rows until the watermark has passed the end of their session by the gap"
        keeps = (settled_by if len(closes) > 0 and holds is None else ALL_ROWS) if is_session else None
        kind = "lives of keys" if window.names == LIFE else call.name
        return self._told(f"{kind} by {window.time}", facts, keeps)
