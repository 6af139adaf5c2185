"""Names without a relation in WINDOW BY or MATCH_RECOGNIZE that are columns of the query around.

Which columns there are only Spark knows. It is asked where it has refused a name, so that a statement without
such names is bound once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from windrow.algebra.bind import bind
from windrow.algebra.bound_statement import BoundStatement
from windrow.algebra.match_node import Match
from windrow.algebra.window_node import Window
from windrow.errors import WindrowError
from windrow.spark.clauses.batch import bind_statement, build_window
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["with_names_around"]

Result = TypeVar("Result")


def with_names_around(
    gateway: Gateway,
    tokens: TokenList,
    query: Range,
    rowtimes: Mapping[str, str],
    own: frozenset[str],
    run: Callable[[BoundStatement], Result],
) -> tuple[BoundStatement, Result] | None:
    """The algebra of a query, and what `run` makes of it; None where it has no clause of ours.

    `own` are the names of the user's own aggregates.

    Raises
    ------
    WindrowError
        The first error, if no name in the query is a column of a query around it.
    """
    algebra = bind(tokens, query, rowtimes, own=own)
    if algebra is None:
        return None
    try:
        return algebra, run(algebra)
    except WindrowError as error:
        if not error.condition.startswith(("UNRESOLVED_COLUMN", "UNKNOWN_VARIABLE", "UNKNOWN_FIELD")):
            raise

        def columns_of(relations: SqlText, windows: tuple[Window | Match, ...]) -> list[str] | None:
            return _columns(gateway, BoundStatement(tokens.sql, relations, windows))

        again = bind(tokens, query, rowtimes, own=own, columns_of=columns_of)
        if again is None or _texts(again) == _texts(algebra):
            raise
    return again, run(again)


def _columns(gateway: Gateway, query: BoundStatement) -> list[str] | None:
    inner = Gateway(gateway.spark, gateway.parameters, "spark")
    inner.plan_only = True
    try:
        bind_statement(inner, query, build_window)
        return list(inner.sql(query.text).columns)
    except WindrowError:
        return None


def _texts(statement: BoundStatement) -> list[str]:
    """What a reference to a query around changes: the rows, and the SQL over the windows."""
    rows = (one.rows.render() for one in statement.windows)
    return [statement.text.render(), *rows]
