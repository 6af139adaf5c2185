"""Event time of expressions: of columns, and of what rises with one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from windrow.plan.columns import ROWS, Expression, Scope, resolve
from windrow.plan.event_time.facts import EventColumn
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.rising import goes_by_zone, rising
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["column_named", "event_of", "within"]

ColumnOf = Callable[[Range], "str | None"]
EventOf = Callable[[str], "EventColumn | None"]


def column_named(tokens: TokenList, part: Range, scope: Scope) -> str | None:
    """The id of the column that a stretch of an expression names; None if it names none."""
    start, stop = within(tokens, part)
    expression = parse_expression(tokens, start, stop) if start < stop else None
    if not isinstance(expression, Name):
        return None
    if len(expression.parts) == 2 and expression.parts[0] == ROWS:
        return expression.parts[1]
    return resolve(expression, scope.parts)


def event_of(one: Expression, scope: Scope, event: EventOf) -> EventColumn | None:
    """The event time of an expression over rows, of whose columns it is known."""
    tokens = tokenize(one.text.render())
    return _event(tokens, (0, len(tokens)), lambda part: column_named(tokens, part, scope), event)


def within(tokens: TokenList, part: Range) -> Range:
    """A stretch without the brackets around it."""
    start, stop = part
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    return start, stop


def _event(tokens: TokenList, part: Range, column: ColumnOf, event: EventOf) -> EventColumn | None:
    start, stop = within(tokens, part)
    if start >= stop:
        return None
    named = column((start, stop))
    if named is not None:
        return event(named)
    inner = rising(tokens, start, stop)
    found = _event(tokens, inner, column, event) if inner is not None else None
    if found is None or inner is None:
        return None
    if found.clocks and goes_by_zone(tokens, start, stop, is_local=found.clocks == "TIMESTAMP_NTZ"):
        return None
    is_date = tokens.word(start) in ("DATE", "TO_DATE") or tokens.word(stop - 2) == "DATE"
    before = tokens.sql[tokens[start].start : tokens[inner[0]].start]
    after = tokens.sql[tokens[inner[1] - 1].stop : tokens[stop - 1].stop]
    if "?" in before + after:
        return None
    return replace(
        mapped(found, lambda text: f"({before}{text}{after})"), clocks=None if is_date else found.clocks
    )


def mapped(event: EventColumn, by: Callable[[str], str]) -> EventColumn:
    """The event time of what is made of a column."""
    return replace(
        event,
        mapped=by(event.mapped),
        greatest=event.greatest and by(event.greatest),
        settled=event.settled and by(event.settled),
        peers=tuple((origin, last and by(last)) for origin, last in event.peers),
    )
