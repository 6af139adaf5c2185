"""A CQL query in the form in which a micro-batch runs it in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from windrow.algebra.continuous import WindowedStream
from windrow.algebra.time_scale import TimeScale
from windrow.kernels.incremental import BracketWindow, WindowInput
from windrow.plan.nodes import Node
from windrow.spark.live.operators.window_flow import KeysOfWindows, WindowFlow, WindowQuery, never_leaves
from windrow.spark.logs.session_streams import Stream
from windrow.syntax.sqltext import SqlText

__all__ = ["MINE", "ChangesAsRows", "MadeStream", "WindowedQuery", "WindowedSide"]

MINE = "__mine"
"""Whether an entry is a row of the stream: not of another stream, and not only a bound or tick."""


@dataclass(frozen=True)
class WindowedSide:
    """A window of a live stream.

    Attributes
    ----------
    stream
        Whose rows they are, in lower case.
    columns
        The retained columns: internal names, and the stream's columns; `ROWTIME` is retained too.
    computed
        The query that computes further columns of the rows, whose key in the text is ``__w``; and the names
        in it of the stream's columns. Those rows also have `MINE`; if it is false, nothing is computed. The
        output has all their columns, followed by the computed ones.
    window_input
        Its input of the operator.
    item
        How it is written.
    made
        The stream that it is over, if a query makes it or it is recorded; None for rows that arrive.
    """

    stream: str
    columns: Mapping[str, str]
    computed: tuple[SqlText, tuple[str, ...]] | None
    window_input: WindowInput
    item: WindowedStream
    made: MadeStream | None

    @property
    def name(self) -> str:
        """The name of its state, in the checkpoint."""
        return self.window_input.name

    @property
    def window(self) -> BracketWindow:
        """When rows enter and leave."""
        return self.window_input.window

    @property
    def schema(self) -> pa.Schema:
        """The schema of its state in memory."""
        return self.window_input.schema


@dataclass(frozen=True)
class MadeStream:
    """A stream whose rows do not arrive: a query makes them, or they are recorded.

    Attributes
    ----------
    query
        The query; None for a recorded stream.
    stream
        Its columns; for a recorded stream its rows, with rowtimes in ticks of the query's time scale.
    """

    query: WindowedQuery | None
    stream: Stream

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.stream.columns)

    @property
    def schema(self) -> StructType:
        """The columns."""
        return StructType([self.stream.frame.schema[name] for name in self.columns])


@dataclass(frozen=True)
class ChangesAsRows:
    """``CHANGELOG OF``: the unit of its versions and times, and the internal columns of KEY."""

    scale: TimeScale
    key: tuple[str, ...]


@dataclass(frozen=True)
class WindowedQuery:
    """A query in the form in which a micro-batch runs it.

    Attributes
    ----------
    query
        Its plan, over its windows.
    flow
        The operators of the plan, which process the rows that enter and leave the windows.
    sides
        The windows.
    kind
        ISTREAM, DSTREAM or RSTREAM; None for the changes of the relation.
    names, result
        The columns of the query, and their types.
    by_spark
        The computations of Spark between its operators, in jobs; None if there are none.
    using
        The output columns by which ISTREAM and DSTREAM distinguish rows, if these are not all.
    as_rows
        How its changes become the rows of a stream; None if the rows of its stream are those that enter or
        leave.
    """

    query: WindowQuery
    flow: WindowFlow
    sides: tuple[WindowedSide, ...]
    kind: str | None
    names: tuple[str, ...]
    result: StructType
    by_spark: str | None = None
    using: tuple[str, ...] = ()
    as_rows: ChangesAsRows | None = None

    @property
    def plan(self) -> Node:
        """Its plan."""
        return self.query.plan

    @property
    def windows(self) -> list[WindowedSide]:
        """All windows, including those of the queries whose streams it reads."""
        made = [side.made.query for side in self.sides if side.made is not None]
        inner = [query for query in made if query is not None]
        return [*(one for query in inner for one in query.windows), *self.sides]

    @property
    def sign(self) -> int:
        """The sign of the changes that become rows of its stream."""
        return -1 if self.kind == "DSTREAM" else 1

    @property
    def keys(self) -> KeysOfWindows | None:
        """The keys by which rows are closed; None if none are, as RSTREAM emits all rows at each instant."""
        return None if self.kind == "RSTREAM" else self.flow.keys

    @property
    def only_grows(self) -> bool:
        """Whether no operator reads a row as it leaves a window, so that their state can replace all rows."""
        pairs = zip(self.sides, self.query.windows, strict=True)
        are_read_once = all(side.window_input.at_arrival or never_leaves(window) for side, window in pairs)
        return are_read_once and self.kind != "RSTREAM"

    @property
    def passes_on(self) -> bool:
        """Whether it passes rows on as they arrive, with columns computed from each."""
        return self.is_of_one_instant and all(side.made is None for side in self.sides)

    @property
    def is_of_one_instant(self) -> bool:
        """Whether each row of a stream is in it only at its rowtime."""
        windows = [side.window for side in self.sides]
        are_now = all(one.length == 1 and one.slide is None and one.rows is None for one in windows)
        return self.kind == "RSTREAM" and are_now and self.flow.is_stateless
