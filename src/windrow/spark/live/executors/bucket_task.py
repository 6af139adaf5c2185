"""The description of a live query that is sent to tasks: its streams, the columns read, and the operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from windrow.kernels.dividing import DerivedKey
from windrow.spark.live.executors.bucket_state import BucketState, Store
from windrow.streams import Ordering
from windrow.streams.admission.parts import Said
from windrow.streams.entries import FOREVER

__all__ = ["BucketTask", "TaskSide", "TaskStream", "Work"]


@dataclass(frozen=True)
class TaskStream:
    """A stream.

    Attributes
    ----------
    name
        As the session knows it.
    number
        By which its entries are distinguished from those of others.
    ordering
        What a row says of later ones.
    ticks
        How many ticks of the query's time scale are one of the stream's.
    rowtime, ptime, bound
        The columns of entries that say so; the last is None where none does.
    columns
        The columns of the stream, and those that entries have for them.
    """

    name: str
    number: int
    ordering: Ordering
    ticks: int
    rowtime: str
    ptime: str
    bound: str | None
    columns: Mapping[str, str]


@dataclass(frozen=True)
class TaskSide:
    """A window of a stream, or a stream at one place of a query.

    Attributes
    ----------
    stream
        The place of its stream among those of the task.
    columns
        What is retained of its rows: names there, and those that entries have.
    key
        Those of the columns by which rows are divided, or what is computed of them; none where one bucket has
        all rows.
    is_first
        Whether it is the first side of its stream, which counts the rows, and returns those that are late.
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
        What distinguishes it from others, as text.
    streams, sides
        What it reads; the sides in the order in which `work` has them.
    work
        What is made of that.
    origin
        The columns that say in which part of a file an entry is; none where entries come from no files.
    stream
        The column of the stream's number; None where there is one stream.
    tick
        The column of entries that have nothing but a processing time; None where there are none.
    buckets
        The numbers of the buckets, of which Spark assigns each to another task.
    """

    query: str
    streams: tuple[TaskStream, ...]
    sides: tuple[TaskSide, ...]
    work: Work
    origin: tuple[str, ...]
    stream: str | None
    tick: str | None
    buckets: tuple[int, ...]

    def frontier(self, said: Mapping[int, Said]) -> int | None:
        """The instant before which no more rows arrive, in ticks of the query's time scale."""
        reached = []
        for place, stream in enumerate(self.streams):
            watermark = said[place].watermark(stream.ordering)
            if watermark is None:
                return None
            reached.append(FOREVER if watermark == FOREVER else watermark * stream.ticks)
        return min(reached)
