"""Unqualified names in WINDOW BY or MATCH_RECOGNIZE that are columns of the outer query.

Only Spark knows which columns there are. It analyses them after it has refused a name, so a statement without
such names is bound once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from windrow.algebra.bind import ColumnsOf
from windrow.algebra.bound_statement import BoundStatement
from windrow.algebra.match_node import Match
from windrow.algebra.window_node import Window
from windrow.errors import WindrowError
from windrow.spark.clauses.batch import bind_statement, build_window
from windrow.spark.gateway import Gateway
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["columns_by_spark", "with_names_around"]

Result = TypeVar("Result")


def with_names_around(
    bound: Callable[[ColumnsOf | None], BoundStatement | None],
    run: Callable[[BoundStatement], Result],
    columns_of: ColumnsOf,
) -> tuple[BoundStatement, Result] | None:
    """The algebra of a query, and the result of `run` for it; None if it has no clause of ours.

    `bound` makes the algebra; its argument returns the columns of relations if the query may have such names.

    Raises
    ------
    WindrowError
        The first error, if no name in the query is an outer column.
    """
    algebra = bound(None)
    if algebra is None:
        return None
    try:
        return algebra, run(algebra)
    except WindrowError as error:
        if not error.condition.startswith(("UNRESOLVED_COLUMN", "UNKNOWN_VARIABLE", "UNKNOWN_FIELD")):
            raise
        again = bound(columns_of)
        if again is None or _texts(again) == _texts(algebra):
            raise
    return again, run(again)


def columns_by_spark(gateway: Gateway, tokens: TokenList) -> ColumnsOf:
    """Asks Spark for the columns of relations in a text; relations that it refuses have none.

    It is asked once for each text, and binds only the windows that the text reads.
    """
    known: dict[tuple[str, ...], list[str] | None] = {}

    def columns_of(relations: SqlText, windows: tuple[Window | Match, ...]) -> list[str] | None:
        query = BoundStatement(tokens.sql, relations, _read_by(relations, windows))
        texts = tuple(_texts(query))
        if texts not in known:
            known[texts] = analysed(query)
        return known[texts]

    def analysed(query: BoundStatement) -> list[str] | None:
        inner = Gateway(gateway.spark, gateway.parameters, "spark")
        inner.plan_only = True
        try:
            bind_statement(inner, query, build_window)
            return list(inner.sql(query.text).columns)
        except WindrowError:
            return None

    return columns_of


def _read_by(query: SqlText, windows: tuple[Window | Match, ...]) -> tuple[Window | Match, ...]:
    """The windows up to the last that a query reads: each stands after those that it reads itself."""
    read = set(query.relations())
    last = max((at for at, window in enumerate(windows, start=1) if window.key in read), default=0)
    return windows[:last]


def _texts(statement: BoundStatement) -> list[str]:
    """The texts that a reference to an outer query changes: the rows, and the SQL over the windows."""
    rows = (one.rows.render() for one in statement.windows)
    return [statement.text.render(), *rows]
