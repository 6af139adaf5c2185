"""Subqueries as joins: EXISTS and IN as conditions on rows, and columns for all others.

EXISTS and IN are TRUE for the rows that have a partner in the subquery. A scalar subquery is a join with its
one row. Where EXISTS or IN is only a part of a condition, a column replaces it in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql.types import BooleanType, LongType

from windrow.algebra.window_node import AggregateCall
from windrow.plan.columns import ROWS, Column, Part
from windrow.plan.nodes import Aggregate, GroupAggregate, Join, Mark, Node, OneRow, Value
from windrow.plan.reader.computed_by_spark import extended_by_spark, rows_at
from windrow.plan.reader.dependent import Dependent, count_nothing, dependent, joined_back, null_safe
from windrow.plan.reader.generated import generated
from windrow.plan.reader.groups import grouped, is_grouped
from windrow.plan.reader.positions_of_in import decides, is_negated, operand_of, values_of
from windrow.plan.reader.query_rows import (
    BlockRows,
    column_of,
    filtered,
    name_around,
    names_of,
    only_column,
    reads_only,
    renamed,
    with_fields,
)
from windrow.plan.reader.read_joins import alike, conditions_of, equality, paired
from windrow.plan.reader.read_over import over_of
from windrow.plan.reader.reader_state import ReaderState
from windrow.plan.reader.statement_text import NotAnalysed, StatementText, UnreadError
from windrow.plan.reasons import Reason
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem, OrderedBlock, Select, Shape, conjuncts
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import Piece, SqlText
from windrow.syntax.subqueries import opens_query

__all__ = [
    "alone",
    "decided",
    "has_subquery",
    "lateral",
    "reads_around",
    "subqueries",
    "subqueries_in_on",
    "unnested",
]

_NAMES = "UNRESOLVED_COLUMN"
"""The condition of Spark's error for a correlated subquery."""


def has_subquery(statement: StatementText, part: Range) -> bool:
    """Whether a range contains a subquery over something that changes over time."""
    return any(True for _ in subqueries(statement, part))


def subqueries(statement: StatementText, part: Range) -> Iterator[Range]:
    """The brackets of the outermost subqueries over time-varying relations in a range."""
    tokens, (at, stop) = statement.tokens, part
    while at < stop:
        close = at
        if opens_query(tokens, at):
            close = tokens.partner[at]
            if statement.is_temporal((at, close + 1)):
                yield at, close + 1
        at = close + 1


# -- conditions ------------------------------------------------------------------------------------------


def decided(
    reading: ReaderState, select: Select, rows: BlockRows, part: Range
) -> tuple[BlockRows, Range | None]:
    """The rows for which a condition with subqueries is true; or the rows and the remaining condition, in
    whose text columns replace the subqueries.
    """
    statement = reading.statement
    tokens, (start, stop) = statement.tokens, part
    for subquery in subqueries(statement, part):
        rows = with_fields(statement, rows, subquery)
    is_not = tokens.word(start) == "NOT"
    bracket = start + is_not + 1
    if tokens.word(bracket - 1) == "EXISTS" and tokens.partner[bracket] == stop - 1:
        rows, found = _partners(reading, rows, (bracket, stop), None)
        kind = "anti" if is_not else "semi"
        return _paired(reading, rows, found, kind, part), None
    bracket = tokens.partner[stop - 1] if tokens.is_symbol(stop - 1, ")") else -1
    is_query = bracket > start and opens_query(tokens, bracket)  # not a list of one value: IN ((SELECT …))
    if is_query and tokens.word(bracket - 1) == "IN" and tokens.word(bracket - 2) != "NOT":
        found_in = statement.attempt(partial(_in_subquery, reading, rows, start, (bracket, stop)))
        if not isinstance(found_in, Reason):
            rows, found = found_in
            return _paired(reading, rows, found, "semi", part), None
    return _stood(reading, select, rows, part, is_condition=True), part


def _in_subquery(
    reading: ReaderState, rows: BlockRows, start: int, bracket: Range
) -> tuple[BlockRows, _Partners]:
    """The partners of rows in the subquery of a condition that is just IN."""
    operand = operand_of(reading.statement, start, bracket[0] - 1)
    if operand[0] != start:
        raise UnreadError("this expression before IN", operand)
    return _partners(reading, rows, bracket, operand)


