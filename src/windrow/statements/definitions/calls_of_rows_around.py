"""Calls of SQL functions over windows in a subquery, with columns of the query around it.

    SELECT (SELECT MAX(t.v) FROM t WHERE t.v > f(b.v)) FROM b
      →  SELECT (SELECT MAX(t.v) FROM t WHERE t.v > __of_row0.__value)
         FROM b, LATERAL (SELECT f(b.v) AS __value) AS __of_row0

Spark reads columns of the next query around, so the value of each of its rows becomes such a column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, count

from windrow.algebra.aggregate_calls import places_of_calls
from windrow.algebra.names import piece_of
from windrow.algebra.qualified import is_same, relations_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import put_instead, put_name
from windrow.algebra.scopes import JOINS, VisibleRelations, scopes
from windrow.errors import WindrowError
from windrow.statements.definitions.calls_over_selects import ColumnsOf
from windrow.statements.definitions.function_calls import (
    SelectText,
    alone_in_lateral,
    first_of_call,
    operands_of_call,
    outermost_calls,
    select_at,
    windows_of,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.nodes import BlockText, Range, is_within
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.select_list import alias_of, excepted
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
        for read in _ReadAround.of(tokens, call):
            found = read.text() if read.is_of_outer(columns_of) else None
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
        What the subquery, and clauses in it, can see.
    outer, source
        The relations that the call reads.
    select
        The query around.
    of_groups
        Whether the subquery reads groups of that query, of which the call reads keys.
    """

    tokens: TokenList
    call: Range
    inner: list[VisibleRelations]
    outer: VisibleRelations
    source: Range
    select: SelectText
    of_groups: bool

    @staticmethod
    def of(tokens: TokenList, call: Range) -> Iterator[_ReadAround]:
        """Such a call, once for each part of FROM that may have its columns.

        None for others, and where no column can be added to the query around.
        """
        clauses: list[BlockText | MatchRelation] = [*find_window_queries(tokens), *find_matches(tokens)]
        around = list(scopes(tokens, call[0], clauses))
        outer = next((one for one in around if _depth(tokens, call[0], one) == 1), None)
        has_query = any(opens_query(tokens, at) for at in range(*call))
        if outer is None or outer.source is None or has_query or not operands_of_call(tokens, call):
            return
        select = select_at(tokens, outer.at)
        if select is None or tokens.parent[select.items[0]] != tokens.parent[outer.at]:
            return
        of_groups = _is_of_groups(tokens, outer, select)
        if of_groups and not _are_keys(tokens, call, select, outer):
            return
        is_in_on = not outer.is_whole and tokens.word(outer.at - 1) != "LATERAL"
        inner = around[: around.index(outer)]
        for part in _sides_of_join(tokens, outer, outer.source) if is_in_on else [outer]:
            if part.source is not None and _takes_columns(tokens, part.source, select):
                yield _ReadAround(tokens, call, inner, part, part.source, select, of_groups)

    def is_of_outer(self, columns_of: ColumnsOf) -> bool:
        """Whether Spark would read all columns from the outer relations, and none from the subquery's."""
        tokens, names = self.tokens, _relations(self.tokens, self.call)
        bare = {tokens[at].name.lower() for at in operands_of_call(tokens, self.call)} - names
        hidden = frozenset(chain.from_iterable(one.names for one in self.inner)) | _aliases(tokens, self.call)
        if not names <= self.outer.names or not hidden.isdisjoint(names | bare):
            return False
        for one in self.inner:
            unknown = None if bare else set[str]()  # behind WINDOW BY, columns have a row before them
            columns = unknown if one.columns is None else self._columns(one.columns, columns_of)
            if columns is None or not columns.isdisjoint(names | bare):
                return False
        outer = self._columns(self.source, columns_of) if bare else bare
        return outer is not None and bare <= outer

    def _columns(self, source: Range, columns_of: ColumnsOf) -> set[str] | None:
        """The columns of relations, in lower case; None of those that depend on others."""
        try:
            return set(
                map(str.lower, columns_of(SqlText.of("SELECT * FROM ", piece_of(self.tokens, *source))))
            )
        except WindrowError:
            return None

    def text(self) -> SqlText | None:
        """The text with the value as a column of the relations; None if a star would have it."""
        tokens, outer, stop = self.tokens, self.outer, self.source[1]
        names = {tokens[at].name.lower() for at in range(len(tokens)) if tokens[at].is_name}
        row = next(name for number in count() if (name := f"{_ROW}{number}") not in names)
        edits = Edits(tokens)
        put_instead(edits, self.call, f"{row}.{_VALUE}")
        joins = "," if outer.is_whole or tokens.is_symbol(stop, ",") else "CROSS JOIN"
        value = piece_of(tokens, *self.call)
        is_behind = tokens.word(self.source[0] - 1) == "JOIN"
        if is_behind:
            edits.put(self.source[0], "(")
        edits.put(
            stop, f"{joins} LATERAL (SELECT ", value, f" AS {_VALUE}) AS {row}", ")" if is_behind else ""
        )
        keys = self.select.part("GROUP")
        if self.of_groups and keys is not None:
            edits.put(keys[1], f", {row}.{_VALUE}")
        items = tokens.split(*self.select.items)
        for item in items:
            put_name(edits, item, [self.call], [f"{row}.{_VALUE}"] if self._is_star(item) else [])
        stars = (at for at in range(*self.select.range) if self._reads_all(at))
        whole = {item[0] for item in items if self._is_star(item)}
        return edits.text(0, len(tokens)) if whole.issuperset(stars) else None

    def _is_star(self, item: Range) -> bool:
        tokens = self.tokens
        return tokens.is_symbol(item[0], "*") and (
            item[1] - item[0] == 1 or excepted(tokens, item) is not None
        )

    def _reads_all(self, at: int) -> bool:
        """Whether a star stands for all columns of the query around: not that of COUNT, or of a product."""
        tokens, around = self.tokens, self.tokens.parent[at]
        if not tokens.is_symbol(at, "*") or tokens.is_symbol(at - 1, "."):
            return False
        while around >= self.select.range[0]:
            if opens_query(tokens, around):
                return False
            around = tokens.parent[around]
        is_counted = tokens.is_symbol(at - 1, "(") and tokens.word(at - 2) == "COUNT"
        is_first = any(tokens.is_symbol(at - 1, symbol) for symbol in ("(", ","))
        return not is_counted and (is_first or tokens.word(at - 1) in ("SELECT", "DISTINCT", "ALL"))


