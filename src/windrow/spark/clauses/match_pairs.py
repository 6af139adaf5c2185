"""Rows beside rows of MATCH_RECOGNIZE, for conditions that Spark evaluates.

Over a row and its neighbours Spark evaluates a condition by its lag. Over a row and another one of the match
it evaluates it for every row up to that one which the other may be: a column of lists, whose first value is
for no other row, the next for the row itself, and so on back to the first row of the partition. Its cost
grows with the square of a partition's length.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra.match_node import Match
from windrow.algebra.names import ROW, order_key, partition_key
from windrow.rules.match_draft import ARGUMENT, MatchDraft, Pair, neighbour
from windrow.spark.analysis.keyed_rows import sort_key
from windrow.spark.clauses.join_plan import POSITION, tie_break
from windrow.syntax.sqltext import RelationText, SqlText, quoted

__all__ = ["beside", "needs_positions"]

_WHOLE = "__whole"
_OTHER = "__other"
_BACK, _VALUE = "__back", "__value"
_SCOPE = "scope"

Run = Callable[[SqlText, DataFrame], DataFrame]


def needs_positions(draft: MatchDraft) -> bool:
    """Whether Spark evaluates conditions over several rows."""
    return bool(draft.neighbours or draft.pairs)


def beside(match: Match, draft: MatchDraft, row: StructType, scope: DataFrame, run: Run) -> DataFrame:
    """The rows with their position in the partition, the rows so many rows on as structs, and the pairs.

    Ties in ORDER BY are broken by the rows' own columns, for the positions are the order of the kernel.
    """
    keys = [partition_key(number) for number in range(len(match.partition_by))]
    order = [
        sort_key(order_key(number), item.descending, item.nulls_first)
        for number, (_, item) in enumerate(match.order_by)
    ]
    sequence = SparkWindow.partitionBy(*keys)
    position = F.row_number().over(sequence.orderBy(*order, tie_break(row))).cast("bigint")
    columns = [F.col(f"{ROW}.{quoted(field.name)}") for field in row.fields]
    columns += [F.col(f"{ARGUMENT}{number}") for number in range(len(draft.arguments))]
    scope = scope.withColumn(POSITION, position).withColumn(_WHOLE, F.struct(*columns))
    by_position = sequence.orderBy(POSITION)
    for shift in draft.neighbours:
        scope = scope.withColumn(neighbour(shift), F.lag(_WHOLE, -shift).over(by_position))
    numbered = scope
    for pair in draft.pairs:
        found = _found(match, draft, pair, numbered, keys, run)
        scope = scope.join(found, _same(keys, f"{_OTHER}_") & (F.col(POSITION) == F.col(_OTHER)))
        scope = scope.drop(_OTHER, *(f"{_OTHER}_{key}" for key in keys))
    return scope


def _found(
    match: Match, draft: MatchDraft, pair: Pair, numbered: DataFrame, keys: list[str], run: Run
) -> DataFrame:
    """For each row the list of what the condition is."""
    sources = [source.variable for source in draft.sources if not source.is_made]
    own = {one.name: F.col(neighbour(one.shift)) for one in sources if one.side == "row" and one.shift}
    theirs = {
        one.name: F.col(neighbour(one.shift) if one.shift else _WHOLE)
        for one in sources
        if one.side == pair.side
    }
    rows = numbered.drop(*theirs)  # which stand for the row itself where a column is computed of them
    rows = rows.withColumns(own) if own else rows
    others = numbered.select(
        *(F.col(key).alias(f"{_OTHER}_{key}") for key in keys),
        F.col(POSITION).alias(_OTHER),
        *(value.alias(name) for name, value in theirs.items()),
    )
    both = rows.join(others, _same(keys, f"{_OTHER}_") & (F.col(_OTHER) <= F.col(POSITION)))
    kind = numbered.schema[_WHOLE].dataType
    nothing = {name: F.lit(None).cast(kind) for name in theirs} | {_OTHER: F.col(POSITION) + 1}
    both = both.select(*rows.columns, *theirs, _OTHER).unionByName(rows.withColumns(nothing))
    names = SqlText.join(", ", [SqlText.of(quoted(name)) for name in [*keys, POSITION]])
    query = SqlText.of(
        match.prefix, "SELECT ", names, f", {POSITION} - {_OTHER} AS {_BACK}, (", pair.text,
        f") AS {_VALUE} FROM ", RelationText(_SCOPE),
    )  # fmt: skip
    in_order = F.sort_array(F.collect_list(F.struct(_BACK, _VALUE)))
    values = F.transform(in_order, lambda one: one[_VALUE]).alias(pair.name)
    lists = run(query, both).groupBy(*keys, POSITION).agg(values)
    renamed = [F.col(key).alias(f"{_OTHER}_{key}") for key in keys]
    return lists.select(*renamed, F.col(POSITION).alias(_OTHER), pair.name)


def _same(keys: list[str], prefix: str) -> Column:
    """That rows are of one partition."""
    parts = (F.col(key).eqNullSafe(F.col(f"{prefix}{key}")) for key in keys)
    return reduce(Column.__and__, parts, F.lit(True))
