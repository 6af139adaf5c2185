"""Calls of SQL functions over windows in a subquery, with columns of the query around it.

    SELECT (SELECT MAX(t.v) FROM t WHERE t.v > f(b.v)) FROM b
      →  SELECT (SELECT MAX(t.v) FROM t WHERE t.v > __of_row0.__value)
         FROM b, LATERAL (SELECT f(b.v) AS __value) AS __of_row0

Spark reads columns of the next query around, so the value of each of its rows becomes such a column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from windrow.algebra.names import piece_of
from windrow.algebra.qualified import is_same, relations_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.scopes import JOINS, VisibleRelations, scopes
from windrow.errors import WindrowError
from windrow.statements.definitions.added_columns import (
    aliases_around,
    put_column,
    reads_groups,
    takes_columns,
    unused_name,
)
from windrow.statements.definitions.calls.calls_over_selects import ColumnsOf
from windrow.statements.definitions.function_calls import (
    SelectText,
    alone_in_lateral,
    depth_of,
    first_of_call,
    operands_of_call,
    outermost_calls,
    select_at,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.sqltext import SqlText
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = ["calls_of_rows_around"]

_VALUE = "__value"


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
        outer = next((one for one in around if depth_of(tokens, call[0], one) == 1), None)
        has_query = any(opens_query(tokens, at) for at in range(*call))
        if outer is None or outer.source is None or has_query or not operands_of_call(tokens, call):
            return
        select = select_at(tokens, outer.at)
        if select is None or tokens.parent[select.items[0]] != tokens.parent[outer.at]:
            return
        of_groups = reads_groups(tokens, outer, select)
        if of_groups and not _are_keys(tokens, call, select, outer):
            return
        is_in_on = not outer.is_whole and tokens.word(outer.at - 1) != "LATERAL"
        inner = around[: around.index(outer)]
        for part in _sides_of_join(tokens, outer, outer.source) if is_in_on else [outer]:
            if part.source is not None and takes_columns(tokens, part.source, select):
                yield _ReadAround(tokens, call, inner, part, part.source, select, of_groups)

    def is_of_outer(self, columns_of: ColumnsOf) -> bool:
        """Whether Spark would read all columns from the outer relations, and none from the subquery's."""
        tokens, names = self.tokens, _relations(self.tokens, self.call)
        bare = {tokens[at].name.lower() for at in operands_of_call(tokens, self.call)} - names
        hidden = frozenset(chain.from_iterable(one.names for one in self.inner)) | aliases_around(
            tokens, self.call
        )
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
        row = unused_name(tokens)
        edits = Edits(tokens)
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
        is_hidden = put_column(edits, self.select, self.call, [f"{row}.{_VALUE}"])
        return edits.text(0, len(tokens)) if is_hidden else None


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


def _are_keys(tokens: TokenList, call: Range, select: SelectText, outer: VisibleRelations) -> bool:
    """Whether a call reads keys of GROUP BY alone, columns that are named there."""
    part = select.part("GROUP") or (0, 0)
    has_sets = any(tokens.word(at) in ("WITH", "SETS", "ROLLUP", "CUBE", "ALL") for at in range(*part))
    keys, relations = tokens.split(*part), set(outer.names)
    operands = operands_of_call(tokens, call)
    paths = [(at, at + 3 if tokens.is_symbol(at + 1, ".") else at + 1) for at in operands]
    are_keys = all(any(is_same(tokens, path, key, relations) for key in keys) for path in paths)
    return not has_sets and are_keys