def _aliases(tokens: TokenList, call: Range) -> set[str]:
    """The aliases of the SELECT around a call, in lower case, which Spark reads before outer columns."""
    select = select_at(tokens, call[0])
    items = [] if select is None else tokens.split(*select.items)
    return {alias for item in items if (alias := alias_of(tokens, item)) is not None}


def _relations(tokens: TokenList, call: Range) -> set[str]:
    """The relations, in lower case, of which a call reads columns."""
    return {tokens[at].name.lower() for at in operands_of_call(tokens, call) if tokens.is_symbol(at + 1, ".")}


def _sides_of_join(tokens: TokenList, outer: VisibleRelations, source: Range) -> Iterator[VisibleRelations]:
    """The relations before and behind JOIN, of a condition in ON: a subquery there may read those of one."""
    words = [at for at in tokens.level(source[0], outer.at) if tokens.word(at) in ("JOIN", "ON", "VIEW")]
    if [tokens.word(at) for at in words[-2:]] != ["JOIN", "ON"]:
        return
    join = words[-2]
    stop = join
    while tokens.word(stop - 1) in JOINS:
        stop -= 1
    sides = [(source[0], stop)]
    if not {tokens.word(at) for at in range(stop, join + 2)} & {"SEMI", "ANTI", "LATERAL"}:
        sides.append((join + 1, source[1]))
    for side in sides:
        names = frozenset(relations_of(tokens, (side[0] - 1, side[1])))
        yield replace(outer, names=names, source=side, columns=side)


def _depth(tokens: TokenList, at: int, scope: VisibleRelations) -> int:
    """How many queries in brackets are between a token and a query around it."""
    depth, parent = 0, tokens.parent[at]
    while parent >= 0 and parent >= scope.at:
        depth += opens_query(tokens, parent)
        parent = tokens.parent[parent]
    return depth


def _takes_columns(tokens: TokenList, source: Range, select: SelectText) -> bool:
    """Whether another column of its relations changes no row of a query but for its stars."""
    has_views = any(tokens.word(at) == "VIEW" and tokens.word(at - 1) == "LATERAL" for at in range(*source))
    is_whole = source[0] < source[1] and tokens.word(source[0] - 1) in ("FROM", "JOIN")
    return is_whole and not has_views and windows_of(tokens, select) is None


def _is_of_groups(tokens: TokenList, outer: VisibleRelations, select: SelectText) -> bool:
    """Whether a subquery reads groups, and not their rows as in WHERE and in aggregates."""
    parts = [part for part in (select.items, select.part("HAVING"), select.tail) if part is not None]
    aggregates = places_of_calls(tokens, parts)
    is_grouped = select.part("GROUP") is not None or bool(aggregates)
    is_of_rows = select.is_in("WHERE", outer.at) or any(
        is_within((outer.at, outer.at + 1), one) for one in aggregates
    )
    return outer.is_whole and is_grouped and not is_of_rows


def _are_keys(tokens: TokenList, call: Range, select: SelectText, outer: VisibleRelations) -> bool:
    """Whether a call reads keys of GROUP BY alone, columns that are named there."""
    part = select.part("GROUP") or (0, 0)
    has_sets = any(tokens.word(at) in ("WITH", "SETS", "ROLLUP", "CUBE", "ALL") for at in range(*part))
    keys, relations = tokens.split(*part), set(outer.names)
    operands = operands_of_call(tokens, call)
    paths = [(at, at + 3 if tokens.is_symbol(at + 1, ".") else at + 1) for at in operands]
    are_keys = all(any(is_same(tokens, path, key, relations) for key in keys) for path in paths)
    return not has_sets and are_keys
