"""The rows of a SELECT while it is read: its columns so far, and their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import BooleanType, DataType, IntegralType, MapType, StructType

from windrow.plan.columns import ROWS, Column, Expression, Part, Scope, resolve, sql_of
from windrow.plan.nodes import Filter, Node, Project
from windrow.plan.reader.monotone_columns import cast_follows, follows, rises_with
from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.syntax.expression_nodes import Name, OperationNode, names_in
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem, is_query
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = [
    "BlockRows",
    "cast",
    "column_of",
    "expression",
    "extended",
    "filtered",
    "name_around",
    "names_of",
    "only_column",
    "passed",
    "paths_from",
    "reads_only",
    "renamed",
    "source_of",
    "with_fields",
]


@dataclass(frozen=True)
class BlockRows:
    """The rows of a SELECT so far, and the relations in them.

    Attributes
    ----------
    node, parts
        The rows, and the names of their columns.
    own
        After USING, which merges columns of two relations: the relations with all their columns.
    around
        In a correlated subquery: the relations of the outer query whose columns are in the rows. Texts refer
        to these by id.
    fields
        What subqueries read of structs and maps, as columns: ``s.a``, ``t.s.a.b``, ``t.m['x']``.
    """

    node: Node
    parts: tuple[Part, ...]
    own: tuple[Part, ...] = ()
    around: tuple[Part, ...] = ()
    fields: tuple[Part, ...] = ()

    @property
    def relations(self) -> tuple[Part, ...]:
        """The relations with all their columns."""
        return self.own or self.parts

    def scope(self, prefix: SqlText | None = None) -> Scope:
        """The names by which a text refers to them."""
        return Scope(self.parts, SqlText() if prefix is None else prefix)

    def type_of(self, column: str) -> DataType:
        """The type of a column."""
        return next(one.type for one in self.node.columns if one.id == column)

    def resolved(self, name: Name) -> str | None:
        """The column that a path names; None if it names no column, or several."""
        return self._inside(name) or self.outside(name)

    def field_of(self, name: Name) -> tuple[str, str] | None:
        """The column whose field a path names, and the path in it; None if it names no field."""
        for count in range(len(name.parts) - 1, 0, -1):
            column = self.resolved(replace(name, parts=name.parts[:count]))
            if column is not None:
                path = _path(self.type_of(column), name.parts[count:])
                return None if path is None else (column, path)
        return None

    def outside(self, name: Name) -> str | None:
        """The outer column that a path names, if it names none of the query's own, nor a part of one."""
        own = (replace(name, parts=name.parts[:count]) for count in range(1, len(name.parts) + 1))
        is_own = bool(self.around) and any(self._inside(one) is not None for one in own)
        return None if is_own else resolve(name, self.around)

    def names_around(self) -> tuple[Part, ...]:
        """The names by which a subquery refers to the columns."""
        own = (replace(part, qualified=True) for part in self.own)
        return (*self.parts, *own, *self.fields, *self.around)

    def by_ids(self) -> BlockRows:
        """The rows without names: texts refer to their columns by id."""
        return BlockRows(self.node, ())

    def _inside(self, name: Name) -> str | None:
        found = resolve(name, self.parts)
        if found is None and len(name.parts) > 1:
            found = resolve(name, self.own)
        return found or resolve(name, self.fields)


def _path(kind: DataType, names: Sequence[str]) -> str | None:
    """The path of a field of nested structs, as the structs spell it."""
    found = []
    for name in names:
        fields = kind.fields if isinstance(kind, StructType) else []
        named = [one for one in fields if one.name.lower() == name.lower()]
        if len(named) != 1:
            return None
        found.append(named[0].name)
        kind = named[0].dataType
    return ".".join(found)


def source_of(statement: StatementText, stretch: Range, rows: BlockRows) -> str | None:
    """The column that an expression names; None for a computed one."""
    if stretch in statement.columns_at:
        return statement.columns_at[stretch]
    parsed = parse_expression(statement.tokens, *stretch)
    return rows.resolved(parsed) if isinstance(parsed, Name) else None


