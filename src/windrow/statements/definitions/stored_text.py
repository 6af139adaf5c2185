"""The text of queries that Spark's catalog keeps: the names in it, with their databases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from windrow.errors import AnalysisError
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.functions import is_permanent_function, is_temporary_function
from windrow.spark.jvm.views import SPARK_CATALOG
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.definitions.create_words import create_words
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_relations import parameter_marks
from windrow.syntax.query_parts import visible_ctes
from windrow.syntax.sqltext import quoted
from windrow.syntax.streams.table_functions import is_table_argument
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = [
    "RelationName",
    "called_name",
    "ddl",
    "is_temporary",
    "literal",
    "names_of_relations",
    "qualified",
    "refuse_files",
    "refuse_unstored",
    "whole_name",
]

_BEFORE_TABLE = (
    "",
    "AS",
    "ALL",
    "DISTINCT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "EXPLAIN",
    "EXTENDED",
    "FORMATTED",
)
"""Words before TABLE where that is not of another statement, as in DESCRIBE TABLE v; none before brackets."""


@dataclass(frozen=True)
class RelationName:
    """The name of a relation in FROM, JOIN or TABLE: its parts, and the tokens that it stands on.

    Attributes
    ----------
    table
        The token of TABLE before it; None in FROM and JOIN.
    is_cte
        Whether it is that of a named query.
    """

    parts: tuple[str, ...]
    at: Range
    table: int | None = None
    is_cte: bool = False

    def is_query(self, tokens: TokenList) -> bool:
        """Whether it is ``TABLE v`` as a query: not an argument of a function."""
        is_next = self.table is not None and self.table == self.at[0] - 1
        return is_next and not is_table_argument(tokens, self.at[0] - 1)


def names_of_relations(tokens: TokenList, within: Range | None = None) -> Iterator[RelationName]:
    """The names of relations, but of functions."""
    start, stop = within or (0, len(tokens))
    for at in range(start, stop):
        if not tokens[at].is_name or tokens.is_symbol(at - 1, "."):
            continue
        bracket = tokens.is_symbol(at - 1, "(")
        word = at - 1 - bracket
        is_data = tokens.word(word) == "TABLE" and tokens.word(word - 1) in _BEFORE_TABLE
        if not is_data and not begins_relation(tokens, at):
            continue
        last, parts = at + 1, [tokens[at].name]
        while tokens.is_symbol(last, ".") and last + 1 < stop and tokens[last + 1].is_name:
            parts.append(tokens[last + 1].name)
            last += 2
        if tokens.is_symbol(last, "("):
            continue
        is_cte = len(parts) == 1 and _is_named_query(tokens, at)
        yield RelationName(tuple(parts), (at, last), word if is_data else None, is_cte)


def _is_named_query(tokens: TokenList, at: int) -> bool:
    name = tokens[at].name.lower()
    return any(cte.name.lower() == name for cte in visible_ctes(tokens, at))


def refuse_files(tokens: TokenList) -> None:
    """Refuse a permanent view or function of files: their names are of views of this session.

    Raises
    ------
    AnalysisError
        ``INVALID_TEMP_OBJ_REFERENCE``.
    """
    for kind in ("VIEW", "FUNCTION"):
        words = create_words(tokens, 0, len(tokens), kind)
        if words is None or words.is_temporary:
            continue
        for at in range(words.name_at, len(tokens)):
            if tokens[at].kind is TokenKind.STRING and begins_relation(tokens, at):
                hint = "write the format before the path: csv.`path`, parquet.`path`"
                what = f"the file {tokens[at].text}"
                raise _of_this_session(tokens, (at, at + 1), f"a permanent {kind.lower()}", what, hint)


def qualified(gateway: Gateway, catalog: Catalog, tokens: TokenList, body: Range, of: str) -> str:
    """The query with the database and catalog of each table and function, as the current ones change.

    Raises
    ------
    AnalysisError
        ``INVALID_TEMP_OBJ_REFERENCE`` for what this session alone has; `of` says of what the query is.
    """
    spark = gateway.spark
    parts: list[str] = []
    done = tokens[body[0]].start
    found: list[tuple[Range, tuple[str, ...]]] = []
    for at in range(*body):
        called = called_name(tokens, at)
        if called is None:
            continue
        alone = called[0] if len(called) == 1 else ""
        if alone and (alone.lower() in catalog.sql_functions or is_temporary_function(spark, alone)):
            hint = f"create it without TEMPORARY, or create a TEMPORARY {of.split()[-1].upper()}"
            raise _of_this_session(tokens, (at, at + 1), of, f"the temporary function {alone}", hint)
        if is_permanent_function(spark, called):
            found.append(((at - 2 * len(called) + 2, at + 1), called))
    for name in names_of_relations(tokens, body):
        alone = name.parts[0] if len(name.parts) == 1 else ""
        if name.is_cte:
            continue
        if alone and (alone.lower() in catalog.names or is_temporary(gateway, alone)):
            kind = of.split()[-1].upper()
            hint = f"store it as a table or a permanent view first, or create a TEMPORARY {kind}"
            raise _of_this_session(tokens, name.at, of, f"the temporary view {alone}", hint)
        if spark.catalog.tableExists(".".join(map(quoted, name.parts))):  # else Spark reports it
            found.append((name.at, name.parts))
    for (first, last), written in sorted(found):
        whole = ".".join(map(quoted, whole_name(gateway, written)))
        parts += [tokens.sql[done : tokens[first].start], whole]
        done = tokens[last - 1].stop
    return "".join([*parts, tokens.sql[done : tokens[body[1] - 1].stop]])


def called_name(tokens: TokenList, at: int) -> tuple[str, ...] | None:
    """The parts of the name of a function of which the last is at a token; None where none is called."""
    if not tokens[at].is_name or not tokens.is_symbol(at + 1, "(") or tokens.is_symbol(at - 1, ":"):
        return None
    parts, first = [tokens[at].name], at
    while tokens.is_symbol(first - 1, ".") and tokens[first - 2].is_name:
        first -= 2
        parts.insert(0, tokens[first].name)
    is_other = tokens.word(first - 1) in _BEFORE_OTHERS and not _is_defined(tokens, first - 1)
    if is_other or (first == at and tokens.word(at) in _NO_FUNCTIONS):
        return None
    return tuple(parts)


def _is_defined(tokens: TokenList, at: int) -> bool:
    """Whether AS stands before a condition of DEFINE, and not before a name."""
    around = tokens.parent[at]
    level = (one for one in range(at, around, -1) if tokens.parent[one] == around)
    return tokens.word(at) == "AS" and around >= 0 and any(tokens.word(one) == "DEFINE" for one in level)


_BEFORE_OTHERS = ("FUNCTION", "EXISTS", "INTO", "TABLE", "VIEW", "AS")
"""Words before names with brackets that call nothing."""
_NO_FUNCTIONS = frozenset({
    "ALL", "AND", "ANY", "AS", "BETWEEN", "BY", "CASE", "CAST", "DISTINCT", "ELSE", "EXCEPT", "EXISTS",
    "FILTER", "FROM", "GROUP", "HAVING", "IN", "INTERSECT", "IS", "JOIN", "LIKE", "NOT", "ON", "OR",
    "ORDER", "OVER", "PATTERN", "RETURN", "RETURNS", "SELECT", "SOME", "THEN", "TRY_CAST", "UNION",
    "USING", "VALUES", "WHEN", "WHERE", "WITH",
})  # fmt: skip
"""Words before brackets that are no names of functions."""


def refuse_unstored(
    gateway: Gateway, tokens: TokenList, start: int, name: Sequence[str], body: Range, what: str
) -> None:
    """Refuse what Spark's catalog does not keep: `what` with this name and body, of a statement.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT`` for parameters, and in another catalog.
    """
    if (len(name) == 3 and name[0].lower() != SPARK_CATALOG) or (
        len(name) < 3 and gateway.spark.catalog.currentCatalog() != SPARK_CATALOG
    ):
        of = f"{what} over windows in a catalog other than {SPARK_CATALOG}"
        hint = f"name it {SPARK_CATALOG}.database.{what.split()[-1]}"
        raise unsupported_statement(tokens, start, of, hint)
    marks = [at for at in parameter_marks(tokens) if body[0] <= at < body[1]]
    marks += [
        at
        for at in range(*body)
        if tokens.is_symbol(at, ":") and at + 1 < body[1] and tokens[at + 1].name in gateway.parameters
    ]
    if marks:
        raise unsupported_statement(tokens, marks[0], f"{what} with parameters", "write the values instead")


def whole_name(gateway: Gateway, name: Sequence[str]) -> list[str]:
    """A name with its catalog and database."""
    catalog = gateway.spark.catalog
    known = [catalog.currentCatalog(), catalog.currentDatabase()]
    return [*known[: max(3 - len(name), 0)], *name]


def is_temporary(gateway: Gateway, name: str) -> bool:
    """Whether a temporary view of Spark has the name."""
    catalog = gateway.spark.catalog
    return catalog.tableExists(quoted(name)) and catalog.getTable(quoted(name)).isTemporary


def _of_this_session(tokens: TokenList, at: Range, of: str, what: str, hint: str) -> AnalysisError:
    return AnalysisError(
        f"{of} cannot read {what}, which only this session has",
        condition="INVALID_TEMP_OBJ_REFERENCE",
        sqlstate="42K0F",
        sql=tokens.sql,
        span=tokens.span(*at),
        hint=hint,
    )


def literal(value: str) -> str:
    """A text in Spark's SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def ddl(kind: DataType) -> str:
    """A type as Spark's SQL writes it, with the names of fields in backquotes.

    >>> from pyspark.sql.types import IntegerType
    >>> ddl(ArrayType(StructType().add("a b", IntegerType())))
    'ARRAY<STRUCT<`a b`: int>>'
    """
    match kind:
        case StructType():
            fields = ", ".join(f"{quoted(field.name)}: {ddl(field.dataType)}" for field in kind.fields)
            return f"STRUCT<{fields}>"
        case ArrayType():
            return f"ARRAY<{ddl(kind.elementType)}>"
        case MapType():
            return f"MAP<{ddl(kind.keyType)}, {ddl(kind.valueType)}>"
        case _:
            return str(kind.simpleString())
