"""Bags of rows that vary: what counting their rows by value gives, and tables as such bags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from windrow.algebra.clock import NEVER, Clock
from windrow.algebra.continuous import Reader
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.reader import NotPlannedError
from windrow.spark.arrow import is_orderable
from windrow.spark.gateway import Gateway
from windrow.spark.keyed import can_be_keyed, run_keyed
from windrow.spark.scope import Rows, Scope, SparkTexts
from windrow.spark.varying import Varying

__all__ = ["Bags"]


class Bags(SparkTexts):
    """The relations of one statement.

    Parameters
    ----------
    gateway, reader, clock
        The session, the statement, and what instants are counted in.
    inputs, tables
        What varies in it, on that clock, and what does not, by key.
    """

    def __init__(
        self,
        gateway: Gateway,
        reader: Reader,
        clock: Clock,
        inputs: Mapping[str, Varying],
        tables: Mapping[str, DataFrame],
    ) -> None:
        super().__init__(gateway, reader)
        self.clock, self.inputs, self.tables = clock, inputs, tables

    def _origin(self) -> int | None:
        """The logs' first instant, None if they are empty."""
        if self.gateway.operators is not None:
            raise NotPlannedError("rows that are there from the first instant on")
        if self.gateway.plan_only:
            return 0
        firsts = [ends[0] for item in self.inputs.values() if (ends := item.ends) is not None]
        return min(firsts, default=None)

    def _counted(self, operator: str, frames: Sequence[DataFrame]) -> DataFrame:
        """Rows as often as the operator says by how often they are on either side.

        The sides have the same types in the same places; names are those of the first.
        """
        inner = StructType(
            [
                StructField(field.name, field.dataType)
                for field in frames[0].schema
                if field.name not in (ENTER, LEAVE)
            ]
        )
        known = all(is_orderable(field.dataType) for field in inner)
        if not known or not all(map(can_be_keyed, frames)):
            raise NotPlannedError("columns that are not compared")
        sides = [frame.select(*inner.names, ENTER, LEAVE) for frame in frames]
        return run_keyed(self.gateway, operator, sides, inner.names, inner)

    def _varying(self, rows: Rows) -> Rows:
        """Rows of a table are there from the log's first instant on."""
        return rows if rows.varies else Rows(self._always(rows.frame), rows.names, varies=True)

    def _varying_scope(self, scope: Scope) -> Scope:
        return scope if scope.varies else replace(scope, frame=self._always(scope.frame), varies=True)

    def _always(self, frame: DataFrame) -> DataFrame:
        origin = self._origin()
        times = {ENTER: F.lit(origin or 0).cast("bigint"), LEAVE: F.lit(NEVER).cast("bigint")}
        whole = frame.withColumns(times)
        return whole if origin is not None else whole.limit(0)
