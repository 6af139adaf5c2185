"""Joins of time-varying relations, with each other and with tables.

A kernel computes the pairs of rows at each instant. Semi, anti and mark joins need no pairs unless there are
conditions other than keys: a kernel finds when a row has a partner.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from windrow.kernels.zset.relation import ENTER, LEAVE, PARTNER
from windrow.plan import nodes as plan
from windrow.plan.arrow_types import is_carried
from windrow.plan.columns import ROWS, Expression, Scope
from windrow.spark.relations.bags import BagRows, Bags, compared, inner
from windrow.spark.tasks.keyed import run_keyed
from windrow.syntax.sqltext import RelationText, SqlText, quoted

__all__ = ["joined", "marked", "valued"]

_SPARK_JOINS = {"left": "LEFT JOIN", "semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN"}
_RIGHT = "__right"

Keys = Sequence[tuple[str, str]]


def joined(bags: Bags, node: plan.Join, left: BagRows, right: BagRows) -> BagRows:
    """The rows of a join."""
    if node.kind == "inner":
        return _pairs(bags, left, right, node.keys, node.conditions, node.scope)
    if left.is_temporal and not right.is_temporal and node.kind in _SPARK_JOINS:
        return _beside_table(bags, node, left, right)
    left, right = bags.temporal(left), bags.temporal(right)
    by_keys = not node.conditions and _are_found(left, node.keys)
    if node.kind in ("semi", "anti") and by_keys:
        found = bags.partnered(node.kind, left.frame, *_by_keys(right.frame, node.keys))
        return BagRows(found, is_temporal=True)
    pairs = _pairs(bags, left, right, node.keys, node.conditions, node.scope)
    if node.kind in ("semi", "anti"):
        return BagRows(bags.partnered(node.kind, left.frame, *_by_rows(left, pairs)), is_temporal=True)
    return _padded(bags, node.kind, left, right, pairs, node.keys if by_keys else None)


def marked(bags: Bags, node: plan.Mark, left: BagRows, right: BagRows) -> BagRows:
    """The rows with a column that says whether they have a partner at the time, or NULL if that is unknown.

    A value is unknown where either side is NULL. So the rows are looked up once for each set of values that a
    partner may have, with NULL for the others. `v IN (SELECT w …)` has two lookups: among the partners with a
    value, where a row without one finds any, and among those without, where each row finds any.
    """
    left, right = bags.temporal(left), bags.temporal(right)
    by_keys = not node.conditions and _are_found(left, node.keys)
    known = [key for key in node.keys if key not in node.unknown]
    frame = left.frame
    marks: list[Column] = []
    for present in _subsets(node.unknown):
        rows = right.frame
        for key in node.unknown:
            rows = rows.where(F.col(key[1]).isNotNull() if key in present else F.col(key[1]).isNull())
        partners = []
        for equal in _subsets(present):
            lacking = [key for key in present if key not in equal]
            if by_keys:
                keys, found = _by_keys(rows, [*known, *present], lacking)
            else:
                of_left = reduce(lambda one, key: one.where(F.col(key[0]).isNull()), lacking, left.frame)
                sides = BagRows(of_left, True), BagRows(rows, True)
                pairs = _pairs(bags, *sides, [*known, *equal], node.conditions, node.scope)
                keys, found = _by_rows(left, pairs)
            partners.append(found)
        name = f"__mark{len(marks)}"
        made = bags.partnered("mark", frame, keys, reduce(DataFrame.unionAll, partners))
        frame = made.withColumnRenamed(PARTNER, name)
        marks.append(F.col(name))
    outcome = marks[0]
    if node.unknown:
        is_certain = reduce(Column.__and__, [F.col(mine).isNotNull() for mine, _ in node.unknown], outcome)
        outcome = F.when(is_certain, True).when(~reduce(Column.__or__, marks), False)
    named = outcome.alias(node.column.id)
    return BagRows(frame.select(*left.columns, named, ENTER, LEAVE), is_temporal=True)


def _subsets(keys: Keys) -> list[tuple[tuple[str, str], ...]]:
    """All sets of some keys, the whole first."""
    return [one for count in range(len(keys), -1, -1) for one in combinations(keys, count)]


def valued(bags: Bags, node: plan.Value, left: BagRows, right: BagRows) -> BagRows:
    """The rows with the only row that another relation has at any time."""
    left, right = bags.temporal(left), bags.temporal(right)
    pairs = _pairs(bags, left, right, (), (), Scope())
    return pairs if node.is_there else _padded(bags, "left", left, right, pairs, ())


def _padded(
    bags: Bags, kind: str, left: BagRows, right: BagRows, pairs: BagRows, keys: Keys | None
) -> BagRows:
    """The pairs, and the rows of the sides without a pair, with NULL in the columns of the other side.

    Rows with a pair are found by keys, if these are all that pairs have in common.
    """
    whole = pairs.frame
    turned = None if keys is None else [(theirs, mine) for mine, theirs in keys]
    for side, other, own, kinds in (
        (left, right, keys, ("left", "full")),
        (right, left, turned, ("right", "full")),
    ):
        if kind in kinds:
            partners = _by_rows(side, pairs) if own is None else _by_keys(other.frame, own)
            alone = bags.partnered("anti", side.frame, *partners)
            none = {field.name: unfolded_null(field.dataType) for field in inner(other.frame)}
            whole = whole.unionByName(alone.withColumns(none))
    return BagRows(whole, is_temporal=True)


def unfolded_null(kind: DataType) -> Column:
    """NULL that Spark's optimizer does not know: it would compute ``1 / COALESCE(x, 0)`` over no row."""
    return F.get(F.array(F.lit(None).cast(kind)), F.pmod(F.col(ENTER), F.lit(1)).cast("int"))