def expression(
    statement: StatementText, stretch: Range, rows: BlockRows, type_: DataType | None = None
) -> Expression:
    """An expression over the rows; Spark types it if its type is unknown."""
    text = statement.text(stretch)
    if type_ is None:
        type_ = statement.typed(text, rows.scope(statement.prefix(stretch[0])), rows.node.columns)
    source = source_of(statement, stretch, rows)
    if source is not None:
        return Expression(text, type_, source, stretch, frozenset([source]))
    parsed = parse_expression(statement.tokens, *stretch)

    def column(part: Range) -> str | None:
        return source_of(statement, part, rows)

    return Expression(
        text,
        type_,
        at=stretch,
        reads=_reads(statement, stretch, rows),
        rises_with=rises_with(statement, stretch, column, rows.type_of),
        follows=follows(statement, stretch, column, rows.type_of),
        field=rows.field_of(parsed) if isinstance(parsed, Name) else None,
    )


def _reads(statement: StatementText, stretch: Range, rows: BlockRows) -> frozenset[str] | None:
    """The columns that an expression reads; None if it contains a name that is not one of theirs."""
    start, stop = stretch
    standing = {at: own for at, own in statement.columns_at.items() if start <= at[0] and at[1] <= stop}
    found: set[str | None] = set(standing.values())
    for name in names_in(parse_expression(statement.tokens, *stretch, deeply=True)):
        if not any(first <= name.range[0] and name.range[1] <= last for first, last in standing):
            of_field = rows.field_of(name)
            found.add(rows.resolved(name) if of_field is None else of_field[0])
    known = frozenset(own for own in found if own is not None)
    return known if len(known) == len(found) else None


def reads_only(statement: StatementText, stretch: Range, rows: BlockRows) -> bool:
    """Whether an expression reads only columns of these rows."""
    start, stop = stretch
    standing = {at: own for at, own in statement.columns_at.items() if start <= at[0] and at[1] <= stop}
    ids = {column.id for column in rows.node.columns}
    names = [
        name
        for name in names_in(parse_expression(statement.tokens, *stretch, deeply=True))
        if not any(first <= name.range[0] and name.range[1] <= last for first, last in standing)
    ]
    return bool(names or standing) and (
        ids.issuperset(standing.values())
        and all(rows.resolved(name) is not None or rows.field_of(name) is not None for name in names)
    )


def name_around(statement: StatementText, stretches: Iterable[Range], rows: BlockRows) -> None:
    """Substitute columns for the names in a SELECT's text that only the outer query has."""
    tokens = statement.tokens
    for stretch in stretches if rows.around else ():
        queries = [at for at in range(*stretch) if tokens.is_symbol(at, "(") and is_query(tokens, at)]
        for name in names_in(parse_expression(tokens, *stretch, deeply=True)):
            # a name in a query inside may be of its relations
            if any(at < name.range[0] < tokens.partner[at] for at in queries):
                continue
            columns = ((path.range, rows.outside(path)) for path in paths_from(tokens, name))
            at, column = next(((at, one) for at, one in columns if one is not None), (name.range, None))
            if column is not None:
                statement.instead[at] = f"{ROWS}.{column}"
                statement.columns_at[at] = column
                statement.around_read.add(column)


