"""PIVOT and UNPIVOT of a relation in FROM, as groups and as a function that returns rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.types import BooleanType, NumericType, StructField

from windrow.algebra.window_node import AggregateCall
from windrow.plan.columns import ROWS, Column, Expression, Scope, sql_of
from windrow.plan.nodes import Aggregate, Filter, GroupAggregate, Node, Project
from windrow.plan.reader.groups import grouped
from windrow.plan.reader.query_rows import BlockRows, column_of, passed
from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.syntax.expression_nodes import Name
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["turned"]


def turned(statement: StatementText, rows: BlockRows, clause: Range) -> Node:
    """The rows after a PIVOT or UNPIVOT clause."""
    (part,) = rows.parts
    alias = quoted(part.alias)
    whole = SqlText.of(
        statement.prefix(clause[0]), f"SELECT * FROM (SELECT {alias}.* FROM ", rows.scope().rows(),
        f") AS {alias} ", statement.text(clause),
    )  # fmt: skip
    found = statement.analyser.schema(whole, rows.node.columns).fields
    if statement.tokens.word(clause[0]) == "PIVOT":
        return _pivoted(statement, rows, clause, found)
    return _unpivoted(statement, rows, clause, found)


def _pivoted(
    statement: StatementText, rows: BlockRows, clause: Range, found: Sequence[StructField]
) -> Aggregate:
    """The groups by the other columns, with each aggregate over the rows that have one of the values.

    ::

        FROM s PIVOT (SUM(v) FOR k IN (1, 2))   →   GROUP BY ts: SUM(v) where k is 1, and where it is 2
                                                    └─ GROUP BY ts, k: SUM(v)
                                                       └─ s
    """
    tokens = statement.tokens
    first, last = clause[0] + 2, clause[1] - 1
    at = _word(tokens, first, last, "FOR")
    by, values = _for(tokens, at, last)
    items = tuple(without_alias(tokens, item) for item in tokens.split(first, at))
    count = len(values) * len(items)
    names = [Name((field.name,), clause) for field in found[: len(found) - count]]
    others = [column for name in names if (column := rows.resolved(name)) is not None]
    pivots = [column for key in tokens.split(*by) if (column := column_of(statement, rows, key)[1])]
    groups = grouped(statement, Select(False, items, (), group_by=by), rows, [], others).node
    is_known = isinstance(groups, Aggregate) and tuple(call.at for call in groups.calls) == items
    if not isinstance(groups, Aggregate) or not is_known or len(others) < len(names):
        raise UnreadError("PIVOT in this form", clause)
    if not all(isinstance(call.column.type, NumericType | BooleanType) for call in groups.calls):
        # what these are where there is no row Spark has in another way
        raise UnreadError("PIVOT of values that are not numbers", clause)
    groups = replace(groups, around=0)
    ids = [column.id for column in groups.columns]
    keys, read = groups.columns[: len(others)], ids[len(others) : len(others) + len(pivots)]
    kinds = [rows.type_of(column) for column in pivots]
    outputs = [*passed(keys)]
    made = statement.fresh(count)
    for own, (value, call) in zip(
        made, ((value, call) for value in values for call in groups.calls), strict=True
    ):
        wanted = zip(read, _each(tokens, value, len(read)), kinds, strict=True)
        same = [
            SqlText.of(f"{ROWS}.{column} <=> CAST(", statement.text(one), f" AS {sql_of(kind)})")
            for column, one, kind in wanted
        ]
        text = SqlText.of(
            "CASE WHEN ", SqlText.join(" AND ", same), f" THEN {ROWS}.{call.column.id} END"
        )  # fmt: skip
        name = statement.written(call.at)
        outputs.append((Column(own, name, call.column.type), Expression(text, call.column.type)))
    listed = SqlText.join(", ", [one.text for _, one in outputs])
    inside = Project(groups, Scope(), tuple(outputs), listed, "values of PIVOT")
    new = statement.fresh(len(found))
    columns = [Column(own, one.name, one.dataType) for own, one in zip(new, found, strict=True)]
    span = tokens.span(*clause)
    calls = tuple(
        # of one row, which has the value
        GroupAggregate(column, AggregateCall(column.id, "max", None, False, (),
             SqlText.of("any_value(", value.text, ", true)"), span), own.id, True, clause)
        for column, (own, value) in zip(columns[len(others) :], outputs[len(others) :], strict=True)
    )  # fmt: skip
    label = f"GROUP BY {', '.join(column.name for column in keys) or '()'}"
    by_others = tuple(zip(columns[: len(others)], (column.id for column in keys), strict=True))
    return Aggregate(inside, by_others, calls, label, clause)


def _unpivoted(
    statement: StatementText, rows: BlockRows, clause: Range, found: Sequence[StructField]
) -> Filter | Project:
    """Each row once for each of some columns, with the column's name and value.

    ::

        FROM s UNPIVOT (x FOR name IN (k, v))   →   WHERE x IS NOT NULL
                                                    └─ ts, stack(2, 'k', k, 'v', v) AS (name, x)
                                                       └─ s
    """
    tokens = statement.tokens
    with_nulls = tokens.word(clause[0] + 1) == "INCLUDE"
    first = next(at for at in range(clause[0], clause[1]) if tokens.is_symbol(at, "(")) + 1
    last = clause[1] - 1
    at = _word(tokens, first, last, "FOR")
    _, sources = _for(tokens, at, last, aliased=True)
    count = len(_each(tokens, (first, at), None))
    kinds = [field.dataType for field in found[len(found) - count :]]
    listed: list[SqlText] = []
    for source in sources:
        own = without_alias(tokens, source)
        columns = _each(tokens, own, None)
        name = tokens[source[1] - 1].name
        if own == source:
            known = {column.id: column.name for column in rows.node.columns}
            name = "_".join(known[column_of(statement, rows, one)[1]] for one in columns)
        listed.append(SqlText.of("'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"))
        listed += [
            SqlText.of("CAST((", statement.text(one), f") AS {sql_of(kind)})")
            for one, kind in zip(columns, kinds, strict=True)
        ]
    names = [Name((field.name,), clause) for field in found[: len(found) - count - 1]]
    others = [column for name in names if (column := rows.resolved(name)) is not None]
    if len(others) < len(names):
        raise UnreadError("UNPIVOT in this form", clause)
    known_columns = {column.id: column for column in rows.node.columns}
    passed_columns = [*passed([known_columns[column] for column in others])]
    ids = statement.fresh(count + 1)
    made = [Column(own, one.name, one.dataType) for own, one in zip(ids, found[len(others) :], strict=True)]
    whole = SqlText.of(
        *(SqlText.of(one.text, ", ") for _, one in passed_columns), f"stack({len(sources)}, ",
        SqlText.join(", ", listed), f") AS ({', '.join(ids)})",
    )  # fmt: skip
    outputs = (*passed_columns, *((column, Expression(whole, column.type)) for column in made))
    label = statement.written(clause)
    scope = rows.scope(statement.prefix(clause[0]))
    node = Project(rows.node, scope, outputs, whole, label, is_whole=True)
    if with_nulls:
        return node
    there = " OR ".join(f"{ROWS}.{own} IS NOT NULL" for own in ids[1:])
    condition = Expression(SqlText.of(there), BooleanType(), reads=frozenset(ids[1:]))
    return Filter(node, Scope(), (condition,), "WHERE", "WHERE values are not NULL")


def _word(tokens: TokenList, start: int, stop: int, word: str) -> int:
    """The position of a word of the clause."""
    return next(at for at in tokens.level(start, stop) if tokens.word(at) == word)


def _for(tokens: TokenList, at: int, stop: int, *, aliased: bool = False) -> tuple[Range, list[Range]]:
    """The range between FOR and IN, without brackets, and the elements of IN, with or without aliases."""
    inside = _word(tokens, at, stop, "IN")
    by = at + 1, inside
    if tokens.is_symbol(by[0], "(") and tokens.partner[by[0]] == by[1] - 1:
        by = by[0] + 1, by[1] - 1
    values = tokens.split(inside + 2, tokens.partner[inside + 1])
    return by, values if aliased else [without_alias(tokens, value) for value in values]


def _each(tokens: TokenList, stretch: Range, count: int | None) -> list[Range]:
    """The elements in brackets; a range without brackets is its own only element."""
    start, stop = stretch
    is_bracket = tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1
    return tokens.split(start + 1, stop - 1) if is_bracket and count != 1 else [stretch]
