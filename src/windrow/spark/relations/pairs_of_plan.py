"""Joins of time-varying relations, with each other and with tables.

A kernel computes the pairs of rows at each instant. Semi and anti joins count pairs: at any instant, a row is
in the result as often as on its side, if a pair with such a row exists (semi) or if none does (anti).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan import nodes as plan
from windrow.plan.arrow_types import is_carried
from windrow.plan.columns import ROWS, Expression, Scope
from windrow.spark.relations.bags import BagRows, Bags, inner
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
    if node.kind in ("semi", "anti") and not node.keys and not node.conditions:
        right = _any(bags, right)
    pairs = _pairs(bags, left, right, node.keys, node.conditions, node.scope)
    if node.kind in ("semi", "anti"):
        return _with_partner(bags, node.kind, left, pairs)
    return _padded(bags, node.kind, left, right, pairs)


def marked(bags: Bags, node: plan.Mark, left: BagRows, right: BagRows) -> BagRows:
    """The rows with a column that says whether they are in a pair at the time.

    It is never NULL, as in Spark: unknown counts as equal if the node says so.
    """
    left, right = bags.temporal(left), bags.temporal(right)
    if not node.keys and not node.conditions:
        right = _any(bags, right)
    pairs = _pairs(bags, left, right, node.keys, node.conditions, node.scope).frame
    if node.unknown is not None:
        mine, theirs = map(F.col, node.unknown)
        keys = [key for key in node.keys if key != node.unknown]
        sides = [(mine.isNull(), F.lit(True)), (mine.isNotNull(), theirs.isNull())]
        for of_row, of_value in sides:
            rows, values = BagRows(left.frame.where(of_row), True), BagRows(right.frame.where(of_value), True)
            more = _pairs(bags, rows, values, keys, node.conditions, node.scope)
            pairs = pairs.unionByName(more.frame)
    name = node.column.id
    is_there = _with_partner(bags, "semi", left, BagRows(pairs, True)).frame.withColumn(name, F.lit(True))
    is_not = _with_partner(bags, "anti", left, BagRows(pairs, True)).frame.withColumn(name, F.lit(False))
    return BagRows(is_there.unionByName(is_not).select(*left.columns, name, ENTER, LEAVE), is_temporal=True)


def valued(bags: Bags, node: plan.Value, left: BagRows, right: BagRows) -> BagRows:
    """The rows with the only row that another relation has at any time."""
    left, right = bags.temporal(left), bags.temporal(right)
    pairs = _pairs(bags, left, right, (), (), Scope())
    return pairs if node.is_there else _padded(bags, "left", left, right, pairs)


def _any(bags: Bags, rows: BagRows) -> BagRows:
    """One row while the relation is not empty, which is all that matters."""
    return bags.counted("distinct", [rows.frame.select(F.lit(1).alias("__any"), ENTER, LEAVE)])


def _padded(bags: Bags, kind: str, left: BagRows, right: BagRows, pairs: BagRows) -> BagRows:
    """The pairs, and the rows of the sides without a pair, with NULL in the columns of the other side."""
    whole = pairs.frame
    for side, other, kinds in ((left, right, ("left", "full")), (right, left, ("right", "full"))):
        if kind in kinds:
            alone = _with_partner(bags, "anti", side, pairs).frame
            none = {field.name: unfolded_null(field.dataType) for field in inner(other.frame)}
            whole = whole.unionByName(alone.withColumns(none))
    return BagRows(whole, is_temporal=True)


def unfolded_null(kind: DataType) -> Column:
    """NULL that Spark's optimizer does not know: it would compute ``1 / COALESCE(x, 0)`` over no row."""
    return F.get(F.array(F.lit(None).cast(kind)), F.pmod(F.col(ENTER), F.lit(1)).cast("int"))


def _with_partner(bags: Bags, operator: str, side: BagRows, pairs: BagRows) -> BagRows:
    """The rows of a side while they are in a pair (semi) or in none (anti)."""
    return bags.counted(operator, [side.frame, pairs.frame.select(*side.columns, ENTER, LEAVE)])


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
    kinds = {field.name: field.dataType for field in left.frame.schema}
    found = [
        pair
        for pair in keys
        if is_carried(kinds[pair[0]])
        and not isinstance(kinds[pair[0]], ArrayType | MapType | StructType | VariantType)
    ]
    names = [f"__k{number}" for number in range(len(found))]
    sides = [
        side.frame.withColumns({name: F.col(pair[place]) for name, pair in zip(names, found, strict=True)})
        if names
        else side.frame
        for place, side in enumerate((left, right))
    ]
    result = StructType([*inner(left.frame), *inner(right.frame)])
    return run_keyed(bags.gateway, "join", sides, names, result)


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
