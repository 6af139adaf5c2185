"""Rows beside rows of MATCH_RECOGNIZE, for conditions that Spark evaluates over them by LAG."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra.match_node import Match
from windrow.algebra.names import ROW, order_key, partition_key
from windrow.rules.match_draft import ARGUMENT, MatchDraft, neighbour
from windrow.spark.analysis.keyed_rows import sort_key
from windrow.spark.clauses.join_plan import POSITION, tie_break
from windrow.syntax.sqltext import quoted

__all__ = ["beside", "needs_positions"]

_WHOLE = "__whole"


def needs_positions(draft: MatchDraft) -> bool:
    """Whether Spark evaluates conditions over several rows, for which ties in the order must be stable."""
    return bool(draft.neighbours or draft.requested)


def beside(match: Match, draft: MatchDraft, row: StructType, scope: DataFrame) -> DataFrame:
    """The rows with their position in the partition, and the rows at these distances as structs.

    Ties in ORDER BY are broken by the rows' own columns, because the positions define the kernel's order.
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
    return scope
