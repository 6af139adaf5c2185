"""Conditions on a value of each row and the watermark, evaluated in memory, or by Spark if they must be."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.types import LongType, StructField, StructType

from windrow.kernels.incremental import Run, Times
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.incremental_plan import IncrementalPlan
from windrow.spark.logs.live_source import PLACE

__all__ = ["MARK", "WatermarkConditions", "where_true"]

Bools = npt.NDArray[np.bool_]

MARK = "__mark"
"""The watermark, in a condition."""


class WatermarkConditions:
    """Conditions that are planned once, and evaluated in each micro-batch.

    Parameters
    ----------
    gateway
        Makes one for each condition: its operators run in memory.
    folder
        For files of a micro-batch.
    """

    def __init__(self, gateway: Callable[[], Gateway], folder: Path) -> None:
        self._gateway, self._folder = gateway, folder
        self._planned: dict[Hashable, IncrementalPlan] = {}

    def is_true_at(
        self,
        key: Hashable,
        kind: StructField,
        condition: Callable[[str], Column],
        values: pa.Array,
        mark: int | npt.NDArray[np.int64],
    ) -> Bools:
        """For which values a condition is true.

        Parameters
        ----------
        key
            The key under which the condition is stored.
        kind
            The column that it reads.
        condition
            A function from SQL for the watermark to the condition.
        values
            The values of the column.
        mark
            The watermark, in ticks: one of all, or of each.
        """
        planned = self.planned(key, kind, condition)
        if planned.why_not is None:
            return where_true(planned.run, kind.name, values, mark)
        gateway, schema = self._gateway(), _schema(kind)
        rows = _rows(schema.names, values, mark)
        frame = frame_of_collected(gateway.spark, rows, schema).where(condition(MARK)).select(PLACE)
        with gateway.translated():
            return _places(frame.toArrow(), len(values))

    def planned(
        self, key: Hashable, kind: StructField, condition: Callable[[str], Column]
    ) -> IncrementalPlan:
        """The condition as a plan: it finds the places of values, at its only leaf, for
        :func:`where_true`.
        """
        if key not in self._planned:
            operators = IncrementalPlan(self._gateway(), self._folder / f".condition-{len(self._planned)}")
            _, frame = operators.leaf(_schema(kind))
            operators.output(frame.where(condition(MARK)).select(PLACE))
            self._planned[key] = operators
        return self._planned[key]


def where_true(run: Run, name: str, values: pa.Array, mark: int | npt.NDArray[np.int64]) -> Bools:
    """For which values of a column a planned condition is true, with a watermark in ticks."""
    (true,) = run.advance({0: _rows([name, MARK, PLACE], values, mark)}, Times(None, 0))
    return _places(true, len(values))


def _schema(kind: StructField) -> StructType:
    return StructType([kind]).add(MARK, LongType()).add(PLACE, LongType())


def _rows(names: Sequence[str], values: pa.Array, mark: int | npt.NDArray[np.int64]) -> pa.Table:
    marks = np.array(np.broadcast_to(np.asarray(mark, np.int64), len(values)))
    columns = [values, pa.array(marks), pa.array(np.arange(len(values)))]
    return pa.Table.from_arrays(columns, names=names)


def _places(true: pa.Table, count: int) -> Bools:
    found = np.zeros(count, bool)
    found[true.column(PLACE).to_numpy()] = True
    return found