def unnested(
    reading: ReaderState,
    select: Select,
    rows: BlockRows,
    stretches: Iterable[Range],
    *,
    is_condition: bool = False,
) -> BlockRows:
    """The rows with a column for each time-varying subquery in these ranges of a SELECT."""
    tokens = reading.statement.tokens
    for stretch in stretches:
        own = without_alias(tokens, stretch) if stretch in select.items else stretch
        rows = _stood(reading, select, rows, own, is_condition=is_condition)
    return rows


def _stood(
    reading: ReaderState, select: Select, rows: BlockRows, stretch: Range, *, is_condition: bool
) -> BlockRows:
    """The rows with columns that replace the subqueries in a range."""
    statement = reading.statement
    is_inside = not is_condition and statement.tokens.parent[select.items[0][0]] not in reading.outside
    why: Reason | None = None
    beside: dict[str, Node] = {}
    for bracket in subqueries(statement, stretch):
        if _is_column(statement, rows, bracket):
            continue
        word = statement.tokens.word(bracket[0] - 1)
        rows = with_fields(statement, rows, bracket)
        if word == "EXISTS":
            rows, found = _partners(reading, rows, bracket, None)
            rows = _marked(statement, rows, found, (bracket[0] - 1, bracket[1]))
        elif word == "IN":
            marked = statement.attempt(partial(_answered, reading, rows, stretch, bracket, is_inside))
            if isinstance(marked, Reason):
                why = marked
                beside |= _values_of(reading, rows, bracket)
            else:
                rows = marked
        else:
            rows = _with_value(reading, rows, bracket)
    if why is not None:
        rows, column = extended_by_spark(statement, rows, stretch, beside, why)
        _stand(statement, stretch, column)
    return rows


def _is_column(statement: StatementText, rows: BlockRows, bracket: Range) -> bool:
    """Whether a subquery is in an expression that is a column of the rows: a key of groups, or a function
    with OVER.
    """
    ids = {column.id for column in rows.node.columns}
    return any(
        first <= bracket[0] and bracket[1] <= last and own in ids
        for (first, last), own in statement.columns_at.items()
    )


def _answered(
    reading: ReaderState, rows: BlockRows, stretch: Range, bracket: Range, is_inside: bool
) -> BlockRows:
    """The rows with a column that replaces IN with a subquery in a range."""
    statement = reading.statement
    tokens, (first, stop) = statement.tokens, bracket
    is_not = tokens.word(first - 2) == "NOT"
    operand = operand_of(statement, stretch[0], first - 1 - is_not)
    at = operand[0], stop
    computes = is_inside or not decides(statement, stretch, at)
    rows, found = _partners(reading, rows, bracket, operand)
    if not computes and is_not == is_negated(statement, stretch[0], operand[0]):
        found = replace(found, unknown=())
    return _marked(statement, rows, found, at, "NOT " if is_not else "", computes=computes)


def _values_of(reading: ReaderState, rows: BlockRows, bracket: Range) -> dict[str, Node]:
    """The relation of a subquery, by its key in the text that replaces it: its values for each row, at any
    time.
    """
    statement = reading.statement
    inner = alone(reading, bracket)
    if inner is None:
        found = dependent(reading, rows, bracket)
    else:
        found = Dependent(inner, (), tuple(column.id for column in inner.columns))
    key = f"__asked{statement.numbers[0]}"
    statement.instead[bracket] = rows_at(key, found.columns, found.keys)
    return {key: found.node}


def _marked(
    statement: StatementText,
    rows: BlockRows,
    found: _Partners,
    at: Range,
    before: str = "",
    *,
    computes: bool = False,
) -> BlockRows:
    """The rows with a column that says whether they have partners, which replaces a part of the text.

    Where an expression `computes` with the outcome of IN, Spark takes unknown for false or for true, as its
    optimizer rewrites the expression. So Spark decides here too::

        (v IN (SELECT k FROM s)) = false   →   (c IN (SELECT true)) = false
    """
    (made,) = statement.fresh(1)
    label = statement.written(at)
    node = Mark(
        rows.node,
        found.rows.node,
        tuple(found.keys),
        conditions_of(statement, rows.by_ids(), found.rows, found.conditions),
        found.rows.scope(statement.prefix(at[0])),
        Column(made, label, BooleanType()),
        found.unknown,
        label,
        at,
    )
    if computes:
        statement.instead[at] = f"({ROWS}.{made} {before}IN (SELECT true))"
    elif found.unknown:
        statement.instead[at] = f"{before}coalesce({ROWS}.{made}, true)"
    else:
        statement.instead[at] = f"{before}{ROWS}.{made}"
        if not before:
            statement.columns_at[at] = made
    return replace(rows, node=node)


