"""Calls of SQL functions over windows in a subquery, with columns of the query around it.

    SELECT (SELECT MAX(t.v) FROM t WHERE t.v > f(b.v)) FROM b
      →  SELECT (SELECT MAX(t.v) FROM t WHERE t.v > __of_row0.__value)
         FROM b, LATERAL (SELECT f(b.v) AS __value) AS __of_row0

Spark reads columns of the next query around, so the value of each of its rows becomes such a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from windrow.algebra.aggregate_calls import calls_aggregate
from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import put_instead
from windrow.algebra.scopes import VisibleRelations, scopes
from windrow.statements.definitions.calls_over_selects import ColumnsOf
from windrow.statements.definitions.function_calls import (
    SelectText,
    alone_in_lateral,
    first_of_call,
    outermost_calls,
    select_at,
    windows_of,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.operands import may_be_operand
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.select_list import excepted
from windrow.syntax.sqltext import SqlText
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = ["calls_of_rows_around"]

_ROW, _VALUE = "__of_row", "__value"


def calls_of_rows_around(
    tokens: TokenList, functions: KnownFunctions, columns_of: ColumnsOf
) -> SqlText | None:
    """The text with the first such call as a column of the query around; None if there is none.

    Calls stay where they are, and are reported, if that query groups its rows or makes windows of them, or if
    they read several queries.
    """
    for at in outermost_calls(tokens, functions):
        function, call = functions.called(tokens, at), (first_of_call(tokens, at), tokens.partner[at + 1] + 1)
        if function is None or function.returns_table or alone_in_lateral(tokens, at) is not None:
            continue
        read = _ReadAround.of(tokens, call)
        if read is not None and not read.is_hidden(columns_of):
            found = read.text()
            if found is not None:
                return found
    return None


@dataclass(frozen=True)
class _ReadAround:
    """A call in a subquery that reads columns of the query around alone.

    Attributes
    ----------
    call
        The tokens of the call.
    inner
        The relations of the subquery; None without.
    outer, source
        The relations that it reads.
    select
        The query around.
    """

    tokens: TokenList
    call: Range
    inner: Range | None
    outer: VisibleRelations
    source: Range
    select: SelectText

    @staticmethod
    def of(tokens: TokenList, call: Range) -> _ReadAround | None:
        """Such a call; None for others, and where no column can be added to the query around."""
        clauses: list[BlockText | MatchRelation] = [*find_window_queries(tokens), *find_matches(tokens)]
        around = list(scopes(tokens, call[0], clauses))
        read = _operands(tokens, call)
        names = {tokens[at].name.lower() for at in read}
        outer = next((one for one in around if names <= one.names), None)
        has_relations = bool(read) and all(tokens.is_symbol(at + 1, ".") for at in read)
        has_query = any(opens_query(tokens, at) for at in range(*call))
        if outer is None or outer.source is None or not has_relations or has_query:
            return None
        select = select_at(tokens, outer.at)
        is_nearest = select is not None and tokens.parent[select.items[0]] == tokens.parent[outer.at]
        if select is None or not is_nearest or _depth(tokens, call[0], outer) != 1:
            return None
        is_shared = outer is not around[0] and not names.isdisjoint(around[0].names)
        if is_shared or not _takes_columns(tokens, select, outer, outer.source):
            return None
        inner = None if outer is around[0] else around[0].source
        return _ReadAround(tokens, call, inner, outer, outer.source, select)

    def is_hidden(self, columns_of: ColumnsOf) -> bool:
        """Whether a column of the subquery has the name of a relation that the call reads: Spark reads it."""
        if self.inner is None:
            return False
        names = {self.tokens[at].name.lower() for at in _operands(self.tokens, self.call)}
        columns = columns_of(SqlText.of("SELECT * FROM ", piece_of(self.tokens, *self.inner)))
        return not names.isdisjoint(map(str.lower, columns))

    def text(self) -> SqlText | None:
        """The text with the value as a column of the relations; None if a star would have it."""
        tokens, outer, stop = self.tokens, self.outer, self.source[1]
        names = {tokens[at].name.lower() for at in range(len(tokens)) if tokens[at].is_name}
        row = next(name for number in count() if (name := f"{_ROW}{number}") not in names)
        edits = Edits(tokens)
        put_instead(edits, self.call, f"{row}.{_VALUE}")
        joins = "," if outer.is_whole or tokens.is_symbol(stop, ",") else "CROSS JOIN"
        value = piece_of(tokens, *self.call)
        edits.put(stop, f"{joins} LATERAL (SELECT ", value, f" AS {_VALUE}) AS {row}")
        for at in range(*self.select.items):
            if not tokens.is_symbol(at, "*"):
                continue
            item = next(one for one in tokens.split(*self.select.items) if one[0] <= at < one[1])
            bracket = excepted(tokens, item)
            if item == (at, at + 1):
                edits.put(at + 1, f"EXCEPT ({row}.{_VALUE})")
            elif at == item[0] and bracket is not None:
                edits.put(bracket + 1, f"{row}.{_VALUE},")
            elif tokens.is_symbol(at - 1, "(") and tokens.word(at - 2) != "COUNT":
                return None
        return edits.text(0, len(tokens))


def _operands(tokens: TokenList, call: Range) -> list[int]:
    """Where the operands of a call begin: their relations."""
    return [at for at in range(*call) if may_be_operand(tokens, at)]


def _depth(tokens: TokenList, at: int, scope: VisibleRelations) -> int:
    """How many queries in brackets are between a token and a query around it."""
    depth, parent = 0, tokens.parent[at]
    while parent >= 0 and parent >= scope.at:
        depth += opens_query(tokens, parent)
        parent = tokens.parent[parent]
    return depth


def _takes_columns(tokens: TokenList, select: SelectText, outer: VisibleRelations, source: Range) -> bool:
    """Whether another column of its relations changes no row of a query but for its stars."""
    groups = outer.is_whole and (
        select.part("GROUP") is not None
        or any(calls_aggregate(tokens, part) for part in (select.items, select.part("HAVING")) if part)
    )
    is_in_on = not outer.is_whole and tokens.word(outer.at - 1) != "LATERAL"
    has_views = any(tokens.word(at) == "VIEW" and tokens.word(at - 1) == "LATERAL" for at in range(*source))
    is_whole = tokens.word(source[0] - 1) == "FROM" and windows_of(tokens, select) is None
    return is_whole and not groups and not is_in_on and not has_views
