"""Interval joins: conditions that bound the event time of the other side from above.

In ``o LEFT JOIN p ON o.id = p.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES``, a row of `o` without
a partner is final when the watermark of `p` is above ``o.ts + INTERVAL 10 MINUTES``. So that expression is an
event-time column of the join's rows, with the watermark of `p`.

If both sides are streams, and the interval has both bounds or the event times are equal, a row that arrives
after it would have been final is late (:func:`reaches_of`). So no row retracts a final one, and neither side
is needed for longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from windrow.plan.columns import Expression, Scope, column_named, within
from windrow.plan.event_time.expression_times import event_of, mapped
from windrow.plan.event_time.facts import UNTIL, EventColumn, Facts
from windrow.plan.event_time.finality import LACKING, lacking_in, spanned
from windrow.plan.event_time.join_times import instead, is_own_event_time
from windrow.plan.nodes import Join
from windrow.syntax.expression_nodes import Literal, Name, OperationNode
from windrow.syntax.expressions import parse_expression
from windrow.syntax.expressions.rising import goes_by_zone, rising
from windrow.syntax.nodes import Range
from windrow.syntax.queries import conjuncts
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenKind, TokenList, tokenize

__all__ = ["JoinReach", "as_of", "bounded", "reaches_of"]


def bounded(
    kind: str, conditions: Iterable[Expression], scope: Scope, left: Facts, right: Facts
) -> Iterator[tuple[EventColumn, SqlText]]:
    """The event times that a row without a partner waits for, in a join of two streams.

    Each is the other side's event time, and an expression over the row that bounds it from above in all
    possible partners.
    """
    sides = (left, right)
    for condition in conditions:
        tokens = tokenize(condition.text.render())
        for less, greater in _ordered(tokens):
            places = [_side_of(tokens, part, scope, sides) for part in (less, greater)]
            if None in places or places[0] == places[1] or places[0] not in lacking_in(kind):
                continue
            facts = sides[places[0]]
            text = _slice(tokens, condition.text, less)
            event = event_of(Expression(text, condition.type), scope, facts.events.get)
            event = event or _counted(tokens, less, scope, facts)
            if event is None or event.sessions is not None or not facts.finality.complete <= spanned([event]):
                continue
            made = replace(event, decides_late=False, greatest=None, least_open=None, is_optional=False)
            yield made, _slice(tokens, condition.text, greater)


@dataclass(frozen=True)
class JoinReach:
    """Which rows are partners by event time, in a join of two streams.

    Attributes
    ----------
    own, other
        The columns of event time that are compared: of the side whose rows may have no partner, and of the
        partners.
    events
        The event times of both sides.
    last
        SQL for the last value in a partner, in which ``{t}`` is a row's own.
    first
        SQL for the last value of a row that has another one as a partner, in which ``{t}`` is that of the
        other one.
    """

    own: str
    other: str
    events: tuple[EventColumn, EventColumn]
    last: str = "{t}"
    first: str = "{t}"

    @property
    def needed(self) -> str:
        """SQL for the last value that a partner's own partners can have."""
        return self.last.replace("{t}", self.first)


def reaches_of(node: Join, left: Facts, right: Facts) -> tuple[JoinReach, ...]:
    """The reach of each side whose rows may lack a partner, in an outer or anti join of two streams.

    It is by equal event times, or within an interval with both bounds. Other joins have none.
    """
    if node.kind not in LACKING or any(
        not facts.raw or facts.updates or len(facts.places) != 1 or facts.places != facts.watermarks
        for facts in (left, right)
    ):
        return ()
    found = []
    for lacking in lacking_in(node.kind):
        own, other = (left, right) if lacking == 1 else (right, left)
        keys = [(one, two) if lacking == 1 else (two, one) for one, two in node.keys]
        found.append(_equal(keys, own, other) or _within_interval(node, own, other))
    reaches = tuple(reach for reach in found if reach is not None)
    return reaches if len(reaches) == len(found) else ()


def _equal(keys: Iterable[tuple[str, str]], own: Facts, other: Facts) -> JoinReach | None:
    """The reach by equal event times, which the watermark passes at once."""
    for one, two in keys:
        if is_own_event_time(own, one) and is_own_event_time(other, two):
            events = own.events[one], other.events[two]
            if events[0].mapped == events[1].mapped:
                return JoinReach(one, two, events)
    return None


def _within_interval(node: Join, own: Facts, other: Facts) -> JoinReach | None:
    """The reach within an interval of rowtimes."""
    last, first = list[tuple[str, str, str]](), dict[tuple[str, str], str]()
    for condition in node.conditions:
        tokens = tokenize(condition.text.render())

        def shifted(item: Range, side: Facts, tokens: TokenList = tokens) -> _Shifted | None:
            found = _shifted(tokens, item, node.scope, side)
            return None if found is None or side.events[found.column].peers else found

        for less, greater in _ordered(tokens):
            if (one := shifted(greater, own)) is not None and (two := shifted(less, other)) is not None:
                until = two.back.of(one.of("{t}"))
                if {one.sign, two.back.sign} & {"-"}:  # its own time must be below the watermark too
                    until = f"greatest({{t}}, {until})"
                last.append((one.column, two.column, until))
            if (one := shifted(less, own)) is not None and (two := shifted(greater, other)) is not None:
                first[one.column, two.column] = one.back.of(two.of("{t}"))
    for column, partner, until in last:
        if (column, partner) in first:
            events = own.events[column], other.events[partner]
            return JoinReach(column, partner, events, until, first[column, partner])
    return None