def paths_from(tokens: TokenList, name: Name) -> list[Name]:
    """The longest path that a name begins, and its beginnings: ``t.a[0].b``, ``t.a[0]``, ``t.a``, ``t``.

    A constant in square brackets is a part of the name before it, in a spelling that keeps its case.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("t.a['x'].b = 1")
    >>> [tokens.text(*path.range) for path in paths_from(tokens, Name(("t", "a"), (0, 3)))]
    ["t.a['x'].b", "t.a['x']", 't.a', 't']
    """
    at = name.range[0]
    while tokens.is_symbol(at, "("):
        at += 1
    start, parts, found = at, [name.parts[0]], []
    at += 1
    while at <= len(tokens):
        found.append(Name(tuple(parts), (start, at)))
        if tokens.is_symbol(at, "[") and _is_constant(tokens, (at + 1, tokens.partner[at])):
            stop = tokens.partner[at] + 1
            parts[-1] += f"[{tokens.text(at + 1, stop - 1).encode().hex()}]"
            at = stop
        elif tokens.is_symbol(at, ".") and tokens.is_name(at + 1) and not tokens.is_symbol(at + 2, "("):
            parts.append(tokens[at + 1].name)
            at += 2
        else:
            break
    return found[::-1]


def _is_constant(tokens: TokenList, part: Range) -> bool:
    """Whether a range is a number or a string."""
    start, stop = part
    start += tokens.is_symbol(start, "-")
    return stop - start == 1 and tokens[start].kind in (TokenKind.NUMBER, TokenKind.STRING)


def passed(columns: Sequence[Column]) -> Iterator[tuple[Column, Expression]]:
    """Columns, unchanged."""
    for column in columns:
        yield column, Expression(SqlText.of(f"{ROWS}.{column.id}"), column.type, column.id)


def renamed(
    statement: StatementText,
    node: Node,
    names: Sequence[str],
    label: str,
    sources: Sequence[str] | None = None,
) -> Project:
    """Some columns, or all, under new ids and names."""
    known = {column.id: column for column in node.columns}
    chosen = list(node.columns) if sources is None else [known[source] for source in sources]
    outputs = [
        (Column(made, name, one.type), Expression(SqlText.of(f"{ROWS}.{one.id}"), one.type, one.id))
        for made, name, one in zip(statement.fresh(len(chosen)), names, chosen, strict=True)
    ]
    return Project(node, Scope(), tuple(outputs), SqlText.join(", ", [one.text for _, one in outputs]), label)


def extended(
    rows: BlockRows, prefix: SqlText, further: Sequence[tuple[Column, Expression]], label: str
) -> BlockRows:
    """The rows with additional columns."""
    own = [SqlText.of(f"{ROWS}.{column.id}") for column in rows.node.columns]
    listed = [SqlText.of("(", one.text, f") AS {column.id}") for column, one in further]
    outputs = (*passed(rows.node.columns), *further)
    whole = SqlText.join(", ", [*own, *listed])
    return replace(rows, node=Project(rows.node, rows.scope(prefix), outputs, whole, label))


def with_fields(statement: StatementText, rows: BlockRows, subquery: Range) -> BlockRows:
    """The rows with columns for what a subquery may read of their structs and maps: ``f.k``."""
    tokens = statement.tokens
    found: dict[tuple[str, ...], tuple[Column, Expression]] = {}
    for name in names_in(parse_expression(tokens, *subquery, deeply=True)):
        paths = paths_from(tokens, name)
        whole = next((at for at, path in enumerate(paths) if rows.resolved(path) is not None), 0)
        for path in paths[:whole]:
            one = _part_of(statement, rows, path, paths[whole])
            if one is not None:
                found.setdefault(tuple(part.lower() for part in path.parts), one)
                break
    if not found:
        return rows
    parts = [
        Part("" if len(key) == 1 else key[0], key[-1:], (column.id,), len(key) > 1, key[1:-1])
        for key, (column, _) in found.items()
    ]
    label = ", ".join(column.name for column, _ in found.values())
    made_rows = extended(rows, statement.prefix(subquery[0]), list(found.values()), label)
    return replace(made_rows, fields=(*rows.fields, *parts))


