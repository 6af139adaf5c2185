"""Subqueries as joins: EXISTS and IN as conditions that rows must satisfy, and columns for all others.

EXISTS and IN are TRUE for the rows that have a partner in the subquery; a subquery that gives one value is a
join with the relation of one row that it is. Where they are no condition by themselves, a column stands in
the text in their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pyspark.sql.types import BooleanType

from windrow.errors import WindrowError
from windrow.plan.columns import ROWS, Column
from windrow.plan.nodes import Aggregate, Join, Mark, Node, Value
from windrow.plan.reader.groups import grouped, is_grouped
from windrow.plan.reader.joins import alike, conditions_of, equality, paired
from windrow.plan.reader.over import over_of
from windrow.plan.reader.reading import Reading
from windrow.plan.reader.rows import Rows, column_of, filtered, reads_only, renamed
from windrow.plan.reader.statement import NotPlannedError, Statement
from windrow.syntax.expressions import Opaque, Operation, names_in, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select, Shape, conjuncts, parse_query
from windrow.syntax.select_list import without_alias

__all__ = ["decided", "has_subquery", "unnested"]

_BEFORE_OPERAND = ("AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE")
_COUNTS = ("count", "count_if", "count_distinct")
"""Aggregates that are 0 of no rows; others are NULL."""

_BOOLEAN = ("AND", "OR", "NOT", "=", "<>", "<", "<=", ">", ">=", "<=>", "IS NULL", "IN", "BETWEEN")


def has_subquery(statement: Statement, part: Range) -> bool:
    """Whether a stretch has a subquery over something that varies."""
    return any(True for _ in _subqueries(statement, part))


def _subqueries(statement: Statement, part: Range) -> Iterator[Range]:
    """The brackets of the subqueries over what varies in a stretch, of which none is inside another."""
    tokens, (at, stop) = statement.tokens, part
    while at < stop:
        close = at
        if tokens.is_symbol(at, "(") and tokens.word(at + 1) in ("SELECT", "WITH"):
            close = tokens.partner[at]
            if statement.varies((at, close + 1)):
                yield at, close + 1
        at = close + 1


# -- conditions ------------------------------------------------------------------------------------------


def decided(reading: Reading, select: Select, rows: Rows, part: Range) -> tuple[Rows, Range | None]:
    """The rows for which a condition with subqueries holds; or the rows, and the condition that they are
    still to satisfy, in whose text columns stand for the subqueries.
    """
    statement = reading.statement
    tokens, (start, stop) = statement.tokens, part
    is_not = tokens.word(start) == "NOT"
    bracket = start + is_not + 1
    if tokens.word(bracket - 1) == "EXISTS" and tokens.partner[bracket] == stop - 1:
        rows, found = _partners(reading, rows, (bracket, stop), None)
        kind = "anti" if is_not else "semi"
        return _paired(reading, rows, found, kind, part), None
    bracket = tokens.partner[stop - 1] if tokens.is_symbol(stop - 1, ")") else -1
    is_in = bracket > start and tokens.word(bracket - 1) == "IN" and tokens.word(bracket - 2) != "NOT"
    if is_in and _operand(statement, start, bracket - 1)[0] == start:
        rows, found = _partners(reading, rows, (bracket, stop), (start, bracket - 1))
        return _paired(reading, rows, found, "semi", part), None
    return _stood(reading, select, rows, part, is_condition=True), part


def unnested(
    reading: Reading, select: Select, rows: Rows, stretches: Iterable[Range], *, is_condition: bool = False
) -> Rows:
    """The rows with a column for each subquery over what varies in these stretches of a block."""
    tokens = reading.statement.tokens
    for stretch in stretches:
        own = without_alias(tokens, stretch) if stretch in select.items else stretch
        rows = _stood(reading, select, rows, own, is_condition=is_condition)
    return rows


def _stood(reading: Reading, select: Select, rows: Rows, stretch: Range, *, is_condition: bool) -> Rows:
    """The rows with columns that stand in a stretch in place of its subqueries."""
    statement = reading.statement
    tokens = statement.tokens
    for first, stop in _subqueries(statement, stretch):
        word = tokens.word(first - 1)
        if word == "EXISTS":
            rows, found = _partners(reading, rows, (first, stop), None)
            rows = _marked(statement, rows, found, (first - 1, stop))
        elif word == "IN":
            is_not = tokens.word(first - 2) == "NOT"
            operand = _operand(statement, stretch[0], first - 1 - is_not)
            if not _decides(statement, stretch, (operand[0], stop)):
                raise NotPlannedError("a value that is computed of IN a subquery", (operand[0], stop))
            if not is_condition and tokens.parent[select.items[0][0]] not in reading.outside:
                raise NotPlannedError("IN a subquery as a column that is read", (operand[0], stop))
            rows, found = _partners(reading, rows, (first, stop), operand)
            if is_not != _is_negated(statement, stretch[0], operand[0]):
                found = replace(found, unknown=found.keys[-1])
            rows = _marked(statement, rows, found, (operand[0], stop), "NOT " if is_not else "")
        elif word in ("ANY", "ALL", "SOME"):
            raise NotPlannedError(f"{word} of a subquery", (first - 1, stop))
        else:
            rows = _with_value(reading, rows, (first, stop))
    return rows


def _marked(statement: Statement, rows: Rows, found: _Partners, at: Range, before: str = "") -> Rows:
    """The rows with a column that says whether they have partners, which stands in the text."""
    (made,) = statement.fresh(1)
    both = Rows(rows.node, (*rows.parts, *found.rows.parts))
    label = statement.written(at)
    node = Mark(
        rows.node,
        found.rows.node,
        tuple(found.keys),
        conditions_of(statement, rows, found.rows, found.conditions),
        both.scope(statement.prefix(at[0])),
        Column(made, label, BooleanType()),
        found.unknown,
        label,
        at,
    )
    statement.instead[at] = f"{before}{ROWS}.{made}"
    if not before:
        statement.columns_at[at] = made
    return replace(rows, node=node)


def _with_value(reading: Reading, rows: Rows, bracket: Range) -> Rows:
    """The rows with the one value that an aggregate over what varies has at any time."""
    statement = reading.statement
    shape = parse_query(statement.tokens, *bracket)
    if not isinstance(shape, Select) or shape.group_by is not None or not is_grouped(statement.tokens, shape):
        raise NotPlannedError("a subquery that may give several rows for one value", bracket)
    inner = _alone(reading, shape)
    if inner is None:
        return _with_value_of(reading, rows, shape, bracket)
    if len(inner.columns) != 1:
        raise NotPlannedError("a subquery of several columns for one value", bracket)
    node = Value(rows.node, inner, shape.having is None, statement.written(bracket), bracket)
    statement.instead[bracket] = f"{ROWS}.{inner.columns[0].id}"
    statement.columns_at[bracket] = inner.columns[0].id
    return replace(rows, node=node)


def _with_value_of(reading: Reading, rows: Rows, select: Select, bracket: Range) -> Rows:
    """The rows with the value that an aggregate has over those rows of the subquery that equal each.

    They are joined with groups by what is equal; what the aggregates are of no rows is known of those here.
    """
    statement = reading.statement
    what = "a subquery for one value that reads the query around it"
    if select.having is not None or len(select.items) != 1 or over_of(statement, select) is not None:
        raise NotPlannedError(f"{what} in this form", bracket)
    rows, found = _correlated(reading, rows, select, None)
    if found.conditions or not found.keys:
        raise NotPlannedError(f"{what} by more than equalities", (found.conditions or (bracket,))[0])
    mine, theirs = zip(*found.keys, strict=True)
    groups = grouped(statement, select, found.rows, [], theirs)
    assert isinstance(groups.node, Aggregate)
    for call in groups.node.calls:
        if not call.is_known:
            raise NotPlannedError("an aggregate that only Spark knows", call.at)
        if call.call.function in _COUNTS:
            statement.instead[call.at] = f"coalesce({ROWS}.{call.column.id}, 0L)"
            del statement.columns_at[call.at]
    keys = [(one, column.id) for one, (column, _) in zip(mine, groups.node.keys, strict=True)]
    label = statement.written(bracket)
    rows = replace(
        rows, node=_of_subquery(paired(statement, rows, groups, keys, "left", label, bracket)).node
    )
    rows, value = column_of(statement, rows, without_alias(statement.tokens, select.items[0]))
    statement.instead[bracket] = f"{ROWS}.{value}"
    statement.columns_at[bracket] = value
    return rows


# -- partners --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Partners:
    """The rows of a subquery, and which of them are partners of a row of the query around it.

    The last of the keys is that of IN.
    """

    rows: Rows
    keys: tuple[tuple[str, str], ...] = ()
    conditions: tuple[Range, ...] = ()
    unknown: tuple[str, str] | None = None


def _partners(reading: Reading, rows: Rows, bracket: Range, operand: Range | None) -> tuple[Rows, _Partners]:
    """The partners in a subquery: any of EXISTS, those with the value of what stands before IN."""
    statement = reading.statement
    shape = parse_query(statement.tokens, *bracket)
    if operand is None and isinstance(shape, Select) and _is_plain(statement, shape):
        return _correlated(reading, rows, shape, None)
    inner = _alone(reading, shape)
    if inner is None:
        if not isinstance(shape, Select) or not _is_plain(statement, shape):
            raise NotPlannedError("a subquery with groups that reads the query around it", bracket)
        return _correlated(reading, rows, shape, operand)
    made = renamed(statement, inner, [column.name for column in inner.columns], "columns")
    found = _Partners(Rows(made, ()))
    if operand is None:
        return rows, found
    if len(inner.columns) != 1:
        raise NotPlannedError("IN a subquery of several columns", bracket, "select one")
    rows, mine = column_of(statement, rows, operand)
    rows, other, key = alike(statement, rows, found.rows, (mine, made.columns[0].id), operand)
    return rows, replace(found, rows=other, keys=(key,))


def _correlated(
    reading: Reading, rows: Rows, select: Select, operand: Range | None
) -> tuple[Rows, _Partners]:
    """The partners in a block that may read the query around it in WHERE."""
    statement = reading.statement
    keys: list[tuple[str, str]] = []
    both: list[Range] = []
    inside, _ = reading.from_where(reading, replace(select, where=None))
    where = [] if select.where is None else conjuncts(statement.tokens, *select.where)
    for condition in where:
        pair = None
        if not reads_only(statement, condition, inside):
            pair = equality(statement, rows, inside, condition)
        if pair is not None:
            rows, inside, key = pair
            keys.append(key)
        elif has_subquery(statement, condition):
            inside, rest = decided(reading, select, inside, condition)
            inside = filtered(statement, inside, [] if rest is None else [rest], "WHERE")
        elif _reads_beyond(statement, condition, inside, rows):
            both.append(condition)
        else:
            inside = filtered(statement, inside, [condition], "WHERE")
    if operand is not None:
        if len(select.items) != 1:
            raise NotPlannedError("IN a subquery of several columns", select.items[1], "select one")
        item = without_alias(statement.tokens, select.items[0])
        if not reads_only(statement, item, inside):
            raise NotPlannedError("a value of a subquery that reads the query around it", item)
        rows, mine = column_of(statement, rows, operand)
        inside, theirs = column_of(statement, inside, item)
        rows, inside, key = alike(statement, rows, inside, (mine, theirs), operand)
        keys.append(key)
    return rows, _Partners(inside, tuple(keys), tuple(both))


def _paired(reading: Reading, rows: Rows, found: _Partners, kind: str, part: Range) -> Rows:
    statement = reading.statement
    label = statement.written(part)
    made = paired(statement, rows, found.rows, found.keys, kind, label, part, found.conditions)
    return _of_subquery(made)


def _of_subquery(rows: Rows) -> Rows:
    """The rows of a join with a subquery in an expression."""
    assert isinstance(rows.node, Join)
    return replace(rows, node=replace(rows.node, is_of_subquery=True))


def _is_plain(statement: Statement, select: Select) -> bool:
    """Whether a block only looks at each row by itself."""
    return not is_grouped(statement.tokens, select) and over_of(statement, select) is None


def _alone(reading: Reading, shape: Shape) -> Node | None:
    """The plan of a subquery; None if it reads what is around it."""
    try:
        with reading.statement.tried():
            return reading.query(shape)
    except WindrowError as error:
        if not error.condition.startswith("UNRESOLVED_COLUMN"):
            raise
    return None


def _reads_beyond(statement: Statement, condition: Range, inside: Rows, around: Rows) -> bool:
    """Whether a condition in a subquery names a column that only the query around it has."""
    names = names_in(parse_expression(statement.tokens, *condition, deeply=True))
    return any(inside.resolved(one) is None and around.resolved(one) for one in names)


# -- where IN stands -------------------------------------------------------------------------------------


def _operand(statement: Statement, start: int, stop: int) -> Range:
    """What stands before IN."""
    tokens = statement.tokens
    parent = tokens.parent[stop]
    first = max(start, parent + 1)
    for at in range(first, stop):
        begins = tokens.word(at) in _BEFORE_OPERAND or tokens.is_symbol(at, ",")
        if begins and tokens.parent[at] == parent and not tokens.is_symbol(at - 1, "."):
            first = at + 1
    found = parse_expression(tokens, first, stop)
    is_value = isinstance(found, Operation) and found.operator not in _BOOLEAN
    if first >= stop or not (is_value or not isinstance(found, Operation | Opaque)):
        raise NotPlannedError("what stands before IN", (first, stop + 1))
    return first, stop


def _decides(statement: Statement, stretch: Range, condition: Range) -> bool:
    """Whether a condition is shown, or decides with no more than AND, OR, NOT and brackets around it.

    Of what is computed with it otherwise, Spark says now that unknown is false, and now that it is not.
    """
    tokens, (first, stop) = statement.tokens, condition
    bracket = tokens.parent[first]
    inner = bracket >= stretch[0]
    begin, end = (bracket + 1, tokens.partner[bracket]) if inner else stretch
    if any(tokens.word(at) in ("CASE", "THEN", "ELSE") for at in tokens.level(begin, first)):
        of_case = tokens.word(begin) == "CASE" and (begin + 1, begin + 2) == (first - 1, first)
        return not inner and of_case and tokens.word(stop) == "THEN"
    begins = first == begin or tokens.word(first - 1) in ("AND", "OR", "NOT")
    ends = stop == end or tokens.word(stop) in ("AND", "OR")
    return begins and ends and (not inner or _decides(statement, stretch, (bracket, end + 1)))


def _is_negated(statement: Statement, start: int, at: int) -> bool:
    """Whether what begins at a token counts the other way round in the condition that it is in."""
    tokens = statement.tokens
    negated = tokens.word(at - 1) == "NOT" and at > start
    bracket = tokens.parent[at]
    while bracket >= start:
        if tokens.word(bracket - 1) == "NOT":
            negated = not negated
        bracket = tokens.parent[bracket]
    return negated
