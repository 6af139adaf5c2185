"""The rows that a query with EMIT retains in memory, and the chunks of the checkpoint that they are in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.kernels.incremental import InputState, TimedRows
from windrow.kernels.zset.relation import NEVER
from windrow.kernels.zset.time_windows import of_ticks
from windrow.plan.event_time import Closed, ClosedBy, ClosedKeys
from windrow.spark.analysis.arrow_columns import in_memory
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import Checkpoint, CommittedBatch
from windrow.spark.live.micro_batches.session_rows import final_at_once, final_rows, may_be_final, numbered
from windrow.spark.live.operators.watermark_conditions import WatermarkConditions
from windrow.spark.live.plans.emit_queries import EmittedPlan, KnownWatermarks
from windrow.spark.logs.session_streams import ARRIVED, NUMBER, ROWTIME
from windrow.spark.recorded.punctuation_times import PunctuationTimes
from windrow.streams.entries import BEFORE

__all__ = ["FINAL_FROM", "ROWS", "EmittedRows", "entering", "with_rows"]

Bools = npt.NDArray[np.bool_]

ROWS = "rows-"
"""The prefix of the name for the retained rows of a stream."""
FINAL_FROM = 1000
"""The number of rows from which on rows of final sessions are searched for."""


@dataclass
class EmittedRows:
    """The retained rows of the streams of a query, and which of them are no longer needed.

    Parameters
    ----------
    plan
        The query.
    checkpoint
        Where the rows are.
    conditions
        The conditions on watermarks so far.
    gateway
        Makes one for a micro-batch.
    read
        The columns of a stream that the operators read.
    """

    plan: EmittedPlan
    checkpoint: Checkpoint
    conditions: WatermarkConditions
    gateway: Callable[[], Gateway]
    read: Callable[[str], Sequence[str]]
    _left_at_check: dict[str, int] = field(default_factory=dict)  # how many rows were left at the last check

    def after(self, committed: CommittedBatch, name: str) -> InputState:
        """The rows of a stream that a micro-batch retained."""
        chunks = committed.chunks.get(f"{ROWS}{name}", {})
        schema = in_memory(self._schema_of(name))
        none = np.zeros(0, np.int64)
        empty = schema.empty_table()
        state = InputState(TimedRows.of(empty, none, none, none), empty, none)
        for chunk, count in chunks.items():
            table = self.checkpoint.read_chunk(f"{ROWS}{name}", int(chunk))
            retained = _retained(table.select(schema.names), int(chunk))
            state = replace(state, retained=state.retained.with_rows(retained))
            state = replace(state, chunks={**state.chunks, int(chunk): count})
        return state

    def whole(self, name: str, rows: pa.Table) -> tuple[pa.Table, StructType]:
        """The retained rows of a stream, with its other columns as NULL: nothing reads them."""
        stream, schema = self.plan.catalog.streams[name], StructType()
        for column in stream.columns:
            kind = stream.frame.schema[column]
            if column not in rows.column_names:
                kind = StructField(column, kind.dataType)
                nothing = pa.nulls(rows.num_rows, in_memory(StructType([kind])).field(0).type)
                rows = rows.append_column(column, nothing)
            schema = schema.add(kind)
        schema = _with_times(schema)
        return rows.select(schema.names), schema

    def columns(self, name: str) -> list[str]:
        """The columns of a stream that the query reads, and its rowtime column, which decides which rows are
        needed.
        """
        stream, read = self.plan.catalog.streams[name], self.read(name)
        rowtime = (stream.rowtime or "").lower()
        return [column for column in stream.columns if column in read or column.lower() == rowtime]

    def _schema_of(self, name: str) -> StructType:
        """The retained columns of a stream."""
        kinds = self.plan.catalog.streams[name].frame.schema
        read = StructType([kinds[column] for column in self.columns(name)])
        return _with_times(read)

    def left(
        self,
        rows: Mapping[str, InputState],
        marks: Mapping[str, Marks],
        punctuation: PunctuationTimes,
        frontier: int | None,
        carried: int | None,
    ) -> dict[str, InputState]:
        """The rows that are needed after a micro-batch; without those that arrived by `carried`, which the
        state of the operators includes.
        """
        if carried is not None:
            return {
                name: replace(state, retained=state.retained.where(state.retained.enter > carried))
                for name, state in rows.items()
            }
        if frontier is None or self.plan.needs_all:
            return dict(rows)
        left = {}
        for name, state in rows.items():
            gone = state.retained.enter <= frontier
            if not self.plan.emits_at_once:
                gone &= self._is_over(name, state, marks, punctuation, frontier)
            left[name] = replace(state, retained=state.retained.where(~gone)) if gone.any() else state
        return left

    def _is_over(
        self,
        name: str,
        state: InputState,
        marks: Mapping[str, Marks],
        punctuation: PunctuationTimes,
        frontier: int,
    ) -> Bools:
        """Whether no change depends on rows any more."""
        if self.plan.has_sessions:
            return self._is_final(name, state, marks, frontier)
        rows, groupings = state.retained.rows, self.plan.closings(name)
        closed = [self._is_closed(grouping, punctuation, rows, frontier) for grouping in groupings]
        if not any(each is not None for each in closed):
            return self._in_time(name, groupings, state, marks, frontier)
        over = np.ones(rows.num_rows, bool)
        for grouping, each in zip(groupings, closed, strict=True):
            in_time = self._in_time(name, [grouping], state, marks, frontier)
            over &= in_time if each is None else in_time | each
        return over

    def _is_closed(
        self, grouping: Sequence[ClosedBy], punctuation: PunctuationTimes, rows: pa.Table, frontier: int
    ) -> Bools | None:
        """Which rows are in groups that punctuation has closed; None if there is no punctuation for them."""
        places = self.plan.places
        closing = [
            each for each in grouping if isinstance(each, Closed) and punctuation.may_close(each, places)
        ]
        if not closing:
            return None
        over: Bools = np.logical_or.reduce(
            [punctuation.over(each, places, rows) <= frontier - self.plan.delay for each in closing]
        )
        return over

    def _in_time(
        self,
        name: str,
        groupings: Sequence[Sequence[ClosedBy]],
        state: InputState,
        marks: Mapping[str, Marks],
        frontier: int,
    ) -> Bools:
        """Whether no change depends on rows any more, by the watermark."""
        ticks = state.retained.rows.column(ROWTIME).to_numpy()
        mark = self.plan.mark_of(name, marks, frontier)
        in_time = all(any(isinstance(each, ClosedKeys) for each in grouping) for grouping in groupings)
        if mark is None or not len(ticks) or not in_time:
            return np.zeros(len(ticks), bool)
        stream = self.plan.catalog.streams[name]
        kind = stream.frame.schema[stream.rowtime or ""]
        type_ = in_memory(StructType([kind])).field(0).type
        condition = partial(self.plan.over, groupings, name)
        key = name, *map(tuple, groupings)

        def passed(ticks: npt.NDArray[np.int64]) -> Bools:
            return self.conditions.is_true_at(key, kind, condition, of_ticks(ticks, type_), mark)

        # up to the first that is not: local times fall when summer time ends
        if not passed(ticks.min(keepdims=True)).all():
            return np.zeros(len(ticks), bool)
        is_over = passed(ticks)
        return is_over if is_over.all() else ticks < ticks[~is_over].min()

    def _is_final(self, name: str, state: InputState, marks: Mapping[str, Marks], frontier: int) -> Bools:
        """The same for rows in sessions. This takes a query, which runs when the rows have doubled."""
        retained = state.retained
        gone = np.zeros(retained.rows.num_rows, bool)
        if retained.alive.sum() < max(2 * self._left_at_check.get(name, 0), FINAL_FROM):
            return gone
        places = np.flatnonzero(retained.alive)
        alive = retained.rows.take(pa.array(places)).combine_chunks()
        at_once = final_at_once(self.plan, self.conditions, name, alive, marks, frontier)
        if at_once is not None:
            gone[places[at_once]] = True
            if at_once.any():
                self._left_at_check[name] = int(retained.alive.sum() - gone.sum())
            return gone
        oldest = (
            places[[retained.rows.column(ROWTIME).to_numpy()[places].argmin()]] if len(places) else places
        )
        first = numbered(self.gateway(), *self.whole(name, retained.rows.take(pa.array(oldest))))
        if not may_be_final(self.plan, name, first, marks, frontier):
            return gone
        rows = numbered(self.gateway(), *self.whole(name, retained.rows.take(pa.array(places))))
        over = final_rows(
            self.plan, self.gateway(), name, KnownWatermarks(rows, marks[name]), marks, frontier
        )
        if over is not None:
            gone[places[over.toArrow().column(NUMBER).to_numpy()]] = True
        self._left_at_check[name] = int(retained.alive.sum() - gone.sum())
        return gone


def entering(retained: TimedRows, since: int | None, until: int) -> Bools:
    """The rows that arrive after one processing time, up to another."""
    entering: Bools = retained.alive & (retained.enter <= until)
    if since is not None:
        entering &= retained.enter > since
    return entering


def _with_times(schema: StructType) -> StructType:
    """The columns of rows, and their added times."""
    return schema.add(ROWTIME, LongType()).add(ARRIVED, LongType()).add(BEFORE, LongType())


def _retained(table: pa.Table, chunk: int) -> TimedRows:
    arrived = table.column(ARRIVED).to_numpy()
    count = len(arrived)
    return TimedRows.of(table, arrived, np.full(count, NEVER), np.full(count, chunk))


def with_rows(state: InputState, rows: pa.Table, number: int) -> InputState:
    """The state with more arrived rows."""
    if not rows.num_rows:
        return state
    schema = state.retained.rows.schema
    chunk = number * 1000
    retained = state.retained.with_rows(
        _retained(rows.select(schema.names).cast(schema).combine_chunks(), chunk)
    )
    return replace(state, retained=retained, chunks={**state.chunks, chunk: rows.num_rows})
