"""A clause that is composed of Python arguments, and run over a DataFrame or a relation.

The arguments become SQL, so that the clause means the same as in SQL. Errors show that SQL, and name the
argument at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pyspark.sql import Column, DataFrame

from windrow.algebra.bind import bind
from windrow.algebra.bound_statement import BoundStatement
from windrow.errors import NotSupportedError, Span, UsageError, WindrowError
from windrow.explain.explained import explain
from windrow.relation import Relation
from windrow.spark.analysis.argument_columns import in_terms_of_rows
from windrow.spark.analysis.column_text import NoTextError, as_name, written_column
from windrow.spark.clauses.batch import build_window, run_statement
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.column_trees import (
    aliases_of,
    column_tree,
    columns_identified,
    columns_of_frames,
    sort_order,
)
from windrow.syntax.tokens import tokenize, without_comment

__all__ = [
    "ClauseArguments", "Expression", "Items", "Rows", "as_sql", "check_rows", "expression", "invalid",
    "name_in_from", "named_item", "numbered", "order_item", "refuse_columns_of_others", "refuse_direction",
    "refuse_no_items", "refuse_other_than", "run",
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
        """Append SQL: fixed words, or an argument without the comment at its end.

        Raises
        ------
        ParseError
            For an argument with a bracket or a quote that is not closed.
        UsageError
            ``INVALID_ARGUMENT`` for an argument without any words.
        """
        if argument is not None:
            with _of_argument(argument):
                text = without_comment(text)
            if not text:
                raise UsageError(
                    f"{argument} is empty",
                    condition="INVALID_ARGUMENT",
                    hint="write what it should be, or leave it out",
                )
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

    def span_of(self, argument: str) -> Span | None:
        """Where an argument is in the text; None if it is not."""
        at = 0
        for text, of in self.parts:
            if of == argument:
                return Span(at, at + len(text))
            at += len(text)
        return None

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


def refuse_columns_of_others(rows: DataFrame | Relation, arguments: Mapping[str, object]) -> None:
    """Refuse Columns that were taken from other DataFrames: their names may mean other columns here.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT``.
    """
    known: Collection[str] | None = None
    for argument, item in _named_columns(arguments):
        for column in columns_of_frames(column_tree(sort_order(item)[0])):
            if known is None:
                known = columns_identified(rows.df if isinstance(rows, Relation) else rows)
            if column.of not in known:
                name = ".".join(column.parts)
                raise UsageError(
                    f"{argument}: column {name} is of another DataFrame",
                    condition="INVALID_ARGUMENT",
                    hint=f"write F.col({name!r}) for a column of these rows, or join that DataFrame first",
                )


def _named_columns(arguments: Mapping[str, object]) -> Iterator[tuple[str, Column]]:
    for argument, items in arguments.items():
        if isinstance(items, Column):
            yield argument, items
        elif isinstance(items, Mapping):
            yield from _named_columns({f"{argument}[{name!r}]": item for name, item in items.items()})
        elif isinstance(items, list | tuple):
            yield from _named_columns({f"{argument}[{number}]": item for number, item in enumerate(items)})


def name_in_from(rows: DataFrame | Relation) -> str:
    """The name of the rows in FROM."""
    return rows.named[1] if isinstance(rows, Relation) and rows.named is not None else "df"


def run(
    rows: Rows,
    clause: ClauseArguments,
    columns: Mapping[str, tuple[Column, str]],
    change: Callable[[BoundStatement], BoundStatement],
) -> Rows:
    """Run a clause over rows with further `columns`, each with its argument; `change` adapts the bound
    statement.
    """
    with clause.named():
        if isinstance(rows, Relation):
            if rows.named is not None:
                return rows.named[0](clause.sql)
            return _run(rows.df, clause.sql, columns, change)
        return _run(rows, clause.sql, columns, change).df


def _run(
    df: DataFrame,
    sql: str,
    columns: Mapping[str, tuple[Column, str]],
    change: Callable[[BoundStatement], BoundStatement],
) -> Relation:
    gateway, rows = Gateway(df.sparkSession), df
    for name, (column, argument) in columns.items():
        with _of_argument(argument):
            try:
                with gateway.translated():
                    more = df.withColumn(name, column)
                    more.schema  # noqa: B018 - an error of the Column belongs here
            except WindrowError as error:
                raise in_terms_of_rows(error, rows.columns) from None
            df = more
    gateway.frames[_INPUT] = df
    with gateway.reading(sql) as read, _in_python(), gateway.translated():
        tokens = tokenize(read)
        statement = bind(tokens, (0, len(tokens)), relations={"df": _INPUT})
        assert statement is not None
        statement = change(statement)
        frame, bound = run_statement(gateway, statement, build_window)
        return Relation(frame, explain(statement, bound), gateway, made_of=bound)


@contextmanager
def _of_argument(argument: str) -> Iterator[None]:
    """Let errors name an argument."""
    try:
        yield
    except WindrowError as error:
        error.message = f"{argument}: {error.message}"
        raise


@contextmanager
def _in_python() -> Iterator[None]:
    """Let hints say what can be written in Python: there is no text with values, and FROM is ours."""
    try:
        yield
    except WindrowError as error:
        if error.condition == "UNRESOLVED_ROUTINE":
            of_session = (
                "a function over windows is of a session: pass session.register('t', df) in place of df"
            )
            error.hint = error.hint or of_session
        elif error.condition == "UNBOUND_SQL_PARAMETER":
            error.hint = "write the value in the text, or a Column: F.col('s.val') < value"
        elif error.condition.startswith("UNRESOLVED_COLUMN") and error.hint:
            error.hint = error.hint.replace(" df.", " ")
        raise


# -- arguments as SQL ------------------------------------------------------------------------------


def numbered(items: Items, argument: str) -> list[tuple[Expression, str]]:
    """The items, each with its name in errors."""
    if isinstance(items, str | bytes | Column | Mapping) or not isinstance(items, Iterable):
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
    raise invalid(argument, item, "neither SQL nor a Column", _WRITTEN)


_WRITTEN = "write it as text, such as 'val < 25', or with pyspark.sql.functions"


def invalid(argument: str, value: object, what: str, hint: str) -> UsageError:
    """The error for a value that an argument does not take: `what` is as in "neither SQL nor a Column"."""
    return UsageError(f"{argument}: {value!r:.60} is {what}", condition="INVALID_ARGUMENT", hint=hint)


def refuse_other_than(kind: type, value: object, argument: str, hint: str) -> None:
    """Refuse a value of another type than text, or than True and False.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT``.
    """
    if not isinstance(value, kind):
        raise invalid(argument, value, "not a text" if kind is str else "neither True nor False", hint)


def refuse_no_items(items: object, argument: str, hint: str) -> None:
    """Refuse a list without items.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT``.
    """
    if isinstance(items, Sized) and len(items) == 0:
        raise UsageError(f"{argument} is empty", condition="INVALID_ARGUMENT", hint=hint)


_FIRST = "add it to the rows first, df.withColumn('x', …), and read x"


def as_sql(item: Expression, argument: str, hint: str = _FIRST) -> str:
    """An expression as SQL; `hint` is the hint for a Column that is no SQL.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT`` for a Column that is no SQL.
    """
    item = expression(item, argument)
    try:
        return item if isinstance(item, str) else written_column(item)
    except NoTextError as reason:
        message = f"{argument}: the Column cannot be written as SQL: it has {reason}"
        raise UsageError(message, condition="INVALID_ARGUMENT", hint=hint) from None


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
