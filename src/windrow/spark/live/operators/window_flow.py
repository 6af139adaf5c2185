"""Any plan over windows of live streams as a program, over the rows that enter or leave the windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructType

from windrow.algebra.time_scale import TimeScale
from windrow.kernels.incremental import (
    Program,
    ProgramFragment,
    Run,
    RunningGroups,
    Times,
    TumblingGroups,
    UnmatchedError,
    over_panes,
)
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.nodes import Node, Scan, StreamWindow, walk
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.incremental_plan import IncrementalPlan, unstable
from windrow.spark.logs.session_streams import Stream
from windrow.spark.relations.carried import why_not_carried
from windrow.spark.relations.relation_of_plan import relation_of_plan
from windrow.spark.relations.time_varying_relation import TimeVarying, columns_of
from windrow.syntax.sqltext import SqlText

__all__ = ["KeysOfWindows", "WindowFlow", "WindowQuery", "never_leaves"]


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
    tumbling
        The lengths of tumbling windows, in that unit, by their keys.
    """

    streams: Mapping[str, Stream]
    plan: Node
    windows: tuple[StreamWindow, ...]
    scale: TimeScale
    tumbling: Mapping[str, int] = field(default_factory=dict)

    def columns(self, window: StreamWindow) -> dict[str, str]:
        """The internal names of a window's columns, with those of its stream."""
        own = self.streams[window.input.name].columns
        return dict(zip(columns_of(own), own, strict=True))

    @property
    def tables(self) -> dict[str, SqlText]:
        """The queries of the tables that it reads, by the names of their scans."""
        scans = [one for one in walk(self.plan) if isinstance(one, Scan)]
        return {one.name: one.table for one in scans if one.table is not None}


def never_leaves(window: StreamWindow) -> bool:
    """Whether rows stay in a window for ever."""
    return window.window.is_unbounded and window.window.rows is None


