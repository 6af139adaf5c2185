"""The micro-batches of a CQL query, in memory on the driver: windows advance, and operators process what
enters and leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    LongType,
    StructField,
    StructType,
)

from windrow.kernels.incremental import (
    PER_MICRO_BATCH,
    InputState,
    Times,
)
from windrow.kernels.operator_state import Carried, StateInChunks
from windrow.spark.collected import frame_of_collected
from windrow.spark.live.checkpoints.carried_state import carried_bytes, carried_in, with_carried
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.checkpoints.window_states import WindowStates
from windrow.spark.live.input.entry_columns import inside
from windrow.spark.live.micro_batches.clauses_behind import Arrived, ClausesBehind
from windrow.spark.live.micro_batches.entry_reader import CollectedBatch, EntryReader
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.live.micro_batches.output import RowsForSink, RowsForStream
from windrow.spark.live.micro_batches.query_steps import Advanced, Retained, Steps
from windrow.spark.live.micro_batches.windowed_columns import WindowedColumns
from windrow.spark.live.micro_batches.windowed_relation import WindowedRelation
from windrow.spark.live.operators.ended_partitions import ClosedPartitions, closings_of, watermarks_of
from windrow.spark.live.operators.envelopes import IN_MEMORY, copies, enveloped, inserted
from windrow.spark.live.plans.live_plan import ContinuousPlan
from windrow.spark.live.reading.closed_keys import ClosingWindows
from windrow.spark.live.reading.windowed_query import WindowedSide
from windrow.spark.live.reports.state_table import QueryState, RetainedRowsOf, in_windows, state_of
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.relations.changelog import as_cql
from windrow.spark.relations.time_varying_relation import columns_of

__all__ = ["WindowedSteps"]

_PASSED = "passed"
"""The name of the mark of a query that passes rows on: all rows before this instant have been emitted."""


class WindowedSteps(Steps[CollectedBatch]):
    """Runs a CQL query.

    Parameters
    ----------
    plan
        The query.
    context
        Its sink and checkpoint.
    """

    def __init__(self, plan: ContinuousPlan, context: LiveContext) -> None:
        self._plan, self._context = plan, context
        self._windowed, self._forgets = plan.windowed, plan.forgets
        self._entries = EntryReader(context, self._reading)
        self._closed, self._may_be_final = ClosedPartitions(closings_of(plan.ends)), False
        self._closing = ClosingWindows.of(plan.windowed)
        inputs = [side.window_input for side in self._windowed.windows]
        self._state_of_windows = WindowStates(context.checkpoint, inputs)
        self._carried: Carried | None = None
        self._in_chunks = StateInChunks()
        self._relation = WindowedRelation(
            self._context.gateway,
            self._windowed,
            self._context.checkpoint.folder.resolve(),
            self._columns.rows,
            self._context.scale,
        )
        self._behind: ClausesBehind | None = None
        if plan.follows:
            streams = {name: stream for _, name, stream in self._context.streams()}
            read = {side.stream for side in self._sides}
            self._behind = ClausesBehind(
                plan, read, streams, self._context.checkpoint, self._closed, self._read_by_windows
            )

    @property
    def _sides(self) -> list[WindowedSide]:
        """The windows of live streams, and of the output of clauses."""
        return [side for side in self._windowed.windows if side.made is None]

    def release(self) -> None:
        """Release the caches of clauses for a micro-batch."""
        if self._behind is not None:
            self._behind.drop_cached()

    def judge(self, batch: DataFrame, before: CommittedBatch) -> CollectedBatch:
        """Read the entries, and judge them."""
        return self._entries.read(batch, before)

    def advance(self, collected: CollectedBatch, number: int, before: CommittedBatch) -> Advanced:
        """Advance the windows, and the operators over them."""
        found, positions = collected.found, collected.positions
        is_known = self._state_of_windows.is_known(before)
        states = self._states(before)
        if not is_known:
            self._carried = carried_in(before)
            state = None
            if self._carried is not None:
                state = self._carried.at, self._in_chunks.read(self._context.checkpoint, self._carried)
            self._relation.begin(states, before.frontier, before.origin, state)
        self._state_of_windows.forget()
        closes = self._closed.take(number, before.number, *map(watermarks_of, (before.positions, positions)))
        behind, row_count = self._behind, sum(one.rows.num_rows for one in found.values())
        waited = self._waiting(states) + row_count + (0 if behind is None else behind.waiting(before))
        until = self._context.frontier(positions)
        if behind is None:
            arrived = Arrived({name: one.rows for name, one in found.items()}, until)
        else:
            waiting = [one.waiting for one in states.values()]
            arrived = behind.arrived(collected, waiting, until, before, closes=closes)
        new_rows = {side.name: self._columns.rows(side, arrived.rows[side.stream]) for side in self._sides}
        until, output = arrived.until, None
        origin = before.origin if arrived.origin is None else arrived.origin
        reached = None if until is None else self._plan.upper_bound(until)
        if reached is not None and origin is None:
            waiting = [*(one.waiting for one in states.values()), *new_rows.values()]
            firsts = [pc.min(rows.column(ROWTIME)).as_py() for rows in waiting]
            firsts.append(self._relation.first(reached))
            origin = min((first for first in firsts if first is not None and first < reached), default=None)
        frontier, marks = before.frontier, {**before.marks, **arrived.marks}
        moved = until is not None and (frontier is None or until > frontier)
        moved = moved or (self._windowed.passes_on and any(rows.num_rows for rows in new_rows.values()))
        if moved and until is not None and reached is not None and origin is not None and origin < reached:
            times = Times(frontier, reached)
            states, changed = self._advanced(states, new_rows, number, times, origin)
            output = self._output(changed, until)
            frontier = until
            if self._windowed.passes_on:
                marks[_PASSED] = reached
        else:
            states = _with(states, new_rows, number)
        used = waited - self._waiting(states) - arrived.waiting
        if (closes or self._may_be_final) and self._closing is not None and frontier is not None:
            states = {name: state.awake() for name, state in states.items()}
            closed, self._may_be_final = self._closing.closed_rows(states, self._closed)
            states = self._relation.drop(states, closed, Times(frontier, frontier))
        counts = collected.counts(before, used)
        manifest = CommittedBatch(number, positions, frontier, origin, counts, arrived.chunks, marks=marks)
        return Advanced(output, partial(self._store, manifest, states))

    def _store(self, manifest: CommittedBatch, states: dict[str, InputState]) -> CommittedBatch:
        """Write the state after a micro-batch; returns its manifest with the chunks."""
        number = manifest.number
        if manifest.frontier is not None and self._state_may_replace_rows:
            states = self._carried_over(states, manifest.frontier, number)
        chunks = self._state_of_windows.write(states, number)
        manifest = replace(manifest, chunks={**manifest.chunks, **chunks})
        return with_carried(manifest, self._carried)

    def retained(self, committed: CommittedBatch) -> Retained:
        """The rows buffered for windows and clauses, and those that they retain."""
        if (known := Retained.known(committed)) is not None:
            return known
        states, behind = self._states(committed), self._behind
        after = {} if behind is None else behind.state.counts(committed)
        waiting = self._waiting(states) + (0 if behind is None else behind.waiting(committed))
        rows = sum(state.count for state in states.values())
        rows += sum(count for name, count in after.items() if name.startswith("window"))
        carried = carried_in(committed)
        return Retained(waiting, rows + (0 if carried is None else carried.rows))

    def state(self, committed: CommittedBatch) -> QueryState:
        """The state after a micro-batch."""
        states = self._states(committed)
        if self._behind is not None:
            sources, clauses = self._behind.state.reported(committed)
            windows = {**clauses, **self._in_windows(committed, states)}
            return state_of(self._plan, committed, sources, windows, operators=self._operators_of(committed))
        waiting = {side.stream: states[side.name].waiting.column(ROWTIME) for side in self._sides}
        retained = {name: RetainedRowsOf.of(rowtimes, None) for name, rowtimes in waiting.items()}
        windows, operators = self._in_windows(committed, states), self._operators_of(committed)
        return state_of(self._plan, committed, retained, windows, on_one_scale=True, operators=operators)

    def _operators_of(self, committed: CommittedBatch) -> RetainedRowsOf | None:
        """The state of operators in place of rows."""
        carried = carried_in(committed)
        size = carried_bytes(self._context.checkpoint, committed)
        return None if carried is None else RetainedRowsOf(carried.rows, size)

    def _in_windows(
        self, committed: CommittedBatch, states: Mapping[str, InputState]
    ) -> dict[str, RetainedRowsOf]:
        """The rows in windows after a micro-batch."""
        return in_windows(states, partial(self._context.checkpoint.chunk_bytes, committed))

    # -- what comes in -------------------------------------------------------------------------------

    @cached_property
    def _columns(self) -> WindowedColumns:
        return WindowedColumns(self._context.gateway, self._plan.catalog, self._windowed, self._context.scale)

    def _reading(
        self, frame: DataFrame, at: int, name: str, is_row: Column
    ) -> tuple[DataFrame, dict[str, str]]:
        """The columns that the windows read, and all columns of the sources of clauses."""
        frame, columns = self._read_by_windows(frame, at, name, is_row)
        sources = {} if self._behind is None else self._behind.state.sources
        whole = sources[name].columns if name in sources else ()
        return frame, {**columns, **{own: inside(at, own) for own in whole}}

    def _read_by_windows(
        self, frame: DataFrame, at: int, name: str, is_row: Column
    ) -> tuple[DataFrame, dict[str, str]]:
        frame, sides = self._columns.reading(frame, at, name, is_row)
        return frame, {own: column for columns in sides.values() for own, column in columns.items()}

    def _states(self, before: CommittedBatch) -> dict[str, InputState]:
        """The state after the last micro-batch."""
        passed = before.marks.get(_PASSED, before.frontier)  # none in commits without a mark
        return self._state_of_windows.after(before, passed)

    @property
    def _state_may_replace_rows(self) -> bool:
        """Whether the state of operators may replace the rows of windows, as none of these leaves.

        Of keys that are to be over, rows are retained, as punctuations are about rows.
        """
        return self._carried is not None or (self._windowed.only_grows and not self._forgets)

    def _carried_over(
        self, states: Mapping[str, InputState], frontier: int, number: int
    ) -> dict[str, InputState]:
        """The retained rows after a micro-batch, without those in windows where the state of operators is
        written now.
        """
        own = {side.name: states[side.name] for side in self._windowed.sides}
        if not Carried.is_due(self._carried, sum(state.count for state in own.values())):
            return dict(states)
        checkpoint, relation = self._context.checkpoint, self._relation
        self._carried = self._in_chunks.write(checkpoint, number, frontier, relation.retained, relation.state)
        after = dict(states)
        for side in self._windowed.sides:
            retained = side.window_input.unread(own[side.name].retained, frontier)
            after[side.name] = replace(own[side.name], retained=retained, resting=())
        return after

    def _waiting(self, states: Mapping[str, InputState]) -> int:
        """How many rows of streams that only windows read are buffered; for a stream with two windows,
        counted once.
        """
        behind = () if self._behind is None else (*self._behind.state.sources, *self._behind.names)
        sides = {side.stream: side.name for side in self._sides if side.stream not in behind}
        return sum(states[name].waiting.num_rows for name in sides.values())

    def _advanced(
        self,
        states: Mapping[str, InputState],
        new_rows: Mapping[str, pa.Table],
        number: int,
        times: Times,
        origin: int,
    ) -> tuple[dict[str, InputState], pa.Table]:
        """The state after a micro-batch, and its changes."""
        if self._windowed.passes_on:
            return self._passed_on(states, new_rows, number, times)
        whole = _with(states, new_rows, number)
        return self._relation.advance(whole, number, times, origin)

    def _passed_on(
        self, states: Mapping[str, InputState], new_rows: Mapping[str, pa.Table], number: int, times: Times
    ) -> tuple[dict[str, InputState], pa.Table]:
        """The state after a micro-batch, and its changes, if rows are emitted as they arrive."""
        states, gone = dict(states), {}
        for side in self._windowed.sides:
            chunk, window = number * PER_MICRO_BATCH, side.window_input
            states[side.name], gone[side.name] = states[side.name].passing(
                window, new_rows[side.name], chunk, times.until
            )
        return states, self._relation.passed(gone, times)

    # -- what goes out -------------------------------------------------------------------------------

    def _output(self, changed: pa.Table, until: int) -> RowsForSink | RowsForStream:
        """The output of a micro-batch in the form of the sink."""
        windowed, context = self._windowed, self._context
        if isinstance(context.sink, IntoStream):
            return RowsForStream(self._as_stream(copies(changed, windowed.sign)), until)
        scale = context.scale
        if windowed.kind is not None:
            table = inserted(changed, windowed.names, scale, windowed.sign)
            table = table.drop_columns([table.column_names[0]]) if self._plan.is_table else table
        elif context.envelope in IN_MEMORY:
            table = enveloped(changed, windowed.names, scale, context.envelope)
        else:
            frame = frame_of_collected(context.spark, changed, self._schema(changed))
            frame = as_cql(frame, columns_of(windowed.names), scale)
            return RowsForSink(frame, frame.schema)
        return RowsForSink(table, self._schema(table))

    def _as_stream(self, rows: pa.Table) -> Stream:
        """Rows with their instants, as a stream."""
        windowed = self._windowed
        fields = list(zip(columns_of(windowed.names), windowed.result, strict=True))
        schema = StructType([StructField(name, field.dataType) for name, field in fields])
        schema = schema.add(ROWTIME, LongType())
        frame = frame_of_collected(self._context.spark, rows.rename_columns(schema.names), schema)
        return Stream(frame.toDF(*windowed.names, ROWTIME), windowed.names, self._context.scale)

    def _schema(self, table: pa.Table) -> StructType:
        """The schema of rows in memory: the query's columns have the query's types."""
        own = {f"c{number}": field.dataType for number, field in enumerate(self._windowed.result)}
        first = 0 if table.column_names[0] in own else None
        if first is None:  # as an envelope shows them
            count = len(self._windowed.names)
            first = next(
                at
                for at in range(table.num_columns)
                if table.column_names[at : at + count] == list(self._windowed.names)
            )
        schema = StructType()
        for at, field in enumerate(table.schema):
            inside_query = first <= at < first + len(own)
            kind = (
                own[f"c{at - first}"]
                if inside_query
                else from_arrow_type(field.type, prefer_timestamp_ntz=True)
            )
            schema = schema.add(field.name, kind)
        return schema


def _with(
    states: Mapping[str, InputState], new_rows: Mapping[str, pa.Table], number: int
) -> dict[str, InputState]:
    """The state with the new rows."""
    chunk = number * PER_MICRO_BATCH
    return {**states, **{name: states[name].with_arrivals(rows, chunk) for name, rows in new_rows.items()}}