@dataclass(frozen=True)
class _Shifted:
    """A rowtime, and the length added to it or subtracted from it; `sign` is empty without one."""

    column: str
    sign: str = ""
    length: str = ""

    def of(self, text: str) -> str:
        """The same shift of the SQL of another instant."""
        return f"({text} {self.sign} {self.length})" if self.sign else text

    @property
    def back(self) -> _Shifted:
        """The opposite shift."""
        return replace(self, sign={"+": "-", "-": "+"}.get(self.sign, ""))


def _shifted(tokens: TokenList, item: Range, scope: Scope, facts: Facts) -> _Shifted | None:
    """The rowtime of a stream, unchanged or shifted once; None for other expressions."""
    start, stop = within(tokens, item)
    name = _time_in(tokens, (start, stop))
    column = None if name is None else column_named(tokens, name, scope)
    event = facts.events.get(column or "")
    if name is None or column is None or event is None or event.mapped != "{t}":
        return None
    if name == (start, stop):
        return _Shifted(column)
    length = tokens.sql[tokens[name[1] + 1].start : tokens[stop - 1].stop]
    if name[0] != start or "-" in length or not _is_length(tokens, name[1] + 1, stop):
        return None
    if tokens.word(name[1] + 1) == "INTERVAL":  # shifts by months, and by local time, cannot be undone
        by_zone = event.zoned and goes_by_zone(tokens, start, stop, is_local=event.zoned == "TIMESTAMP_NTZ")
        if rising(tokens, start, stop) is None or by_zone:
            return None
    return _Shifted(column, tokens[name[1]].text, length)


def as_of(facts: Facts, conditions: Iterable[Expression], scope: Scope) -> Facts:
    """The facts of rows that a condition limits to the versions valid at a time.

    Their event time then includes the stream of the versions. The condition is ``until IS NULL OR time <
    until``. The time is a rowtime, or before it: the watermark has passed it when it has passed the rowtime.
    """
    for condition in conditions:
        tokens = tokenize(condition.text.render())
        named = any(token.is_name and token.name.startswith(UNTIL) for token in tokens.tokens)
        for start, stop in conjuncts(tokens, 0, len(tokens)) if named else ():
            for less, greater in _compared(tokens, *within(tokens, (start, stop))):
                until = column_named(tokens, greater, scope)
                time = _shifted(tokens, less, scope, facts)
                event = None if time is None or time.sign == "+" else facts.events[time.column]
                versions = facts.versions.get(until or "")
                if event is not None and versions is not None:
                    others = ((origin, None) for origin in sorted(versions))
                    facts = instead(facts, event, replace(event, peers=(*event.peers, *others)))
    return facts


def _compared(tokens: TokenList, start: int, stop: int) -> Iterator[tuple[Range, Range]]:
    """The comparisons in the alternatives of a condition, as the lesser and the greater side."""
    match parse_expression(tokens, start, stop):
        case OperationNode("OR", operands):
            for operand in operands:
                yield from _compared(tokens, *operand.range)
        case OperationNode("<", (less, greater)):
            yield less.range, greater.range


def _slice(tokens: TokenList, text: SqlText, part: Range) -> SqlText:
    span = tokens.span(*part)
    return text.slice(span.start, span.stop)


def _counted(tokens: TokenList, item: Range, scope: Scope, facts: Facts) -> EventColumn | None:
    """The event time of a numeric rowtime plus or minus an integer."""
    name = _time_in(tokens, item)
    column = None if name is None else column_named(tokens, name, scope)
    event = facts.events.get(column or "")
    if event is None or name is None or any(tokens.word(at) == "INTERVAL" for at in range(*item)):
        return None
    before = tokens.sql[tokens[item[0]].start : tokens[name[0]].start]
    after = tokens.sql[tokens[name[1] - 1].stop : tokens[item[1] - 1].stop]
    return mapped(event, lambda text: f"({before}{text}{after})")


def _ordered(tokens: TokenList) -> Iterator[tuple[Range, Range]]:
    """The pairs of expressions in a condition whose first is at most the second in all rows."""
    for part in conjuncts(tokens, 0, len(tokens)):
        match parse_expression(tokens, *part):
            case OperationNode("<" | "<=", (less, greater)) | OperationNode(">" | ">=", (greater, less)):
                yield less.range, greater.range
            case OperationNode("BETWEEN", (value, low, high)):
                yield low.range, value.range
                yield value.range, high.range


def _side_of(tokens: TokenList, item: Range, scope: Scope, sides: tuple[Facts, Facts]) -> int | None:
    """The side whose event time an expression is, with or without a shift."""
    name = _time_in(tokens, item)
    column = None if name is None else column_named(tokens, name, scope)
    return next((place for place, facts in enumerate(sides) if column in facts.events), None)


def _time_in(tokens: TokenList, item: Range) -> Range | None:
    """The name in an expression that is a name, or a name plus or minus a length of time."""
    start, stop = within(tokens, item)
    if start < stop and isinstance(parse_expression(tokens, start, stop), Name):
        return start, stop
    for at in reversed(list(tokens.level(start, stop))):
        if start < at < stop - 1 and (tokens.is_symbol(at, "+") or tokens.is_symbol(at, "-")):
            return _time_in(tokens, (start, at)) if _is_length(tokens, at + 1, stop) else None
    return None


def _is_length(tokens: TokenList, start: int, stop: int) -> bool:
    """Whether the tokens are an interval or a whole number."""
    if tokens.word(start) == "INTERVAL":
        return not any(tokens.is_symbol(at, ".") or tokens.is_symbol(at, "(") for at in range(start, stop))
    is_number = stop == start + 1 and tokens[start].kind is TokenKind.NUMBER and tokens[start].text.isdigit()
    return is_number and isinstance(parse_expression(tokens, start, stop), Literal)
