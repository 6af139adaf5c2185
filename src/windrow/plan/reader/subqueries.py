"""Subqueries in WHERE as joins: EXISTS, NOT EXISTS and IN."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from windrow.algebra.aggregates import calls_aggregate
from windrow.plan.nodes import Node
from windrow.plan.reader.joins import alike, equality, paired
from windrow.plan.reader.rows import Rows, column_of, filtered, reads_only, renamed
from windrow.plan.reader.statement import NotPlannedError, Statement
from windrow.syntax.expressions import names_in, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select, Shape, conjuncts, parse_query
from windrow.syntax.window_calls import is_over

__all__ = ["has_subquery", "with_subquery"]

IN_AN_INTERVAL = (
    "compare the two sides by =; or, where the condition says until when a partner may come, leave STREAM out"
    " and write EMIT STREAM AFTER WATERMARK at the end"
)


def has_subquery(statement: Statement, part: Range) -> bool:
    """Whether a condition has a subquery over something that varies."""
    tokens = statement.tokens
    return any(
        tokens.is_symbol(at, "(")
        and tokens.word(at + 1) in ("SELECT", "WITH")
        and statement.varies((at, tokens.partner[at] + 1))
        for at in range(*part)
    )


def with_subquery(
    statement: Statement,
    rows: Rows,
    part: Range,
    query: Callable[[Shape], Node],
    from_where: Callable[[Select], tuple[Rows, list[Range]]],
) -> Rows:
    """The rows for which EXISTS, NOT EXISTS or IN holds."""
    tokens, (start, stop) = statement.tokens, part
    is_not = tokens.word(start) == "NOT"
    if tokens.word(start + is_not) == "EXISTS" and tokens.partner[start + is_not + 1] == stop - 1:
        bracket = (start + is_not + 1, stop)
        return _exists(statement, rows, bracket, part, "anti" if is_not else "semi", query, from_where)
    bracket_at = tokens.partner[stop - 1] if tokens.is_symbol(stop - 1, ")") else -1
    if bracket_at < 0 or tokens.word(bracket_at - 1) != "IN":
        raise NotPlannedError("this subquery", part, "EXISTS, NOT EXISTS and IN are, in AND of WHERE")
    if tokens.word(bracket_at - 2) == "NOT" or is_not:
        raise NotPlannedError("NOT IN a subquery", part, "write NOT EXISTS (SELECT … WHERE a = b)")
    inner = query(parse_query(tokens, bracket_at, stop))
    if len(inner.columns) != 1:
        raise NotPlannedError("IN a subquery of several columns", (bracket_at, stop), "select one")
    rows, mine = column_of(statement, rows, (start, bracket_at - 1))
    made = renamed(statement, inner, [column.name for column in inner.columns], "columns")
    rows, other, key = alike(statement, rows, Rows(made, ()), (mine, made.columns[0].id), part)
    return paired(statement, rows, other, [key], "semi", statement.written(part), part)


def _exists(
    statement: Statement,
    rows: Rows,
    bracket: Range,
    part: Range,
    kind: str,
    query: Callable[[Shape], Node],
    from_where: Callable[[Select], tuple[Rows, list[Range]]],
) -> Rows:
    tokens = statement.tokens
    shape = parse_query(tokens, *bracket)
    is_grouped = isinstance(shape, Select) and (
        shape.group_by is not None
        or shape.having is not None
        or any(calls_aggregate(tokens, item) for item in shape.items)
    )
    if not isinstance(shape, Select) or is_grouped:
        raise NotPlannedError("EXISTS of groups or set operators", bracket, "ask for the rows of a block")
    over = next((at for item in shape.items for at in range(*item) if is_over(tokens, at)), None)
    framed = (over, over + 1) if over is not None else shape.window or shape.qualify
    if framed is not None:
        raise NotPlannedError("OVER in EXISTS", framed, "leave it out, or write a query in FROM")
    where = [] if shape.where is None else conjuncts(tokens, *shape.where)
    keys: list[tuple[str, str]] = []
    inside, _ = from_where(replace(shape, where=None))
    for condition in where:
        pair = None
        if not reads_only(statement, condition, inside):
            pair = equality(statement, rows, inside, condition)
        if pair is not None:
            rows, inside, key = pair
            keys.append(key)
        elif has_subquery(statement, condition):
            inside = with_subquery(statement, inside, condition, query, from_where)
        elif _reads_beyond(statement, condition, inside, rows):
            what = f"{statement.written(condition)} between the rows of two streams"
            raise NotPlannedError(what, condition, IN_AN_INTERVAL)
        else:
            inside = filtered(statement, inside, [condition], "WHERE")
    if not keys:
        what = "EXISTS without an equality with the query around it"
        raise NotPlannedError(what, part, "compare by =")
    return paired(statement, rows, inside, keys, kind, statement.written(part), part)


def _reads_beyond(statement: Statement, condition: Range, inside: Rows, around: Rows) -> bool:
    """Whether a condition in a subquery names a column that only the query around it has."""
    names = names_in(parse_expression(statement.tokens, *condition))
    return any(inside.resolved(one) is None and around.resolved(one) for one in names)
