"""Calls of SQL functions over windows in a subquery, with columns of the query around it.

    SELECT (SELECT MAX(t.v) FROM t WHERE t.v > f(b.v)) FROM b
      →  SELECT (SELECT MAX(t.v) FROM t WHERE t.v > __of_row.__value)
         FROM b, LATERAL (SELECT f(b.v) AS __value) AS __of_row

Spark reads columns of the next query around, so the value of each of its rows becomes such a column.
"""

from __future__ import annotations

from itertools import count

from windrow.algebra.aggregate_calls import calls_aggregate
from windrow.algebra.names import piece_of
from windrow.algebra.scopes import VisibleRelations, scopes
from windrow.statements.definitions.function_calls import (
    alone_in_lateral,
    first_of_call,
    outermost_calls,
    select_at,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.operands import may_be_operand
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.sqltext import SqlText
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = ["calls_of_rows_around"]

_ROW, _VALUE = "__of_row", "__value"


def calls_of_rows_around(tokens: TokenList, functions: KnownFunctions) -> SqlText | None:
    """The text with the first such call as a column of the query around; None if there is none.

    Calls stay where they are, and are reported, if that query groups its rows or makes windows of them, or if
    they read several queries.
    """
    for at in outermost_calls(tokens, functions):
        function, call = functions.called(tokens, at), (first_of_call(tokens, at), tokens.partner[at + 1] + 1)
        if function is None or function.returns_table or alone_in_lateral(tokens, at) is not None:
            continue
        scope = _scope_around(tokens, call)
        if scope is not None and scope.source is not None:
            return _text(tokens, call, scope, scope.source)
    return None


def _scope_around(tokens: TokenList, call: Range) -> VisibleRelations | None:
    """The relations of the next query around that of a call, if it reads columns of these alone."""
    clauses: list[BlockText | MatchRelation] = [*find_window_queries(tokens), *find_matches(tokens)]
    around = list(scopes(tokens, call[0], clauses))
    read = [at for at in range(*call) if may_be_operand(tokens, at)]
    names = {tokens[at].name.lower() for at in read}
    found = next((one for one in around if names <= one.names), None)
    has_relations = bool(read) and all(tokens.is_symbol(at + 1, ".") for at in read)
    if found is None or not has_relations or _depth(tokens, call[0], found) != 1:
        return None
    is_in_on = not found.is_whole and tokens.word(found.at - 1) != "LATERAL"
    is_shared = found is not around[0] and not names.isdisjoint(around[0].names)
    has_query = any(opens_query(tokens, at) for at in range(*call))
    return None if is_in_on or is_shared or has_query or _is_grouped(tokens, found) else found


def _depth(tokens: TokenList, at: int, scope: VisibleRelations) -> int:
    """How many queries in brackets are between a token and a query around it."""
    depth, parent = 0, tokens.parent[at]
    while parent >= 0 and parent >= scope.at:
        depth += opens_query(tokens, parent)
        parent = tokens.parent[parent]
    return depth


def _is_grouped(tokens: TokenList, scope: VisibleRelations) -> bool:
    """Whether a query groups its rows, where a column more would have to be among the keys."""
    select = select_at(tokens, scope.at) if scope.is_whole else None
    return select is not None and (select.part("GROUP") is not None or calls_aggregate(tokens, select.items))


def _text(tokens: TokenList, call: Range, scope: VisibleRelations, source: Range) -> SqlText:
    """The text with the value of a call as a column of the relations that it reads."""
    names = {tokens[at].name.lower() for at in range(len(tokens)) if tokens[at].is_name}
    row = next(name for number in count() if (name := f"{_ROW}{number}") not in names)
    value = SqlText.of("LATERAL (SELECT ", piece_of(tokens, *call), f" AS {_VALUE}) AS {row} ")
    joins = ", " if scope.is_whole or tokens.is_symbol(source[1], ",") else " CROSS JOIN "
    edits = [
        (call, SqlText.of(f"{row}.{_VALUE} ")),
        ((source[1], source[1]), SqlText.of(joins, value)),
    ]
    select = select_at(tokens, scope.at)
    for item in tokens.split(*select.items) if select is not None else ():
        if item[1] - item[0] == 1 and tokens.is_symbol(item[0], "*"):
            edits.append((item, SqlText.of(f"* EXCEPT ({row}.{_VALUE}) ")))
    parts: list[SqlText] = []
    done = 0
    for (start, stop), written in sorted(edits, key=lambda edit: edit[0]):
        parts += [piece_of(tokens, done, start, " "), written]
        done = stop
    return SqlText.of(*parts, piece_of(tokens, done, len(tokens)))
