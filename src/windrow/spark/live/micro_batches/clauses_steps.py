"""The micro-batches of several clauses, or of a row-by-row query over views of clauses, on the driver.

With too many new or retained rows for the driver, a micro-batch runs as Spark tasks.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.micro_batches.in_memory import MOST, Come
from windrow.spark.live.micro_batches.sources_of_clauses import SourcesOfClauses
from windrow.spark.live.micro_batches.steps import BUFFERED
from windrow.spark.live.plans.clause_plan import ClausePlan
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Sink

__all__ = ["ClausesSteps"]


class ClausesSteps(SourcesOfClauses):
    """As :class:`windrow.spark.live.micro_batches.steps.Steps`, which says what it takes."""

    def __init__(
        self, plan: ClausePlan, sink: Sink | IntoStream, folder: Path, envelope: str, on_late: str
    ) -> None:
        super().__init__(plan, sink, folder, envelope, on_late)
        self._sequence = plan
        self._sources = {name: stream for _, name, stream in self.streams()}
        self._cached = []

    @property
    def _result(self) -> StructType:
        return self._sequence.outer.schema

    def _step(self, batch: DataFrame, number: int, before: CommittedBatch) -> None:
        are_many = sum(self._kept_counts(before).values()) > MOST
        come = None if are_many else self._come_if_it_fits(batch, before)
        if come is None:
            super()._step(batch, number, before)
            return
        try:
            self._take(come, number, before)
        finally:
            self._drop_cached()

    def _take(self, come: Come, number: int, before: CommittedBatch) -> None:
        self._tell_late({name: self._late(name, one.late) for name, one in come.found.items()}, number)
        positions = {name: one.position for name, one in come.found.items()}
        closes = self._endings.take(number, before.number, before.positions, positions)
        until, known = self._frontier(positions), self._retained_before(before)
        waits = self._waits(come, number, known)
        waited = sum(rows.num_rows for rows in waits.values())
        moved = until is not None and (before.frontier is None or until > before.frontier)
        origin, frontier, given = before.origin, before.frontier, 0
        if moved and until is not None and origin is None:
            origin = self._first_of(waits, until)
        keep = {name: kept for name, kept in known.items() if not name.startswith(BUFFERED)}
        marks = dict(before.marks)
        if (moved or closes) and until is not None and origin is not None:
            span = self._span(waits, known, (frontier, until, origin), marks, self._plan.ends)
            given = self._give(span, number, before.counts.get("rows_given", 0)) or 0
            keep |= span.keep
            frontier = until
        used = waited - sum(rows.num_rows for rows in waits.values())
        counts = {
            "now": come.now,
            "entries": come.entries,
            **self._came_and_late(before, positions, come.count),
            "rows_used": before.counts.get("rows_used", 0) + used,
            "rows_given": before.counts.get("rows_given", 0) + given,
        }
        step = CommittedBatch(number, positions, frontier, origin, {}, counts, marks=marks)
        step = self._checkpoint.commit(step, self._kept_with(waits, keep, number))
        self._report(step, come.count, given)
