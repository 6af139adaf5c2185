"""Conditions of live windows that Spark evaluates over pairs of rows, because the kernel cannot.

    retained rows ─┐
    new rows ──┴▶ numbered on from those before ─▶ joined with themselves ─▶ positions ─▶ advance

In each partition, a micro-batch has all rows that a window not emitted yet may contain. So the boundaries
found among these are those of the whole partition: the first row that satisfies a condition stays the first.
The kernel does not read the result of a condition for a row whose neighbour has not arrived.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType

from windrow.algebra.names import ROW
from windrow.algebra.physical import PlanDraft
from windrow.algebra.window_node import Window
from windrow.kernels.advance import AT, CARRIED, DONE, STATE
from windrow.kernels.sorting import SortKey
from windrow.kernels.window_plan import WindowPlan
from windrow.rules.kernel_plan import IS_LABEL
from windrow.spark.analysis.keyed_rows import sort_key
from windrow.spark.arrow import decode
from windrow.spark.clauses.join_plan import POSITION, found_positions, numbered, one_order
from windrow.spark.gateway import Gateway

__all__ = ["Pairs"]


@dataclass(frozen=True)
class Pairs:
    """Spark's results in each micro-batch.

    Attributes
    ----------
    window, draft
        The clause.
    partition, order
        The columns of its keys.
    fields
        The fields of rows that conditions read, the columns that have them, and their types.
    plan
        The input of the kernel.
    """

    window: Window
    draft: PlanDraft
    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    fields: tuple[tuple[str, str, DataType], ...]
    plan: WindowPlan

    @property
    def columns(self) -> tuple[str, ...]:
        """The result columns: whether a row is a label row, and the positions of boundaries."""
        searches = (self.plan.start, self.plan.end)
        return (IS_LABEL, *(one.column for one in searches if one is not None and one.column))

    def found(self, gateway: Gateway, retained: DataFrame, new_rows: DataFrame) -> DataFrame:
        """The rows of a micro-batch with their positions, and the results; new ones have NULL as `AT`.

        Parameters
        ----------
        gateway
            The gateway of the micro-batch.
        retained
            The rows that the micro-batch before retained.
        new_rows
            The new rows.
        """
        rows = new_rows.withColumns(
            {field.name: F.lit(None).cast(field.dataType) for field in from_arrow_schema(CARRIED)}
        )
        rows = retained.unionByName(rows, allowMissingColumns=True)
        columns = rows.columns
        sequence = SparkWindow.partitionBy(*self.partition)
        order = [sort_key(key.column, key.descending, key.nulls_first) for key in self.order]
        tie = one_order((F.col(name), new_rows.schema[name].dataType) for name in new_rows.columns)
        place = F.row_number().over(sequence.orderBy(F.col(AT).asc_nulls_last(), *order, tie))
        before = F.coalesce(F.min(AT).over(sequence), F.lit(1)) - 1
        parts = [decode(F.col(column), kind).alias(field) for field, column, kind in self.fields]
        rows = rows.withColumn(ROW, F.struct(*parts or [F.lit(True).alias("there")]))
        may_be = F.coalesce(F.col(STATE), F.lit(0)).bitwiseAND(F.lit(DONE)) == 0
        return found_positions(
            gateway,
            self.window,
            self.draft,
            numbered(rows, self.partition, (place + before).cast("bigint")),
            self.partition,
            [*columns, POSITION],
            may_be,
        )
