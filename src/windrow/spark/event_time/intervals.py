"""Joins within an interval: conditions that bound the event time of the other side from above.

Of ``o LEFT JOIN p ON o.id = p.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES`` a row of `o` without
a partner is final when the watermark of `p` is above ``o.ts + INTERVAL 10 MINUTES``. So that expression is a
column of event time of the join's rows, by the watermark of `p`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from windrow.spark.event_time.columns import column_of, event_of
from windrow.spark.event_time.facts import EventColumn, Facts, Sides
from windrow.spark.event_time.settling import Subquery, is_inside, spanned
from windrow.syntax.expressions import Literal, Name, Operation, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import conjuncts
from windrow.syntax.tokens import Kind, TokenList

__all__ = ["bounded_beside", "bounded_in_joins"]

_LACKING = {"left": (1,), "anti": (1,), "right": (0,), "full": (0, 1)}
"""Of joins of two relations, those that a row may lack."""


def bounded_in_joins(tokens: TokenList, sides: Sides) -> Iterator[tuple[EventColumn, Range]]:
    """What a row of a join of two streams without a partner waits for: the other side's event time, and the
    expression over the row that is above all of it that can meet the row.
    """
    streams = [facts for _, facts in sides if facts.streams]
    if len(sides) != 2 or len(streams) != 2 or sides[1][0].on is None:
        return
    for missing in _LACKING.get(sides[1][0].join, ()):
        for less, greater in _ordered(tokens, sides[1][0].on):
            if _side_of(tokens, less, sides) == missing and _side_of(tokens, greater, sides) == 1 - missing:
                yield from _bounded(tokens, less, greater, sides, sides[missing][1])


def bounded_beside(
    tokens: TokenList, sides: Sides, subqueries: Iterable[Subquery]
) -> Iterator[tuple[EventColumn, Range]]:
    """The same of rows beside subqueries that read them, as those of NOT EXISTS."""
    for query in subqueries:
        for less, greater in [] if query.where is None else _ordered(tokens, query.where):
            name = _time_in(tokens, greater)
            is_outer = name is not None and not is_inside(tokens, name, query.inside)
            if is_outer and _side_of(tokens, greater, sides) is not None:
                yield from _bounded(tokens, less, greater, query.inside, query.facts)


def _bounded(
    tokens: TokenList, less: Range, greater: Range, sides: Sides, facts: Facts
) -> Iterator[tuple[EventColumn, Range]]:
    """The event time of rows that are below an expression, where it tells when no more of them come."""
    event = event_of(tokens, less, sides) or _counted(tokens, less, sides)
    if event is not None and event.sessions is None and facts.settling.whole <= spanned([event]):
        made = replace(event, tells_late=False, greatest=None, settled=None, is_optional=False)
        yield made, greater


def _counted(tokens: TokenList, item: Range, sides: Sides) -> EventColumn | None:
    """The event time of a sum or difference of a rowtime that is a number and a whole number."""
    name = _time_in(tokens, item)
    event = None if name is None else event_of(tokens, name, sides)
    if event is None or name is None or any(tokens.word(at) == "INTERVAL" for at in range(*item)):
        return None
    before = tokens.sql[tokens[item[0]].start : tokens[name[0]].start]
    after = tokens.sql[tokens[name[1] - 1].stop : tokens[item[1] - 1].stop]
    return replace(event, mapped=f"({before}{event.mapped}{after})")


def _ordered(tokens: TokenList, clause: Range) -> Iterator[tuple[Range, Range]]:
    """The expressions of a condition of which one is at most the other in all rows."""
    for part in conjuncts(tokens, *clause):
        match parse_expression(tokens, *part):
            case Operation("<" | "<=", (less, greater)) | Operation(">" | ">=", (greater, less)):
                yield less.range, greater.range
            case Operation("BETWEEN", (value, low, high)):
                yield low.range, value.range
                yield value.range, high.range


def _side_of(tokens: TokenList, item: Range, sides: Sides) -> int | None:
    """The relation of whose event time an expression is, or is a shift of it."""
    name = _time_in(tokens, item)
    found = None if name is None else column_of(tokens, name, sides, lambda facts: facts.events)
    return None if found is None else found[0]


def _time_in(tokens: TokenList, item: Range) -> Range | None:
    """The name in an expression that is one, or the sum or difference of one and a length of time."""
    start, stop = item
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    if start < stop and isinstance(parse_expression(tokens, start, stop), Name):
        return start, stop
    for at in reversed(list(tokens.level(start, stop))):
        if start < at < stop - 1 and (tokens.is_symbol(at, "+") or tokens.is_symbol(at, "-")):
            return _time_in(tokens, (start, at)) if _is_length(tokens, at + 1, stop) else None
    return None


def _is_length(tokens: TokenList, start: int, stop: int) -> bool:
    """Whether an interval or a whole number is written there."""
    if tokens.word(start) == "INTERVAL":
        return not any(tokens.is_symbol(at, ".") or tokens.is_symbol(at, "(") for at in range(start, stop))
    is_number = stop == start + 1 and tokens[start].kind is Kind.NUMBER and tokens[start].text.isdigit()
    return is_number and isinstance(parse_expression(tokens, start, stop), Literal)
