"""A clause that is composed of Python arguments, and run over a DataFrame or a relation.

The arguments become SQL, so that the clause means the same as in SQL. Errors show that SQL, and name the
argument at fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pyspark.sql import Column, DataFrame

from windrow.algebra.bind import bind
from windrow.algebra.bound_statement import BoundStatement
from windrow.errors import NotSupportedError, ParseError, UsageError, WindrowError
from windrow.explain.explained import explain
from windrow.relation import Relation
from windrow.spark.analysis.column_text import column_text
from windrow.spark.clauses.batch import build_window, run_statement
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.column_trees import aliases_of, sort_order
from windrow.syntax.sqltext import quoted
from windrow.syntax.tokens import tokenize

__all__ = [
    "ClauseArguments", "Expression", "Items", "Rows", "as_name", "as_sql", "check_rows", "expression",
    "name_in_from", "named_item", "numbered", "order_item", "refuse_direction", "run",
]  # fmt: skip

_INPUT = "__input"

Expression = str | Column
Items = Expression | Sequence[str] | Sequence[Column] | Sequence[Expression]
Rows = TypeVar("Rows", DataFrame, Relation)


@dataclass
class ClauseArguments:
    """SQL whose parts know the arguments that they come from."""

    parts: list[tuple[str, str | None]] = field(default_factory=list)

    def add(self, text: str, argument: str | None = None) -> None:
        """Append SQL: fixed words, or an argument.

        Raises
        ------
        ParseError
            For an argument with a bracket or a quote that is not closed.
        """
        if argument is not None:
            try:
                tokenize(text)
            except ParseError as error:
                error.message = f"{argument}: {error.message}"
                raise
        self.parts.append((text, argument))

    def listed(self, words: str, items: Sequence[tuple[str, str]]) -> None:
        """Append words and the items after them, each with its argument; nothing if there are no items."""
        for number, (text, argument) in enumerate(items):
            begins = not self.parts or self.parts[-1][0].endswith("(")
            self.add(", " if number else f"{'' if begins else ' '}{words} ")
            self.add(text, argument)

    @property
    def sql(self) -> str:
        """The whole text."""
        return "".join(text for text, _ in self.parts)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Let errors in the text name their argument."""
        try:
            yield
        except WindrowError as error:
            if error.span is not None and error.sql == self.sql:
                at = 0
                for text, argument in self.parts:
                    if at <= error.span.start < at + len(text) and argument is not None:
                        error.message = f"{argument}: {error.message}"
                    at += len(text)
            raise


def check_rows(rows: object, function: str) -> None:
    """Refuse an object without rows, and a streaming DataFrame that is not registered as a stream.

    Raises
    ------
    UsageError
        ``NOT_A_DATAFRAME``.
    NotSupportedError
        ``UNSUPPORTED_STREAM``.
    """
    if isinstance(rows, Relation):
        return
    if not isinstance(rows, DataFrame):
        raise UsageError(
            f"{function} takes a DataFrame or a relation, not {rows!r:.60}",
            condition="NOT_A_DATAFRAME",
            hint="pass session.table(name) for a table by name",
        )
    if rows.isStreaming:
        raise NotSupportedError(
            f"{function} over a streaming DataFrame needs a rowtime",
            condition="UNSUPPORTED_STREAM",
            hint=f"register it, and pass the result to {function}: session.stream('s', df, rowtime='ts')",
        )


def name_in_from(rows: DataFrame | Relation) -> str:
    """The name of the rows in FROM."""
    return rows.named[1] if isinstance(rows, Relation) and rows.named is not None else "df"


def run(
    rows: Rows,
    clause: ClauseArguments,
    columns: Mapping[str, Column],
    change: Callable[[BoundStatement], BoundStatement],
) -> Rows:
    """Run a clause over rows with further `columns`; `change` adapts the bound statement."""
    with clause.named():
        if isinstance(rows, Relation):
            if rows.named is not None:
                return rows.named[0](clause.sql)
            return _run(rows.df, clause.sql, columns, change)
        return _run(rows, clause.sql, columns, change).df


def _run(
    df: DataFrame, sql: str, columns: Mapping[str, Column], change: Callable[[BoundStatement], BoundStatement]
) -> Relation:
    gateway = Gateway(df.sparkSession)
    gateway.frames[_INPUT] = df.withColumns(dict(columns)) if columns else df
    with gateway.reading(sql) as read:
        tokens = tokenize(read)
        statement = bind(tokens, (0, len(tokens)), relations={"df": _INPUT})
        assert statement is not None
        statement = change(statement)
        frame, bound = run_statement(gateway, statement, build_window)
        return Relation(frame, explain(statement, bound), gateway, made_of=bound)


# -- arguments as SQL ------------------------------------------------------------------------------


def numbered(items: Items, argument: str) -> list[tuple[Expression, str]]:
    """The items, each with its name in errors."""
    if isinstance(items, str | Column) or not isinstance(items, Iterable):
        return [(expression(items, argument), argument)]
    names = ((item, f"{argument}[{number}]") for number, item in enumerate(items))
    return [(expression(item, name), name) for item, name in names]


def expression(item: object, argument: str) -> Expression:
    """An argument that is SQL or a Column.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT`` for anything else.
    """
    if isinstance(item, str | Column):
        return item
    raise UsageError(
        f"{argument}: {item!r:.60} is neither SQL nor a Column",
        condition="INVALID_ARGUMENT",
        hint="write it as text, such as 'val < 25', or with pyspark.sql.functions",
    )


_FIRST = "add it to the rows first, df.withColumn('x', …), and read x"


def as_sql(item: Expression, argument: str, hint: str = _FIRST) -> str:
    """An expression as SQL; `hint` is the hint for a Column that is no SQL.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT`` for a Column that is no SQL.
    """
    item = expression(item, argument)
    text = item if isinstance(item, str) else column_text(item)
    if not isinstance(text, str):
        raise UsageError(
            f"{argument}: the Column cannot be written as SQL; it may contain a Python function",
            condition="INVALID_ARGUMENT",
            hint=hint,
        )
    return text


def named_item(item: Expression, argument: str, hint: str = _FIRST) -> str:
    """An expression, with the alias of a Column that has one."""
    text = as_sql(item, argument, hint)
    names = [] if isinstance(item, str) else list(map(as_name, aliases_of(item)))
    if len(names) > 1:
        return f"{text} AS ({', '.join(names)})"
    return f"{text} AS {names[0]}" if names else text


def order_item(item: Expression, argument: str) -> str:
    """A key of ORDER BY, with the direction of a Column."""
    if isinstance(item, str):
        return item
    column, direction = sort_order(item)
    return f"{as_sql(column, argument)} {direction}".rstrip()


def refuse_direction(keys: Items) -> None:
    """Refuse a Column with a direction among the keys of PARTITION BY.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT``.
    """
    if any(not isinstance(item, str) and sort_order(item)[1] for item, _ in numbered(keys, "partition_by")):
        raise UsageError(
            "partition_by has a Column with a direction",
            condition="INVALID_ARGUMENT",
            hint="leave .asc() and .desc() out; only order_by takes them",
        )


def as_name(name: str) -> str:
    """A name as SQL."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else quoted(name)