Partners: TypeAlias = tuple[dict[str, Column], DataFrame]
"""The keys of the rows of a side, by name, and the rows with these keys that make them have a partner."""


def _by_keys(partners: DataFrame, keys: Keys, lacking: Keys = ()) -> Partners:
    """Partners by keys, which are not NULL, but for those that the rows lack."""
    mine, theirs = {}, []
    for number, key in enumerate(keys):
        name, column = f"__k{number}", F.col(key[1])
        mine[name] = F.col(key[0])
        if key in lacking:
            column = F.lit(None).cast(partners.schema[key[1]].dataType)
        else:
            partners = partners.where(column.isNotNull())
        theirs.append(column.alias(name))
    any_row = F.lit(0).alias("__any")  # no row is without columns
    return mine, partners.select(*(theirs or [any_row]), ENTER, LEAVE)


def _by_rows(side: BagRows, pairs: BagRows) -> Partners:
    """Partners in pairs: a row has one if it is in a pair."""
    keys = {f"__k{number}": compared(field) for number, field in enumerate(inner(side.frame))}
    return keys, pairs.frame.select(*(key.alias(name) for name, key in keys.items()), ENTER, LEAVE)


def _pairs(
    bags: Bags,
    left: BagRows,
    right: BagRows,
    keys: Keys,
    conditions: Sequence[Expression],
    scope: Scope,
) -> BagRows:
    """The pairs of rows that exist at the same time, have equal keys and satisfy the conditions."""
    if left.is_temporal and right.is_temporal:
        frame = _at_one_time(bags, left, right, keys)
        if keys:
            frame = frame.where(_equal(keys))
    elif keys:
        frame = left.frame.join(right.frame, _equal(keys))
    else:
        frame = left.frame.crossJoin(right.frame)
    is_temporal = left.is_temporal or right.is_temporal
    times = (ENTER, LEAVE) if is_temporal else ()
    frame = frame.select(*left.columns, *right.columns, *times)
    if conditions:
        text = scope.select(SqlText.of(f"{ROWS}.*"), [one.text for one in conditions])
        frame = bags.gateway.sql(text, {ROWS: frame})
    return BagRows(frame, is_temporal)


def _at_one_time(bags: Bags, left: BagRows, right: BagRows, keys: Keys) -> DataFrame:
    """Pairs of rows that exist at the same time and have equal keys, as far as rows can be found by them."""
    found = [pair for pair in keys if _are_found(left, [pair])]
    names = [f"__k{number}" for number in range(len(found))]
    sides = [
        side.frame.withColumns({name: F.col(pair[place]) for name, pair in zip(names, found, strict=True)})
        if names
        else side.frame
        for place, side in enumerate((left, right))
    ]
    result = StructType([*inner(left.frame), *inner(right.frame)])
    return run_keyed(bags.gateway, "join", sides, names, result)


def _are_found(rows: BagRows, keys: Keys) -> bool:
    """Whether operators find equal values of all keys; Spark alone compares others."""
    kinds = [rows.frame.schema[mine].dataType for mine, _ in keys]
    return all(
        is_carried(kind) and not isinstance(kind, ArrayType | MapType | StructType | VariantType)
        for kind in kinds
    )


def _equal(keys: Keys) -> Column:
    return reduce(Column.__and__, [F.col(one) == F.col(other) for one, other in keys])


def _beside_table(bags: Bags, node: plan.Join, left: BagRows, right: BagRows) -> BagRows:
    """Outer, semi and anti joins with tables: Spark's own, for each row of the left side alone."""
    known = set(right.columns)
    mine = tuple(part for part in node.scope.parts if not known >= set(part.columns))
    theirs = [part for part in node.scope.parts if part.columns and known >= set(part.columns)]
    alias = theirs[0].alias if theirs else _RIGHT
    named = [
        f"{column} AS {quoted(name)}"
        for part in theirs
        for column, name in zip(part.columns, part.names, strict=True)
    ]
    conditions = [SqlText.of(f"{ROWS}.{one} = {quoted(alias)}.{other}") for one, other in node.keys]
    conditions += [SqlText.of("(", one.text, ")") for one in node.conditions]
    on = SqlText.of(" ON ", SqlText.join(" AND ", conditions)) if conditions else SqlText()
    right_columns = (
        [] if node.kind in ("semi", "anti") else [f"{quoted(alias)}.{column}" for column in right.columns]
    )
    listed = ", ".join([*(f"{ROWS}.{column}" for column in left.columns), *right_columns])
    text = SqlText.of(
        node.scope.prefix,
        f"SELECT {listed}, {plan.TIMES} FROM ",
        Scope(mine).rows(),
        f" {_SPARK_JOINS[node.kind]} (SELECT {', '.join([*right.columns, *named])} FROM ",
        RelationText(_RIGHT),
        f") AS {quoted(alias)}",
        on,
    )
    return BagRows(bags.gateway.sql(text, {ROWS: left.frame, _RIGHT: right.frame}), is_temporal=True)
