"""Tables that are small enough to be copied to each task.

The limit is Spark's own for broadcasts: ``spark.sql.autoBroadcastJoinThreshold``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame

from windrow.kernels.computed.lookups import CollectedTable
from windrow.plan.arrow_types import is_carried, travels_as_it_is
from windrow.spark.analysis.arrow_columns import in_memory
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.plans import small_part

__all__ = ["SmallTable", "small_table"]


@dataclass(frozen=True, eq=False)
class SmallTable:
    """A part of a plan that reads no leaf.

    Attributes
    ----------
    numbers
        By which the plan identifies its columns.
    schema
        Their names and types.
    sources
        The classes of the operators that its rows come from, or of the lists of their files.
    is_deterministic
        Whether it returns the same rows each time.
    """

    gateway: Gateway
    frame: DataFrame
    numbers: Sequence[int]
    schema: pa.Schema
    sources: frozenset[str]
    is_deterministic: bool

    @property
    def is_constant(self) -> bool:
        """Whether its rows are literals in the plan."""
        return self.is_deterministic and self.sources <= {"LocalRelation", "OneRowRelation"}

    def rows(self) -> pa.Table:
        """Its current rows."""
        return self._constant if self.is_constant else self._collected()

    @cached_property
    def _constant(self) -> pa.Table:
        return self._collected()

    def _collected(self) -> pa.Table:
        with self.gateway.translated():
            return self.frame.select("*").toArrow().cast(self.schema).combine_chunks()

    def collected(self) -> CollectedTable:
        """The table with its current rows, for tasks."""
        return CollectedTable(self.numbers, self.schema, self.rows())


def small_table(gateway: Gateway, frame: DataFrame, path: Sequence[int]) -> SmallTable | None:
    """A part of the optimized plan of a DataFrame; None if it is too large, or without columns.

    Arrow cannot count rows without columns.

    Parameters
    ----------
    path
        For each operator from the top, the number of the input.
    """
    part = small_part(frame, path)
    if part is None or not part.numbers:
        return None
    kinds = [column.dataType for column in part.frame.schema]
    if not all(is_carried(kind) and travels_as_it_is(kind) for kind in kinds):
        return None
    schema = in_memory(part.frame.schema)
    return SmallTable(gateway, part.frame, part.numbers, schema, part.sources, part.is_deterministic)
