"""The general plan: Spark itself tries a predicate on pairs of rows of a partition.

For predicates that the kernel cannot evaluate, such as a function of the user's over both rows. Rows are
numbered, each label row is joined with the rows that may begin its window, then with those that may end
it, and the least position that satisfies the predicate is kept; the kernel is given those positions and
does the rest. The cost grows with the square of a partition's length.

Every use of the numbered rows must number them alike, so ties in ORDER BY are broken by the row's own
columns: rows that are alike in all of them are interchangeable.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra.names import IDENTITY, ROW, order_key, partition_key
from windrow.algebra.nodes import Boundary, Window
from windrow.algebra.physical import Draft
from windrow.rules.kernel_plan import IS_LABEL, given_position
from windrow.spark.analyzer import SparkAnalyzer
from windrow.spark.arrow import is_orderable
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import Role, Side
from windrow.syntax.sqltext import Relation, SqlText

__all__ = ["POSITION", "add_positions", "tie_break"]

POSITION = "__position"
_NEIGHBOURS = {-1: ("__previous", "__previous_position"), 1: ("__next", "__next_position")}


def add_positions(gateway: Gateway, window: Window, draft: Draft, analyzer: SparkAnalyzer) -> DataFrame:
    """The rows with their position, whether each is a label row, and where its window starts and ends.

    Adds the row's position, whether it is a label row, and the positions of the boundaries that are
    searched for (1-based, NULL where the predicate is not satisfied).
    """
    return _JoinPlan(gateway, window, draft, analyzer).run()


def tie_break(row: StructType) -> Column:
    """A last key by which rows that are not alike are in one order everywhere."""
    # one key for all columns: as a key each, Spark's constraints would double with every column
    values = [(F.col(ROW).getField(field.name), field.dataType) for field in row.fields]
    parts = [value if is_orderable(kind) else F.to_json(F.struct(value.alias("x"))) for value, kind in values]
    return F.struct(*parts)


class _JoinPlan:
    def __init__(self, gateway: Gateway, window: Window, draft: Draft, analyzer: SparkAnalyzer) -> None:
        self.gateway, self.window, self.draft = gateway, window, draft
        self.keys = [partition_key(number) for number in range(len(window.partition_by))]
        self.numbered = self.number(analyzer)

    def number(self, analyzer: SparkAnalyzer) -> DataFrame:
        from windrow.spark.keyed_rows import sort_key

        order: list[Column] = [
            sort_key(order_key(number), item.descending, item.nulls_first)
            for number, (_, item) in enumerate(self.window.order_by)
        ]
        order.append(tie_break(analyzer.row))
        sequence = SparkWindow.partitionBy(*self.keys)
        rows = analyzer.rows.withColumn(
            POSITION, F.row_number().over(sequence.orderBy(*order)).cast("bigint")
        )
        by_position = sequence.orderBy(POSITION)
        for shift, (row, position) in _NEIGHBOURS.items():
            rows = rows.withColumn(row, F.lag(ROW, -shift).over(by_position))
            rows = rows.withColumn(position, F.lag(POSITION, -shift).over(by_position))
        return rows

    def run(self) -> DataFrame:
        labels = self.labels()
        found = labels.select(*self.columns("l"), F.lit(True).alias(IS_LABEL))
        start, end = self.draft.search(Side.START), self.draft.search(Side.END)
        if start is not None and start.search.strategy not in ("unbounded", "always"):
            found = self.with_position(found, self.starts(labels))
        if end is not None and end.search.strategy not in ("unbounded", "always"):
            found = self.with_position(found, self.ends(labels, found))
        columns = [name for name in found.columns if name not in self.names("l")]
        on = self.same_partition("l") & (F.col(POSITION) == F.col("__l_n"))
        orders = [order_key(number) for number in range(len(self.window.order_by))]
        kept = [ROW, *self.keys, *orders, POSITION]
        return self.numbered.join(found, on, "left").select(
            *kept,
            *(
                F.coalesce(F.col(name), F.lit(False)).alias(name) if name == IS_LABEL else name
                for name in columns
            ),
        )

    # -- the sides as relations --------------------------------------------------------------------

    def names(self, side: str) -> list[str]:
        return [*(f"__{side}_{key}" for key in self.keys), f"__{side}_n"]

    def columns(self, side: str) -> list[Column]:
        return [F.col(name) for name in self.names(side)]

    def same_partition(self, side: str, other: str = "") -> Column:
        same = F.lit(True)
        for key in self.keys:
            same = same & F.col(f"__{side}_{key}").eqNullSafe(F.col(f"__{other}_{key}" if other else key))
        return same

    def side(self, letter: str, boundary: Boundary) -> DataFrame:
        """The rows as candidates for a boundary, with the boundary's variables as columns."""
        columns = [F.col(key).alias(f"__{letter}_{key}") for key in self.keys] + [
            F.col(POSITION).alias(f"__{letter}_n")
        ]
        for variable in boundary.variables:
            row, position = _NEIGHBOURS.get(variable.role.shift, (ROW, POSITION))
            if variable.role is Role.POSITION:
                columns.append(F.col(POSITION).alias(variable.name))
            else:
                columns.append(F.col(row).alias(variable.name))
                columns.append(F.col(position).alias(IDENTITY + variable.name))
        return self.numbered.select(*columns)

    def filtered(self, frame: DataFrame, boundary: Boundary) -> DataFrame:
        """The candidates, or pairs of them, for which the boundary's predicate is true."""
        if boundary.when is None:
            return frame
        if boundary.when.column is not None:
            return frame.filter(boundary.when.column)
        query = SqlText.of(
            self.window.prefix, "SELECT * FROM ", Relation("pairs"), " WHERE ", boundary.when.text
        )
        return self.gateway.sql(query, {"pairs": frame})

    # -- label, start, end -------------------------------------------------------------------------

    def labels(self) -> DataFrame:
        boundary = self.window.label or self.window.start
        if boundary.unbounded:
            return self.side("l", boundary).filter(F.col("__l_n") == 1)
        return self.filtered(self.side("l", boundary), boundary)

    def starts(self, labels: DataFrame) -> DataFrame:
        """For each label row, the first row that satisfies START."""
        pairs = labels.join(self.side("s", self.window.start), self.same_partition("l", "s"))
        satisfied = self.filtered(pairs, self.window.start)
        return satisfied.groupBy(*self.names("l")).agg(F.min("__s_n").alias(given_position(Side.START)))

    def ends(self, labels: DataFrame, found: DataFrame) -> DataFrame:
        """For each label row, the first row from its window's start on that satisfies END."""
        assert self.window.end is not None
        known = labels
        start = self.draft.search(Side.START)
        if start is None:
            known = known.withColumn("__from", F.col("__l_n"))
        elif start.search.strategy in ("unbounded", "always"):
            known = known.withColumn("__from", F.lit(1).cast("bigint"))
            if start.search.strategy == "always":
                known = self.with_start(known, F.lit(1).cast("bigint"))
        else:
            known = self.with_position(known, found.select(*self.names("l"), given_position(Side.START)))
            known = known.withColumn(
                "__from", F.coalesce(given_position(Side.START), F.lit(1).cast("bigint"))
            )
            known = self.with_start(known, F.col(given_position(Side.START)))
        candidates = self.side("e", self.window.end)
        pairs = known.join(candidates, self.same_partition("l", "e") & (F.col("__e_n") >= F.col("__from")))
        satisfied = self.filtered(pairs, self.window.end)
        return satisfied.groupBy(*self.names("l")).agg(F.min("__e_n").alias(given_position(Side.END)))

    def with_position(self, labels: DataFrame, positions: DataFrame) -> DataFrame:
        """Adds a position per label row, NULL where there is none; partition keys may be NULL."""
        renamed = positions.select(
            *(F.col(name).alias(f"__found{name}") for name in self.names("l")),
            *(name for name in positions.columns if name not in self.names("l")),
        )
        same = F.lit(True)
        for name in self.names("l"):
            same = same & F.col(name).eqNullSafe(F.col(f"__found{name}"))
        return labels.join(renamed, same, "left").drop(*(f"__found{name}" for name in self.names("l")))

    def with_start(self, known: DataFrame, position: Column) -> DataFrame:
        """Adds START's variables: NULL rows where START is not satisfied."""
        known = known.withColumn("__at", position)
        return known.join(
            self.side("s", self.window.start),
            self.same_partition("l", "s") & (F.col("__at") == F.col("__s_n")),
            "left",
        )
