"""Calls of SQL functions over windows in a subquery, with columns of it and of the query around it.

SELECT (SELECT MAX(f(t.v + b.v)) FROM b) FROM t
→  SELECT (SELECT MAX(__of_row0.__value)
FROM b, (SELECT …, f(…) AS __value
FROM (SELECT DISTINCT t.v + b.v AS __given0 FROM t, b) AS __given) AS __of_row0
WHERE __of_row0.__given0 <=> (t.v + b.v))
FROM t
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.outer_values import filters
from windrow.algebra.scopes import VisibleRelations, scopes
from windrow.errors import WindrowError
from windrow.statements.definitions.added_columns import (
    aliases_around,
    put_column,
    reads_groups,
    takes_columns,
    unused_name,
)
from windrow.statements.definitions.calls_over_selects import ColumnsOf
from windrow.statements.definitions.function_calls import (
    SelectText,
    alone_in_lateral,
    depth_of,
    every_call,
    first_of_call,
    operands_of_call,
    outermost_calls,
    reads_rows,
    select_at,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.statements.definitions.values_of_calls import GivenValues
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.query_parts import find_window_queries, visible_ctes
from windrow.syntax.sqltext import SqlText
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = ["calls_of_two_queries"]

_ONE = "__one"
_ONE_VALUE = (
    "SELECT IF(COUNT(*) > 1, raise_error('a subquery for one value returned more than one row'),"
    f" ANY_VALUE({_ONE}.__value)) FROM ("
)
"""What a subquery for one value is around one that may return several rows."""


def calls_of_two_queries(
    tokens: TokenList, functions: KnownFunctions, columns_of: ColumnsOf
) -> SqlText | None:
    """The text with the values of the first such call as a relation of its subquery; None if there is none.

    Calls stay where they are, and are reported, over groups, and where FROM takes no further relation.
    """
    clauses: list[BlockText | MatchRelation] = [*find_window_queries(tokens), *find_matches(tokens)]
    calls = list(every_call(tokens, functions))
    for at in outermost_calls(tokens, functions):
        function, call = functions.called(tokens, at), (first_of_call(tokens, at), tokens.partner[at + 1] + 1)
        around = list(scopes(tokens, call[0], clauses))
        is_one = len(around) > 1 and function is not None and not function.returns_table
        if not is_one or sum(one in range(*call) for one in calls) > 1 or alone_in_lateral(tokens, at):
            continue
        select, (inner, outer) = select_at(tokens, call[0]), around[:2]
        if select is None or not _can_join(tokens, call, select, inner, outer):
            continue
        is_clear = _reads_both(tokens, call, inner, outer, columns_of)
        if is_clear is None:
            continue
        ways = (
            _values(tokens, call, inner, outer, calls, columns_of, is_clear=one)
            for one in ([True, False] if is_clear else [False])
        )
        known = (one for one in ways if visible_ctes(tokens, at) or one.is_known(columns_of))
        values = next(known, None)
        found = None if values is None else _joined(values, select, inner)
        if found is not None:
            return found
    return None


def _can_join(
    tokens: TokenList, call: Range, select: SelectText, inner: VisibleRelations, outer: VisibleRelations
) -> bool:
    """Whether the relations of both queries can be joined, and those of the inner one with the values."""
    if inner.source is None or outer.source is None:
        return False
    is_next = (depth_of(tokens, call[0], inner), depth_of(tokens, call[0], outer)) == (0, 1)
    is_whole = inner.is_whole and (outer.is_whole or tokens.word(outer.at - 1) == "LATERAL")
    has_views = any(tokens.word(at) == "VIEW" for at in range(*outer.source))
    has_query = any(opens_query(tokens, at) for at in range(*call))
    can_add = takes_columns(tokens, inner.source, select) and not reads_groups(tokens, inner, select)
    return (
        is_next and is_whole and can_add and not has_views and not has_query and not reads_rows(tokens, call)
    )


def _reads_both(
    tokens: TokenList, call: Range, inner: VisibleRelations, outer: VisibleRelations, columns_of: ColumnsOf
) -> bool | None:
    """Whether no relation or column is of both queries; None if the call does not read columns of each.

    What the inner query has is read from it.
    """
    operands = operands_of_call(tokens, call)
    named = {tokens[at].name.lower() for at in operands if tokens.is_symbol(at + 1, ".")}
    bare = {tokens[at].name.lower() for at in operands} - named
    columns = [_columns(tokens, one, columns_of) if bare else set[str]() for one in (inner, outer)]
    own, beyond = (names | scope.names for names, scope in zip(columns, (inner, outer), strict=True))
    read = named | bare
    of_outer = read - own - {"session"}  # that of variables
    is_known = of_outer <= beyond and (aliases_around(tokens, call) & bare).isdisjoint(of_outer)
    if not is_known or not of_outer or not read & own:
        return None
    return own.isdisjoint(beyond & read) and inner.names.isdisjoint(outer.names)


def _columns(tokens: TokenList, scope: VisibleRelations, columns_of: ColumnsOf) -> set[str]:
    """The columns of relations, in lower case; none of those that depend on others."""
    assert scope.source is not None
    try:
        found = columns_of(SqlText.of("SELECT * FROM ", piece_of(tokens, *scope.source)))
    except WindrowError:
        return set()
    return set(map(str.lower, found))


def _values(
    tokens: TokenList,
    call: Range,
    inner: VisibleRelations,
    outer: VisibleRelations,
    calls: list[int],
    columns_of: ColumnsOf,
    *,
    is_clear: bool,
) -> GivenValues:
    """The values of the call over the relations of both queries, with what WHERE says of them.

    These are joined, or those of the inner one are behind LATERAL if names would be unclear. Conditions with
    calls are left out.
    """
    assert inner.source is not None
    assert outer.source is not None
    beyond, own = piece_of(tokens, *outer.source), piece_of(tokens, *inner.source)
    source = SqlText.of(beyond, ", ", own)

    def conditions(scope: VisibleRelations, query: Callable[[Range], SqlText]) -> list[SqlText]:
        def is_known(condition: Range) -> bool:
            try:
                columns_of(query(condition))
            except WindrowError:
                return False
            return True

        return filters(tokens, scope, lambda start, stop: piece_of(tokens, start, stop), calls, is_known)

    def of_inner(condition: Range) -> SqlText:
        selected = SqlText.of("SELECT ", piece_of(tokens, *condition), " FROM ")
        if is_clear:
            return SqlText.of(selected, source)
        return SqlText.of("SELECT * FROM ", beyond, ", LATERAL (", selected, own, ")")

    guards = conditions(inner, of_inner)
    where = conditions(outer, lambda one: SqlText.of("SELECT ", piece_of(tokens, *one), " FROM ", beyond))
    if is_clear:
        source = SqlText.of(source, _where([*where, *guards]))
        return GivenValues(tokens, call, source, Edits(tokens), Edits(tokens), guards)
    outside = beyond, _where(where)
    inside = SqlText.of(own, _where(guards))
    return GivenValues(tokens, call, inside, Edits(tokens), Edits(tokens), guards, outside)


def _where(conditions: list[SqlText]) -> SqlText:
    return SqlText.of(" WHERE ", SqlText.join(" AND ", conditions)) if conditions else SqlText()


def _joined(values: GivenValues, select: SelectText, inner: VisibleRelations) -> SqlText | None:
    """The text with the table of values in FROM; None if a star would have its columns."""
    assert inner.source is not None
    tokens, row, edits = values.tokens, unused_name(values.tokens), Edits(values.tokens)
    is_one = _is_for_one_value(tokens, select)
    if is_one:
        edits.put(select.range[0], _ONE_VALUE)
    edits.put(inner.source[1], ", (", values.table(), f") AS {row}")
    where, condition = select.part("WHERE"), values.condition(row)
    if where is None:
        edits.put(inner.source[1], "WHERE ", condition)
    else:
        edits.put(where[0], condition, "AND (")
    is_hidden = put_column(edits, select, values.call, values.names(row))
    if where is not None:
        edits.put(where[1], ")")
    if is_one:
        edits.put(select.range[1], f") AS {_ONE}(__value)")
    return edits.text(0, len(tokens)) if is_hidden else None


def _is_for_one_value(tokens: TokenList, select: SelectText) -> bool:
    """Whether a subquery is for one value, and may have several rows: Spark cannot run all joins there."""
    opened = tokens.parent[select.range[0]]
    is_whole = opened >= 0 and (opened + 1, tokens.partner[opened]) == select.range
    is_other = tokens.word(opened - 1) in ("EXISTS", "IN", "LATERAL") or begins_relation(tokens, opened)
    return is_whole and not is_other and not reads_rows(tokens, select.items)
