"""A SELECT that groups its WINDOW BY windows, rewritten as a SELECT over the relation of the windows.

SELECT f.k, MAX(e.v), AVG(COUNT(w)) FROM s WINDOW BY w AS (… ORDER BY ts START AS f END AS e) GROUP BY f.k
→  SELECT f.k, MAX(e.v), AVG(__since0) AS `AVG(COUNT(w))`
   FROM (SELECT f, e, COUNT(w) AS __since0, f.ts AS __since FROM s WINDOW BY …) [RANGE UNBOUNDED] GROUP BY f.k

The relation has the variables that are read, so expressions over them stay unchanged. Aggregates over
windows, and comparisons of rows, become columns of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.algebra.aggregate_calls import aggregate_ranges, find_uses, places_of_calls
from windrow.algebra.names import SINCE, piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.label_rowtime import put_label_row
from windrow.algebra.row_comparison import comparisons_of_rows
from windrow.syntax.expression_nodes import plain_names
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import BlockText, Range, is_within
from windrow.syntax.select_list import aliased, excepted, without_distinct
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["column_of", "end_of_windows", "put_instead", "put_name", "put_windows_below"]


def end_of_windows(tokens: TokenList, query: BlockText, own: frozenset[str]) -> int | None:
    """Where the part begins that groups windows; None if there are no groups, aggregates and OVER."""
    if query.groups_after is not None:
        return query.groups_after[0]
    calls = set(places_of_calls(tokens, [query.select]))
    is_over = any(tokens.word(at) == "OVER" for part in (query.select, query.tail) for at in range(*part))
    if not is_over and calls <= set(aggregate_ranges(tokens, [query.select], query.clause.name, own)):
        return None
    return query.tail[0] if query.tail[0] < query.tail[1] else query.range[1]


def put_windows_below(
    edits: Edits, query: BlockText, own: frozenset[str], after: str, end: int, *, has_rowtime: bool = True
) -> None:
    """Put the SELECT of the windows, which ends there, below the SELECT that groups them.

    A window in brackets, or a name, is put after it. It has the rowtime of the windows only for the former.
    """
    tokens, clause = edits.tokens, query.clause
    parts = [part for part in (query.select, query.groups_after, query.tail) if part and part[0] < part[1]]
    found = [*aggregate_ranges(tokens, parts, clause.name, own), *comparisons_of_rows(tokens, parts, clause)]
    columns = sorted(
        one for one in found if not any(is_within(one, other) for other in found if other != one)
    )
    names: dict[tuple[str, ...], str] = {}
    texts: dict[str, SqlText] = {}
    for place in columns:
        name = names.setdefault(column_of(tokens, place), f"{SINCE}{len(names)}")
        texts.setdefault(name, piece_of(tokens, *place))
        put_instead(edits, place, name)
    items = tokens.split(*without_distinct(tokens, query.select))
    variables = [*(variable.name for variable in clause.variables()), clause.name]
    if query.having is not None:
        _put_aliased(edits, query.having, items, variables)
    if not any(tokens.is_symbol(start, "*") for start, _ in items):
        variables = [use.name for use in find_uses(tokens, parts, variables, columns, {})]
    for item in items:
        hidden = [*texts, *([SINCE] if has_rowtime else [])] if tokens.is_symbol(item[0], "*") else []
        put_name(edits, item, columns, hidden)
    rowtime = put_label_row(edits, query)[0] if has_rowtime else None
    inside = [SqlText.of(quoted(name)) for name in variables]
    inside += [SqlText.of(text, f" AS {name}") for name, text in texts.items()]
    inside += [] if rowtime is None else [SqlText.of(rowtime, f" AS {SINCE}")]
    edits.put(query.select[1], "FROM (SELECT ", SqlText.join(", ", inside or [SqlText.of("1 AS one")]))
    edits.put(end, f") {after}")


def put_name(
    edits: Edits, item: Range, replaced: Sequence[Range], hidden: Sequence[str], name: str | None = None
) -> None:
    """Add the original `name` to an item of SELECT, if words in it are `replaced`.

    Stars leave out `hidden` columns.
    """
    tokens, listed = edits.tokens, ", ".join(hidden)
    if hidden and tokens.is_symbol(item[1] - 1, "*"):
        edits.put(item[1], f"EXCEPT ({listed})")
    elif hidden and (bracket := excepted(tokens, item)) is not None:
        edits.put(bracket + 1, f"{listed},")
    has_alias = aliased(tokens, item) is not None and tokens.word(item[1] - 2) != "OVER"
    if not has_alias and any(is_within(place, item) for place in replaced):
        edits.put(item[1], f"AS {quoted(name or tokens.text(*item))}")


def put_instead(edits: Edits, place: Range, text: str | SqlText) -> None:
    """Replace a range."""
    edits.instead.update(dict.fromkeys(range(*place), SqlText()))
    edits.put(place[0], text)


def _put_aliased(edits: Edits, having: Range, items: list[Range], variables: list[str]) -> None:
    """Replace names of SELECT by their expressions in HAVING of the windows."""
    tokens = edits.tokens
    aliases = [found for found in (aliased(tokens, item) for item in items) if found is not None]
    named = {alias.lower(): expression for alias, expression in aliases}
    for name in plain_names(parse_expression(tokens, *having)):
        word = name.parts[0].lower()
        if len(name.parts) == 1 and word in named and word not in map(str.lower, variables):
            put_instead(edits, name.range, SqlText.of("(", piece_of(tokens, *named[word]), ")"))


def column_of(tokens: TokenList, place: Range) -> tuple[str, ...]:
    """A normal form in which equal columns are equal: each ? is a different parameter."""
    return (*tokens.folded(*place), *(str(at) for at in range(*place) if tokens.is_symbol(at, "?")))
