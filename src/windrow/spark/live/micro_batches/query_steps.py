"""What the micro-batches of one kind of query do: the interface that every kind implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.live.micro_batches.output import RowsForSink, RowsForStream
from windrow.spark.live.reports.state_table import QueryState

__all__ = ["Advanced", "JudgedBatch", "Retained", "Steps"]


class JudgedBatch(Protocol):
    """The entries of a micro-batch, judged."""

    @property
    def late(self) -> Mapping[str, pa.Table | DataFrame | None]:
        """The late rows of each stream, in memory or as a DataFrame; None without."""

    @property
    def count(self) -> int:
        """How many rows arrived, without duplicates."""


Entries = TypeVar("Entries", bound=JudgedBatch)


@dataclass(frozen=True, eq=False)
class Advanced:
    """What operators make of a micro-batch.

    Attributes
    ----------
    output
        What the sink gets; None for nothing.
    store
        Writes the state, once the sink has the output; returns the manifest, without ``rows_emitted``.
    """

    output: RowsForSink | RowsForStream | None
    store: Callable[[], CommittedBatch]


_COUNTS = ("rows_buffered", "rows_in_windows")


@dataclass(frozen=True)
class Retained:
    """How many rows are buffered, and in windows or operators, after a micro-batch; and other reported
    counts.
    """

    waiting: int
    rows: int
    besides: Mapping[str, int | None] = field(default_factory=dict)

    @staticmethod
    def known(committed: CommittedBatch) -> Retained | None:
        """As the manifest has it; None in those of earlier versions."""
        waiting, rows = map(committed.counts.get, _COUNTS)
        return None if waiting is None or rows is None else Retained(waiting, rows)

    @property
    def counts(self) -> dict[str, int]:
        """The same for a manifest."""
        return dict(zip(_COUNTS, (self.waiting, self.rows), strict=True))


class Steps(ABC, Generic[Entries]):
    """The steps of a micro-batch that differ between kinds of queries: what is late, and how operators
    advance.

    An implementation gets a :class:`~.live_context.LiveContext` when it is made, and
    :class:`~.host.MicroBatches` calls it. This class has no state.
    """

    settings: Mapping[str, str] = MappingProxyType({})
    """Settings of Spark for the query, set when it starts."""

    @abstractmethod
    def judge(self, batch: DataFrame, before: CommittedBatch) -> Entries:
        """Read the sound entries of a micro-batch, and judge them."""

    @abstractmethod
    def advance(self, entries: Entries, number: int, before: CommittedBatch) -> Advanced:
        """Advance the operators over judged entries, from the state after the last micro-batch."""

    @abstractmethod
    def retained(self, committed: CommittedBatch) -> Retained:
        """The retained rows after a micro-batch, which may not have been committed yet."""

    @abstractmethod
    def state(self, committed: CommittedBatch) -> QueryState:
        """The state after a micro-batch."""

    def input(self, context: LiveContext, frames: Mapping[str, DataFrame] | None) -> DataFrame:
        """All arriving entries of a query; those of `frames` in place of the streams' own."""
        return context.input(frames, context.idle_ticks(frames))

    def count(self, batch: DataFrame) -> int:
        """How many entries a micro-batch has."""
        return batch.count()

    def cached(self, batch: DataFrame) -> AbstractContextManager[DataFrame]:
        """The micro-batch as it is read while it runs."""
        return nullcontext(batch)

    def malformed(self, batch: DataFrame) -> DataFrame | None:  # noqa: ARG002 - the driver has entries
        """The malformed entries of a micro-batch that has been made from entries; None if it has these."""
        return None

    def release(self) -> None:
        """Release the caches of a micro-batch, however it ended."""

    @property
    def wants(self) -> int | None:
        """When the query needs a tick, in microseconds; None for never."""
        return None

    def tick(self, instant: int) -> None:
        """Put a tick for an instant into the query's input."""
