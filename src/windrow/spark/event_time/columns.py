"""Event time in the columns of SELECT: of which expressions watermarks are known."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace

from windrow.spark.event_time.facts import HIDDEN, EventColumn, Facts, Sides
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem, Select
from windrow.syntax.rising import goes_by_zone, rising
from windrow.syntax.select_list import alias_of, without_alias
from windrow.syntax.tokens import Kind, TokenList

__all__ = [
    "column_of",
    "columns_of",
    "event_of",
    "is_several",
    "is_star",
    "name_of",
    "place_in",
    "seen",
    "starred",
]

_GENERATORS = {"EXPLODE", "EXPLODE_OUTER", "POSEXPLODE", "POSEXPLODE_OUTER", "INLINE", "INLINE_OUTER"}
_GENERATORS |= {"STACK", "JSON_TUPLE", "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER"}
_OF_THE_FIRST = {"inner", "left", "semi", "anti"}  # of which a column of USING is that of the first side


def columns_of(
    tokens: TokenList, select: Select, sides: Sides
) -> tuple[tuple[str, EventColumn | None], ...] | None:
    """What SELECT without groups gives, None where not all of it is known."""
    columns: list[tuple[str, EventColumn | None]] = []
    sides = seen(sides)
    for start, stop in select.items:
        is_simple = tokens.is_symbol(stop - 1, "*") or tokens.is_symbol(start, "*")
        if not is_simple and is_several(tokens, (start, stop)):
            return None
        if is_simple:
            merges = any(item.using != () for item, _ in sides)
            if stop - start > 1 or merges or any(facts.columns is None for _, facts in sides):
                return None
            columns += [column for _, facts in sides for column in facts.columns or ()]
            continue
        columns.append(
            (name_of(tokens, (start, stop)), event_of(tokens, without_alias(tokens, (start, stop)), sides))
        )
    return tuple(columns)


def starred(tokens: TokenList, select: Select, sides: Sides) -> dict[str, EventColumn]:
    """The event time of a SELECT with stars over relations of which not all columns are known."""
    events: dict[str, EventColumn] = {}
    sides = seen(sides)
    for start, stop in select.items:
        if is_several(tokens, (start, stop)):
            alias = None if tokens.is_symbol(start, "*") else tokens[start].name.lower()
            star = start if alias is None else start + 2
            if not tokens.is_symbol(star, "*"):
                continue
            out = {tokens[at].name.lower() for at in range(star + 1, stop) if tokens[at].is_name}
            for number, (item, facts) in enumerate(sides):
                if alias is None or alias == (item.alias or "").lower():
                    own = {name: each for name, each in facts.events.items() if name not in facts.hidden}
                    own |= {
                        name: facts.events[name] for name in facts.hidden if name[: len(HIDDEN)] != HIDDEN
                    }
                    if alias is None:  # of names that USING makes one, the one that is shown
                        own = {
                            name: event
                            for name, event in own.items()
                            if not any(_makes_equal(*side, name) for side in sides)
                            or _place_of(name, sides, lambda facts: facts.events) == number
                        }
                    events |= {name: event for name, event in own.items() if name not in out}
        else:
            event = event_of(tokens, without_alias(tokens, (start, stop)), sides)
            if event is not None:
                events[name_of(tokens, (start, stop))] = event
    return events


def is_star(tokens: TokenList, at: int) -> bool:
    """Whether a token within an expression stands for all columns, as it does not in ``COUNT(*)``."""
    if not tokens.is_symbol(at, "*"):
        return False
    begins = any(tokens.is_symbol(at - 1, symbol) for symbol in ("(", ",", "."))
    return begins and not (tokens.is_symbol(at - 1, "(") and tokens.word(at - 2) == "COUNT")


def is_several(tokens: TokenList, item: Range) -> bool:
    """Whether an item of SELECT may be several columns or rows: a star, or a call of a generator."""
    start = item[0]
    star = start if tokens.is_symbol(start, "*") else start + 2
    if tokens.is_symbol(star, "*") and (star == start or tokens.is_symbol(start + 1, ".")):
        return True
    return tokens.word(start) in _GENERATORS and tokens.is_symbol(start + 1, "(")


def name_of(tokens: TokenList, item: Range) -> str:
    """The name of a column of SELECT."""
    alias = alias_of(tokens, item)
    last = tokens[item[1] - 1]
    return alias or (last.name.lower() if last.is_name else tokens.text(*item).lower())


def place_in(tokens: TokenList, keys: Sequence[Range], item: Range, source: Sequence[FromItem]) -> int | None:
    """Which of some keys an expression is; None if it is not certainly one of them.

    Spaces and capitals do not matter, nor the relation of a name in FROM, if one of the two leaves it out.
    """
    aliases = [((each.alias or "").lower(),) for each in source if all(of.using == () for of in source)]
    parts = [_parts(tokens, each) for each in (item, *keys)]
    own, listed = parts[0], parts[1:]
    if own in listed:
        return listed.index(own)
    found = [
        place
        for place, each in enumerate(listed)
        if own[0] == each[0] == "" and own[-1] == each[-1] and min(len(own), len(each)) == 2
        if max(own, each, key=len)[1:-1] in aliases
    ]
    return found[0] if len(found) == 1 else None


def _parts(tokens: TokenList, item: Range) -> tuple[str, ...]:
    """An expression: the parts of a name after an empty one, or its text."""
    expression = parse_expression(tokens, *item)
    if isinstance(expression, Name):
        return ("", *(part.lower() for part in expression.parts))
    texts = (
        tokens[at].text if tokens[at].kind is Kind.STRING else tokens[at].text.lower() for at in range(*item)
    )
    return (" ".join(texts),)


def seen(sides: Sides) -> Sides:
    """The relations of FROM of which SELECT sees columns."""
    return [(item, facts) for item, facts in sides if item.join not in ("semi", "anti")]


def column_of(
    tokens: TokenList, item: Range, sides: Sides, names: Callable[[Facts], Container[str]]
) -> tuple[int, str] | None:
    """The column that an expression is, if it is one: the number of its side, and its name in lower case.

    Parameters
    ----------
    names
        The columns of a side that are meant. None is found where several sides have one of the name, but for
        those that USING or NATURAL has equal.
    """
    start, stop = _without_brackets(tokens, item)
    expression = parse_expression(tokens, start, stop) if start < stop else None
    if not isinstance(expression, Name):
        return None
    *alias, name = (part.lower() for part in expression.parts)
    if not alias:
        at = _place_of(name, sides, names)
        return None if at is None else (at, name)
    found = [
        number
        for number, (side, facts) in enumerate(sides)
        if name in names(facts) and alias == [(side.alias or "").lower()]
    ]
    return (found[0], name) if len(found) == 1 else None


def _place_of(name: str, sides: Sides, names: Callable[[Facts], Container[str]]) -> int | None:
    """The side that a name without a relation is of."""
    found = [number for number, (_, facts) in enumerate(sides) if name in names(facts)]
    equal = [number for number, (item, facts) in enumerate(sides) if _makes_equal(item, facts, name)]
    if not set(found[1:]) <= set(equal):
        return None
    kinds = {sides[number][0].join for number in equal}
    if not kinds <= _OF_THE_FIRST | {"right"} or not found:
        return None
    # of a right join it is the column of the last relation
    at = max(equal) if "right" in kinds else found[0]
    return at if at in found and (kinds <= _OF_THE_FIRST or kinds == {"right"}) else None


def _makes_equal(item: FromItem, facts: Facts, name: str) -> bool:
    """Whether USING or NATURAL has a column of this side equal to one of those before."""
    if item.using is None:
        return facts.columns is None or name in (each for each, _ in facts.columns)
    return name in map(str.lower, item.using)


def _without_brackets(tokens: TokenList, item: Range) -> Range:
    start, stop = item
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    return start, stop


def event_of(tokens: TokenList, item: Range, sides: Sides) -> EventColumn | None:
    """The event time of an expression: of a column, or of what rises with one."""
    start, stop = _without_brackets(tokens, item)
    sides = seen(sides)
    if start >= stop:
        return None
    if isinstance(parse_expression(tokens, start, stop), Name):
        column = column_of(tokens, (start, stop), sides, lambda facts: facts.events)
        return None if column is None else sides[column[0]][1].events[column[1]]
    inner = rising(tokens, start, stop)
    event = event_of(tokens, inner, sides) if inner is not None else None
    if event is None or inner is None:
        return None
    if event.clocks and goes_by_zone(tokens, start, stop, is_local=event.clocks == "TIMESTAMP_NTZ"):
        return None
    is_date = tokens.word(start) in ("DATE", "TO_DATE") or tokens.word(stop - 2) == "DATE"
    text = tokens.sql[tokens[start].start : tokens[inner[0]].start]
    rest = tokens.sql[tokens[inner[1] - 1].stop : tokens[stop - 1].stop]
    if "?" in text + rest:
        return None
    greatest, settled = (
        None if each is None else f"({text}{each}{rest})" for each in (event.greatest, event.settled)
    )
    peers = tuple((origin, each and f"({text}{each}{rest})") for origin, each in event.peers)
    mapped = f"({text}{event.mapped}{rest})"
    clocks = None if is_date else event.clocks
    return replace(event, mapped=mapped, greatest=greatest, settled=settled, peers=peers, clocks=clocks)
