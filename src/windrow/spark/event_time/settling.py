"""When rows of relations stay: of which streams the time must be past them, and which columns tell that.

Rows that are made of rows which only come stay. Others go again when more rows come, until none can come that
changes them:

| relation | no row like it comes or goes, when past are | it stays, when past are |
|---|---|---|
| a stream | the stream | – |
| SELECT, windows of a length | those of FROM | those of FROM |
| sessions, groups, OVER, LIMIT | those of FROM, in a column by which they are cut | the same |
| inner and semi joins, UNION, INTERSECT | those of both sides | those of both sides |
| left joins, anti joins, EXCEPT | those of both sides | those of the first, and of the second all |
| right and full joins | those of both sides | all of what a row may lack |

A column that is in none of these, as the rowtime under a rank by price, tells nothing any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from windrow.spark.event_time.columns import column_of, event_of
from windrow.spark.event_time.facts import UNTIL, EventColumn, Facts, Settling, Sides
from windrow.spark.event_time.joins import equal_parts, instead, marked, told_by
from windrow.spark.event_time.refusals import ANTI_JOIN
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.queries import Select, UnknownShapeError, conjuncts
from windrow.syntax.tokens import TokenList
from windrow.syntax.window_calls import WindowCall, window_calls

__all__ = [
    "NEVER",
    "Subquery",
    "beside",
    "calls_over",
    "combined",
    "cut",
    "is_inside",
    "of_first_rows",
    "of_over",
    "spanned",
    "told_only",
]

NEVER = -1
"""Stands for a stream whose time is never past."""

_LACKING = {"left": "a LEFT JOIN", "right": "a RIGHT JOIN", "full": "a FULL JOIN", "anti": ANTI_JOIN}


def spanned(events: Iterable[EventColumn | None]) -> frozenset[int]:
    """The streams of which columns tell that their time is past a row."""
    return frozenset(
        origin for event in events if event is not None and event.tells for origin in event.origins
    )


def cut(within: Settling, events: Iterable[EventColumn | None], what: str) -> Settling:
    """What is made of all rows that have some columns of event time in common."""
    told = within.whole <= spanned(events)
    whole = within.whole if told else within.whole | {NEVER}
    return Settling(whole, whole, within.why if told and within.why else what)


def combined(
    left: Settling, right: Settling, *, lacking: str | None = None, of: Collection[int] = (1,)
) -> Settling:
    """What is made of rows of two relations.

    Parameters
    ----------
    lacking
        What it is, if it shows rows that have nothing in the other relation.
    of
        In which of the two.
    """
    stays = left.stays | right.stays
    if lacking is None:
        return Settling(left.whole | right.whole, stays, left.why or right.why)
    for side, missing in enumerate((left, right)):
        stays |= missing.whole if side in of else frozenset()
    return Settling(left.whole | right.whole, stays, lacking)


def of_joins(sides: Sides) -> Settling:
    """Of the rows of FROM."""
    found = sides[0][1].settling
    for item, facts in sides[1:]:
        of = {"right": (0,), "full": (0, 1)}.get(item.join, (1,))
        found = combined(found, facts.settling, lacking=_LACKING.get(item.join), of=of)
    return found


# -- OVER ------------------------------------------------------------------------------------------------


def calls_over(tokens: TokenList, select: Select) -> list[WindowCall] | None:
    """The functions over windows of a block; None if it has some that are not taken apart."""
    stretches = [*select.items, *([] if select.qualify is None else [select.qualify])]
    try:
        return window_calls(tokens, stretches, select.window)
    except UnknownShapeError:
        return None


def of_over(
    tokens: TokenList, calls: Sequence[WindowCall] | None, sides: Sides, within: Settling
) -> tuple[Settling, dict[EventColumn, Range]]:
    """Of rows that have values over others, and which columns still tell, with the expressions that they are.

    The partitions do, or, of functions that look back only, a first key of event time that rises.
    """
    if calls and all(_is_until(tokens, call) for call in calls):
        return Settling(within.whole, within.whole, "versions"), {}
    telling: dict[EventColumn, Range] | None = None
    for call in calls or ():
        parts = {event: part for part in call.partition if (event := event_of(tokens, part, sides))}
        known = parts if within.whole <= spanned(parts) else {}
        known |= _first_key(tokens, call, sides, within)
        kept = known if telling is None else {each: at for each, at in telling.items() if each in known}
        telling = kept if within.whole <= spanned(kept) else {}
    telling = {event: part for event, part in (telling or {}).items() if event.tells}
    return cut(within, telling, "OVER"), telling


def _is_until(tokens: TokenList, call: WindowCall) -> bool:
    """Whether a function says until when a version is valid."""
    after = call.range[1]
    return tokens.word(after) == "AS" and tokens[after + 1].name.startswith(UNTIL)


def _first_key(
    tokens: TokenList, call: WindowCall, sides: Sides, within: Settling
) -> dict[EventColumn, Range]:
    if not call.looks_back or not call.order or call.order[0].descending:
        return {}
    part = call.order[0].expression
    event = event_of(tokens, part, sides)
    is_first = event is not None and not (event.is_optional and call.order[0].nulls_first)
    return {event: part} if event and is_first and within.whole <= spanned([event]) else {}


def of_first_rows(tokens: TokenList, facts: Facts, order: Iterable[OrderItem]) -> Facts:
    """The first rows of a relation, which stay if they are the first in time."""
    first = next(iter(order), None)
    event = None
    if first is not None and not first.descending:
        name = tokens.text(*first.expression).strip("`").lower()
        event = facts.events.get(name)
        if name.isdigit() and 0 < int(name) <= len(facts.columns or ()):
            event = (facts.columns or ())[int(name) - 1][1]
    is_told = event is not None and not event.is_optional and facts.settling.whole <= spanned([event])
    telling = [event] if is_told else []
    return replace(told_only(facts, telling), settling=cut(facts.settling, telling, "LIMIT"))


def told_only(facts: Facts, telling: Collection[EventColumn | None]) -> Facts:
    """A relation of which no other columns tell than these."""
    return marked(facts, lambda each: replace(each, tells=each.tells and each in telling))


# -- subqueries ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subquery:
    """A subquery in an expression.

    Attributes
    ----------
    at
        The bracket that it begins with.
    facts
        What it gives.
    where, inside
        The condition of its block, and the relations there, if it is one block.
    """

    at: int
    facts: Facts
    where: Range | None = None
    inside: Sides = ()


def beside(
    tokens: TokenList, sides: Sides, where: Range | None, subqueries: Iterable[Subquery]
) -> tuple[Sides, Settling]:
    """The relations of FROM beside subqueries in expressions, and of which streams their rows wait.

    Columns know those of subqueries that are equal in all rows of these.
    """
    joined, found = _as_of(tokens, sides), of_joins(sides)
    for each in subqueries:
        asked = _asked_for(tokens, where, each.at)
        joined = _correlated(tokens, joined, each, asked)
        only_comes = asked is not None and not each.facts.settling.stays
        found = combined(found, each.facts.settling, lacking=None if only_comes else "a subquery")
    return joined, found


def _as_of(tokens: TokenList, sides: Sides) -> Sides:
    """The relations of FROM, of which columns know the streams whose versions are valid at that time."""
    found = [facts for _, facts in sides]
    for number, (item, facts) in enumerate(sides):
        for start, stop in [] if item.on is None else conjuncts(tokens, *item.on):
            before = [at for at in range(start, stop) if tokens.is_symbol(at, "<")]
            ours = [
                at for at in range(start, stop) if tokens[at].is_name and tokens[at].name.startswith(UNTIL)
            ]
            first = next((at for at in range(start, stop) if tokens.word(at) == "OR"), start) + 1
            of = None
            if ours and len(before) == 1:
                of = column_of(tokens, (first, before[0]), sides[:number], lambda facts: facts.events)
            event = None if of is None else found[of[0]].events[of[1]]
            if of is not None and event is not None and event.mapped == "{t}":
                peers = (*event.peers, *((origin, None) for origin in sorted(facts.settling.whole)))
                found[of[0]] = instead(found[of[0]], event, replace(event, peers=peers))
    return [(item, facts) for (item, _), facts in zip(sides, found, strict=True)]


def _asked_for(tokens: TokenList, where: Range | None, at: int) -> Range | None:
    """What is IN a subquery where WHERE asks for that, nothing of EXISTS; None if rows may also lack it."""
    for start, stop in [] if where is None else conjuncts(tokens, *where):
        if stop != tokens.partner[at] + 1 or not start < at:
            continue
        if tokens.word(at - 1) == "EXISTS" and start == at - 1:
            return (start, start)
        if tokens.word(at - 1) == "IN" and isinstance(parse_expression(tokens, start, at - 1), Name):
            return (start, at - 1)
    return None


def is_inside(tokens: TokenList, part: Range, inside: Sides) -> bool:
    """Whether a name may be that of a column of a subquery's own relations, which come first."""
    expression = parse_expression(tokens, *part)
    if not isinstance(expression, Name):
        return True
    *alias, name = (each.lower() for each in expression.parts)
    if alias:  # of a relation there, or a field of a column there
        fields = (each for _, facts in inside for each, _ in facts.columns or ())
        return alias[0] in fields or any(alias[-1] == (item.alias or "").lower() for item, _ in inside)
    return any(facts.columns is None or name in (each for each, _ in facts.columns) for _, facts in inside)


def _correlated(tokens: TokenList, sides: Sides, query: Subquery, asked: Range | None) -> Sides:
    found = [facts for _, facts in sides]
    pairs = []
    for parts in equal_parts(tokens, query.where):
        inner = [event for part in parts if (event := event_of(tokens, part, query.inside)) is not None]
        outer = [part for part in parts if not is_inside(tokens, part, query.inside)]
        if len(inner) == len(outer) == 1:
            column = column_of(tokens, outer[0], sides, lambda facts: facts.events)
            pairs += [] if column is None else [(column, inner[0])]
    own = None if asked is None else column_of(tokens, asked, sides, lambda facts: facts.events)
    if own is not None and query.facts.columns and (first := query.facts.columns[0][1]) is not None:
        pairs.append((own, first))
    for (side, name), theirs in pairs:
        event = found[side].events[name]
        if event.mapped == theirs.mapped and theirs.sessions is None:
            found[side] = instead(found[side], event, told_by(event, [theirs]))
    return [(item, facts) for (item, _), facts in zip(sides, found, strict=True)]
