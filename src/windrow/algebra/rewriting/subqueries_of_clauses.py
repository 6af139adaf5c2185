"""Subqueries of clauses over windows in brackets, in the form to which lists of such windows can be
handed on.

FROM o [RANGE 4] PIVOT (SUM(v) FOR k IN (1 AS one)) WHERE one IN (SELECT v FROM o [RANGE 1])
→  FROM (SELECT * FROM o [RANGE 4] PIVOT (SUM(v) FOR k IN (1 AS one))) WHERE one IN (…)

FROM o [RANGE 4] SELECT COUNT(*) IN (SELECT v FROM o [RANGE 1])
→  SELECT COUNT(*) IN (…) FROM o [RANGE 4]
"""

from __future__ import annotations

from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import put_instead
from windrow.algebra.rewriting.varying_subqueries import reads_varying
from windrow.syntax.cql_clauses import alias_after
from windrow.syntax.query_parts import is_set_operator
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["subqueries_of_clauses"]

_AFTER_FROM = {"WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET"}


def subqueries_of_clauses(tokens: TokenList) -> SqlText | None:
    """The text with the first such subquery in this form; None if there is none."""
    for at in range(len(tokens)):
        found = None
        if tokens.word(at) == "PIVOT" and _is_in_clause(tokens, at):
            found = _pivot_below(tokens, at)
        elif tokens.word(at) == "FROM" and tokens.is_symbol(at - 1, "(") and _is_in_clause(tokens, at):
            found = _select_first(tokens, at)
        if found is not None:
            return found
    return None


def _is_in_clause(tokens: TokenList, at: int) -> bool:
    """Whether a token is in the brackets of WINDOW BY or MATCH_RECOGNIZE."""
    parent = tokens.parent[at]
    while parent >= 0:
        if tokens.word(parent + 1) == "TYPE" or tokens.word(parent - 1) == "MATCH_RECOGNIZE":
            return True
        parent = tokens.parent[parent]
    return False


def _pivot_below(tokens: TokenList, pivot: int) -> SqlText | None:
    opened = tokens.parent[pivot]
    closed = tokens.partner[opened]
    level = [at for at in tokens.level(opened + 1, closed) if not tokens.is_symbol(at - 1, ".")]
    sets = [at for at in level if is_set_operator(tokens, at)]
    start = max((at + 1 for at in sets if at < pivot), default=opened + 1)
    stop = min((at for at in sets if at > pivot), default=closed)
    begin = max((at + 1 for at in level if at < pivot and tokens.word(at) == "FROM"), default=None)
    end = min((at for at in level if pivot < at < stop and tokens.word(at) in _AFTER_FROM), default=stop)
    bracket = next((at for at in level if at > pivot and tokens.is_symbol(at, "(")), None)
    if begin is None or bracket is None:
        return None
    if not any(reads_varying(tokens, part, ()) for part in ((start, begin), (end, stop))):
        return None
    after = tokens.partner[bracket] + 1
    alias = alias_after(tokens, after, end) if after < end else None
    edits = Edits(tokens)
    edits.put(begin, "(SELECT * FROM")
    edits.put(end, ")" if alias is None else f") AS {quoted(tokens[alias].name)}")
    return edits.text(0, len(tokens))


def _select_first(tokens: TokenList, begin: int) -> SqlText | None:
    closed = tokens.partner[begin - 1]
    level = [at for at in tokens.level(begin, closed) if not tokens.is_symbol(at - 1, ".")]
    selects = [at for at in level if tokens.word(at) == "SELECT"]
    is_other = any(tokens.is_symbol(at, "|>") or is_set_operator(tokens, at) for at in level)
    if len(selects) != 1 or is_other or not reads_varying(tokens, (begin, closed), ()):
        return None
    start = selects[0]
    end = min((at for at in level if at > start and tokens.word(at) in _AFTER_FROM), default=closed)
    edits = Edits(tokens)
    put_instead(edits, (start, end), "")
    edits.put(begin, edits.piece(start, end))
    return edits.text(0, len(tokens))
