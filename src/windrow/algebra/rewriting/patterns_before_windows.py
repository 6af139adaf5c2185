"""Windows of OVER with patterns before WINDOW BY, which choose its rows, in a query of their own.

SELECT … FROM t AS r QUALIFY m OVER p > 2 WINDOW p AS (… PATTERN …) WINDOW BY w AS (…)
→  SELECT … FROM (SELECT * FROM t AS r QUALIFY m OVER p > 2 WINDOW p AS (… PATTERN …)) AS r
WINDOW BY w AS (…)
"""

from __future__ import annotations

from windrow.algebra.names import verbatim
from windrow.algebra.qualified import relations_of
from windrow.algebra.scopes import parts_of_from
from windrow.syntax.nodes import BlockText
from windrow.syntax.patterns.pattern_windows import opened_windows, select_around
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["patterns_below"]


def patterns_below(tokens: TokenList) -> SqlText | None:
    """The text with the rows of the first such SELECT in a query; None if there is none.

    Those over groups and joins stay, whose columns would have other names in such a query.

    Raises
    ------
    ParseError, AnalysisError
        As `find_window_queries`.
    """
    opened = list(opened_windows(tokens))
    if not opened:
        return None
    for query in find_window_queries(tokens):
        start, stop = query.source
        inside = any(start < at < stop and select_around(tokens, at) == query.range[0] for at in opened)
        if inside and query.group_by is None and not _is_joined(tokens, query):
            rows = tokens.span(start, stop)
            names = list(relations_of(tokens, query.source))
            return SqlText.of(
                verbatim(tokens, 0, rows.start),
                "FROM (SELECT * ",
                verbatim(tokens, rows.start, rows.stop),
                ")",
                f" AS {quoted(names[0])} " if names else " ",
                verbatim(tokens, tokens[stop].start, len(tokens.sql)),
            )
    return None


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
