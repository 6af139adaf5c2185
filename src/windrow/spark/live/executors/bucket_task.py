"""The description of a live query that is sent to tasks: its streams, the columns read, and the operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from windrow.kernels.dividing import DerivedKey
from windrow.spark.live.executors.bucket_state import BucketState, Moment, Store, StreamMark
from windrow.spark.live.executors.input.marked_rows import MarkedFiles
from windrow.streams import Ordering, WatermarkState
from windrow.streams.entries import FOREVER

__all__ = [
    "BucketTask",
    "Onward",
    "OnwardRun",
    "OnwardWork",
    "TaskSide",
    "TaskStream",
    "Work",
    "frontier_of",
    "watermarks_in",
]


@dataclass(frozen=True)
class TaskStream:
    """A stream.

    Attributes
    ----------
    name
        Its name in the session.
    number
        The number that distinguishes its entries from those of other streams.
    ordering
        The order that its rows follow.
    ticks
        How many ticks of the query's time scale are one of the stream's.
    rowtime, ptime, bound
        The columns of entries with rowtime, processing time and bound; the last is None without bounds.
    columns
        The columns of the stream, and their names in entries.
    producer
        The column of entries with the producer; None for a stream of one.
    idle
        After how many microseconds without entries a producer is idle; None for never.
    pattern
        The column of entries with punctuations; None without punctuations.
    timed_by
        The column of the stream with the rowtime, by its name in `columns`.
    files
        The files that tasks read themselves; None if Spark reads the entries.
    """

    name: str
    number: int
    ordering: Ordering
    ticks: int
    rowtime: str
    ptime: str
    bound: str | None
    columns: Mapping[str, str]
    producer: str | None = None
    idle: int | None = None
    pattern: str | None = None
    timed_by: str | None = None
    files: MarkedFiles | None = None

    @property
    def is_judged_by_all(self) -> bool:
        """Whether every bucket judges the entries of all buckets."""
        return self.producer is not None or self.pattern is not None


@dataclass(frozen=True)
class TaskSide:
    """A window of a stream, or a stream at one place of a query.

    Attributes
    ----------
    stream
        The place of its stream among those of the task.
    columns
        The retained columns of its rows: names there, and in entries.
    key
        The columns, or expressions over them, by which rows are divided; none if one bucket has all rows.
    is_first
        Whether it is the first side of its stream, which counts the rows, and returns the late ones.
    """

    stream: int
    columns: Mapping[str, str]
    key: tuple[str | DerivedKey, ...]
    is_first: bool


class Work(Protocol):
    """The computation on the rows of a bucket."""

    def begin(self, task: BucketTask) -> BucketState:
        """A bucket without state."""

    def again(self, task: BucketTask, stored: Mapping[str, Any], store: Store) -> BucketState:
        """The state of a bucket, from the result of :meth:`.bucket_state.BucketState.save`."""


class OnwardRun(Protocol):
    """The second part of a query in a bucket, and its state."""

    @property
    def retained(self) -> int:
        """How many rows it retains."""

    @property
    def due(self) -> int | None:
        """When changes must be emitted, if no entry arrives; None for never."""

    def saved(self) -> Mapping[str, Any]:
        """Its state, for :mod:`windrow.kernels.stored`, without what is over."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""

    def advance(self, rows: Mapping[int, pa.Table], moment: Moment, first: int | None) -> pa.Table | None:
        """The output of a micro-batch.

        Parameters
        ----------
        rows
            The rows of each crossing leaf.
        first
            The first instant of buckets of the first part whose first one is in this micro-batch; None if
            there are none.
        """


class OnwardWork(Protocol):
    """The second part of a query."""

    def begin(self, streams: Sequence[TaskStream]) -> OnwardRun:
        """It without state."""


@dataclass(frozen=True, eq=False)
class Onward:
    """The second part of a query, in buckets of its own, which get the rows of crossing leaves.

    Attributes
    ----------
    work
        It.
    keys
        For each crossing leaf, by its number, the columns by which its rows are divided; none if one bucket
        has all rows.
    buckets
        The numbers of the buckets.
    """

    work: OnwardWork
    keys: Mapping[int, tuple[str | DerivedKey, ...]]
    buckets: tuple[int, ...]


@dataclass(frozen=True)
class BucketTask:
    """A query.

    Attributes
    ----------
    query
        The identity of the query, as text.
    streams, sides
        The inputs; the sides are in the order of `work`.
    work
        The computation on the inputs.
    origin
        The columns with the part of a file in which an entry is; none if entries come from no files.
    stream
        The column of the stream's number; None if there is one stream.
    tick
        The column of entries that have only a processing time; None if there are none.
    buckets
        The numbers of the buckets, each of which Spark assigns to a different task.
    malformed
        The column with what is reported of malformed entries; None if these are errors.
    onward
        The second part of the query, which gets the output of `work`; None if that is the query's.
    start
        A text that distinguishes it from the same query in another streaming DataFrame.
    """

    query: str
    streams: tuple[TaskStream, ...]
    sides: tuple[TaskSide, ...]
    work: Work
    origin: tuple[str, ...]
    stream: str | None
    tick: str | None
    buckets: tuple[int, ...]
    malformed: str | None = None
    onward: Onward | None = None
    start: str = ""

    def version(self, token: str) -> str:
        """The version of the state of a bucket in memory: of this streaming DataFrame, after the micro-batch
        of the token.
        """
        return f"{self.start} {token}"

    def frontier(self, marks: Mapping[int, StreamMark]) -> int | None:
        """As :func:`frontier_of`."""
        return frontier_of(self.streams, marks)


def watermarks_in(
    streams: Sequence[TaskStream], marks: Mapping[int, StreamMark]
) -> dict[str, WatermarkState]:
    """The watermarks of streams, by name, without counts of rows."""
    return {stream.name: marks[place].now(stream.ordering) for place, stream in enumerate(streams)}


def frontier_of(streams: Sequence[TaskStream], marks: Mapping[int, StreamMark]) -> int | None:
    """The instant before which no more rows arrive, in ticks of the query's time scale."""
    reached = []
    for place, stream in enumerate(streams):
        watermark = marks[place].watermark(stream.ordering)
        if watermark is None:
            return None
        reached.append(FOREVER if watermark == FOREVER else watermark * stream.ticks)
    return min(reached)
