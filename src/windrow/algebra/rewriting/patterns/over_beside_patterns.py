"""Windows of OVER beside those with patterns, and ranks over these, as a SELECT over the relation of matches.

SELECT k, m OVER w, lag(v) OVER w FROM s WINDOW w AS (PARTITION BY k ORDER BY ts … PATTERN …)
→  SELECT k, __since0 AS m, lag(v) OVER (PARTITION BY k ORDER BY ts …)
   FROM (SELECT *, m OVER w AS __since0 FROM s WINDOW w AS (… PATTERN …)) [RANGE UNBOUNDED]

Ranks, `lag` and `lead` read all rows of a partition, whatever the frame of the window is.
"""

from __future__ import annotations

from collections.abc import Mapping

from windrow.algebra.names import SINCE, piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import put_instead, put_name
from windrow.algebra.windows_with_patterns import WindowCalls
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.pattern_windows import PatternBlock
from windrow.syntax.select_list import without_distinct
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["has_over_of_rows", "put_over_around_patterns"]


def has_over_of_rows(tokens: TokenList, query: PatternBlock) -> bool:
    """Whether a SELECT has calls over windows without patterns, or functions that read no frame."""
    calls = WindowCalls(tokens, query)
    parts = [query.select, query.tail, *([] if query.qualify is None else [query.qualify])]
    return any(calls.is_over_of_spark(at) for part in parts for at in range(*part))


def put_over_around_patterns(edits: Edits, query: PatternBlock, window: str) -> None:
    """Rewrite such a SELECT as one over the relation of its matches, with a window with this text
    over them.
    """
    tokens, calls = edits.tokens, WindowCalls(edits.tokens, query)
    in_kernel = calls.in_kernel()
    columns = {call.range: f"{SINCE}{number}" for number, call in enumerate(in_kernel)}
    for item in tokens.split(*without_distinct(tokens, query.select)):
        call = calls.call_at(item)
        put_name(edits, item, list(columns), list(columns.values()), None if call is None else call.measure)
    for place, name in columns.items():
        put_instead(edits, place, name)
    for call in query.calls:
        if calls.is_of_partition(call):

            def text(part: Range, _: Mapping[Range, str]) -> SqlText:
                return piece_of(tokens, *part)

            put_instead(edits, (call.function[1], call.range[1]), calls.order_of(call, text))
    inside = [SqlText.of(", ", piece_of(tokens, *place), f" AS {name}") for place, name in columns.items()]
    bases = [piece_of(tokens, *one) for one in query.other_windows]
    defined = [*bases, *(piece_of(tokens, *one.range) for one in query.windows if one.name)]
    # as it is written: quoted or not, it is a variable in the conditions
    alias = f" AS {tokens.text(*query.alias)}" if query.alias else ""
    edits.put(query.source[0], "FROM (SELECT *", *inside)
    edits.put(query.source[1], _windows(defined), f") {window}{alias}", _windows(bases))
    end = query.tail[0] if query.tail[0] < query.tail[1] else query.range[1]
    qualify = range(*(query.qualify or (end, end)))
    for at in range(query.source[1], end):
        if at not in qualify:
            edits.instead[at] = SqlText()


def _windows(windows: list[SqlText]) -> SqlText:
    """The list of windows."""
    return SqlText.of(" WINDOW ", SqlText.join(", ", windows)) if windows else SqlText()