@dataclass(frozen=True)
class KeysOfWindows:
    """How a query with at most one operator reads its windows.

    Attributes
    ----------
    grouped
        The columns of its only window by which groups are made; None without groups.
    joined
        The columns of each of two windows that are equal in pairs; None if it joins nothing.
    """

    grouped: tuple[str, ...] | None = None
    joined: tuple[tuple[str, ...], tuple[str, ...]] | None = None


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
    is_net
        Whether no row enters at the instant at which an equal one leaves.
    run
        The operators with their state.
    """

    run: Run

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
        self.is_net = False
        self.why_not = self._planned(gateway, query, tables)
        if self.why_not is None:
            self.run = Run(over_panes(self.program), self._operators.by_spark)

    def started(self, again: Callable[[], WindowFlow]) -> WindowFlow:
        """The same operators without state, for a query that starts.

        `again` plans them once more, where Spark's tasks can read the rows of a micro-batch. That is needed
        only if Spark computes anything.
        """
        other = copy(self)
        planned: list[WindowFlow] = []

        def by_spark(fragment: ProgramFragment, read: Mapping[int, pa.Table]) -> pa.Table:
            if not planned:
                planned.append(again())
            return planned[0]._operators.by_spark(fragment, read)

        other.run = Run(over_panes(self.program), by_spark)
        return other

    def _window(self, query: WindowQuery, window: StreamWindow) -> TimeVarying:
        """The rows of a window, as a leaf."""
        stream, schema = query.streams[window.input.name], StructType()
        for inside, name in query.columns(window).items():
            schema = schema.add(inside, stream.frame.schema[name].dataType)
        times = schema.add(ENTER, LongType()).add(LEAVE, LongType())
        self._leaves[window.key], rows = self._operators.leaf(
            times, appends=never_leaves(window), tumbling=query.tumbling.get(window.key)
        )
        found = TimeVarying.of(rows, query.scale, [stream], net_by=_net_by(query, window, stream))
        return found.renamed(tuple(stream.columns))

    def _planned(self, gateway: Gateway, query: WindowQuery, tables: Mapping[str, DataFrame]) -> str | None:
        if (why := why_not_carried(gateway, query.plan)) is not None:
            return str(why)
        inputs = {window.key: self._window(query, window) for window in query.windows}
        found = relation_of_plan(gateway, query.plan, query.scale, inputs, tables)
        self.columns, self.is_net = list(found.columns), found.net_by is not None
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
        self.run.empty()

    @property
    def at_arrival(self) -> frozenset[str]:
        """The keys of the windows whose rows its operators read as they arrive."""
        leaves = {node.sides[0].leaves[0] for node in self.program.nodes if node.tumbling is not None}
        return frozenset(key for key, leaf in self._leaves.items() if leaf in leaves)

    @property
    def is_stateless(self) -> bool:
        """Whether the operators retain nothing, as each row is looked at by itself."""
        return not self.program.nodes and self.program.beginning is None

    @property
    def has_numbers(self) -> bool:
        """Whether all operators retain numbers for each key, and no rows, while none leaves."""
        return all(isinstance(one, RunningGroups | TumblingGroups) for one in self.run.operators)

    @property
    def retained(self) -> int:
        """How many rows the operators retain."""
        return self.run.retained

    @property
    def state(self) -> Sequence[dict[str, Any]]:
        """The state of the operators."""
        return self.run.state

    def restore(self, state: Sequence[dict[str, Any]]) -> None:
        """Restore the state, as :meth:`windrow.kernels.incremental.Run.restore`."""
        self.run.restore(state)

    @property
    def keys(self) -> KeysOfWindows | None:
        """How it reads its windows; None for several operators, or keys that are computed."""
        if not self.program.nodes:
            return KeysOfWindows() if len(self._leaves) == 1 else None
        if len(self.program.nodes) > 1 or self.program.beginning is not None:
            return None
        (node,) = self.program.nodes
        found = [_origins(side, node.operator.keys) for side in node.sides]
        leaves = [leaf for side in node.sides for leaf in side.leaves]
        if None in found or leaves != [*self._leaves.values()]:
            return None
        columns = [one for one in found if one is not None]
        if node.operator.name == "group" and len(columns) == 1:
            return KeysOfWindows(grouped=columns[0])
        return KeysOfWindows(joined=(columns[0], columns[1])) if node.operator.name == "join" else None

    def drop(self, rows: Mapping[str, pa.Table]) -> None:
        """Drop rows that change nothing any more, by the keys of their windows, with their times.

        The query has :attr:`keys`.
        """
        leaves = {self._leaves[key]: one for key, one in rows.items()}
        self.run.drop(leaves)

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
            (rows,) = self.run.advance(leaves, times, origin if times.since is None else None)
        except UnmatchedError as error:
            raise unstable(error) from None
        return rows


def _net_by(query: WindowQuery, window: StreamWindow, stream: Stream) -> frozenset[str] | None:
    """The rowtime, if rows enter at it: no equal row leaves at that instant."""
    bracket = window.window
    moves_late = bracket.slide is not None or (bracket.row_slide or 1) > 1
    names = {name: inside for inside, name in query.columns(window).items()}
    rowtime = None if moves_late or stream.rowtime is None else names.get(stream.rowtime)
    return None if rowtime is None else frozenset([rowtime])


def _origins(side: ProgramFragment, names: Sequence[str]) -> tuple[str, ...] | None:
    """The columns of a leaf that a fragment has under these names; None if some are computed."""
    if side.chosen is not None:
        columns = dict(zip(side.schema.names, side.chosen, strict=True))
        return tuple(columns[name] for name in names)
    if side.computed is None:
        return None
    found = [side.computed.origin(name) for name in names]
    columns_of_leaf = [one for one in found if one is not None]
    return tuple(columns_of_leaf) if len(columns_of_leaf) == len(names) else None
