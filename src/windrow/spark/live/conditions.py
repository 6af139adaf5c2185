"""Conditions on a value of each row and the watermark, asked in memory: Spark is asked where it has to be."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.types import LongType, StructField, StructType

from windrow.kernels.stages import Times
from windrow.spark.collected import frame_of_few
from windrow.spark.gateway import Gateway
from windrow.spark.live.flow import Flow
from windrow.spark.live_source import PLACE

__all__ = ["MARK", "Conditions"]

Bools = npt.NDArray[np.bool_]

MARK = "__mark"
"""The watermark, in a condition."""


class Conditions:
    """Conditions that are planned once, and asked in each step.

    Parameters
    ----------
    gateway
        Makes one for each: it is told to leave operators to a flow.
    folder
        For files of a step.
    """

    def __init__(self, gateway: Callable[[], Gateway], folder: Path) -> None:
        self._gateway, self._folder = gateway, folder
        self._flows: dict[Hashable, tuple[Flow, int] | None] = {}

    def holds(
        self,
        key: Hashable,
        kind: StructField,
        condition: Callable[[str], Column],
        values: pa.Array,
        mark: int | npt.NDArray[np.int64],
    ) -> Bools:
        """For which values it holds.

        Parameters
        ----------
        key
            By which the condition is known again.
        kind
            The column that it reads.
        condition
            Of the SQL for the watermark.
        values
            Of the column.
        mark
            The watermark, in ticks: one of all, or of each.
        """
        schema = StructType([kind]).add(MARK, LongType()).add(PLACE, LongType())
        if key not in self._flows:
            self._flows[key] = self._planned(schema, condition)
        planned, count = self._flows[key], len(values)
        marks = np.array(np.broadcast_to(np.asarray(mark, np.int64), count))
        columns = [values, pa.array(marks), pa.array(np.arange(count))]
        asked = pa.Table.from_arrays(columns, names=schema.names)
        if planned is None:
            gateway = self._gateway()
            frame = frame_of_few(gateway.spark, asked, schema).where(condition(MARK)).select(PLACE)
            with gateway.translated():
                told = frame.toArrow()
        else:
            flow, leaf = planned
            (told,) = flow.step({leaf: asked}, Times(None, 0))
        found = np.zeros(count, bool)
        found[told.column(PLACE).to_numpy()] = True
        return found

    def _planned(self, schema: StructType, condition: Callable[[str], Column]) -> tuple[Flow, int] | None:
        """What gives the places of values; None where that is for Spark alone."""
        flow = Flow(self._gateway(), self._folder / f".asked-{len(self._flows)}")
        leaf, frame = flow.leaf(schema)
        flow.output(frame.where(condition(MARK)).select(PLACE))
        return (flow, leaf) if flow.why_not is None else None