def _with_value(reading: ReaderState, rows: BlockRows, bracket: Range) -> BlockRows:
    """The rows with the value of a scalar subquery."""
    statement = reading.statement
    inner = alone(reading, bracket)
    if inner is None:
        return _with_value_of(reading, rows, bracket)
    value = only_column(inner.columns, bracket)
    shape = reading.shape(bracket)
    is_there = True
    if _is_one(reading, shape):
        is_there = isinstance(shape, Select) and shape.having is None
    else:
        inner = _only(statement, inner, (), value, bracket)
    node = Value(rows.node, inner, is_there, statement.written(bracket), bracket)
    _stand(statement, bracket, inner.columns[-1].id)
    return replace(rows, node=node)


def _with_value_of(reading: ReaderState, rows: BlockRows, bracket: Range) -> BlockRows:
    """The rows with the value of a correlated scalar subquery."""
    statement = reading.statement
    shape = reading.shape(bracket)
    simply = statement.attempt(lambda: _with_aggregate_of(reading, rows, shape, bracket), _NAMES)
    if isinstance(simply, BlockRows):
        return simply
    found = dependent(reading, rows, bracket)
    node = found.node
    known = only_column([column for column in node.columns if column.id in found.columns], bracket)
    value = known.id
    if not _is_one(reading, shape):
        node = _only(statement, node, [theirs for _, theirs in found.keys], known, bracket)
        found = replace(found, node=node, keys=_renumbered(found.keys, node))
        value = node.columns[-1].id
    label = statement.written(bracket)
    # an aggregate without GROUP BY has a row for each
    is_there = isinstance(shape, Select) and shape.having is None and _is_one(reading, shape)
    kind = "inner" if is_there else "left"
    rows = _of_subquery(joined_back(statement, rows, BlockRows(node, ()), found.keys, kind, label, bracket))
    _stand(statement, bracket, value)
    return rows


def _renumbered(keys: Sequence[tuple[str, str]], node: Node) -> tuple[tuple[str, str], ...]:
    return tuple((mine, column.id) for (mine, _), column in zip(keys, node.columns, strict=False))


def _is_one(reading: ReaderState, shape: Shape) -> bool:
    """Whether a query returns at most one row."""
    if isinstance(shape, OrderedBlock):
        return reading.bounds(shape)[1] in (0, 1) or _is_one(reading, shape.query)
    return (
        isinstance(shape, Select) and shape.group_by is None and is_grouped(reading.statement.tokens, shape)
    )


def _only(statement: StatementText, node: Node, keys: Sequence[str], value: Column, bracket: Range) -> OneRow:
    """The only row of each key; several are an error."""
    names = [column.name for column in node.columns if column.id in keys]
    inside = renamed(statement, node, [*names, value.name], "columns", [*keys, value.id])
    ids = statement.fresh(len(keys) + 2)
    by = tuple(
        (Column(own, column.name, column.type), column.id)
        for own, column in zip(ids, inside.columns[:-1], strict=False)
    )
    count = Column(ids[-2], "count(*)", LongType())
    only = Column(ids[-1], value.name, value.type)
    span = statement.tokens.span(*bracket)
    calls = (
        GroupAggregate(count, AggregateCall(count.id, "count", None, False, (), SqlText.of("count(1)"), span),
             None, True, bracket),
        # of one row; which of several does not count
        GroupAggregate(only, AggregateCall(only.id, "max", None, False, (),
             SqlText.of(f"any_value({ROWS}.{value.id})"), span), inside.columns[-1].id, True, bracket),
    )  # fmt: skip
    groups = Aggregate(inside, by, calls, "GROUP BY the outer query", bracket, len(keys))
    sql = statement.tokens.sql
    written = Piece(sql[span.start : span.stop], sql, span.start)
    return OneRow(groups, count.id, only, statement.written(bracket), bracket, written)


def _stand(statement: StatementText, at: Range, column: str) -> None:
    """Substitute a column in the text."""
    statement.instead[at] = f"{ROWS}.{column}"
    statement.columns_at[at] = column


