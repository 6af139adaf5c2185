"""A micro-batch of a live query: its span of instants, its input, and the output of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from windrow.algebra.time_scale import TimeScale
from windrow.kernels.advance import Ended
from windrow.kernels.advance.retained_rows import RetainedRows
from windrow.spark.logs.session_streams import Stream
from windrow.streams import FOREVER

__all__ = ["InstantSpan", "MicroBatch", "PartOutput", "StreamOutput", "upwards"]


@dataclass(frozen=True)
class InstantSpan:
    """The span of a micro-batch, with its rows and the state before and after it.

    Attributes
    ----------
    since, until
        The micro-batch emits changes at ``since <= at < until``, in the query's ticks; `since` is None for
        the first one.
    origin
        The first instant of the logs.
    arrived
        The arrived rows of each stream, with the buffered ones; all are at `since` or later.
    before
        The retained rows of the last micro-batch, by name.
    to_retain
        The rows that this micro-batch retains, by name; filled while it runs.
    marks
        Instants for the next micro-batches, by name, in ticks; changed while it runs.
    cached
        Cached DataFrames that Spark can drop afterwards; filled while it runs.
    ended
        The closed partitions of clauses, by the clauses' keys.
    number
        The number of the micro-batch.
    due
        The arrived rows in the driver's memory.
    of_view
        Evaluates a view of arriving rows.
    """

    since: int | None
    until: int
    origin: int
    arrived: Mapping[str, Stream]
    before: Callable[[str], RetainedRows | None]
    to_retain: dict[str, RetainedRows] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    cached: list[DataFrame] = field(default_factory=list)
    ended: Mapping[str, Ended] = field(default_factory=dict)
    number: int = 0
    due: Mapping[str, pa.Table] = field(default_factory=dict)
    of_view: Callable[[InstantSpan, str], StreamOutput] | None = None


@dataclass
class PartOutput:
    """The output of a part of a live query in a micro-batch.

    Attributes
    ----------
    rows
        The new rows.
    find_until
        Returns the watermark of the output, in its ticks: no later micro-batch emits a row below it. It may
        run a Spark job.
    """

    rows: DataFrame
    find_until: Callable[[], int]
    _until: int | None = field(default=None, init=False)

    @property
    def until(self) -> int:
        """The watermark of the output."""
        if self._until is None:
            self._until = self.find_until()
        return self._until


@dataclass(frozen=True)
class StreamOutput:
    """The new rows of a stream in a micro-batch, with `ROWTIME` and the columns that order ties."""

    stream: Stream
    output: PartOutput

    @property
    def rows(self) -> DataFrame:
        """The rows."""
        return self.output.rows

    def until(self, scale: TimeScale) -> int:
        """The watermark, in ticks of a time scale."""
        return upwards(self.output.until, self.stream.scale, scale)


class MicroBatch(Protocol):
    """A micro-batch: its span, and its streams, each of which is evaluated once."""

    @property
    def span(self) -> InstantSpan:
        """The span."""

    def output(self, name: str) -> StreamOutput:
        """The new rows of a stream."""


def upwards(tick: int, old: TimeScale, new: TimeScale) -> int:
    """A tick in the unit of another time scale, rounded up; the end of a stream stays the end.

    >>> upwards(1001, TimeScale("bigint", "MILLISECOND"), TimeScale("bigint", "SECOND"))
    2
    """
    return tick if tick == FOREVER else -(-tick * old.nanoseconds // new.nanoseconds)
