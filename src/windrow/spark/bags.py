"""Bags of rows that vary: what counting their rows by value gives, and tables as such bags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra.clock import NEVER
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.reader import NotPlannedError
from windrow.spark.arrow import is_orderable
from windrow.spark.gateway import Gateway
from windrow.spark.keyed import can_be_keyed, run_keyed
from windrow.spark.varying import Varying

__all__ = ["Bags", "Rows", "inner"]


@dataclass(frozen=True)
class Rows:
    """The rows of a node: its columns by their ids, and `ENTER` and `LEAVE` after them if they vary."""

    frame: DataFrame
    varies: bool

    @property
    def columns(self) -> list[str]:
        """All columns but the times."""
        return [name for name in self.frame.columns if name not in (ENTER, LEAVE)]


@dataclass(frozen=True)
class Bags:
    """The relations of one statement, by key.

    Attributes
    ----------
    gateway
        The session.
    inputs
        What varies in it.
    """

    gateway: Gateway
    inputs: Mapping[str, Varying]

    def origin(self) -> int | None:
        """The logs' first instant, None if they are empty."""
        if self.gateway.operators is not None:
            raise NotPlannedError("rows that are there from the first instant on")
        if self.gateway.plan_only:
            return 0
        firsts = [ends[0] for item in self.inputs.values() if (ends := item.ends) is not None]
        return min(firsts, default=None)

    def varying(self, rows: Rows) -> Rows:
        """Rows of a table are there from the log's first instant on."""
        if rows.varies:
            return rows
        origin = self.origin()
        times = {ENTER: F.lit(origin or 0).cast("bigint"), LEAVE: F.lit(NEVER).cast("bigint")}
        whole = rows.frame.withColumns(times)
        return Rows(whole if origin is not None else whole.limit(0), varies=True)

    def counted(self, operator: str, frames: Sequence[DataFrame]) -> Rows:
        """Rows as often as the operator says by how often they are on either side.

        The sides have the same columns.
        """
        schema = inner(frames[0])
        known = all(is_orderable(field.dataType) for field in schema)
        if not known or not all(map(can_be_keyed, frames)):
            raise NotPlannedError("columns that are not compared")
        sides = [frame.select(*schema.names, ENTER, LEAVE) for frame in frames]
        return Rows(run_keyed(self.gateway, operator, sides, schema.names, schema), varies=True)


def inner(frame: DataFrame) -> StructType:
    """The columns of a frame but for the times."""
    return StructType([field for field in frame.schema if field.name not in (ENTER, LEAVE)])
