"""SELECT lists: their columns, stars, and the columns that they pass on."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import StructType

from windrow.plan.columns import ROWS, Column, Expression, Part, Scope, column_named
from windrow.plan.nodes import Project
from windrow.plan.reader.query_rows import BlockRows, expression, source_of
from windrow.plan.reader.read_joins import USING
from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.syntax.expression_nodes import Name, OperationNode
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.queries import Select
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["each", "listed", "place_of", "sources_of", "visible_names"]


def each(statement: StatementText, select: Select, rows: BlockRows, further: Sequence[Range]) -> Project:
    """SELECT without groups, with further columns after its own."""
    scope = rows.scope(statement.prefix(select.items[0][0]))
    whole = SqlText.join(", ", [listed(statement, select, rows), *(statement.text(item) for item in further)])
    # beside a column of a row an aggregate that we do not know is an error, and not its one row
    row = [SqlText.of(f"{ROWS}.{column.id}") for column in rows.node.columns[:1]]
    text = scope.select(SqlText.join(", ", [whole, *row]))
    found = statement.analyser.schema(text, rows.node.columns).fields
    found = found[: len(found) - len(row)]
    of_items = [sources_of(statement, item, rows) for item in select.items]
    count = len(found) - len(further)
    is_whole = sum(map(len, of_items)) != count
    if is_whole:  # only Spark knows how many columns a generator returns
        of_items = [
            columns if columns != [None] else [None] * _count(statement, scope, item, rows)
            for item, columns in zip(select.items, of_items, strict=True)
        ]
    sources = [one for each_item in of_items for one in each_item]
    sources += [source_of(statement, one, rows) for one in further]
    ids = statement.fresh(len(found))
    new = [Column(own, one.name, one.dataType) for own, one in zip(ids, found, strict=True)]
    if len(sources) != len(found):
        unknown = tuple((column, Expression(whole, column.type)) for column in new)
        return Project(rows.node, scope, unknown, whole, "expressions", is_whole=True)
    outputs: list[tuple[Column, Expression]] = []
    for item, columns in zip(select.items, of_items, strict=True):
        at = without_alias(statement.tokens, item)
        fields = _fields(statement, item, rows) or [None] * len(columns)
        for source, field in zip(columns, fields, strict=True):
            column = new[len(outputs)]
            text = SqlText.of(f"{ROWS}.{source}")
            if field is not None:
                text = SqlText.of(f"{ROWS}.{field[0]}.{quoted(field[1])}")
                value = Expression(text, column.type, None, item, frozenset([field[0]]), field=field)
            elif _is_star(statement, item):
                value = Expression(text, column.type, source, item)
            elif len(columns) > 1:
                value = Expression(whole, column.type)
            else:
                value = expression(statement, at, rows, column.type)
            outputs.append((column, value))
    for at in further:
        column = new[len(outputs)]
        outputs.append((column, expression(statement, at, rows, column.type)))
    passes = all(source is not None for source in sources)
    label = "columns" if passes else "expressions"
    return Project(rows.node, scope, tuple(outputs), whole, label, is_whole)


def _count(statement: StatementText, scope: Scope, item: Range, rows: BlockRows) -> int:
    """How many columns an item of SELECT has."""
    return len(statement.analyser.schema(scope.select(statement.item(item)), rows.node.columns))


def listed(statement: StatementText, select: Select, rows: BlockRows) -> SqlText:
    """The SELECT list, in which a star stands for the relations of FROM alone."""
    items = []
    for start, stop in select.items:
        own = _own_star(statement, (start, stop), rows)
        if own is not None:
            pairs = zip(own.names, own.columns, strict=True)
            items.append(
                SqlText.of(", ".join(f"{ROWS}.{column} AS {quoted(name)}" for name, column in pairs))
            )
            continue
        if not statement.tokens.is_symbol(start, "*"):
            items.append(statement.item((start, stop)))
            continue
        if stop - start > 1 and len(rows.parts) > 1:
            left_out = _left_out(statement, (start, stop), rows.parts)
            if None in left_out:
                raise UnreadError("* EXCEPT of a name that is not exactly one column", (start, stop))
            named = [
                f"{ROWS}.{column} AS {quoted(name)}"
                for part in rows.parts
                for name, column in zip(part.names, part.columns, strict=True)
                if column not in left_out
            ]
            items.append(SqlText.of(", ".join(named)))
            continue
        star = ", ".join(f"{quoted(part.alias)}.*" for part in rows.parts)
        rest = statement.text((start + 1, stop)) if stop - start > 1 else SqlText()
        items.append(SqlText.of(star, " ", rest))
    return SqlText.join(", ", items)


def _own_star(statement: StatementText, item: Range, rows: BlockRows) -> Part | None:
    """The relation of USING of which an item of SELECT is all columns, also those that have become one."""
    tokens, (start, stop) = statement.tokens, item
    is_star = stop - start == 3 and tokens.is_symbol(start + 1, ".") and tokens.is_symbol(start + 2, "*")
    named = [part for part in rows.own if is_star and part.alias.lower() == tokens[start].name.lower()]
    if len(named) != 1:
        return None
    merged = [name.lower() for part in rows.parts if part.alias.startswith(USING) for name in part.names]
    pairs = sorted(
        zip(named[0].names, named[0].columns, strict=True),
        key=lambda pair: merged.index(pair[0].lower()) if pair[0].lower() in merged else len(merged),
    )
    return Part(named[0].alias, tuple(name for name, _ in pairs), tuple(column for _, column in pairs))


def _left_out(statement: StatementText, item: Range, parts: Sequence[Part]) -> set[str | None]:
    """The columns that a star of these relations leaves out: ``* EXCEPT (a, s.b)``, ``s.* EXCEPT (a)``.

    None is among them where a name is none of these columns, or of several.
    """
    listed = _exceptions(statement, item)
    scope = Scope(tuple(parts))
    return {column_named(statement.tokens, each, scope) for each in listed}


def _exceptions(statement: StatementText, item: Range) -> list[Range]:
    """What stands in the brackets of a star with EXCEPT."""
    tokens, (start, stop) = statement.tokens, item
    at = next((at for at in range(start, stop) if tokens.word(at) == "EXCEPT"), None)
    if at is None or not tokens.is_symbol(at - 1, "*") or not tokens.is_symbol(at + 1, "("):
        return []
    return tokens.split(at + 2, tokens.partner[at + 1])


def _fields(statement: StatementText, item: Range, rows: BlockRows) -> list[tuple[str, str] | None]:
    """Of ``a.*``, where `a` is a column of structs: its fields, as expressions have them."""
    start, stop = item
    if stop - start < 3 or not statement.tokens.is_symbol(stop - 1, "*"):
        return []
    name = parse_expression(statement.tokens, start, stop - 2)
    if not isinstance(name, Name) or any(part.alias.lower() == name.parts[0].lower() for part in rows.parts):
        return []
    column = rows.resolved(name)
    kind = None if column is None else rows.type_of(column)
    return [(column, one.name) for one in kind.fields] if column and isinstance(kind, StructType) else []


def place_of(tokens: TokenList, names: Sequence[str], item: OrderItem) -> int | None:
    """The column of a result that an element of ORDER BY names."""
    start, stop = item.expression
    token = tokens[start]
    if stop - start > 1:
        return None
    if token.kind is TokenKind.NUMBER and token.text.isdigit():
        return int(token.text) - 1 if 0 < int(token.text) <= len(names) else None
    found = [at for at, name in enumerate(names) if token.is_name and name.lower() == token.name.lower()]
    return found[0] if len(found) == 1 else None


def visible_names(statement: StatementText, select: Select, rows: BlockRows) -> tuple[str, ...]:
    """The names of the columns of SELECT."""
    scope = rows.scope(statement.prefix(select.items[0][0]))
    found = statement.analyser.schema(scope.select(listed(statement, select, rows)), rows.node.columns)
    return tuple(found.names)


def _is_star(statement: StatementText, item: Range) -> bool:
    """Whether an item of SELECT is all columns, or all but some."""
    if statement.tokens.is_symbol(item[0], "*"):
        return True
    if _exceptions(statement, item):
        return True
    is_last = statement.tokens.is_symbol(item[1] - 1, "*")
    return is_last and not isinstance(parse_expression(statement.tokens, *item), OperationNode)


def sources_of(statement: StatementText, item: Range, rows: BlockRows) -> list[str | None]:
    """Of each column of an item of SELECT, the one that it passes on."""
    tokens = statement.tokens
    if not _is_star(statement, item):
        return [source_of(statement, without_alias(tokens, item), rows)]
    own = _own_star(statement, item, rows)
    if own is not None:
        return list(own.columns)
    fields = _fields(statement, item, rows)
    if fields:
        return [None] * len(fields)
    start, _ = item
    is_bare_star = tokens.is_symbol(start, "*")
    alias = None if is_bare_star else tokens[start].name.lower()
    visible = [part for part in rows.parts if alias in (None, part.alias.lower())]
    left_out = _left_out(statement, item, visible)
    return [column for part in visible for column in part.columns if column not in left_out]
