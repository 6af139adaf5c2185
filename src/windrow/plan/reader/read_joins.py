"""Joins: by the equalities of their conditions, and by the other conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    NumericType,
    TimestampNTZType,
    TimestampType,
)

from windrow.plan.columns import ROWS, Column, Expression, Part
from windrow.plan.nodes import Join, JoinKind
from windrow.plan.reader.query_rows import BlockRows, cast, column_of, extended, filtered, reads_only
from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.plan.reasons import Reason
from windrow.syntax.expression_nodes import Name, OperationNode
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem, conjuncts, is_query
from windrow.syntax.sqltext import SqlText

__all__ = ["USING", "alike", "conditions_of", "equality", "joined", "paired", "using"]

USING = "__using"
"""The prefix of names of relations for the columns of USING."""


def joined(
    statement: StatementText,
    left: BlockRows,
    right: BlockRows,
    item: FromItem,
    where: list[Range],
    *,
    is_padded: bool,
) -> tuple[BlockRows, list[Range]]:
    """Both sides, and the conditions of WHERE that are not applied yet.

    An inner join may apply conditions of WHERE as if they were in ON. `is_padded` says that an outer join
    follows.
    """
    on = [] if item.on is None else conjuncts(statement.tokens, *item.on)
    if item.join == "inner" and not is_padded:
        on, where = [*on, *where], []
    keys: list[tuple[str, str]] = []
    rest: list[Range] = []
    for part in on:
        if item.join == "inner" and not is_padded and _computes(statement, part):
            left, right, rest = _guarded(statement, left, right, rest)
        pair = equality(statement, left, right, part)
        if pair is None:
            rest.append(part)
            continue
        left, right, key = pair
        keys.append(key)
    if item.join != "inner":
        left, right, rest = _pushed(statement, left, right, item, rest)
    place = item.on or item.source
    label = f"{_words(item)}JOIN ON {_equalities(left, right, keys)}"
    conditions = rest if item.join != "inner" else []
    rows = paired(statement, left, right, keys, item.join, label, place, conditions)
    if item.join == "inner" and is_padded:
        return filtered(statement, rows, rest, "WHERE"), where
    return rows, [*where, *(rest if item.join == "inner" else [])]


def paired(
    statement: StatementText,
    left: BlockRows,
    right: BlockRows,
    keys: Sequence[tuple[str, str]],
    kind: str,
    label: str,
    at: Range,
    conditions: Sequence[Range] = (),
) -> BlockRows:
    """The rows of a join."""
    own = (*left.relations, *right.relations) if left.own or right.own else ()
    both = BlockRows(left.node, (*left.parts, *right.parts), own, (*left.around, *right.around))
    scope = both.scope(statement.prefix(at[0]))
    found = conditions_of(statement, left, right, conditions)
    joins: JoinKind = kind  # type: ignore[assignment]
    node = Join(left.node, right.node, joins, tuple(keys), found, scope, label, at)
    return replace(left if kind in ("semi", "anti") else both, node=node)


def conditions_of(
    statement: StatementText, left: BlockRows, right: BlockRows, conditions: Sequence[Range]
) -> tuple[Expression, ...]:
    """The conditions over both sides."""
    if not conditions:
        return ()
    scope = BlockRows(left.node, (*left.parts, *right.parts)).scope(statement.prefix(conditions[0][0]))
    texts = [statement.text(one) for one in conditions]
    statement.analyser.schema(scope.select(SqlText.of("1"), texts), (*left.node.columns, *right.node.columns))
    return tuple(Expression(text, BooleanType(), at=one) for text, one in zip(texts, conditions, strict=True))


def _computes(statement: StatementText, part: Range) -> bool:
    """Whether a condition is an equality with a computed side."""
    parsed = parse_expression(statement.tokens, *part)
    if not isinstance(parsed, OperationNode) or parsed.operator != "=":
        return False
    return not all(isinstance(one, Name) for one in parsed.operands)


def _guarded(
    statement: StatementText, left: BlockRows, right: BlockRows, before: Sequence[Range]
) -> tuple[BlockRows, BlockRows, list[Range]]:
    """The sides, filtered by the conditions that precede one whose computation may fail; and the conditions
    over both sides.
    """
    both = []
    for part in before:
        if _has_query(statement, part):
            both.append(part)
        elif reads_only(statement, part, left) and not reads_only(statement, part, right):
            left = filtered(statement, left, [part], "WHERE")
        elif reads_only(statement, part, right) and not reads_only(statement, part, left):
            right = filtered(statement, right, [part], "WHERE")
        else:
            both.append(part)
    return left, right, both


def _has_query(statement: StatementText, part: Range) -> bool:
    """Whether a condition contains a subquery."""
    tokens = statement.tokens
    return any(tokens.is_symbol(at, "(") and is_query(tokens, at) for at in range(*part))


def using(statement: StatementText, left: BlockRows, right: BlockRows, item: FromItem) -> BlockRows:
    """A join with USING: each pair of common columns becomes one, in a relation before the others."""
    theirs = {name.lower() for part in right.parts for name in part.names}
    mine = [name for part in left.parts for name in part.names]
    names = item.using if item.using is not None else [name for name in mine if name.lower() in theirs]
    keys, pairs = [], []
    for name in names:
        one, other = _first_of(left, name), _first_of(right, name)
        left, right, key = alike(statement, left, right, (one, other), item.source)
        keys.append(key)
        pairs.append((one, other))
    label = f"{_words(item)}JOIN ON {_equalities(left, right, keys)}"
    rows = paired(statement, left, right, keys, item.join, label, item.source)
    if not names:
        return rows
    own = rows.relations
    columns = [other if item.join == "right" else one for one, other in pairs]
    if item.join == "full":
        made = statement.fresh(len(pairs))
        further = [
            (
                Column(column, name, rows.type_of(one)),
                Expression(SqlText.of(f"coalesce({ROWS}.{one}, {ROWS}.{other})"), rows.type_of(one)),
            )
            # the keys are of one type, also where the columns are not
            for column, name, (one, other) in zip(made, names, keys, strict=True)
        ]
        rows, columns = extended(rows, SqlText(), further, "USING"), made
    gone = {column for pair in pairs for column in pair}
    parts = [Part(f"{USING}{statement.numbers[0]}_{item.source[0]}", tuple(names), tuple(columns))]
    for part in rows.parts:
        rest = [pair for pair in zip(part.names, part.columns, strict=True) if pair[1] not in gone]
        if rest:
            parts.append(Part(part.alias, tuple(name for name, _ in rest), tuple(own for _, own in rest)))
    return replace(rows, parts=tuple(parts), own=tuple(one for one in own if not one.alias.startswith(USING)))


def _first_of(rows: BlockRows, name: str) -> str:
    """The column with a name on a side of USING; Spark takes the first of several."""
    columns = (pair for part in rows.parts for pair in zip(part.names, part.columns, strict=True))
    found = next((column for own, column in columns if own.lower() == name.lower()), None)
    assert found is not None, "Spark has found it"
    return found


def equality(
    statement: StatementText, left: BlockRows, right: BlockRows, part: Range
) -> tuple[BlockRows, BlockRows, tuple[str, str]] | None:
    """The sides with the columns that an equality compares; None if it is not an equality of both sides."""
    parsed = parse_expression(statement.tokens, *part)
    if not isinstance(parsed, OperationNode) or parsed.operator != "=":
        return None
    one, other = (operand.range for operand in parsed.operands)
    if reads_only(statement, other, left) and reads_only(statement, one, right):
        one, other = other, one
    if not (reads_only(statement, one, left) and reads_only(statement, other, right)):
        return None
    if reads_only(statement, one, right) or reads_only(statement, other, left):
        return None

    def compared() -> tuple[BlockRows, BlockRows, tuple[str, str]]:
        first, mine = column_of(statement, left, one)
        second, theirs = column_of(statement, right, other)
        return alike(statement, first, second, (mine, theirs), part)

    found = statement.attempt(compared)
    return None if isinstance(found, Reason) else found  # compared in a way that is no key's


def alike(
    statement: StatementText, left: BlockRows, right: BlockRows, pair: tuple[str, str], at: Range
) -> tuple[BlockRows, BlockRows, tuple[str, str]]:
    """Two compared columns, in the type in which Spark compares them."""
    sides, columns = [left, right], [*pair]
    kinds = [side.type_of(column) for side, column in zip(sides, columns, strict=True)]
    common = kinds[0] if kinds[0] == kinds[1] else _common_type(statement, kinds)
    if common is None:
        text = " and ".join(kind.simpleString().upper() for kind in kinds)
        raise UnreadError(f"a comparison of {text} by =", at, "cast one to the type of the other")
    for place, (side, column) in enumerate(zip(sides, pair, strict=True)):
        if kinds[place] == common:
            continue
        (made,) = statement.fresh(1)
        known = next(one for one in side.node.columns if one.id == column)
        label = f"{known.name} AS {common.simpleString()}"
        sides[place] = extended(
            side, SqlText(), [cast(statement, known, common, made, is_beside=True)], label
        )
        columns[place] = made
    return sides[0], sides[1], (columns[0], columns[1])


def _common_type(statement: StatementText, kinds: Sequence[DataType]) -> DataType | None:
    """The common type of two numbers or two times; None for operands that are compared in other ways."""
    for family in ((NumericType,), (DateType, TimestampType, TimestampNTZType)):
        if all(isinstance(kind, family) for kind in kinds):
            nulls = ", ".join(f"CAST(NULL AS {kind.simpleString()})" for kind in kinds)
            return statement.analyser.schema(SqlText.of(f"SELECT coalesce({nulls}) AS value"))[0].dataType
    return None


def _pushed(
    statement: StatementText, left: BlockRows, right: BlockRows, item: FromItem, rest: Sequence[Range]
) -> tuple[BlockRows, BlockRows, list[Range]]:
    """The sides of an outer, semi or anti join, filtered by the conditions of ON on one side; and the
    conditions over both.
    """
    both = []
    for part in rest:
        if item.join in ("left", "semi", "anti") and reads_only(statement, part, right):
            right = filtered(statement, right, [part], "WHERE")
        elif item.join in ("right", "semi") and reads_only(statement, part, left):
            left = filtered(statement, left, [part], "WHERE")
        else:
            both.append(part)
    return left, right, both


def _equalities(left: BlockRows, right: BlockRows, keys: Sequence[tuple[str, str]]) -> str:
    named = {column.id: column.name for side in (left, right) for column in side.node.columns}
    aliases = {own: part.alias for side in (left, right) for part in side.parts for own in part.columns}

    def label(column: str) -> str:
        alias = aliases.get(column)
        return named[column] if alias is None or alias.startswith("__") else f"{alias}.{named[column]}"

    return " AND ".join(f"{label(one)} = {label(other)}" for one, other in keys)


def _words(item: FromItem) -> str:
    """The words of a join before JOIN."""
    words = {"inner": "", "semi": "LEFT SEMI ", "anti": "LEFT ANTI "}
    return words.get(item.join, f"{item.join.upper()} ")