def _with_aggregate_of(
    reading: ReaderState, rows: BlockRows, select: Shape, bracket: Range
) -> BlockRows | None:
    """The rows with an aggregate over the subquery's rows that equal each row.

    They are joined with groups on the equal columns; the values of the aggregates over no rows are known
    here. None if it is not an aggregate, or reads the outer query in another way.
    """
    statement = reading.statement
    if not isinstance(select, Select) or not _is_one(reading, select) or select.having is not None:
        return None
    if len(select.items) != 1 or over_of(statement, select) is not None:
        return None
    correlated = _correlated(reading, rows, select, None)
    assert correlated is not None, "only the operand of IN may be correlated"
    rows, found = correlated
    if found.conditions or not found.keys:
        return None
    mine, theirs = zip(*found.keys, strict=True)
    groups = grouped(statement, select, found.rows, [], theirs)
    if not count_nothing(statement, groups):
        return None
    assert isinstance(groups.node, Aggregate)
    keys = [(one, column.id) for one, (column, _) in zip(mine, groups.node.keys, strict=True)]
    label = statement.written(bracket)
    rows = replace(
        rows, node=_of_subquery(paired(statement, rows, groups, keys, "left", label, bracket)).node
    )
    rows, value = column_of(statement, rows, without_alias(statement.tokens, select.items[0]))
    _stand(statement, bracket, value)
    return rows


# -- FROM ------------------------------------------------------------------------------------------------


def subqueries_in_on(
    reading: ReaderState, select: Select, left: BlockRows, right: BlockRows, item: FromItem
) -> tuple[BlockRows, BlockRows]:
    """The sides of a join with columns that replace the subqueries in its condition.

    A subquery is added to the side that it, or the operand that it is compared with, reads.
    """
    statement = reading.statement
    for part in [] if item.on is None else conjuncts(statement.tokens, *item.on):
        if not has_subquery(statement, part):
            continue
        found = statement.attempt(partial(_stood, reading, select, left, part, is_condition=True), _NAMES)
        if isinstance(found, Reason):
            right = _stood(reading, select, right, part, is_condition=True)
        else:
            left = found
    return left, right


def reads_around(reading: ReaderState, item: FromItem) -> bool:
    """Whether a relation in FROM is a correlated query."""
    is_query = reading.statement.tokens.is_symbol(item.source[0], "(") and item.turned is None
    is_query = is_query and item.source not in reading.statement.reader.inputs
    return is_query and reading.statement.is_temporal(item.source) and alone(reading, item.source) is None


def lateral(reading: ReaderState, rows: BlockRows, item: FromItem) -> tuple[BlockRows, list[Range]]:
    """The rows joined with a lateral query in FROM, and the conditions that are not applied yet."""
    statement = reading.statement
    label = f"{item.join.upper()} JOIN LATERAL"
    on = [] if item.on is None else conjuncts(statement.tokens, *item.on)
    if not statement.tokens.is_symbol(item.source[0], "("):
        return generated(statement, rows, item), on
    inner = alone(reading, item.source)
    keys: tuple[tuple[str, str], ...] = ()
    if inner is None:
        rows = with_fields(statement, rows, item.source)
        found = dependent(reading, rows, item.source)
        inner, keys = found.node, found.keys
        columns = [column for column in inner.columns if column.id in found.columns]
    else:
        columns = list(inner.columns)
    alias = item.alias or f"__t{statement.numbers[0]}"
    part = Part(alias, names_of(item, columns), tuple(column.id for column in columns))
    right, of_both = BlockRows(inner, (part,)), []
    if item.join == "inner":
        on, further = [], on
    else:
        further = []
    for condition in on:
        if reads_only(statement, condition, right):
            right = filtered(statement, right, [condition], "WHERE")
        else:
            of_both.append(condition)
    both = joined_back(statement, rows, right, keys, item.join, label, item.source, of_both)
    return both, further


