"""Windows of OVER with patterns before WINDOW BY, which filter its rows, in a nested query.

SELECT … FROM t AS r QUALIFY m OVER p > 2 WINDOW p AS (… PATTERN …) WINDOW BY w AS (…)
→  SELECT … FROM (SELECT * FROM t AS r QUALIFY m OVER p > 2 WINDOW p AS (… PATTERN …)) AS r
WINDOW BY w AS (…)

For groups and joins, the nested query also returns qualified columns, under generated names:

SELECT s.a.x FROM a JOIN b ON … QUALIFY … WINDOW BY w AS (ORDER BY b.d START AS s …)
→  SELECT s.`__of_a.x` AS x FROM (SELECT *, a.x AS `__of_a.x`, b.d AS `__of_b.d` FROM a JOIN b ON … QUALIFY …)
   WINDOW BY w AS (ORDER BY `__of_b.d` START AS s …)
"""

from __future__ import annotations

from collections.abc import Mapping

from windrow.algebra.names import piece_of, verbatim
from windrow.algebra.qualified import find_qualified, is_star, relations_of
from windrow.algebra.rewriting.grouped_rows import groups
from windrow.algebra.scopes import parts_of_from
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.patterns.pattern_windows import opened_windows, select_around
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.select_list import aliased, without_distinct
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["patterns_below"]


def patterns_below(tokens: TokenList) -> SqlText | None:
    """The text with the rows of the first such SELECT in a nested query; None if there is none.

    Raises
    ------
    ParseError, AnalysisError
        As `find_window_queries`.
    """
    opened = list(opened_windows(tokens))
    if not opened:
        return None
    for query in find_window_queries(tokens):
        start, stop = query.source[0], (query.group_over or query.source)[1]
        if any(start < at < stop and select_around(tokens, at) == query.range[0] for at in opened):
            has_columns = query.group_by is not None or _is_joined(tokens, query)
            made = _over_columns(tokens, query) if has_columns else _over_rows(tokens, query)
            before, after = tokens.span(*query.range).start, tokens.span(*query.range).stop
            return SqlText.of(verbatim(tokens, 0, before), made, verbatim(tokens, after, len(tokens.sql)))
    return None


def _over_rows(tokens: TokenList, query: BlockText) -> SqlText:
    """The SELECT over the rows of its relation, which it reads under the relation's name."""
    (first, last), (start, stop) = query.range, query.source
    names = list(relations_of(tokens, query.source))
    return SqlText.of(
        piece_of(tokens, first, start),
        " FROM (SELECT * ",
        piece_of(tokens, start, stop),
        ")",
        f" AS {quoted(names[0])} " if names else " ",
        piece_of(tokens, stop, last),
    )


def _over_columns(tokens: TokenList, query: BlockText) -> SqlText:
    """The SELECT over the rows of groups or a join, with columns for qualified names."""
    qualified = find_qualified(tokens, query, with_keys=True)
    replaced = dict(qualified.keys)
    replaced |= {(at + 2, at + 5): quoted(name.parts[1]) for at, name in qualified.atoms.items()}
    columns = qualified.items(lambda start, stop: piece_of(tokens, start, stop))
    if query.group_by is None:
        rows = SqlText.of(
            "SELECT ", SqlText.join(", ", [SqlText.of("*"), *columns]), " ", piece_of(tokens, *query.source)
        )
    else:
        rows = groups(tokens, query, lambda start, stop: piece_of(tokens, start, stop), columns)
    items = without_distinct(tokens, query.select)
    stars = [name.range for name in qualified.atoms.values() if is_star(name)]
    named = [
        _named(tokens, item, replaced, is_whole=item in [name.range for name in qualified.atoms.values()])
        if item not in stars and not aliased(tokens, item)
        else _written(tokens, item, replaced)
        for item in tokens.split(*items)
    ]
    return SqlText.of(
        piece_of(tokens, query.range[0], items[0]),
        " ",
        SqlText.join(", ", named),
        " FROM (",
        rows,
        ") ",
        _written(tokens, ((query.group_over or query.source)[1], query.range[1]), replaced),
    )


def _named(tokens: TokenList, item: Range, replaced: Mapping[Range, str], *, is_whole: bool) -> SqlText:
    """An item of SELECT without an alias, with the name that it would have over the relations."""
    text = _written(tokens, item, replaced)
    if not any(item[0] <= at[0] and at[1] <= item[1] for at in replaced):
        return text
    return SqlText.of(text, " AS ", quoted(tokens[item[1] - 1].name if is_whole else tokens.text(*item)))


def _written(tokens: TokenList, part: Range, replaced: Mapping[Range, str]) -> SqlText:
    """A part with columns of the nested query substituted."""
    parts: list[SqlText | str] = []
    at, stop = part
    for first, last in sorted(place for place in replaced if at <= place[0] and place[1] <= stop):
        span = tokens.span(first, last)
        column = Piece(replaced[first, last], tokens.sql, span.start, span.stop - span.start)
        parts += [piece_of(tokens, at, first), SqlText.of(column), " "]
        at = last
    return SqlText.of(*parts, piece_of(tokens, at, stop))


def _is_joined(tokens: TokenList, query: BlockText) -> bool:
    """Whether FROM has several relations."""
    parts = parts_of_from(tokens, query.range)
    assert parts is not None
    (start, stop), _ = parts
    level = [at for at in tokens.level(start, stop) if not tokens.is_symbol(at - 1, ".")]
    words = {tokens.word(at) for at in level}
    lists = tokens.word(start) != "VALUES" and any(tokens.is_symbol(at, ",") for at in level)
    several = len(list(relations_of(tokens, query.source))) > 1
    return lists or several or not words.isdisjoint(("JOIN", "LATERAL", "PIVOT", "UNPIVOT"))
