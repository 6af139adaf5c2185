"""The evaluation of a query with EMIT: by operators in memory, or by Spark over all retained rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Self

import pyarrow as pa
from pyspark.sql import DataFrame

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.spark.live.operators.recorded_rows import RecordedRows
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.logs.session_streams import StreamArrivals
from windrow.spark.recorded.emission import Emitted

__all__ = ["EmitEvaluation"]


class EmitEvaluation(ABC):
    """Evaluates the micro-batches of a query with EMIT.

    Attributes
    ----------
    punctuation
        The punctuation of the streams so far.
    reads_all_rows
        Whether each micro-batch is computed from all retained rows, and not only from the new ones.
    """

    reads_all_rows = False
    _plan: EmittedPlan
    _query: Emitted

    def emptied(self) -> Self:
        """Itself, without state."""
        self.punctuation = self._plan.punctuation(dict.fromkeys(self._plan.streams, ()))
        recorded = [self.punctuation.punctuations(name) for name in self._recorded]
        # when the last punctuation arrived
        self._punctuated_at = max((at for one in recorded for at, _ in one), default=-1)
        return self

    @cached_property
    def _recorded(self) -> dict[str, RecordedRows]:
        """The rows of the recorded streams."""
        read = {each.stream for each in self._query.timed.occurrences} & self._query.sources.keys()
        names = sorted(read - self._plan.streams)
        return {name: RecordedRows.of(self._query, name, self.read(name)) for name in names}

    def add_punctuation(self, logged: Mapping[str, Iterable[tuple[int, str]]]) -> None:
        """Add the punctuation of streams, with processing times."""
        for name, one in logged.items():
            news = list(one)
            self.punctuation.take(name, news)
            self._punctuated_at = max([self._punctuated_at, *(at for at, _ in news)])

    def judged_from(self, origin: int, until: int) -> int | None:
        """When the first row of a recorded stream arrived after the first entry of live ones, if it may be
        late by a watermark of these; up to a processing time.
        """
        live = self._plan.streams
        judged = {each.stream for each in self._query.timed.occurrences if each.watermark_of & live}
        first = [self._recorded[name].next(origin) for name in judged & self._recorded.keys()]
        return min((at for at in first if at is not None and at <= until), default=None)

    def recorded(self, since: int | None, until: int) -> dict[str, pa.Table]:
        """The rows of recorded streams that arrive after one processing time, up to another."""
        return {name: rows.between(since, until) for name, rows in self._recorded.items()}

    def _arrivals(self, name: str) -> StreamArrivals:
        arrivals = self._query.streams[name].timed
        assert arrivals is not None
        return arrivals

    @property
    @abstractmethod
    def retained(self) -> int:
        """How many rows are in the state of operators."""

    @property
    @abstractmethod
    def forgets(self) -> bool:
        """Whether all state is dropped by time alone."""

    @abstractmethod
    def due(self, until: int) -> int | None:
        """When the next changes are emitted after a processing time, if no entry arrives; None for never."""

    @abstractmethod
    def read(self, name: str) -> list[str]:
        """The columns of a stream that are read."""

    @abstractmethod
    def advance(
        self,
        new_rows: Mapping[str, pa.Table],
        marks: Mapping[str, Marks],
        since: int | None,
        until: int,
        origin: int,
    ) -> pa.Table | DataFrame:
        """The changes after one processing time, up to another.

        Parameters
        ----------
        new_rows
            The new rows of each live stream, with `ARRIVED`; all rows if there is no `since`, and if
            `reads_all_rows`.
        marks
            Up to which rowtime each live stream was complete, over time.
        origin
            The first processing time of the live streams.
        """