# -- partners --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Partners:
    """The rows of a subquery, and which of them are partners of a row of the outer query.

    The last of the keys are those of IN, and `unknown`: NULL is not FALSE there.
    """

    rows: BlockRows
    keys: tuple[tuple[str, str], ...] = ()
    conditions: tuple[Range, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()


def _partners(
    reading: ReaderState, rows: BlockRows, bracket: Range, operand: Range | None
) -> tuple[BlockRows, _Partners]:
    """The partners in a subquery: any row for EXISTS, rows with the operand's value for IN."""
    statement = reading.statement
    shape = reading.shape(bracket)
    if operand is None and isinstance(shape, Select) and _is_plain(statement, shape):
        return _partners_of(reading, rows, bracket, None)
    inner = alone(reading, bracket)
    if inner is None:
        return _partners_of(reading, rows, bracket, operand)
    made = renamed(statement, inner, [column.name for column in inner.columns], "columns")
    found = _Partners(BlockRows(made, ()))
    if operand is None:
        return rows, found
    theirs = [column.id for column in made.columns]
    return _in_values(statement, rows, found, operand, theirs, bracket)


def _partners_of(
    reading: ReaderState, rows: BlockRows, bracket: Range, operand: Range | None
) -> tuple[BlockRows, _Partners]:
    """The partners in a subquery that may be correlated."""
    statement = reading.statement
    shape = reading.shape(bracket)
    if isinstance(shape, Select) and _is_plain(statement, shape):
        simply = statement.attempt(lambda: _correlated(reading, rows, shape, operand), _NAMES)
        if isinstance(simply, tuple):
            return simply
    found = dependent(reading, rows, bracket)
    rows, other, keys = null_safe(statement, rows, BlockRows(found.node, ()), found.keys, bracket)
    partners = _Partners(other, tuple(keys))
    if operand is None:
        return rows, partners
    return _in_values(statement, rows, partners, operand, found.columns, bracket)


def _in_values(
    statement: StatementText,
    rows: BlockRows,
    found: _Partners,
    operand: Range,
    theirs: Sequence[str],
    bracket: Range,
) -> tuple[BlockRows, _Partners]:
    """Of some partners, those whose values equal the operand of IN, of one value or several: `(a, b)`."""
    other, keys = found.rows, []
    values = values_of(statement.tokens, operand)
    if len(values) != len(theirs):
        raise UnreadError("a subquery of several columns", bracket, "select one column for each value")
    for value, column in zip(values, theirs, strict=True):
        rows, mine = column_of(statement, rows, value)
        rows, other, key = alike(statement, rows, other, (mine, column), value)
        keys.append(key)
    return rows, replace(found, rows=other, keys=(*found.keys, *keys), unknown=tuple(keys))


def _correlated(
    reading: ReaderState, rows: BlockRows, select: Select, operand: Range | None
) -> tuple[BlockRows, _Partners] | None:
    """The partners in a SELECT that may be correlated in WHERE; None if it is correlated elsewhere."""
    statement = reading.statement
    keys: list[tuple[str, str]] = []
    both: list[Range] = []
    inside, _ = reading.from_where(reading, replace(select, where=None))
    where = [] if select.where is None else conjuncts(statement.tokens, *select.where)
    items = [without_alias(statement.tokens, item) for item in select.items]
    name_around(statement, [*where, *items], replace(inside, around=rows.names_around()))
    for condition in where:
        pair = None
        if not reads_only(statement, condition, inside):
            pair = equality(statement, rows.by_ids(), inside, condition)
        if pair is not None:
            outer, inside, key = pair
            rows = replace(rows, node=outer.node)
            keys.append(key)
        elif has_subquery(statement, condition):
            inside, rest = decided(reading, select, inside, condition)
            inside = filtered(statement, inside, [] if rest is None else [rest], "WHERE")
        elif _reads_beyond(statement, condition, rows):
            both.append(condition)
        else:
            inside = filtered(statement, inside, [condition], "WHERE")
    found = _Partners(inside, tuple(keys), tuple(both))
    if operand is None:
        return rows, found
    theirs = []
    for item in items:
        if not reads_only(statement, item, inside):
            return None
        inside, column = column_of(statement, inside, item)
        theirs.append(column)
    return _in_values(statement, rows, replace(found, rows=inside), operand, theirs, select.items[0])


def _paired(reading: ReaderState, rows: BlockRows, found: _Partners, kind: str, part: Range) -> BlockRows:
    statement = reading.statement
    label = statement.written(part)
    pairs = paired(statement, rows.by_ids(), found.rows, found.keys, kind, label, part, found.conditions)
    return replace(rows, node=_of_subquery(pairs).node)


def _of_subquery(rows: BlockRows) -> BlockRows:
    """The rows of a join with a subquery in an expression."""
    assert isinstance(rows.node, Join)
    return replace(rows, node=replace(rows.node, is_of_subquery=True))


def _is_plain(statement: StatementText, select: Select) -> bool:
    """Whether a SELECT processes each row alone."""
    return not is_grouped(statement.tokens, select) and over_of(statement, select) is None


def alone(reading: ReaderState, bracket: Range) -> Node | None:
    """The plan of a subquery; None if it is correlated."""
    found = reading.statement.attempt(lambda: reading.query(reading.shape(bracket)), _NAMES)
    if isinstance(found, NotAnalysed):
        return None
    return reading.bracket(bracket) if isinstance(found, Reason) else found


def _reads_beyond(statement: StatementText, condition: Range, around: BlockRows) -> bool:
    """Whether a condition in a subquery reads a column that only the outer query has."""
    start, stop = condition
    ids = {column.id for column in around.node.columns}
    return any(own in ids and start <= at[0] and at[1] <= stop for at, own in statement.columns_at.items())
