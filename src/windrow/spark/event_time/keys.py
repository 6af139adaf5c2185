"""The keys of a group."""

from __future__ import annotations

from windrow.algebra.aggregates import calls_aggregate
from windrow.spark.event_time.facts import Sides
from windrow.spark.event_time.refusals import unsupported
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select
from windrow.syntax.select_list import alias_of, without_alias
from windrow.syntax.tokens import Kind, TokenList

__all__ = ["keys_of"]


def keys_of(tokens: TokenList, select: Select, sides: Sides) -> list[Range]:
    """The keys of GROUP BY, those that it names by number or alias as they stand in SELECT.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_QUERY`` for several sets of keys.
    """
    if select.group_by is None:
        return []
    start, stop = select.group_by
    listed = [item for item in select.items if not calls_aggregate(tokens, item)]
    if stop - start == 1 and tokens.word(start) == "ALL":
        return [without_alias(tokens, item) for item in listed]
    words = {tokens.word(at) for at in tokens.level(start, stop)}
    if words & {"ROLLUP", "CUBE", "GROUPING"}:
        raise unsupported(tokens, "GROUP BY of several sets of keys", tokens.span(start, stop))
    named = {alias_of(tokens, item): without_alias(tokens, item) for item in select.items}
    known = {name for _, facts in sides for name, _ in facts.columns or ()}
    keys = []
    for first, last in tokens.split(start, stop):
        key = (first, last)
        if last - first == 1 and tokens[first].kind is Kind.NUMBER and tokens[first].text.isdigit():
            number = int(tokens[first].text)
            if 1 <= number <= len(select.items):
                key = without_alias(tokens, select.items[number - 1])
        elif last - first == 1 and tokens[first].is_name:
            name = tokens[first].name.lower()
            if name in named and name not in known:
                key = named[name]
        keys.append(key)
    return keys
