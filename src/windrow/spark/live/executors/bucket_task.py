"""The description of a live query that is sent to tasks: its streams, the columns read, and the operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from windrow.kernels.dividing import DerivedKey
from windrow.spark.live.executors.bucket_state import BucketState, Store, StreamMark
from windrow.streams import Ordering
from windrow.streams.entries import FOREVER

__all__ = ["BucketTask", "TaskSide", "TaskStream", "Work"]


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

    def frontier(self, marks: Mapping[int, StreamMark]) -> int | None:
        """The instant before which no more rows arrive, in ticks of the query's time scale."""
        reached = []
        for place, stream in enumerate(self.streams):
            watermark = marks[place].watermark(stream.ordering)
            if watermark is None:
                return None
            reached.append(FOREVER if watermark == FOREVER else watermark * stream.ticks)
        return min(reached)
