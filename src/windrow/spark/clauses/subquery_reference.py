"""Subqueries for the reference interpreter: each is run separately, for every row and match that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import DataType, StructField, StructType

from windrow.algebra.scopes import is_of_subquery
from windrow.errors import ExecutionError
from windrow.kernels.reference.values import BoundRow, SubqueryValues
from windrow.spark.gateway import Gateway
from windrow.syntax.sqltext import RelationText, SqlText
from windrow.syntax.subqueries import subqueries
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["plain", "with_subqueries"]

_AROUND = "around"


Value = Callable[[Mapping[str, Any]], Any]
"""A function from an environment to the value of an expression."""


def with_subqueries(
    text: str,
    gateway: Gateway,
    prefix: SqlText,
    around: Mapping[str, DataType],
    compiled: Callable[[str], Value],
) -> Value:
    """An expression with subqueries; `compiled` compiles the rest of it.

    Spark runs the subqueries for each environment; `around` are the names in it that they may read, with
    their types.
    """
    written, queries = _apart(text, gateway, prefix, around)
    value = compiled(written)
    if not queries:
        return value
    return lambda env: value({**env, **{name: query(env) for name, query in queries.items()}})


def _apart(
    text: str, gateway: Gateway, prefix: SqlText, around: Mapping[str, DataType]
) -> tuple[str, dict[str, Value]]:
    """An expression with names for its subqueries, and the values of the names in an environment."""
    tokens = tokenize(text)
    found: dict[str, Value] = {}
    for start, stop in reversed(list(subqueries(tokens, (0, len(tokens))))):
        name, query = f"__q{len(found)}", _Subquery(tokens, (start, stop), gateway, prefix, around)
        first, written = start, name
        if tokens.word(start - 1) == "EXISTS":
            first, found[name] = start - 1, query.exists
        elif tokens.word(start - 1) == "IN":
            written, found[name] = f"({name})", query.column
        else:
            found[name] = query.value
        text = text[: tokens[first].start] + written + text[tokens[stop - 1].stop :]
    return text, found


class _Subquery:
    """One subquery, with its parentheses."""

    def __init__(
        self,
        tokens: TokenList,
        query: tuple[int, int],
        gateway: Gateway,
        prefix: SqlText,
        around: Mapping[str, DataType],
    ) -> None:
        mentioned = {
            tokens[at].name.lower()
            for at in range(*query)
            if tokens[at].is_name and not is_of_subquery(tokens, at, query[0])
        }
        self.around = {
            name: _read(kind, tokens, query, name)
            for name, kind in around.items()
            if name.lower() in mentioned
        }
        self.gateway, self.prefix = gateway, prefix
        self.text = SqlText.of(*_with_relations(tokens, query, gateway))
        self.known: dict[str, list[Any]] = {}

    def rows(self, env: Mapping[str, Any]) -> list[Any]:
        """The values of its one column."""
        values = {name: _of_type(plain(env[name]), kind) for name, kind in self.around.items()}
        key = repr(values)
        if key not in self.known:
            schema = StructType([StructField(name, kind) for name, kind in self.around.items()])
            one = self.gateway.spark.createDataFrame([tuple(values.values())], schema)
            query = SqlText.of(
                self.prefix, "SELECT q.* FROM ", RelationText(_AROUND), ", LATERAL ", self.text, " AS q"
            )
            with self.gateway.translated():
                self.known[key] = [plain(row[0]) for row in self.gateway.sql(query, {_AROUND: one}).collect()]
        return self.known[key]

    def exists(self, env: Mapping[str, Any]) -> bool:
        """Whether it has a row."""
        return bool(self.rows(env))

    def column(self, env: Mapping[str, Any]) -> SubqueryValues:
        """Its values."""
        return SubqueryValues(self.rows(env))

    def value(self, env: Mapping[str, Any]) -> Any:
        """Its only value, NULL if it has no row."""
        rows = self.rows(env)
        if len(rows) > 1:
            raise ExecutionError(
                "a subquery used as an expression returned more than one row",
                condition="SCALAR_SUBQUERY_TOO_MANY_ROWS",
            )
        return rows[0] if rows else None


def _read(kind: DataType, tokens: TokenList, query: tuple[int, int], name: str) -> DataType:
    """The fields of a row that a query reads; the type itself if it reads all, or the type is not a row."""
    named = (at for at in range(*query) if tokens[at].is_name and tokens[at].name.lower() == name.lower())
    places = [at for at in named if not is_of_subquery(tokens, at, query[0])]
    if not isinstance(kind, StructType) or not all(
        tokens.is_symbol(at + 1, ".") and tokens[at + 2].is_name for at in places
    ):
        return kind
    read = {tokens[at + 2].name.lower() for at in places}
    return StructType([field for field in kind.fields if field.name.lower() in read])


def _of_type(value: Any, kind: DataType) -> Any:
    """The fields of a value that this type has."""
    if isinstance(kind, StructType) and value is not None:
        return {name: value[name] for name in kind.names}
    return value


def _with_relations(
    tokens: TokenList, query: tuple[int, int], gateway: Gateway
) -> Iterator[str | RelationText]:
    """The text of a query, in which relations replace the rows of clauses inside."""
    written = tokens[query[0]].start
    for at in range(*query):
        if tokens[at].is_name and tokens[at].name in gateway.frames:
            yield tokens.sql[written : tokens[at].start]
            yield RelationText(tokens[at].name)
            written = tokens[at].stop
    yield tokens.sql[written : tokens[query[1] - 1].stop]


def plain(value: Any) -> Any:
    """Spark's rows, and rows bound to variables, as dictionaries, recursively."""
    if isinstance(value, BoundRow):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, Row):
        return {name: plain(value[name]) for name in value.__fields__}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
