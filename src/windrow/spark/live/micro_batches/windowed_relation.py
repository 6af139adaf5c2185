"""The relation of a CQL query in memory, on the driver: windows advance, and operators process what enters
and leaves them.

A window may be over the stream of another query. Then that query advances first, and its output enters the
window in the same micro-batch. Rows of a recorded stream enter at their instants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from windrow.algebra.time_scale import TimeScale
from windrow.kernels.incremental import (
    PER_MICRO_BATCH,
    InputState,
    Standing,
    Times,
    WindowValueError,
    changes,
    exceeding,
    instants_of,
    netted,
)
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.zset.relation import AT, DIFF, ENTER, LEAVE
from windrow.plan.arrow_types import is_orderable
from windrow.plan.nodes import StreamWindow
from windrow.spark.analysis.arrow_columns import travelling
from windrow.spark.analysis.collations import ranked
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.stored_tables import stored_tables
from windrow.spark.live.checkpoints.window_states import States
from windrow.spark.live.operators.envelopes import changes_as_rows, copies, copies_of
from windrow.spark.live.operators.window_flow import WindowFlow
from windrow.spark.live.reading.windowed_query import WindowedQuery, WindowedSide
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.relations.stream_windows import falls, wrong_distance
from windrow.spark.relations.time_varying_relation import columns_of
from windrow.syntax.sqltext import quoted

__all__ = ["WindowedRelation"]

Bools = npt.NDArray[np.bool_]


class WindowedRelation:
    """The relation of a query over its windows.

    Parameters
    ----------
    gateway
        The gateway of the session with the query's names.
    windowed
        The query.
    checkpoint
        The folder of the checkpoint.
    retained
        The retained columns of whole rows, for a window.
    scale
        The unit of the query's instants.
    name
        The name of the window that reads the query's stream; empty for the started query.
    """

    def __init__(
        self,
        gateway: Gateway,
        windowed: WindowedQuery,
        checkpoint: Path,
        retained: Callable[[WindowedSide, pa.Table], pa.Table],
        scale: TimeScale,
        name: str = "",
    ) -> None:
        self._gateway, self._windowed, self._checkpoint = gateway, windowed, checkpoint
        self._retained, self._scale, self._name = retained, scale, name
        self._standing, self._has_begun = Standing(), False
        self._inner = {
            side.name: WindowedRelation(gateway, side.made.query, checkpoint, retained, scale, side.name)
            for side in windowed.sides
            if side.made is not None and side.made.query is not None
        }

    def begin(
        self,
        states: States,
        frontier: int | None,
        origin: int | None,
        carried: tuple[int, Sequence[dict[str, Any]]] | None = None,
    ) -> None:
        """Restore the relation at a frontier, from the state of the windows.

        Parameters
        ----------
        carried
            The state of the operators at an earlier frontier, and that; then the windows have the rows since.
        """
        states = {name: state.awake() for name, state in states.items()}
        for inner in self._inner.values():
            inner.begin(states, frontier, origin)
        self._standing, self._has_begun = Standing(), frontier is not None
        if self._windowed.passes_on:
            return
        self._operators.empty()
        if frontier is None or origin is None:
            return
        since = None
        if carried is not None:
            since, state = carried
            self._operators.restore(state)
        if since == frontier:
            return
        times = Times(since, frontier)
        rows = self._flowed(states, times, origin)
        if self._windowed.kind == "RSTREAM":
            found = self._chosen(changes(rows, times), self._operators.columns)
            self._standing.advance(found, np.zeros(0, np.int64))

    @property
    def state(self) -> Sequence[dict[str, Any]]:
        """The state of the operators."""
        return self._operators.state

    @property
    def retained(self) -> int:
        """How many rows the operators retain."""
        return self._operators.retained

    def drop(self, states: Mapping[str, InputState], closed: Mapping[str, Bools], times: Times) -> States:
        """The state of windows without closed rows, which change nothing any more."""
        after, gone = dict(states), {}
        for side, window in self._windows:
            if side.name in closed:
                retained, rows = states[side.name].retained, closed[side.name]
                read = sorted(self._operators.read(window.key))
                gone[window.key] = retained.entered(rows & (retained.enter < times.until), times, read)
                after[side.name] = replace(states[side.name], retained=retained.where(~rows))
        self._operators.drop(gone)
        return after

    def advance(self, states: States, number: int, times: Times, origin: int) -> tuple[States, pa.Table]:
        """The state of windows after a micro-batch, and the changes in it: the columns, `AT` and `DIFF`.

        Parameters
        ----------
        states
            The states before it, with the new rows.
        origin
            The first instant of the streams.
        """
        states = dict(states)
        for side in self._windowed.sides:
            if side.made is not None:
                if side.made.query is None:
                    with self._gateway.translated():
                        rows = travelling(_recorded(side.made.stream, times)).toArrow()
                else:
                    inner, names = self._inner[side.name], side.made.columns
                    states, rows = inner.stream(states, number, times, origin, names)
                new_rows = self._retained(side, rows)
                states[side.name] = states[side.name].with_arrivals(new_rows, number * PER_MICRO_BATCH)
            states[side.name] = _advanced(side, states[side.name], times)
        found = self._changes(states, times, origin)
        for side in self._windowed.sides:
            states[side.name] = states[side.name].after(side.window_input, times)
        return states, found

    def passed(self, rows: Mapping[str, pa.Table], times: Times) -> pa.Table:
        """The changes if rows are emitted as they arrive, from the rows of each window."""
        moves = {}
        for side, window in self._windows:
            own = rows[side.name]
            at = own.column(ROWTIME)
            read = own.select(sorted(self._operators.read(window.key)))
            moves[window.key] = read.append_column(ENTER, at).append_column(LEAVE, pc.add(at, 1))
        with self._gateway.translated():
            found = self._operators.advance(moves, times, times.until)
        columns, at = [found.column(name) for name in self._operators.columns], found.column(ENTER)
        count = pa.array(np.ones(len(at), np.int64))
        return pa.Table.from_arrays(
            [*columns, at, count], names=[*columns_of(self._windowed.names), AT, DIFF]
        )

    def stream(
        self, states: States, number: int, times: Times, origin: int, names: Sequence[str]
    ) -> tuple[States, pa.Table]:
        """The same for a query that makes a stream, with its rows in order and `ROWTIME`."""
        states, found = self.advance(states, number, times, origin)
        keys = [AT, *(field.name for field in self._result if is_orderable(field.dataType))]
        form = self._windowed.as_rows
        if form is not None:
            compared = self._compared(copies_of(found))
            rows = changes_as_rows(copies_of(found), compared, form.key, keys[1:], self._scale, form.scale)
            return states, rows.rename_columns([*names, ROWTIME])
        rows = copies(found, self._windowed.sign)
        own = columns_of(self._windowed.names)
        order, _ = sorted_partitions(self._compared(rows), (), tuple(map(SortKey, keys)))
        rows = rows if order is None else rows.take(pa.array(order))
        return states, rows.select([*own, AT]).rename_columns([*names, ROWTIME])

    def first(self, until: int) -> int | None:
        """The first rowtime of the recorded streams before an instant."""
        firsts = [inner.first(until) for inner in self._inner.values()]
        for side in self._windowed.sides:
            if side.made is not None and side.made.query is None:
                rows = _recorded(side.made.stream, Times(None, until))
                firsts.append(rows.agg(F.min(ROWTIME)).collect()[0][0])
        return min((first for first in firsts if first is not None), default=None)

    @cached_property
    def _operators(self) -> WindowFlow:
        if self._windowed.query.tables:  # whose rows are those of the first start
            return self._planned()
        return self._windowed.flow.started(self._planned)

    def _planned(self) -> WindowFlow:
        query = self._windowed.query
        gateway = Gateway(self._gateway.spark, self._gateway.parameters)
        texts = {} if self._windowed.passes_on else query.tables  # whose results for rows are not read again
        tables = stored_tables(self._checkpoint, gateway, texts, has_begun=self._has_begun, of=self._name)
        return WindowFlow(gateway, query, self._checkpoint / f".flow{self._name}", tables)

    @property
    def _windows(self) -> Iterator[tuple[WindowedSide, StreamWindow]]:
        """The sides, and the same windows in the plan."""
        return zip(self._windowed.sides, self._windowed.query.windows, strict=True)

    def _flowed(self, states: Mapping[str, InputState], times: Times, origin: int) -> pa.Table:
        """The changes by the rows that enter or leave the windows in a micro-batch."""
        moves = {}
        for side, window in self._windows:
            read = sorted(self._operators.read(window.key))
            moves[window.key] = side.window_input.moving(states[side.name].retained, times, read)
        with self._gateway.translated():
            return self._operators.advance(moves, times, origin)

    def _changes(self, states: Mapping[str, InputState], times: Times, origin: int) -> pa.Table:
        windowed = self._windowed
        rows, is_net = self._flowed(states, times, origin), windowed.flow.is_net and not windowed.using
        one = windowed.sign if is_net and windowed.kind in ("ISTREAM", "DSTREAM") else None
        found = self._chosen(changes(rows, times, one), self._operators.columns)
        if windowed.kind == "RSTREAM":
            if windowed.is_of_one_instant:
                return found
            retained = [states[side.name].retained for side in windowed.sides]
            return self._standing.advance(found, instants_of(retained, times))
        found = found if is_net else netted(found, self._compared(found))
        if not windowed.using:
            return found
        return exceeding(found, windowed.using, windowed.sign, self._compared(found))

    @property
    def _result(self) -> StructType:
        """The columns of the query under internal names."""
        kinds = zip(columns_of(self._windowed.names), self._windowed.result, strict=True)
        return StructType([StructField(name, field.dataType) for name, field in kinds])

    def _compared(self, rows: pa.Table) -> pa.Table:
        """Rows of the query with the values by which they are compared."""
        with self._gateway.translated():
            return ranked(self._gateway.spark, rows, self._result)

    def _chosen(self, found: pa.Table, chosen: Sequence[str]) -> pa.Table:
        """Changes with the columns of the query in their order, under internal names."""
        columns = [*(found.column(name) for name in chosen), found.column(AT), found.column(DIFF)]
        return pa.Table.from_arrays(columns, names=[*columns_of(self._windowed.names), AT, DIFF])


def _advanced(side: WindowedSide, state: InputState, times: Times) -> InputState:
    """The state of a window with the rows before the frontier in it."""
    try:
        return state.advanced(side.window_input, times)
    except WindowValueError as error:
        raise (falls if error.falls else wrong_distance)(side.item) from None


def _recorded(stream: Stream, times: Times) -> DataFrame:
    """The due rows of a recorded stream."""
    rows = stream.frame.where(F.col(ROWTIME) < times.until)
    rows = rows if times.since is None else rows.where(F.col(ROWTIME) >= times.since)
    return rows.select(*map(quoted, (*stream.columns, ROWTIME, *stream.ties)))
