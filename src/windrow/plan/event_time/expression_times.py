"""The event time of expressions: columns, and functions that are monotone in one column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from windrow.plan.columns import Expression, Scope, column_named, within
from windrow.plan.event_time.facts import EventColumn
from windrow.syntax.expressions.rising import goes_by_zone, rising
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["coalesced", "event_of"]

ColumnOf = Callable[[Range], "str | None"]
EventOf = Callable[[str], "EventColumn | None"]


def event_of(one: Expression, scope: Scope, event: EventOf) -> EventColumn | None:
    """The event time of an expression over rows, from the event time of their columns."""
    tokens = tokenize(one.text.render())
    return _event(tokens, (0, len(tokens)), lambda part: column_named(tokens, part, scope), event)


def coalesced(one: Expression, scope: Scope) -> tuple[str, str] | None:
    """The two columns of which an expression is the first that is not NULL; None for other expressions."""
    tokens = tokenize(one.text.render())
    start, stop = within(tokens, (0, len(tokens)))
    is_call = tokens.word(start) == "COALESCE" and tokens.is_symbol(start + 1, "(")
    if not is_call or tokens.partner[start + 1] != stop - 1:
        return None
    first, *rest = (column_named(tokens, part, scope) for part in tokens.split(start + 2, stop - 1))
    (second,) = rest if len(rest) == 1 else (None,)
    return None if first is None or second is None else (first, second)


def _event(tokens: TokenList, part: Range, column: ColumnOf, event: EventOf) -> EventColumn | None:
    start, stop = within(tokens, part)
    if start >= stop:
        return None
    named = column((start, stop))
    if named is not None:
        return event(named)
    inner = rising(tokens, start, stop)
    found = _event(tokens, inner, column, event) if inner is not None else None
    if found is None or inner is None or found.merges is not None:
        return None
    if found.zoned and goes_by_zone(tokens, start, stop, is_local=found.zoned == "TIMESTAMP_NTZ"):
        return None
    is_date = tokens.word(start) in ("DATE", "TO_DATE") or tokens.word(stop - 2) == "DATE"
    before = tokens.sql[tokens[start].start : tokens[inner[0]].start]
    after = tokens.sql[tokens[inner[1] - 1].stop : tokens[stop - 1].stop]
    if "?" in before + after:
        return None
    return replace(
        mapped(found, lambda text: f"({before}{text}{after})"), zoned=None if is_date else found.zoned
    )


def mapped(event: EventColumn, by: Callable[[str], str]) -> EventColumn:
    """The event time of an expression; `by` makes its SQL from the SQL of a column."""
    return replace(
        event,
        mapped=by(event.mapped),
        greatest=event.greatest and by(event.greatest),
        least_open=event.least_open and by(event.least_open),
        peers=tuple((origin, last and by(last)) for origin, last in event.peers),
    )
