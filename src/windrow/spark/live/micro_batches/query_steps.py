"""What the micro-batches of one kind of query do: the interface that every kind implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType

from pyspark.sql import DataFrame

from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.live.reports.state_table import QueryState

__all__ = ["Done", "Retained", "Steps"]


@dataclass(frozen=True, eq=False)
class Done:
    """A micro-batch whose changes are in the sink.

    Attributes
    ----------
    committed
        The state to commit.
    arrived, emitted
        How many rows it took, and emitted.
    """

    committed: CommittedBatch
    arrived: int
    emitted: int


@dataclass(frozen=True)
class Retained:
    """How many rows are buffered, and in windows or operators, after a micro-batch; and other reported
    counts.
    """

    waiting: int
    rows: int
    besides: Mapping[str, int | None] = field(default_factory=dict)


class Steps(ABC):
    """The steps of a micro-batch that differ between kinds of queries.

    An implementation gets a :class:`~.live_context.LiveContext` when it is made, and
    :class:`~.host.MicroBatches` calls it. This class has no state.
    """

    settings: Mapping[str, str] = MappingProxyType({})
    """Settings of Spark for the query, set when it starts."""

    @abstractmethod
    def evaluate(self, batch: DataFrame, number: int, before: CommittedBatch) -> Done:
        """Judge the sound entries of a micro-batch, advance the operators, and pass the changes to the
        sink.
        """

    @abstractmethod
    def retained(self, committed: CommittedBatch) -> Retained:
        """The retained rows after a micro-batch."""

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

    def release(self) -> None:  # noqa: B027 - most have nothing
        """Release the caches of a micro-batch, however it ended."""

    @property
    def wants(self) -> int | None:
        """When the query needs a tick, in microseconds; None for never."""
        return None

    def tick(self, instant: int) -> None:  # noqa: B027 - most want none
        """Put a tick for an instant into the query's input."""
