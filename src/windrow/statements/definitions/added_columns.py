"""A column that a SELECT reads in place of a call, of a relation that is added to its FROM."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from windrow.algebra.aggregate_calls import places_of_calls
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import put_instead, put_name
from windrow.algebra.scopes import VisibleRelations
from windrow.statements.definitions.function_calls import SelectText, select_at, windows_of
from windrow.syntax.nodes import Range, is_within
from windrow.syntax.select_list import alias_of, excepted
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = ["aliases_around", "leave_out", "put_column", "reads_groups", "takes_columns", "unused_name"]

_ROW = "__of_row"


def unused_name(tokens: TokenList) -> str:
    """A name for the relation that the text has not."""
    names = {tokens[at].name.lower() for at in range(len(tokens)) if tokens[at].is_name}
    return next(name for number in count() if (name := f"{_ROW}{number}") not in names)


def put_column(
    edits: Edits, select: SelectText, call: Range, columns: Sequence[str], equal: Sequence[Range] = ()
) -> bool:
    """Read the first of these columns in place of a call, and of calls that are equal to it.

    False if a star of the SELECT would have them.
    """
    replaced = [call, *equal]
    for place in replaced:
        put_instead(edits, place, columns[0])
    return leave_out(edits, select, columns, replaced)


def leave_out(
    edits: Edits, select: SelectText, columns: Sequence[str], replaced: Sequence[Range] = ()
) -> bool:
    """Leave these columns out of the stars of a SELECT, in which words are `replaced`.

    False if a star in a call would have them.
    """
    tokens = edits.tokens
    items = tokens.split(*select.items)
    whole = {item[0] for item in items if _is_star(tokens, item)}
    for item in items:
        put_name(edits, item, replaced, columns if item[0] in whole else [])
    return whole.issuperset(at for at in range(*select.range) if _reads_all(tokens, select, at))


def _is_star(tokens: TokenList, item: Range) -> bool:
    is_all = item[1] - item[0] == 1 or excepted(tokens, item) is not None
    return tokens.is_symbol(item[0], "*") and is_all


def _reads_all(tokens: TokenList, select: SelectText, at: int) -> bool:
    """Whether a star stands for all columns of a SELECT: not that of COUNT, or of a product."""
    around = tokens.parent[at]
    if not tokens.is_symbol(at, "*") or tokens.is_symbol(at - 1, "."):
        return False
    while around >= select.range[0]:
        if opens_query(tokens, around):
            return False
        around = tokens.parent[around]
    is_counted = tokens.is_symbol(at - 1, "(") and tokens.word(at - 2) == "COUNT"
    is_first = any(tokens.is_symbol(at - 1, symbol) for symbol in ("(", ","))
    return not is_counted and (is_first or tokens.word(at - 1) in ("SELECT", "DISTINCT", "ALL"))


def aliases_around(tokens: TokenList, call: Range) -> set[str]:
    """The aliases of the SELECT around a call, in lower case, which Spark reads before outer columns."""
    select = select_at(tokens, call[0])
    items = [] if select is None else tokens.split(*select.items)
    return {alias for item in items if (alias := alias_of(tokens, item)) is not None}


def takes_columns(tokens: TokenList, source: Range, select: SelectText) -> bool:
    """Whether another column of its relations changes no row of a query but for its stars."""
    has_views = any(tokens.word(at) == "VIEW" and tokens.word(at - 1) == "LATERAL" for at in range(*source))
    is_whole = source[0] < source[1] and tokens.word(source[0] - 1) in ("FROM", "JOIN")
    return is_whole and not has_views and windows_of(tokens, select) is None


def reads_groups(tokens: TokenList, outer: VisibleRelations, select: SelectText) -> bool:
    """Whether a subquery reads groups, and not their rows as in WHERE and in aggregates."""
    parts = [part for part in (select.items, select.part("HAVING"), select.tail) if part is not None]
    aggregates = places_of_calls(tokens, parts)
    is_grouped = select.part("GROUP") is not None or bool(aggregates)
    is_of_rows = select.is_in("WHERE", outer.at) or any(
        is_within((outer.at, outer.at + 1), one) for one in aggregates
    )
    return outer.is_whole and is_grouped and not is_of_rows