def _part_of(
    statement: StatementText, rows: BlockRows, path: Name, whole: Name
) -> tuple[Column, Expression] | None:
    """A column for what a path names in the column that its beginning names.

    None if it names nothing, or an element of an array, whose computation may fail.
    """
    column = rows.resolved(whole)
    assert column is not None
    kind = rows.type_of(column)
    last = len(whole.parts) - 1
    steps = [path.parts[last].removeprefix(whole.parts[last]), *path.parts[last + 1 :]]
    for number, step in enumerate(steps):
        field, *keys = step.split("[")
        if number:
            fields = kind.fields if isinstance(kind, StructType) else []
            named = [one for one in fields if one.name.lower() == field.lower()]
            if len(named) != 1:
                return None
            kind = named[0].dataType
        for _ in keys:
            if not isinstance(kind, MapType):
                return None
            kind = kind.valueType
    text = SqlText.of(f"{ROWS}.{column}", statement.reader.text(whole.range[1], path.range[1]))
    (made,) = statement.fresh(1)
    one = Expression(text, kind, reads=frozenset([column]), field=rows.field_of(path))
    return Column(made, statement.written(path.range), kind), one


def column_of(statement: StatementText, rows: BlockRows, stretch: Range) -> tuple[BlockRows, str]:
    """The rows with a column for an expression, and that column."""
    found = source_of(statement, stretch, rows)
    if found is not None:
        return rows, found
    (made,) = statement.fresh(1)
    one = expression(statement, stretch, rows)
    label = statement.written(stretch)
    further = [(Column(made, label, one.type), one)]
    return extended(rows, statement.prefix(stretch[0]), further, label), made


def filtered(
    statement: StatementText, rows: BlockRows, conditions: Sequence[Range], clause: str
) -> BlockRows:
    """The rows that satisfy all of some conditions."""
    if not conditions:
        return rows
    scope = rows.scope(statement.prefix(conditions[0][0]))
    listed = SqlText.of(f"{ROWS}.*")
    texts = [statement.text(condition) for condition in conditions]
    statement.analyser.schema(scope.select(listed, texts), rows.node.columns)
    found = [
        Expression(
            text,
            BooleanType(),
            source_of(statement, at, rows),
            at,
            _reads(statement, at, rows),
            is_null=_is_null(statement, at, rows),
        )
        for text, at in zip(texts, conditions, strict=True)
    ]
    label = f"{clause} {' AND '.join(map(statement.written, conditions))}"
    return replace(rows, node=Filter(rows.node, scope, tuple(found), clause, label))


def _is_null(statement: StatementText, stretch: Range, rows: BlockRows) -> tuple[str, bool] | None:
    """The column that a condition compares with NULL, and whether it is to be NULL; None for others."""
    parsed = parse_expression(statement.tokens, *stretch)
    is_null = not (isinstance(parsed, OperationNode) and parsed.operator == "NOT")
    if isinstance(parsed, OperationNode) and not is_null:
        (parsed,) = parsed.operands
    if not isinstance(parsed, OperationNode) or parsed.operator != "IS NULL":
        return None
    column = source_of(statement, parsed.operands[0].range, rows)
    return None if column is None else (column, is_null)


def names_of(item: FromItem, columns: Sequence[Column]) -> tuple[str, ...]:
    """The names by which a SELECT refers to the columns of a relation in FROM."""
    names = item.columns or tuple(column.name for column in columns)
    if len(names) != len(columns):
        raise UnreadError(
            "a list of column names whose length differs from the number of columns", item.source
        )
    return names


def only_column(columns: Sequence[Column], bracket: Range) -> Column:
    """The only column of a scalar subquery, or of one in IN."""
    if len(columns) != 1:
        raise UnreadError("a subquery of several columns", bracket, "select one column")
    return columns[0]


def cast(
    statement: StatementText, column: Column, to: DataType, made: str, *, is_beside: bool
) -> tuple[Column, Expression]:
    """A column cast to another type; it `is_beside` the original column, or replaces it."""
    text = SqlText.of(f"CAST({ROWS}.{column.id} AS {sql_of(to)})")
    found = Column(made, column.name, to)
    if is_beside and isinstance(to, IntegralType):
        return found, Expression(text, to, widens=column.id)
    return found, Expression(text, to, follows=cast_follows(statement, column, to))
