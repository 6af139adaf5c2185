"""A CQL query in the form in which a micro-batch runs it in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.types import StructType

from windrow.algebra.continuous import WindowedStream
from windrow.algebra.time_scale import TimeScale
from windrow.kernels.incremental import BracketWindow, WindowInput, WindowOperator
from windrow.plan.nodes import Node
from windrow.spark.live.operators.window_flow import WindowQuery
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
    plan
        The query.
    sides
        Its one or two windows.
    operator
        Computes rows, groups or pairs from the windows.
    kind
        ISTREAM, DSTREAM or RSTREAM; None for the changes of the relation.
    names, result
        The columns of the query, and their types.
    is_net
        Whether no row enters at the instant at which an equal one leaves.
    shows
        The columns of the first side that the query returns unchanged.
    after
        For groups: the query that makes their rows from the operator's output; None if these are the keys and
        aggregates themselves.
    groups
        The columns that `after` reads, but for `ENTER` and `LEAVE`.
    over_windows
        Any other plan, whose operators process the rows that enter and leave the sides; None for those above.
    using
        The output columns by which ISTREAM and DSTREAM distinguish rows, if these are not all.
    is_stateless
        Whether the operators of `over_windows` retain nothing, as each row is looked at by itself.
    by_spark
        The computations of Spark between the operators of `over_windows`, in jobs; None if there are none.
    as_rows
        How its changes become the rows of a stream; None if the rows of its stream are those that enter or
        leave.
    """

    plan: Node
    sides: tuple[WindowedSide, ...]
    operator: WindowOperator
    kind: str | None
    names: tuple[str, ...]
    result: StructType
    is_net: bool
    shows: frozenset[str] = frozenset()
    after: SqlText | None = None
    groups: StructType = field(default_factory=StructType)
    over_windows: WindowQuery | None = None
    using: tuple[str, ...] = ()
    is_stateless: bool = False
    by_spark: str | None = None
    as_rows: ChangesAsRows | None = None

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
    def passes_on(self) -> bool:
        """Whether it passes rows on as they arrive, with columns computed from each."""
        return self.is_of_one_instant and all(side.made is None for side in self.sides)

    @property
    def is_of_one_instant(self) -> bool:
        """Whether each row of a stream is in it only at its rowtime."""
        alone = len(self.sides) == 1 and self.operator.aggregates is None and self.over_windows is None
        windows = [side.window for side in self.sides]
        are_now = all(one.length == 1 and one.slide is None and one.rows is None for one in windows)
        return self.kind == "RSTREAM" and are_now and (alone or self.is_stateless)
