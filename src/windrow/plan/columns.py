"""What nodes of a plan pass to each other: columns, the names that a text has for them, and expressions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from windrow.syntax.expression_nodes import Name
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import RelationText, SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = [
    "ROWS", "Column", "Completeness", "Expression", "Follows", "Part", "Scope", "column_named", "named",
    "resolve", "schema_of", "sql_of", "within",
]  # fmt: skip

ROWS = "__w"
"""The alias, in a text, of the rows that it is evaluated over; their columns are named by id."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation.

    Attributes
    ----------
    id
        Its name inside the plan, which is unique: a column that is passed on retains it.
    name
        Its name in the query.
    type
        Its type, according to Spark's analyser.
    """

    id: str
    name: str
    type: DataType

    def named(self, name: str) -> Column:
        """The same column under another name."""
        return Column(self.id, name, self.type)


@dataclass(frozen=True, slots=True)
class Completeness:
    """A column that decides when rows are complete: once its value is below the mapped watermark.

    Attributes
    ----------
    column
        The column of event time.
    mapped
        SQL for the value of a watermark in this column, in which ``{t}`` is the watermark.
    origin
        The place of the stream whose watermark that is.
    """

    column: str
    mapped: str
    origin: int


@dataclass(frozen=True, slots=True)
class Part:
    """A relation in FROM: its alias, the names of its columns, and the columns with these names.

    The columns of a `qualified` relation are known only with the alias before their names, and those `below`
    something in it only with these names between.
    """

    alias: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    qualified: bool = False
    below: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """The names by which a text refers to the columns of a node.

    Attributes
    ----------
    parts
        The relations of FROM.
    prefix
        The WITH list of queries that do not change over time, which the text may read.
    """

    parts: tuple[Part, ...] = ()
    prefix: SqlText = field(default_factory=SqlText)

    def rows(self) -> SqlText:
        """The FROM clause: the rows, and the relations made from them, by name."""
        parts = []
        for part in self.parts:
            columns = ", ".join(
                f"{ROWS}.{column} AS {quoted(name)}"
                for column, name in zip(part.columns, part.names, strict=True)
            )
            parts.append(f" JOIN LATERAL (SELECT {columns}) AS {quoted(part.alias)}")
        return SqlText.of(RelationText(ROWS), f" AS {ROWS}", *parts)

    def select(self, listed: SqlText, conditions: Iterable[SqlText] = ()) -> SqlText:
        """A query over the rows: a SELECT list, and the conditions that rows must satisfy.

        >>> scope = Scope((Part("s", ("k",), ("b1_0",)),))
        >>> scope.select(SqlText.of("s.k"), [SqlText.of("k > 1")]).render()
        'SELECT s.k FROM __w AS __w JOIN LATERAL (SELECT __w.b1_0 AS `k`) AS `s` WHERE (k > 1)'
        """
        return SqlText.of(self.prefix, "SELECT ", listed, self.source(conditions))

    def source(self, conditions: Iterable[SqlText] = ()) -> SqlText:
        """The part of such a query after its SELECT list."""
        parts = [SqlText.of("(", condition, ")") for condition in conditions]
        where = SqlText.of(" WHERE ", SqlText.join(" AND ", parts)) if parts else SqlText()
        return SqlText.of(" FROM ", self.rows(), where)


@dataclass(frozen=True, slots=True)
class Follows:
    """How a computed column depends on its source column; it is NULL exactly where the source is NULL.

    Attributes
    ----------
    column
        The column of the input.
    rises
        Whether it never decreases as the source increases; False if it never increases. None if it may do
        both, but differs when the source does.
    differs
        Whether it has different values wherever that has.
    """

    column: str
    rises: bool | None = True
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Expression:
    """A user's expression over the rows of a node.

    Attributes
    ----------
    text
        As written, over the node's scope.
    type
        As Spark's analyser has it.
    column
        The column of the input that it copies; None for a computed one.
    at
        Its position in the statement; None for what the reader adds.
    reads
        The columns of the input that it reads; None if unknown.
    rises_with
        The column of the input with which it never decreases; None if none is known.
    follows
        How it follows a column of the input, if that is known.
    widens
        The column of the input that it is, as a wider integer.
    field
        The struct column of the input whose field it is, and the field's path: ``a.b``.
    is_null
        Of a condition: the column of the input that it compares with NULL, and whether it is to be NULL.
    """

    text: SqlText
    type: DataType
    column: str | None = None
    at: Range | None = None
    reads: frozenset[str] | None = None
    rises_with: str | None = None
    follows: Follows | None = None
    widens: str | None = None
    field: tuple[str, str] | None = None
    is_null: tuple[str, bool] | None = None


def resolve(name: Name, parts: Iterable[Part]) -> str | None:
    """The column that a path names; None if no relation has it, or several do.

    >>> resolve(Name(("s", "K"), (0, 3)), [Part("s", ("k",), ("b1_0",)), Part("t", ("k",), ("b2_0",))])
    'b1_0'
    """
    *before, last = (part.lower() for part in name.parts)
    found = {
        column
        for part in parts
        for own, column in zip(part.names, part.columns, strict=True)
        if own.lower() == last
        and (before == [part.alias.lower(), *part.below] if before or part.qualified else not before)
    }
    return found.pop() if len(found) == 1 else None


def column_named(tokens: TokenList, part: Range, scope: Scope) -> str | None:
    """The id of the column that a part of an expression names; None if it names no column."""
    start, stop = within(tokens, part)
    expression = parse_expression(tokens, start, stop) if start < stop else None
    return named(expression, scope) if isinstance(expression, Name) else None


def named(name: Name, scope: Scope) -> str | None:
    """The id of the column that a path names, as the user wrote it or as generated texts name rows."""
    *before, last = name.parts
    return last if before == [ROWS] else resolve(name, scope.parts)


def within(tokens: TokenList, part: Range) -> Range:
    """A range of tokens without the brackets around it."""
    start, stop = part
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    return start, stop


def schema_of(columns: Iterable[Column]) -> StructType:
    """The columns as a Spark schema, named by id."""
    made = StructType()
    for column in columns:
        made = made.add(column.id, column.type)
    return made


def sql_of(kind: DataType) -> str:
    """A type as SQL names it.

    >>> from pyspark.sql.types import LongType
    >>> sql_of(ArrayType(StructType().add("a b", LongType())))
    'ARRAY<STRUCT<`a b`: bigint>>'
    """
    match kind:
        case StructType():
            return f"STRUCT<{', '.join(f'{quoted(one.name)}: {sql_of(one.dataType)}' for one in kind)}>"
        case ArrayType():
            return f"ARRAY<{sql_of(kind.elementType)}>"
        case MapType():
            return f"MAP<{sql_of(kind.keyType)}, {sql_of(kind.valueType)}>"
    return kind.simpleString()
