"""The general plan: Spark evaluates a predicate on pairs of rows of a partition.

It is for predicates that the kernel cannot evaluate, such as a user's function over both rows. Rows are
numbered. Each label row is joined with the rows that may begin its window, then with those that may end it,
and the least position that satisfies the predicate is selected. The kernel receives those positions and does
the rest, including other predicates. The cost grows with the square of a partition's length.

Every use of the numbered rows must number them in the same way. So ties in ORDER BY are broken by the row's
own columns: rows that are equal in all of them are interchangeable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from windrow.algebra.names import IDENTITY, ROW, order_key, partition_key
from windrow.algebra.physical import PlanDraft
from windrow.algebra.window_node import Window, WindowBoundary
from windrow.errors import WindrowError
from windrow.plan.arrow_types import is_orderable
from windrow.rules.kernel_plan import IS_LABEL, joined_position
from windrow.spark.analysis.analyzer import SparkAnalyzer
from windrow.spark.analysis.argument_columns import in_boundary_terms
from windrow.spark.analysis.keyed_rows import sort_key
from windrow.spark.analysis.row_fields import as_variable, row_type
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import Role, Side
from windrow.syntax.sqltext import RelationText, SqlText

__all__ = ["POSITION", "add_positions", "found_positions", "numbered", "one_order", "tie_break"]

POSITION = "__position"
_AT_EDGES = ("unbounded", "always")
_NEIGHBOURS = {-1: ("__previous", "__previous_position"), 1: ("__next", "__next_position")}


def add_positions(gateway: Gateway, window: Window, draft: PlanDraft, analyzer: SparkAnalyzer) -> DataFrame:
    """The rows with their position, whether each is a label row, and where its window starts and ends.

    Adds the row's position, whether it is a label row, and the positions of the boundaries whose predicates
    the kernel cannot evaluate, and of boundaries that these read (1-based, NULL if the predicate is not
    satisfied).
    """
    keys = [partition_key(number) for number in range(len(window.partition_by))]
    orders = [order_key(number) for number in range(len(window.order_by))]
    order: list[Column] = [
        sort_key(name, item.descending, item.nulls_first)
        for name, (_, item) in zip(orders, window.order_by, strict=True)
    ]
    order.append(tie_break(analyzer.row))
    position = F.row_number().over(SparkWindow.partitionBy(*keys).orderBy(*order)).cast("bigint")
    rows = numbered(analyzer.rows, keys, position)
    return found_positions(gateway, window, draft, rows, keys, [ROW, *keys, *orders, POSITION])


def numbered(rows: DataFrame, keys: Sequence[str], position: Column) -> DataFrame:
    """The rows with their position in the partition by these keys, and the rows before and after them."""
    by_position = SparkWindow.partitionBy(*keys).orderBy(POSITION)
    rows = rows.withColumn(POSITION, position)
    for shift, (row, place) in _NEIGHBOURS.items():
        rows = rows.withColumn(row, F.lag(ROW, -shift).over(by_position))
        rows = rows.withColumn(place, F.lag(POSITION, -shift).over(by_position))
    return rows


def found_positions(
    gateway: Gateway,
    window: Window,
    draft: PlanDraft,
    rows: DataFrame,
    keys: Sequence[str],
    columns: Sequence[str],
    may_be: Column | None = None,
) -> DataFrame:
    """These columns of numbered rows, and the columns that :func:`add_positions` adds.

    A boundary is not searched for if the kernel can evaluate its predicate and no other predicate needs it.
    With `may_be`, label rows are searched for only among the rows for which it is true.
    """
    return _JoinPlan(gateway, window, draft, rows, keys, may_be).run(columns)


def tie_break(row: StructType) -> Column:
    """A last sort key by which different rows have the same order everywhere."""
    return one_order((F.col(ROW).getField(field.name), field.dataType) for field in row.fields)


def one_order(values: Iterable[tuple[Column, DataType]]) -> Column:
    """A sort key by which these values together have one order."""
    # one key for all columns: as a key each, Spark's constraints would double with every column
    parts = [value if is_orderable(kind) else F.to_json(F.struct(value.alias("x"))) for value, kind in values]
    return F.struct(*parts)


class _JoinPlan:
    def __init__(
        self,
        gateway: Gateway,
        window: Window,
        draft: PlanDraft,
        numbered: DataFrame,
        keys: Sequence[str],
        may_be: Column | None,
    ) -> None:
        self.gateway, self.window, self.draft = gateway, window, draft
        self.numbered, self.keys, self.may_be = numbered, keys, may_be

    def run(self, passed: Sequence[str]) -> DataFrame:
        labels = self.labels()
        found = labels.select(*self.columns("l"), F.lit(True).alias(IS_LABEL))
        start, end = self.draft.search(Side.START), self.draft.search(Side.END)
        seeks_end = end is not None and end.search.strategy == "given"
        if start is not None and (
            start.search.strategy == "given" or (seeks_end and start.search.strategy not in _AT_EDGES)
        ):
            found = self.with_position(found, self.starts(labels))
        if seeks_end:
            found = self.with_position(found, self.ends(labels, found))
        sought = {joined_position(item.side) for item in (start, end) if item and item.search.column}
        columns = [name for name in found.columns if name in {IS_LABEL, *sought}]
        on = self.same_partition("l") & (F.col(POSITION) == F.col("__l_n"))
        return self.numbered.join(found, on, "left").select(
            *passed,
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

    def side(self, letter: str, boundary: WindowBoundary, may_be: Column | None = None) -> DataFrame:
        """The rows as candidates for a boundary, with the boundary's variables as columns."""
        rows = self.numbered if may_be is None else self.numbered.filter(may_be)
        columns = [F.col(key).alias(f"__{letter}_{key}") for key in self.keys] + [
            F.col(POSITION).alias(f"__{letter}_n")
        ]
        for variable in boundary.variables:
            row, position = _NEIGHBOURS.get(variable.role.shift, (ROW, POSITION))
            if variable.role is Role.POSITION:
                columns.append(F.col(POSITION).alias(variable.name))
            else:
                fields = row_type(self.numbered).fieldNames()
                columns += as_variable(F.col(row), fields, variable.name)
                columns.append(F.col(position).alias(IDENTITY + variable.name))
        return rows.select(*columns)

    def filtered(self, frame: DataFrame, boundary: WindowBoundary) -> DataFrame:
        """The candidates, or pairs of them, for which the boundary's predicate is true."""
        if boundary.when is None:
            return frame
        if boundary.when.column is not None:
            try:
                with self.gateway.translated():
                    found = frame.filter(boundary.when.column)
                    found.schema  # noqa: B018 - an error of the Column belongs here
                    return found
            except WindrowError as error:
                fields = row_type(self.numbered).fieldNames()
                raise in_boundary_terms(error, self.window, boundary, fields) from None
        query = SqlText.of(
            self.window.prefix, "SELECT * FROM ", RelationText("pairs"), " WHERE ", boundary.when.text
        )
        return self.gateway.sql(query, {"pairs": frame})

    # -- label, start, end -------------------------------------------------------------------------

    def labels(self) -> DataFrame:
        boundary = self.window.label or self.window.start
        rows = self.side("l", boundary, self.may_be)
        if boundary.unbounded:
            return rows.filter(F.col("__l_n") == 1)
        return self.filtered(rows, boundary)

    def starts(self, labels: DataFrame) -> DataFrame:
        """For each label row, the first row that satisfies START."""
        pairs = labels.join(self.side("s", self.window.start), self.same_partition("l", "s"))
        satisfied = self.filtered(pairs, self.window.start)
        return satisfied.groupBy(*self.names("l")).agg(F.min("__s_n").alias(joined_position(Side.START)))

    def ends(self, labels: DataFrame, found: DataFrame) -> DataFrame:
        """For each label row, the first row from its window's start on that satisfies END."""
        assert self.window.end is not None
        known = labels
        start = self.draft.search(Side.START)
        if start is None:
            known = known.withColumn("__from", F.col("__l_n"))
        elif start.search.strategy in _AT_EDGES:
            known = known.withColumn("__from", F.lit(1).cast("bigint"))
            if start.search.strategy == "always":
                known = self.with_start(known, F.lit(1).cast("bigint"))
        else:
            known = self.with_position(known, found.select(*self.names("l"), joined_position(Side.START)))
            known = known.withColumn(
                "__from", F.coalesce(joined_position(Side.START), F.lit(1).cast("bigint"))
            )
            known = self.with_start(known, F.col(joined_position(Side.START)))
        candidates = self.side("e", self.window.end)
        pairs = known.join(candidates, self.same_partition("l", "e") & (F.col("__e_n") >= F.col("__from")))
        satisfied = self.filtered(pairs, self.window.end)
        return satisfied.groupBy(*self.names("l")).agg(F.min("__e_n").alias(joined_position(Side.END)))

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
