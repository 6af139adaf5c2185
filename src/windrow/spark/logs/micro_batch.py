"""A micro-batch of a live query: the instants that it goes from and to, what comes in it, what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from windrow.algebra.clock import Clock
from windrow.kernels.advance import Ended
from windrow.spark.collected import frame_of_few
from windrow.spark.logs.session_streams import Stream
from windrow.streams import FOREVER

__all__ = ["Coming", "Given", "InstantSpan", "MicroBatch", "RetainedRows", "upwards"]


@dataclass(frozen=True)
class RetainedRows:
    """Rows to keep, and whether they are known to be few; `table` are the same in memory, where they are."""

    frame: DataFrame
    are_few: bool
    table: pa.Table | None = None

    @staticmethod
    def of(spark: SparkSession, table: pa.Table, schema: StructType) -> RetainedRows:
        """Rows that are in memory."""
        return RetainedRows(frame_of_few(spark, table, schema), True, table)

    @property
    def schema(self) -> StructType:
        """That of the rows."""
        return self.frame.schema

    def collected(self) -> pa.Table:
        """The rows in memory."""
        return self.frame.toArrow() if self.table is None else self.table


@dataclass(frozen=True)
class InstantSpan:
    """The instants of a step.

    Attributes
    ----------
    since, until
        Changes at ``since <= at < until`` are given, in ticks of the query's clock; None for the first.
    origin
        The logs' first instant.
    arrived
        Of each stream the rows that came, with those that were held; all are at `since` or later.
    before
        The rows kept by the last step, by name.
    keep
        Those that this one keeps, by name; filled in.
    are_few
        Whether the rows that came and those kept before are few.
    marks
        Instants that steps tell the next ones, by name, in ticks; changed.
    cached
        What Spark may forget when the step is taken; filled in.
    ended
        Of clauses by their keys: the partitions of which no more rows will come.
    """

    since: int | None
    until: int
    origin: int
    arrived: Mapping[str, Stream]
    before: Callable[[str], RetainedRows | None]
    keep: dict[str, RetainedRows] = field(default_factory=dict)
    are_few: bool = False
    marks: dict[str, int] = field(default_factory=dict)
    cached: list[DataFrame] = field(default_factory=list)
    ended: Mapping[str, Ended] = field(default_factory=dict)

    @property
    def ends(self) -> tuple[int, int]:
        """The first and last instants that the step knows."""
        return (self.origin if self.since is None else self.since - 1), self.until - 1


@dataclass
class Given:
    """What a part of a live query gives in a step.

    Attributes
    ----------
    rows
        The rows that it has not given before.
    tell
        Tells the instant, in ticks of its clock, before which no later step will give a row. It may take a
        job of Spark's.
    are_few
        Whether the rows are known to be few.
    """

    rows: DataFrame
    tell: Callable[[], int]
    are_few: bool
    _until: int | None = field(default=None, init=False)

    @property
    def until(self) -> int:
        """What is told."""
        if self._until is None:
            self._until = self.tell()
        return self._until


@dataclass(frozen=True)
class Coming:
    """What a stream gives in a step: rows that are new, with `ROWTIME` and what orders ties."""

    stream: Stream
    given: Given

    @property
    def rows(self) -> DataFrame:
        """The rows."""
        return self.given.rows

    def until(self, clock: Clock) -> int:
        """The instant before which no later step gives a row, on a clock."""
        return upwards(self.given.until, self.stream.clock, clock)


class MicroBatch(Protocol):
    """What is known in a micro-batch: its instants, and the streams that are evaluated in it, each once."""

    @property
    def span(self) -> InstantSpan:
        """The instants."""

    def coming(self, name: str) -> Coming:
        """What a stream gives that it has not given before."""


def upwards(tick: int, old: Clock, new: Clock) -> int:
    """The first tick of a clock that is not before one of another; the last of all stays it.

    >>> upwards(1001, Clock("bigint", "MILLISECOND"), Clock("bigint", "SECOND"))
    2
    """
    return tick if tick == FOREVER else -(-tick * old.nanoseconds // new.nanoseconds)
