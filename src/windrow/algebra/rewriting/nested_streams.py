"""SELECT STREAM inside a query: a stream, which is read like a named stream.

A window in brackets makes a relation of it, and SELECT STREAM around it reads its rows as they arrive. If
nothing in a statement has a window, streams are read as their rows, and STREAM has no further meaning.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.expand import Expander
from windrow.errors import AnalysisError
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import Range
from windrow.syntax.query_parts import with_items
from windrow.syntax.sqltext import SqlText
from windrow.syntax.streams.other_dialects import is_source, selects_stream
from windrow.syntax.tokens import TokenList

__all__ = ["may_nest_streams", "nested_selects", "without_words"]

_WORDS = re.compile(r"\bselect\b.*[(\s]select\s+stream\b|\(\s*select\s+stream\b", re.IGNORECASE | re.DOTALL)
_SET_OPERATORS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")


def may_nest_streams(text: str) -> bool:
    """Whether a text may have SELECT STREAM in brackets.

    >>> may_nest_streams("SELECT STREAM a FROM s"), may_nest_streams("SELECT a FROM (SELECT STREAM a FROM s)")
    (False, True)
    """
    return _WORDS.search(text) is not None


def nested_selects(tokens: TokenList, statement: Range, names: Collection[str]) -> list[int]:
    """The SELECTs of the queries in FROM and of WITH that are ``SELECT STREAM`` of any of these streams.

    Parameters
    ----------
    names
        The streams and the views of them, in lower case. Of other relations STREAM is a column.

    Raises
    ------
    AnalysisError
        ``STREAM_WHERE_RELATION_IS_NEEDED`` in a subquery of an expression.
    """
    start, stop = statement
    expander = Expander(tokens, names, {})
    found = []
    for at in tokens.places("SELECT"):
        bracket = tokens.parent[at]
        if not start <= bracket < stop or not selects_stream(tokens, at, tokens.partner[bracket]):
            continue
        inside = bracket + 1, tokens.partner[bracket]
        if not expander.leads_to_streams(inside) and not any(
            is_source(tokens, one, stop) for one in range(*inside)
        ):
            continue
        if _is_relation(tokens, bracket):
            found.append(at)
        elif _is_operand(tokens, bracket):
            raise AnalysisError(
                "expected a relation as the subquery of an expression, found a stream",
                condition="STREAM_WHERE_RELATION_IS_NEEDED",
                sql=tokens.sql,
                span=tokens.span(at, at + 2),
                hint="leave STREAM out; if the query has windows in brackets, add one: s [RANGE UNBOUNDED]",
            )
    return found


def without_words(tokens: TokenList, selects: Sequence[int]) -> SqlText:
    """The text without STREAM after these SELECTs."""
    edits = Edits(tokens)
    edits.instead.update({at + 1: SqlText() for at in selects})
    return edits.text(0, len(tokens))


def _is_relation(tokens: TokenList, bracket: int) -> bool:
    """Whether a query in brackets is in FROM, in WITH, after TABLE, or a part of such a set operator."""
    if tokens.is_symbol(bracket, "[") or bracket < 0:
        return False
    if begins_relation(tokens, bracket) or tokens.word(bracket - 1) == "TABLE" or _is_named(tokens, bracket):
        return True
    around = tokens.parent[bracket]
    return (bracket == around + 1 or _follows_operator(tokens, bracket)) and _is_relation(tokens, around)


def _is_named(tokens: TokenList, bracket: int) -> bool:
    """Whether the query in a bracket has a name in a WITH list."""
    return any(
        item.body[0] == bracket + 1
        for at in tokens.places("WITH")
        if at < bracket and tokens.parent[at] == tokens.parent[bracket]
        for item in with_items(tokens, at)
    )


def _is_operand(tokens: TokenList, bracket: int) -> bool:
    """Whether the query in a bracket is in an expression of another."""
    around = tokens.parent[bracket]
    if bracket == around + 1 and around >= 0:
        return not _is_relation(tokens, around) and _is_operand(tokens, around)
    before = (at for at in tokens.level(around + 1, bracket) if tokens.word(at) == "SELECT")
    return not _follows_operator(tokens, bracket) and (around >= 0 or any(True for _ in before))


def _follows_operator(tokens: TokenList, bracket: int) -> bool:
    before = bracket - 1
    before -= tokens.word(before) in ("ALL", "DISTINCT")
    return tokens.word(before) in _SET_OPERATORS
