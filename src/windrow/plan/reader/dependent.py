"""Correlated subqueries: evaluated once for each combination of the outer values that they read.

These combinations are joined with the rows of the subquery, as columns by which it is grouped, counted and
ordered too. Its output is joined back with the outer rows on them. So a subquery may read outer columns
anywhere, through several levels (Neumann and Kemper: Unnesting Arbitrary Queries, 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from windrow.kernels.aggregates import FUNCTIONS
from windrow.kernels.sorting import SortKey
from windrow.plan.columns import ROWS, Column, Expression, sql_of
from windrow.plan.nodes import Aggregate, Distinct, Join, Mark, Node, Over, Project, Scan, Sort, Value
from windrow.plan.reader.groups import grouped, is_grouped, read_of_rows
from windrow.plan.reader.query_rows import (
    BlockRows,
    column_of,
    extended,
    filtered,
    passed,
    paths_from,
    renamed,
)
from windrow.plan.reader.read_joins import paired
from windrow.plan.reader.read_over import named_in, over_of, with_windows
from windrow.plan.reader.reader_state import ReaderState
from windrow.plan.reader.select import each, place_of, visible_names
from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.syntax.expression_nodes import names_in
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.queries import OrderedBlock, Select, SetOperationText, Shape
from windrow.syntax.sqltext import SqlText

__all__ = ["Dependent", "count_nothing", "dependent", "joined_back", "null_safe"]


@dataclass(frozen=True)
class Dependent:
    """The rows of a subquery for each combination of the outer values that it reads.

    Attributes
    ----------
    node
        The rows; their first columns are those of the outer query.
    keys
        Columns of the outer rows, and the equal ones of `node`.
    columns
        The columns of `node` that the subquery returns.
    """

    node: Node
    keys: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]


def dependent(reading: ReaderState, rows: BlockRows, bracket: Range) -> Dependent:
    """A correlated subquery over these rows.

    Raises
    ------
    UnreadError
        If it reads them in a way that has no nodes.
    """
    statement = reading.statement
    shape = reading.shape(bracket)
    before, outer = statement.standing(), statement.around_read
    wanted = _may_read(statement, rows, bracket)
    # first to find the outer columns that are read, then with these alone
    for _ in range(2):
        statement.stand(before)
        statement.around_read = set()
        if not wanted:
            raise UnreadError("a correlated subquery of this form", bracket)
        around, keys = _around(statement, rows, wanted)
        found = _read(reading, shape, around, bracket)
        read = [mine for mine, theirs in keys if theirs in statement.around_read]
        if read == wanted:
            break
        wanted = read
    statement.around_read = outer | set(wanted)
    pairs = zip(keys, found.node.columns, strict=False)
    return replace(found, keys=tuple((mine, column.id) for (mine, _), column in pairs))


def _may_read(statement: StatementText, rows: BlockRows, bracket: Range) -> list[str]:
    """The columns of the rows that a subquery may name."""
    found: dict[str, None] = {}
    for name in names_in(parse_expression(statement.tokens, *bracket, deeply=True)):
        columns = (rows.resolved(path) for path in paths_from(statement.tokens, name))
        column = next((one for one in columns if one is not None), None)
        if column is not None:
            found[column] = None
    return list(found)


def _around(
    statement: StatementText, rows: BlockRows, wanted: Sequence[str]
) -> tuple[BlockRows, list[tuple[str, str]]]:
    """Each distinct combination of some columns of the rows, under names of the outer query."""
    known = {column.id: column.name for column in rows.node.columns}
    made = renamed(statement, _below(rows.node, wanted), [known[one] for one in wanted], "columns", wanted)
    ids = {one: column.id for one, column in zip(wanted, made.columns, strict=True)}
    parts = []
    for part in rows.names_around():
        pairs = [
            (name, ids[column])
            for name, column in zip(part.names, part.columns, strict=True)
            if column in ids
        ]
        if pairs:
            names, columns = zip(*pairs, strict=True)
            parts.append(replace(part, names=names, columns=columns))
    node = Distinct(made, f"DISTINCT {', '.join(known[one] for one in wanted)}", len(made.columns))
    return BlockRows(node, (), (), tuple(parts)), list(ids.items())


def _below(node: Node, wanted: Sequence[str]) -> Node:
    """The lowest node whose rows have all values of these columns, below what other subqueries add."""
    below: Node | None = node
    while below is not None:
        node = below
        match node:
            case Join(kind="inner"):
                sides: tuple[Node, ...] = node.inputs
            case Join(kind="right"):
                sides = (node.right,)
            case Join(kind="left" | "semi" | "anti") | Mark() | Value():
                sides = (node.left,)
            case Project() | Over():
                sides = (node.input,)
            case _:
                sides = ()
        below = next((side for side in sides if {one.id for one in side.columns}.issuperset(wanted)), None)
    return node


def _read(reading: ReaderState, shape: Shape, around: BlockRows, bracket: Range) -> Dependent:
    """The rows of a subquery, joined with the outer rows."""
    statement = reading.statement
    if isinstance(shape, SetOperationText):
        sides = [_read(reading, side, around, bracket) for side in (shape.left, shape.right)]
        node = reading.united(shape, sides[0].node, sides[1].node)
        ids = [one.id for one in node.columns]
        count = len(around.node.columns)
        return Dependent(node, tuple((one, one) for one in ids[:count]), tuple(ids[count:]))
    order: Sequence[OrderItem] = ()
    bounds: tuple[int, int | None] = 0, None
    query: Shape = shape
    if isinstance(query, OrderedBlock):
        order, bounds, query = query.order, reading.bounds(query), query.query
    if not isinstance(query, Select):
        return _first(statement, _read(reading, query, around, bracket), order, bounds, bracket)
    keys = [column.id for column in around.node.columns]
    rows, conditions = reading.from_where(reading, query, around)
    if is_grouped(statement.tokens, query):
        rows, keys = _groups(reading, query, rows, conditions, around, bracket)
    else:
        rows = filtered(statement, rows, conditions, "WHERE")
    rows = reading.unnested(reading, query, rows, query.items)
    if over_of(statement, query) is not None:
        rows = with_windows(reading, query, rows, [], keys)
    names = visible_names(statement, query, rows)
    hidden = [item for item in order if place_of(statement.tokens, names, item) is None]
    if hidden and query.distinct:
        raise UnreadError(
            "ORDER BY of an expression that SELECT DISTINCT does not return", hidden[0].expression
        )
    beside = []
    for item in hidden:
        rows, column = column_of(statement, rows, item.expression)
        beside.append(column)
    found = _selected(statement, query, rows, [*keys, *beside], len(keys), bracket)
    return _first(statement, found, order, bounds, bracket)


def _groups(
    reading: ReaderState,
    select: Select,
    rows: BlockRows,
    conditions: Sequence[Range],
    around: BlockRows,
    bracket: Range,
) -> tuple[BlockRows, list[str]]:
    """The groups of a subquery, and their columns that belong to the outer query."""
    statement = reading.statement
    own = [column.id for column in around.node.columns]
    rows = reading.unnested(reading, select, rows, read_of_rows(statement, select, rows))
    groups = grouped(statement, select, rows, conditions, own)
    keys = [column.id for column in groups.node.columns[: len(own)]]
    if select.group_by is None:  # a row also of no rows
        found, is_known = groups.node, count_nothing(statement, groups)
        pairs = list(zip(own, keys, strict=True))
        groups = groups if is_known else _there(statement, groups)
        groups = joined_back(statement, around, groups, pairs, "left", "LEFT JOIN groups", bracket)
        groups = groups if is_known else _with_nothing(statement, found, groups, bracket)
        keys = own
        parts = around.around
    else:
        ids = dict(zip(own, keys, strict=True))
        _rename(statement, ids, select)
        parts = tuple(
            replace(part, columns=tuple(ids[column] for column in part.columns)) for part in around.around
        )
    groups = replace(groups, around=(*groups.around, *parts))
    if select.having is not None:
        groups = reading.unnested(reading, select, groups, [select.having], is_condition=True)
        named_in(statement, select, select.having, groups)
        groups = filtered(statement, groups, [select.having], "HAVING")
    return groups, keys


def _rename(statement: StatementText, ids: dict[str, str], select: Select) -> None:
    """Substitute the columns of groups for those of their rows."""
    stretches = [*select.items, *([] if select.having is None else [select.having])]
    for at, own in list(statement.columns_at.items()):
        if own in ids and any(start <= at[0] and at[1] <= stop for start, stop in stretches):
            statement.columns_at[at] = ids[own]
            statement.instead[at] = f"{ROWS}.{ids[own]}"


def count_nothing(statement: StatementText, groups: BlockRows) -> bool:
    """Substitute the value of each aggregate over no rows where a group is missing.

    False if only Spark knows that value for some aggregate.
    """
    assert isinstance(groups.node, Aggregate)
    for call in groups.node.calls:
        function = call.call.function if call.is_known else None
        if function is not None and FUNCTIONS[function].empty == 0:
            statement.instead[call.at] = f"coalesce({ROWS}.{call.column.id}, 0L)"
            del statement.columns_at[call.at]
    return all(call.is_known for call in groups.node.calls)


def _there(statement: StatementText, groups: BlockRows) -> BlockRows:
    """Groups with a last column that is true: an outer join makes it NULL for missing groups."""
    (made,) = statement.fresh(1)
    there = Column(made, "true", BooleanType()), Expression(SqlText.of("true"), BooleanType())
    return extended(groups, SqlText(), [there], "true")


def _with_nothing(statement: StatementText, groups: Node, rows: BlockRows, bracket: Range) -> BlockRows:
    """The rows where missing groups have, for aggregates that only Spark knows, their value over no rows."""
    assert isinstance(groups, Aggregate)
    unknown = [call for call in groups.calls if not call.is_known]
    there = next(column.id for column in reversed(rows.node.columns) if column.name == "true")
    below = groups.input.input.columns
    nulls = ", ".join(f"CAST(NULL AS {sql_of(one.type)}) AS {one.id}" for one in below)
    text = SqlText.of(f"SELECT {nulls} WHERE false")
    name, *ids = statement.fresh(1 + len(unknown))
    none = Scan(f"__none_{name}", below, tuple(one.id for one in below), text, "of no rows", bracket)
    calls = tuple(
        replace(call, column=Column(own, call.column.name, call.column.type))
        for own, call in zip(ids, unknown, strict=True)
    )
    nothing = replace(groups, input=replace(groups.input, input=none), keys=(), calls=calls, around=0)
    for call, own in zip(unknown, ids, strict=True):
        value = f"CASE WHEN {ROWS}.{there} THEN {ROWS}.{call.column.id} ELSE {ROWS}.{own} END"
        statement.instead[call.at] = value
        del statement.columns_at[call.at]
    return replace(rows, node=Value(rows.node, nothing, True, "aggregates of no rows", bracket))


def _selected(
    statement: StatementText,
    select: Select,
    rows: BlockRows,
    beside: Sequence[str],
    around: int,
    bracket: Range,
) -> Dependent:
    """The columns of SELECT, after these columns of the rows, the first of which belong to the outer
    query.
    """
    node = each(statement, select, rows, ())
    if node.is_whole:
        raise UnreadError(
            "an expression in SELECT of a correlated subquery that only Spark evaluates", bracket
        )
    known = {column.id: column for column in rows.node.columns}
    further = [
        (Column(made, known[own].name, known[own].type), one)
        for made, own, (_, one) in zip(
            statement.fresh(len(beside)), beside, passed([known[own] for own in beside]), strict=True
        )
    ]
    listed = SqlText.join(", ", [*(one.text for _, one in further), node.listed])
    outputs = (*further, *node.outputs)
    found: Node = Project(rows.node, node.scope, outputs, listed, "columns of a correlated subquery")
    if select.distinct:
        found = Distinct(found, "DISTINCT", around)
    keys = tuple((column.id, column.id) for column, _ in further[:around])
    return Dependent(found, keys, tuple(column.id for column, _ in node.outputs))


def _first(
    statement: StatementText,
    found: Dependent,
    order: Sequence[OrderItem],
    bounds: tuple[int, int | None],
    bracket: Range,
) -> Dependent:
    """The first rows of each combination, ordered by columns of the query or, in turn, by the hidden ones."""
    if bounds == (0, None):
        return found
    own = [column for column in found.node.columns if column.id in found.columns]
    names = [column.name for column in own]
    hidden = [column.id for column in found.node.columns[len(found.keys) :]]
    by = []
    for item in order:
        place = place_of(statement.tokens, names, item)
        if place is None and hidden[0] in found.columns:
            what = f"ORDER BY {statement.written(item.expression)}, which the query does not return,"
            raise UnreadError(what, item.expression, "select it, and order by its name")
        column = hidden.pop(0) if place is None else own[place].id
        by.append(SortKey(column, item.descending, item.nulls_first))
    partition = tuple(theirs for _, theirs in found.keys)
    node = Sort(found.node, tuple(by), *bounds, "the first rows of each", bracket, partition)
    return replace(found, node=node)


# -- joining back ----------------------------------------------------------------------------------------


def joined_back(
    statement: StatementText,
    left: BlockRows,
    right: BlockRows,
    pairs: Sequence[tuple[str, str]],
    kind: str,
    label: str,
    at: Range,
    conditions: Sequence[Range] = (),
) -> BlockRows:
    """The rows joined with their values; NULL equals NULL."""
    one, other, keys = null_safe(statement, left, right, pairs, at)
    return paired(statement, one, other, keys, kind, label, at, conditions)


def null_safe(
    statement: StatementText, left: BlockRows, right: BlockRows, pairs: Sequence[tuple[str, str]], at: Range
) -> tuple[BlockRows, BlockRows, list[tuple[str, str]]]:
    """Both sides with keys that are equal where these columns are equal or both NULL."""
    keys: list[tuple[str, str]] = []
    for mine, theirs in pairs:
        left, ours = _without_null(statement, left, mine, at)
        right, others = _without_null(statement, right, theirs, at)
        keys += zip(ours, others, strict=True)
    return left, right, keys


def _without_null(
    statement: StatementText, rows: BlockRows, column: str, at: Range
) -> tuple[BlockRows, list[str]]:
    """The rows with a column that is never NULL, and one that says whether the original was."""
    kind = rows.type_of(column)
    name = next(one.name for one in rows.node.columns if one.id == column)
    nothing = _nothing(kind)
    if nothing is None:
        what = f"a column of type {kind.simpleString().upper()} that a correlated subquery reads"
        raise UnreadError(what, at, "read a number, text or time of it in a subquery in FROM")
    reads = frozenset([column])
    made = statement.fresh(2)
    whole = SqlText.of(f"coalesce({ROWS}.{column}, {nothing})")
    further = [
        (Column(made[0], name, kind), Expression(whole, kind, reads=reads)),
        (
            Column(made[1], f"{name} IS NULL", BooleanType()),
            Expression(SqlText.of(f"{ROWS}.{column} IS NULL"), BooleanType(), reads=reads),
        ),
    ]
    return extended(rows, SqlText(), further, f"{name}, {name} IS NULL"), made


def _nothing(kind: DataType) -> str | None:
    """SQL for some value of a type."""
    match kind:
        case NumericType():
            return f"CAST(0 AS {kind.simpleString()})"
        case StringType() if kind.simpleString() == "string":
            return "''"
        case BooleanType():
            return "false"
        case DateType():
            return "DATE '1970-01-01'"
        case TimestampType():
            return "TIMESTAMP '1970-01-01'"
        case TimestampNTZType():
            return "TIMESTAMP_NTZ '1970-01-01'"
        case BinaryType():
            return "X''"
        case ArrayType():
            return f"CAST(array() AS {sql_of(kind)})"
    return None
