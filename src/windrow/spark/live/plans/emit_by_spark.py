"""Queries with EMIT, a part of which has no operator: Spark evaluates them over all retained rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructType

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.plans.emit_evaluation import EmitEvaluation
from windrow.spark.live.plans.emit_queries import EmittedPlan, KnownWatermarks
from windrow.spark.logs.session_streams import ARRIVED, ROWTIME
from windrow.streams.entries import BEFORE

__all__ = ["EmittedBySpark"]


class EmittedBySpark(EmitEvaluation):
    """Evaluates a query by Spark.

    Parameters
    ----------
    gateway
        The gateway of the query's session.
    plan
        The query.
    envelope
        The form of its changes.
    """

    reads_all_rows = True
    retained = 0
    forgets = False

    def __init__(self, gateway: Gateway, plan: EmittedPlan, envelope: str) -> None:
        self._gateway, self._plan, self._query, self._envelope = gateway, plan, plan.query, envelope
        self._due: int | None = None

    def emptied(self) -> Self:
        """Itself, without punctuation."""
        self._logged: dict[str, list[tuple[int, str]]] = {name: [] for name in self._plan.streams}
        return super().emptied()

    def add_punctuation(self, logged: Mapping[str, Iterable[tuple[int, str]]]) -> None:
        """Add the punctuation of streams, with processing times."""
        every = {name: list(one) for name, one in logged.items()}
        super().add_punctuation(every)
        for name, one in every.items():
            self._logged[name] += one

    def due(self, until: int) -> int | None:
        """When the next changes are emitted after a processing time, if no entry arrives; None for never."""
        del until  # it was requested with the changes
        return self._due

    def read(self, name: str) -> list[str]:
        """All columns of a stream."""
        return list(self._query.sources[name].columns)

    def advance(
        self,
        new_rows: Mapping[str, pa.Table],
        marks: Mapping[str, Marks],
        since: int | None,
        until: int,
        origin: int,
    ) -> DataFrame:
        """The changes after one processing time, up to another."""
        known = {
            name: KnownWatermarks(
                self._frame(name, rows),
                [(at, mark) for at, mark in marks[name] if at <= until],
                tuple(one for one in self._logged[name] if one[0] <= until),
            )
            for name, rows in new_rows.items()
        }
        gateway = Gateway(self._gateway.spark, self._gateway.parameters)
        found = self._plan.evaluate(gateway, known, (since, until), origin, self._envelope)
        self._due = found.due
        return found.changes

    def _frame(self, name: str, rows: pa.Table) -> DataFrame:
        stream, schema = self._plan.catalog.streams[name], StructType()
        for column in stream.columns:
            schema = schema.add(stream.frame.schema[column])
        for column in (ROWTIME, ARRIVED, BEFORE):
            schema = schema.add(column, LongType())
        return frame_of_collected(self._gateway.spark, rows.select(schema.names), schema)
