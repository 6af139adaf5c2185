"""OVER and QUALIFY of a SELECT, and aliases of SELECT in HAVING and QUALIFY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.types import LongType

from windrow.kernels.sorting import SortKey
from windrow.plan.columns import ROWS, Column, Expression
from windrow.plan.nodes import Over
from windrow.plan.reader.query_rows import BlockRows, column_of, filtered
from windrow.plan.reader.reader_state import ReaderState
from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.syntax.expression_nodes import Name
from windrow.syntax.expressions import parse_expression
from windrow.syntax.expressions.window_calls import OverCall, is_over, window_calls
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select
from windrow.syntax.select_list import alias_of, without_alias
from windrow.syntax.sqltext import SqlText

__all__ = ["AT", "named_in", "over_of", "with_windows"]

AT = "__at"
"""The row number column, for window functions that Spark computes."""


def over_of(statement: StatementText, select: Select) -> Range | None:
    """The first place where a SELECT uses OVER."""
    for start, stop in select.items:
        for at in range(start, stop):
            if is_over(statement.tokens, at):
                return (at, at + 1)
    return select.window or select.qualify


def with_windows(
    reading: ReaderState,
    select: Select,
    rows: BlockRows,
    conditions: Sequence[Range],
    apart: Sequence[str] = (),
) -> BlockRows:
    """The rows that pass WHERE and QUALIFY, with a column for each window function.

    Rows that differ in the columns `apart` are never in the same partition.
    """
    statement = reading.statement
    clauses = [] if select.qualify is None else [select.qualify]
    calls = window_calls(statement.tokens, [*select.items, *clauses], select.window)
    rows = filtered(statement, rows, conditions, "WHERE")
    if select.qualify is not None:
        named_in(statement, select, select.qualify, rows)
        start, stop = select.qualify
        in_clause = [call.range for call in calls if start <= call.range[0] < stop]
        rows = reading.unnested(reading, select, rows, in_clause)
    together: dict[tuple[object, ...], list[OverCall]] = {}
    for call in calls:
        together.setdefault(_alike(statement, call), []).append(call)
    for alike in together.values():
        rows = _over(statement, select, rows, alike, apart)
    if select.qualify is None:
        return rows
    named_in(statement, select, select.qualify, rows)
    rows = reading.unnested(reading, select, rows, clauses, is_condition=True)
    return filtered(statement, rows, clauses, "QUALIFY")


def _alike(statement: StatementText, call: OverCall) -> tuple[object, ...]:
    """What window functions must share to be evaluated together."""
    text = statement.tokens.text
    order = tuple((text(*item.expression), item.descending, item.nulls_first) for item in call.order)
    return tuple(text(*key) for key in call.partition), order


def _over(
    statement: StatementText,
    select: Select,
    rows: BlockRows,
    calls: Sequence[OverCall],
    apart: Sequence[str],
) -> BlockRows:
    """The rows with columns for window functions over one partition and order."""
    first = calls[0]
    partition, order = [*apart], []
    for key in first.partition:
        rows, column = column_of(statement, rows, key)
        partition.append(column)
    for item in first.order:
        rows, column = column_of(statement, rows, item.expression)
        order.append(SortKey(column, item.descending, item.nulls_first))
    scope = rows.scope(statement.prefix(select.items[0][0]))
    halves = []
    for call in calls:
        statement.windows.add(call.over)
        start = call.definition[0] + 2 * bool(call.partition)
        by = "PARTITION BY " if call.partition or apart else ""
        before = SqlText.of(statement.text((call.range[0], call.over + 1)), f" ({by}")
        further = ", ".join(f"{ROWS}.{column}" for column in apart)
        further += ", " if apart and call.partition else " "
        halves.append((before, SqlText.of(further, statement.text((start, call.definition[1])), ")")))
    texts = [SqlText.of(before, after) for before, after in halves]
    numbered = Column(AT, AT, LongType())
    whole = SqlText.of(SqlText.join(", ", texts), f", {ROWS}.{AT}")
    found = statement.analyser.schema(scope.select(whole), (*rows.node.columns, numbered))
    columns = []
    for made, call, text, one in zip(statement.fresh(len(calls)), calls, texts, found, strict=False):
        output = Column(made, statement.written(call.range), one.dataType)
        columns.append((output, call, Expression(text, one.dataType, at=call.range)))
        statement.instead[call.range] = f"{ROWS}.{made}"
        statement.columns_at[call.range] = made
    label = f"OVER ({statement.written(first.definition)})"
    node = Over(
        rows.node, scope, tuple(partition), tuple(order), tuple(columns), label, first.range, tuple(halves)
    )
    return replace(rows, node=node)


def named_in(statement: StatementText, select: Select, clause: Range, rows: BlockRows) -> None:
    """Substitute expressions for aliases of SELECT, unless they contain a window function that is not
    computed yet.

    Where a column of the rows has the same name, Spark's choice depends on the context.

    Raises
    ------
    UnreadError
        For such a name.
    """
    tokens = statement.tokens
    own = {alias_of(tokens, item): without_alias(tokens, item) for item in select.items}
    known = {name.lower() for part in rows.parts for name in part.names}
    for at in range(*clause):
        token = tokens[at]
        is_bare = token.is_name and not tokens.is_symbol(at - 1, ".")
        if not is_bare or tokens.is_symbol(at + 1, ".") or tokens.is_symbol(at + 1, "("):
            continue
        item = own.get(token.name.lower())
        if item is None or any(
            place not in statement.windows and is_over(tokens, place) for place in range(*item)
        ):
            continue
        parsed = parse_expression(tokens, *item)
        is_same = isinstance(parsed, Name) and parsed.parts[-1].lower() == token.name.lower()
        if token.name.lower() in known and not is_same:
            what = f"HAVING or QUALIFY by {token.name}, which is both an alias and a column of the rows,"
            raise UnreadError(what, (at, at + 1), "rename it in SELECT")
        source = statement.columns_at.get(item)
        if source is None and isinstance(parsed, Name):
            source = rows.resolved(parsed)
        if source is not None:
            statement.columns_at[at, at + 1] = source
        statement.instead[at, at + 1] = f"({statement.text(item).render()})"
