"""What tasks are told of a live query: its streams, its windows, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windrow.kernels.stages import Block
from windrow.streams import Ordering

__all__ = ["Task", "TaskSide", "TaskStream"]


@dataclass(frozen=True)
class TaskStream:
    """A stream.

    Attributes
    ----------
    name
        As the session knows it.
    number
        By which its entries are told from those of others.
    ordering
        What a row says of later ones.
    ticks
        How many ticks of the query's clock are one of the stream's.
    rowtime, bound
        The columns of entries that say so; the second is None where none does.
    columns
        The columns of the stream, and those that entries have for them.
    """

    name: str
    number: int
    ordering: Ordering
    ticks: int
    rowtime: str
    bound: str | None
    columns: Mapping[str, str]


@dataclass(frozen=True)
class TaskSide:
    """A window.

    Attributes
    ----------
    stream
        The place of its stream among those of the task.
    columns
        What is kept of its rows: names in the window, and those that entries have.
    key
        The columns of the window by which rows are divided; none where one bucket has all of them.
    is_first
        Whether it is the first window of its stream, which counts the rows, and gives those that are late.
    """

    stream: int
    columns: Mapping[str, str]
    key: tuple[str, ...]
    is_first: bool


@dataclass(frozen=True)
class Task:
    """A query.

    Attributes
    ----------
    query
        What tells it from others, as text.
    streams, sides
        What it reads; the sides in the order of the block's.
    block
        What is made of the windows.
    origin
        The columns that say in which part of a file an entry is; none where entries come from no files.
    stream
        The column of the stream's number; None where there is one stream.
    buckets
        The numbers of the buckets, of which Spark gives each to another task.
    passes_on
        Whether rows are given as they are at their rowtimes, and no window holds them.
    """

    query: str
    streams: tuple[TaskStream, ...]
    sides: tuple[TaskSide, ...]
    block: Block
    origin: tuple[str, ...]
    stream: str | None
    buckets: tuple[int, ...]
    passes_on: bool
