"""Calls of SQL functions over windows in a subquery, with columns of it and of the query around it.

SELECT (SELECT MAX(f(t.v + b.v)) FROM b) FROM t
→  SELECT (SELECT MAX(__of_row0.__value)
FROM b, (SELECT …, f(…) AS __value
FROM (SELECT DISTINCT t.v + b.v AS __given0 FROM t, b) AS __given) AS __of_row0
WHERE __of_row0.__given0 <=> (t.v + b.v))
FROM t

Within aggregates and keys of such a subquery, calls with columns of it alone are values of its own relations:
Spark aggregates no subqueries in a subquery that is correlated.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from windrow.algebra.aggregate_calls import places_of_calls
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
from windrow.statements.definitions.calls.calls_over_selects import ColumnsOf
from windrow.statements.definitions.function_calls import (
    SelectText,
    alone_in_lateral,
    depth_of,
    every_call,
    first_of_call,
    operands_of_call,
    reads_rows,
    select_at,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.statements.definitions.values_of_calls import GivenValues
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import BlockText, Range, is_within
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


class _Way(Enum):
    """Of which relations the values of a call are found."""

    ALONE = auto()
    """The subquery's."""
    JOINED = auto()
    """Those of both queries."""
    LATERAL = auto()
    """Those of both queries, the subquery's behind LATERAL, if names would be unclear otherwise."""


def calls_of_two_queries(
    tokens: TokenList, functions: KnownFunctions, columns_of: ColumnsOf
) -> SqlText | None:
    """The text with the values of the first such call as a relation of its subquery; None if there is none.

    Calls stay where they are, and are reported, over groups, and where FROM takes no further relation.
    """
    clauses: list[BlockText | MatchRelation] = [*find_window_queries(tokens), *find_matches(tokens)]
    calls = list(every_call(tokens, functions))
    for at in calls:
        function, call = functions.called(tokens, at), (first_of_call(tokens, at), tokens.partner[at + 1] + 1)
        around = list(scopes(tokens, call[0], clauses))
        is_one = len(around) > 1 and function is not None and not function.returns_table
        if not is_one or sum(one in range(*call) for one in calls) > 1 or alone_in_lateral(tokens, at):
            continue
        select, (inner, outer) = select_at(tokens, call[0]), around[:2]
        if select is None or not _can_join(tokens, call, select, inner, outer):
            continue
        listed = _ways(tokens, call, select, inner, outer, columns_of)
        ways = (_values(tokens, call, inner, outer, calls, columns_of, way=way) for way in listed)
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
    is_of_groups = reads_groups(tokens, inner, select) and not select.is_in("GROUP", call[0])
    can_add = takes_columns(tokens, inner.source, select) and not is_of_groups
    return (
        is_next and is_whole and can_add and not has_views and not has_query and not reads_rows(tokens, call)
    )


def _ways(
    tokens: TokenList,
    call: Range,
    select: SelectText,
    inner: VisibleRelations,
    outer: VisibleRelations,
    columns_of: ColumnsOf,
) -> list[_Way]:
    """How the values of the call may be found, the simplest first; none if it stays where it is.

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
    if not is_known or not read & own:
        return []
    if not of_outer:
        is_inside = _is_aggregated(tokens, call, select) and _is_correlated(tokens, select, columns_of)
        return [_Way.ALONE, _Way.LATERAL] if is_inside else []
    is_clear = own.isdisjoint(beyond & read) and inner.names.isdisjoint(outer.names)
    return [_Way.JOINED, _Way.LATERAL] if is_clear else [_Way.LATERAL]


def _is_aggregated(tokens: TokenList, call: Range, select: SelectText) -> bool:
    """Whether a call stands within an aggregate of a SELECT, or in its keys."""
    parts = [part for part in (select.items, select.part("HAVING"), select.tail) if part is not None]
    inside = any(is_within(call, one) for one in places_of_calls(tokens, parts))
    return inside or select.is_in("GROUP", call[0])


def _is_correlated(tokens: TokenList, select: SelectText, columns_of: ColumnsOf) -> bool:
    """Whether a SELECT reads columns of a query around it, or queries of WITH."""
    try:
        columns_of(piece_of(tokens, *select.range))
    except WindrowError:
        return True
    return False


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
    way: _Way,
) -> GivenValues:
    """The values of the call over relations, with what WHERE says of them, but for conditions with calls."""
    assert inner.source is not None
    assert outer.source is not None
    beyond, own = piece_of(tokens, *outer.source), piece_of(tokens, *inner.source)
    source = own if way is _Way.ALONE else SqlText.of(beyond, ", ", own)

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
        if way is not _Way.LATERAL:
            return SqlText.of(selected, source)
        return SqlText.of("SELECT * FROM ", beyond, ", LATERAL (", selected, own, ")")

    guards = conditions(inner, of_inner)
    where = conditions(outer, lambda one: SqlText.of("SELECT ", piece_of(tokens, *one), " FROM ", beyond))
    if way is not _Way.LATERAL:
        source = SqlText.of(source, _where([*(where if way is _Way.JOINED else ()), *guards]))
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
    equal = _equal_calls(tokens, values.call, select)
    is_hidden = put_column(edits, select, values.call, values.names(row), equal)
    if where is not None:
        edits.put(where[1], ")")
    if is_one:
        edits.put(select.range[1], f") AS {_ONE}(__value)")
    return edits.text(0, len(tokens)) if is_hidden else None


def _equal_calls(tokens: TokenList, call: Range, select: SelectText) -> list[Range]:
    """The other places of a key of GROUP BY in its SELECT."""
    if not select.is_in("GROUP", call[0]):
        return []
    said, length = tokens.folded(*call), call[1] - call[0]
    places = ((at, at + length) for at in range(select.range[0], select.range[1] - length + 1))
    return [one for one in places if one != call and tokens.folded(*one) == said]


def _is_for_one_value(tokens: TokenList, select: SelectText) -> bool:
    """Whether a subquery is for one value, and may have several rows: Spark cannot run all joins there."""
    opened = tokens.parent[select.range[0]]
    is_whole = opened >= 0 and (opened + 1, tokens.partner[opened]) == select.range
    is_other = tokens.word(opened - 1) in ("EXISTS", "IN", "LATERAL") or begins_relation(tokens, opened)
    return is_whole and not is_other and not reads_rows(tokens, select.items)
