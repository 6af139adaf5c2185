"""Calls of SQL functions over windows within an aggregate of windows: the windows become a relation in FROM.

    SELECT s.k, MAX(f(COUNT(w))) FROM t WINDOW BY w AS (…) GROUP BY s.k
      →  SELECT s.k, MAX(f(__since0))
         FROM (SELECT s, COUNT(w) AS __since0 FROM t WINDOW BY w AS (…)) AS __windows GROUP BY s.k

There the functions are called beside groups of ordinary columns.
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.algebra.aggregate_calls import aggregate_ranges, places_of_calls
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import end_of_windows, put_windows_below
from windrow.statements.definitions.function_calls import outermost_calls, select_around, windows_of
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.nodes import is_within
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["calls_in_aggregates"]


def calls_in_aggregates(
    tokens: TokenList, functions: KnownFunctions, own_aggregates: Callable[[], frozenset[str]]
) -> SqlText | None:
    """The text with the windows of the first such SELECT as a relation; None if there is none.

    Calls of each row of a window, as in ``MAX(f(w.v))``, stay where they are, and are reported. The last
    argument finds the names, in lower case, of the user's aggregates.
    """
    for at in outermost_calls(tokens, functions):
        select = select_around(tokens, at)
        window = None if select is None else windows_of(tokens, select)
        if window is None or window.select[0] > window.source[0]:
            continue
        parts = [part for part in (window.select, window.groups_after, window.tail) if part is not None]
        inside = [one for one in places_of_calls(tokens, parts) if is_within((at, at + 1), one)]
        if not inside:
            continue
        own = own_aggregates()
        end = end_of_windows(tokens, window, own)
        of_windows = aggregate_ranges(tokens, parts, window.clause.name, own)
        if end is None or any(is_within((at, at + 1), one) for one in of_windows):
            continue
        edits = Edits(tokens)
        put_windows_below(edits, window, own, "AS __windows", end, has_rowtime=False)
        return edits.text(0, len(tokens))
    return None
