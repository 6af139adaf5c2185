"""Any plan over windows of live streams as a program, over the rows that enter or leave the windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructType

from windrow.algebra.time_scale import TimeScale
from windrow.kernels.incremental import Program, Times, UnmatchedError
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.nodes import Node, Scan, StreamWindow, walk
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.incremental_plan import IncrementalPlan, unstable
from windrow.spark.logs.session_streams import Stream
from windrow.spark.relations.carried import why_not_carried
from windrow.spark.relations.relation_of_plan import relation_of_plan
from windrow.spark.relations.time_varying_relation import TimeVarying, columns_of
from windrow.syntax.sqltext import SqlText

__all__ = ["WindowFlow", "WindowQuery"]


@dataclass(frozen=True)
class WindowQuery:
    """A plan whose inputs are windows of live streams.

    Attributes
    ----------
    streams
        The streams of its windows, by the names of their scans.
    plan, windows
        The plan, and its windows, each key once.
    scale
        The unit of its instants.
    """

    streams: Mapping[str, Stream]
    plan: Node
    windows: tuple[StreamWindow, ...]
    scale: TimeScale

    def columns(self, window: StreamWindow) -> dict[str, str]:
        """The internal names of a window's columns, with those of its stream."""
        own = self.streams[window.input.name].columns
        return dict(zip(columns_of(own), own, strict=True))

    @property
    def tables(self) -> dict[str, SqlText]:
        """The queries of the tables that it reads, by the names of their scans."""
        scans = [one for one in walk(self.plan) if isinstance(one, Scan)]
        return {one.name: one.table for one in scans if one.table is not None}


class WindowFlow:
    """The operators of such a query.

    Parameters
    ----------
    gateway
        The gateway of the query's session, for the plan alone.
    query
        The query.
    folder
        For files of a micro-batch.
    tables
        The rows of tables, by the names of their scans; others are read when their rows are needed.

    Attributes
    ----------
    why_not
        The part of the query that has no operator; None if there is none.
    columns
        The internal names of its output, in order.
    """

    def __init__(
        self,
        gateway: Gateway,
        query: WindowQuery,
        folder: Path,
        tables: Mapping[str, DataFrame] = MappingProxyType({}),
    ) -> None:
        gateway.plan_only = True
        self._operators, self._leaves = IncrementalPlan(gateway, folder), dict[str, int]()
        self.columns: list[str] = []
        self.why_not = self._planned(gateway, query, tables)
        if self.why_not is None:
            self.empty()

    def _window(self, query: WindowQuery, window: StreamWindow) -> TimeVarying:
        """The rows of a window, as a leaf."""
        stream, schema = query.streams[window.input.name], StructType()
        for inside, name in query.columns(window).items():
            schema = schema.add(inside, stream.frame.schema[name].dataType)
        never_leaves = window.window.is_unbounded and window.window.rows is None
        times = schema.add(ENTER, LongType()).add(LEAVE, LongType())
        self._leaves[window.key], rows = self._operators.leaf(times, appends=never_leaves)
        return TimeVarying.of(rows, query.scale, [stream]).renamed(tuple(stream.columns))

    def _planned(self, gateway: Gateway, query: WindowQuery, tables: Mapping[str, DataFrame]) -> str | None:
        if (why := why_not_carried(gateway, query.plan)) is not None:
            return str(why)
        inputs = {window.key: self._window(query, window) for window in query.windows}
        found = relation_of_plan(gateway, query.plan, query.scale, inputs, tables)
        self.columns = list(found.columns)
        self._operators.output(found.frame)
        return self._operators.why_not

    @property
    def program(self) -> Program:
        """Its operators and the computations between them; its leaves are the windows."""
        return self._operators.program

    def leaf(self, key: str) -> int:
        """The leaf of a window, by its key."""
        return self._leaves[key]

    def empty(self) -> None:
        """Drop all state."""
        self._operators.run.empty()

    def read(self, key: str) -> frozenset[str]:
        """The internal names of the columns of a window that are read."""
        return self._operators.read(self._leaves[key]) - {ENTER, LEAVE}

    def advance(self, moves: Mapping[str, pa.Table], times: Times, origin: int) -> pa.Table:
        """The rows that enter and leave the relation in a micro-batch: its columns, `ENTER` and `LEAVE`.

        Parameters
        ----------
        moves
            The rows that enter or leave each window, by its key, with both times.
        origin
            The first instant of the streams.

        Raises
        ------
        ExecutionError
            ``UNSTABLE_VALUES`` if the query computes other values for a row that leaves than
            when it arrived.
        """
        leaves = {self._leaves[key]: rows for key, rows in moves.items()}
        try:
            (rows,) = self._operators.advance(leaves, times, origin if times.since is None else None)
        except UnmatchedError as error:
            raise unstable(error) from None
        return rows
