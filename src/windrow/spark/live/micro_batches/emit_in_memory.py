"""The micro-batches of a query with EMIT, on the driver.

The state on disk is the needed rows of each stream, in chunks; a restart computes all else from them. Where
rows would be needed for ever, the state of the operators is written now and then in their place, with the
rows since. A micro-batch with too many rows for the driver runs as Spark tasks (:mod:`.emit_steps`), and so
does every query of which a part has no operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.errors import AnalysisError
from windrow.kernels.incremental import InputState, TimedRows, UnmatchedError
from windrow.kernels.zset.relation import NEVER
from windrow.kernels.zset.time_windows import of_ticks
from windrow.plan.event_time import Closed, ClosedBy, ClosedKeys
from windrow.spark.collected import frame_of_few
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.carried_state import Carried
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.input.entry_columns import STREAM, inside
from windrow.spark.live.micro_batches.emit_steps import ROWS, Done, EmittedSteps
from windrow.spark.live.micro_batches.in_memory import Come
from windrow.spark.live.micro_batches.late_for_groups import judged, judging
from windrow.spark.live.micro_batches.session_rows import final_at_once, final_rows, may_be_final, numbered
from windrow.spark.live.operators.flow import unstable
from windrow.spark.live.operators.incremental import in_memory
from windrow.spark.live.plans.emit_flow import EmittedFlow
from windrow.spark.live.plans.emit_queries import EmittedPlan, KnownWatermarks
from windrow.spark.live.reports.state_table import RetainedRowsOf as Counted
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Sink
from windrow.spark.logs.micro_batch import RetainedRows
from windrow.spark.logs.session_streams import ARRIVED, NUMBER, ROWTIME
from windrow.spark.recorded.emission import LATE_FOR_GROUP
from windrow.spark.recorded.punctuation_times import PunctuationTimes
from windrow.streams.entries import BEFORE

__all__ = ["FINAL_FROM", "MOST", "EmittedInMemory"]

Bools = npt.NDArray[np.bool_]

MOST = 1 << 23
"""The driver retains at most so many rows; with more, tasks evaluate the micro-batch."""
_SPARE = 1_000_000
"""Operators that have taken so many rows more than twice the retained ones are built anew."""
FINAL_FROM = 1000
"""From so many rows on, rows of final sessions are looked for."""


@dataclass(frozen=True, eq=False)
class _Known:
    """The state after a micro-batch, in memory and in a file, which has that of all rows before it."""

    number: int
    flow: EmittedFlow
    rows: Mapping[str, InputState]
    taken: int
    carried: Carried | None = None


class EmittedInMemory(EmittedSteps):
    """Runs micro-batches of EMIT on the driver; the parameters are those of :class:`~.steps.Steps`."""

    _timed = True

    def __init__(
        self, plan: EmittedPlan, sink: Sink | IntoStream, folder: Path, envelope: str, on_late: str
    ) -> None:
        super().__init__(plan, sink, folder, envelope, on_late)
        self._known_last: _Known | None = None
        self._left_at_check: dict[str, int] = {}  # how many rows were left at the last check

    @property
    def _result(self) -> StructType:
        return self._changes_schema

    @cached_property
    def _changes_schema(self) -> StructType:
        return self._query.query.emitted(self._envelope).schema

    @cached_property
    def _first_flow(self) -> EmittedFlow | None:
        """The operators of the query, without state; None if it has none."""
        gateway = Gateway(self._spark, self._plan.gateway.parameters)
        folder = self._checkpoint.folder.resolve() / ".flow"
        flow = EmittedFlow(gateway, self._query, self._envelope, folder)
        return flow if flow.why_not is None else None

    def _step(self, batch: DataFrame, number: int, before: CommittedBatch) -> None:
        is_carried = Carried.of(before) is not None  # then tasks do not have all rows
        retained = sum(sum(chunks.values()) for chunks in before.chunks.values())
        retained += sum(self._checkpoint.count(before, name) for name in before.rows)
        if self._first_flow is None or (retained > MOST and not is_carried):
            super()._step(batch, number, before)
            return
        incoming = self._come(batch, before) if is_carried else self._come_if_it_fits(batch, before)
        if incoming is None:
            super()._step(batch, number, before)
        else:
            try:
                self._take(incoming, number, before)
            except UnmatchedError as error:  # tasks make all of it anew
                if is_carried:
                    raise unstable(error) from None
                super()._step(batch, number, before)

    def _constant(self) -> list[str]:
        return [name for name in super()._constant() if name != STREAM]  # ticks are no rows

    def _take(self, incoming: Come, number: int, before: CommittedBatch) -> None:
        now = incoming.now
        positions = incoming.positions
        marks: dict[str, Marks] = {
            name: [*before.moves.get(name, []), *one.watermarks] for name, one in incoming.found.items()
        }
        punctuations = self._punctuations_since(before, incoming.found)
        origin = self._origin([*incoming.firsts.values()], before)
        until = None if origin is None else self._until(positions, now)
        judged = self._judged(before, {name: one.below for name, one in incoming.found.items()}, marks, until)
        refused = {name: self._late(name, one.late) for name, one in incoming.found.items()}
        self._tell_late({name: self._all_late(name, late, judged) for name, late in refused.items()}, number)
        known, self._known_last = self._known_before(before), None  # if this fails, it is read again
        rows = {
            name: _with(retained, incoming.found[name].rows, number) for name, retained in known.rows.items()
        }
        if punctuations:
            known.flow.add_punctuation({name: one.punctuations for name, one in incoming.found.items()})
        emitted, used, frontier = 0, -judged.count, before.frontier
        if until is not None and origin is not None and (frontier is None or until > frontier):
            used += sum(int(_entering(state.retained, frontier, until).sum()) for state in rows.values())
            self._refuse_late(known.flow, marks, (frontier, until))
            changed = self._changes_by(known.flow, rows, marks, (frontier, until), origin)
            if isinstance(self._sink, IntoStream):
                emitted = self._insert(self._frame_of(changed), marks, until, before)
            else:
                emitted = self._put(self._sink, changed, number)
            frontier = until
        carried = self._carried(
            known, rows, marks, frontier, number, has_punctuation=any(punctuations.values())
        )
        rows = self._left(rows, marks, known.flow.punctuation, frontier, carried)
        arrived = np.concatenate([state.retained.enter[state.retained.alive] for state in rows.values()])
        needed = [] if origin is None else [known.flow.judged_from(origin, frontier or 0)]
        needed += [int(arrived.min())] if len(arrived) else []
        oldest = min((at for at in needed if at is not None), default=None)
        waiting = int((arrived > (frontier or 0)).sum())
        counted = incoming.entries, incoming.count, used, judged.count, emitted, waiting, oldest
        done = Done(number, now, *counted, None if frontier is None else known.flow.due(frontier))
        committed = self._after(before, done, positions, marks, punctuations, (origin, frontier))
        rows, committed = self._committed(rows, committed, self._buffered_below(judged), carried)
        taken = known.taken + incoming.count
        # rows that are not needed stay in operators until these are built anew, as after a restart
        if taken <= 2 * len(arrived) + _SPARE or known.flow.retained <= _SPARE or carried is not None:
            self._known_last = _Known(number, known.flow, rows, taken, carried)
        self._report(committed, incoming.count, emitted)

    @property
    def _delay(self) -> int:
        """For how long changes wait."""
        return self._query.query.how.delay or 0

    @property
    def _needs_all(self) -> bool:
        """Whether every row is needed for ever."""
        return self._query.needs_all

    @cached_property
    def _state_may_replace_rows(self) -> bool:
        """Whether the state of operators may replace rows, until a stream that declares none has punctuation.

        So it is if operators drop state by time, and if nothing but punctuation could drop rows.
        """
        if self._query.emits_at_once or self._query.has_sessions:
            return False
        assert self._first_flow is not None
        streams = [(name, stream.live) for _, name, stream in self.streams()]
        by_time = [
            any(isinstance(each, ClosedKeys) for each in part)
            for name, _ in streams
            for part in self._query.endings(name)
        ]
        is_declared = any(live is not None and live.domain for _, live in streams)
        return not is_declared and (not all(by_time) or self._first_flow.forgets)

    def _carried(
        self,
        known: _Known,
        rows: Mapping[str, InputState],
        marks: Mapping[str, Marks],
        frontier: int | None,
        number: int,
        *,
        has_punctuation: bool,
    ) -> Carried | None:
        """The state of the operators, in a new file if more rows have arrived since the last than it has.

        As soon as there is punctuation, rows are retained in its place: it closes rows, not state.
        """
        last = known.carried
        may_be = last is not None or self._needs_all or (self._state_may_replace_rows and not has_punctuation)
        if frontier is None or not may_be:
            return last
        since = None if last is None else last.at
        came = sum(int(_entering(state.retained, since, frontier).sum()) for state in rows.values())
        if not Carried.is_due(last, came):
            return last
        if known.flow.forgets:
            known.flow.forget(marks, frontier - self._delay)
        return Carried.written(self._checkpoint, number, frontier, known.flow.retained, known.flow.state)

    def _committed(
        self,
        rows: Mapping[str, InputState],
        committed: CommittedBatch,
        beside: Mapping[str, RetainedRows],
        carried: Carried | None,
    ) -> tuple[dict[str, InputState], CommittedBatch]:
        """The retained rows with their chunks, and the committed micro-batch with these."""
        merged, chunks = {}, {}
        for name, state in rows.items():
            merged[name], new = state.merged(committed.number)
            own = f"{ROWS}{name}"
            chunks[own] = self._checkpoint.write_chunks(own, merged[name].chunks, new)
        committed = replace(committed, chunks=chunks)
        return merged, self._checkpoint.commit(
            committed if carried is None else carried.named(committed), beside
        )

    # -- what comes in -------------------------------------------------------------------------------

    _reads_all = False

    def _reading(
        self,
        frame: DataFrame,
        at: int,
        name: str,
        is_row: Column,  # noqa: ARG002 - nothing is computed
    ) -> tuple[DataFrame, dict[str, str]]:
        """What the query reads."""
        return frame, {own: inside(at, own) for own in self._read(name)}

    # -- what goes out -------------------------------------------------------------------------------

    def _changes_by(
        self,
        flow: EmittedFlow,
        rows: Mapping[str, InputState],
        marks: Mapping[str, Marks],
        span: tuple[int | None, int],
        origin: int,
    ) -> pa.Table:
        """The changes after one processing time, up to another."""
        since, until = span
        came = {}
        for name, state in rows.items():
            retained = state.retained
            came[name] = retained.rows.filter(pa.array(_entering(retained, since, until))).combine_chunks()
        with self._gateway.translated():
            return flow.step(came, marks, since, until, origin)

    def _refuse_late(
        self, flow: EmittedFlow, marks: Mapping[str, Marks], span: tuple[int | None, int]
    ) -> None:
        """Fail of a row that is late for a group, in a recorded stream that is to fail of it."""
        streams = self._query.query.streams
        below = {
            name: rows
            for name, rows in flow.recorded(*span).items()
            if streams[name].on_late == "fail" and judging(self._query, name)
        }
        if judged(self._query, self._conditions, below, marks, span[1]).count:
            raise AnalysisError(
                LATE_FOR_GROUP, condition="LATE_ROW", hint="set on_late='keep', which collects late rows"
            )

    def _put(self, sink: Sink, changed: pa.Table, number: int) -> int:
        """Write changes to the sink."""
        into = self._table_sink(changed.column_names)
        if into is not None:
            return into.write_table(changed, number)
        with self._gateway.translated():
            return sink.write(self._frame_of(changed), number) or 0

    def _frame_of(self, changed: pa.Table) -> DataFrame:
        """Changes as a DataFrame; two columns may have one name."""
        schema, inner = self._changes_schema, StructType()
        for at, field in enumerate(schema):
            inner = inner.add(f"o{at}", field.dataType)
        return frame_of_few(self._spark, changed.rename_columns(inner.names), inner).toDF(*schema.names)

    # -- what is retained ----------------------------------------------------------------------------

    def _known_before(self, before: CommittedBatch) -> _Known:
        """What the last micro-batch left: in memory, or made again from the rows that it retained."""
        if self._known_last is not None and self._known_last.number == before.number:
            return self._known_last
        rows = {name: self._state(before, name) for _, name, _ in self.streams()}
        assert self._first_flow is not None
        flow = self._first_flow.emptied()
        flow.add_punctuation(before.punctuations)
        carried = Carried.of(before)
        if carried is not None:
            flow.restore(carried.read(self._checkpoint))
        since = None if carried is None else carried.at
        if before.frontier is not None and before.frontier != since:
            assert before.origin is not None
            self._changes_by(flow, rows, before.moves, (since, before.frontier), before.origin)
        taken = sum(len(state.retained) for state in rows.values())
        return _Known(before.number, flow, rows, taken, carried)

    def _read(self, name: str) -> list[str]:
        """The columns of a stream that the query reads, and that of its rowtimes, by which rows are over."""
        assert self._first_flow is not None
        stream, read = self._plan.catalog.streams[name], self._first_flow.read(name)
        rowtime = (stream.rowtime or "").lower()
        return [column for column in stream.columns if column in read or column.lower() == rowtime]

    def _schema_of(self, name: str) -> StructType:
        """The retained columns of a stream."""
        kinds = self._plan.catalog.streams[name].frame.schema
        read = StructType([kinds[column] for column in self._read(name)])
        return _with_times(read)

    def _whole(self, name: str, rows: pa.Table) -> tuple[pa.Table, StructType]:
        """The retained rows of a stream with its other columns, as NULL: nothing reads them."""
        stream, schema = self._plan.catalog.streams[name], StructType()
        for column in stream.columns:
            kind = stream.frame.schema[column]
            if column not in rows.column_names:
                kind = StructField(column, kind.dataType)
                nothing = pa.nulls(rows.num_rows, in_memory(StructType([kind])).field(0).type)
                rows = rows.append_column(column, nothing)
            schema = schema.add(kind)
        schema = _with_times(schema)
        return rows.select(schema.names), schema

    def _state(self, before: CommittedBatch, name: str) -> InputState:
        chunks = before.chunks.get(f"{ROWS}{name}", {})
        schema = in_memory(self._schema_of(name))
        none = np.zeros(0, np.int64)
        empty = schema.empty_table()
        state = InputState(TimedRows.of(empty, none, none, none), empty, none)
        for chunk, count in chunks.items():
            table = self._checkpoint.read_chunk(f"{ROWS}{name}", int(chunk))
            retained = _retained(table.select(schema.names), int(chunk))
            state = replace(state, retained=state.retained.with_rows(retained))
            state = replace(state, chunks={**state.chunks, int(chunk): count})
        rows = self._checkpoint.table(before, f"{ROWS}{name}")  # of a micro-batch that tasks evaluated
        return state if rows is None else _with(state, rows, before.number + 1)

    def _rows_before(self, before: CommittedBatch, name: str) -> DataFrame | None:
        if f"{ROWS}{name}" not in before.chunks:
            return super()._rows_before(before, name)
        retained = self._state(before, name).retained
        return frame_of_few(self._spark, *self._whole(name, retained.rows))

    def _left(
        self,
        rows: Mapping[str, InputState],
        marks: Mapping[str, Marks],
        punctuation: PunctuationTimes,
        frontier: int | None,
        carried: Carried | None,
    ) -> dict[str, InputState]:
        """The rows that are needed after a micro-batch."""
        if carried is not None:  # those before are in the state of the operators
            return {
                name: replace(state, retained=state.retained.where(state.retained.enter > carried.at))
                for name, state in rows.items()
            }
        if frontier is None or self._needs_all:
            return dict(rows)
        left = {}
        for name, state in rows.items():
            gone = state.retained.enter <= frontier
            if not self._query.emits_at_once:
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
        """Whether no change is made of rows any more."""
        if self._query.has_sessions:
            return self._is_final(name, state, marks, frontier)
        rows, groupings = state.retained.rows, self._query.endings(name)
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
        places = self._query.places
        closing = [
            each for each in grouping if isinstance(each, Closed) and punctuation.may_close(each, places)
        ]
        if not closing:
            return None
        over: Bools = np.logical_or.reduce(
            [punctuation.over(each, places, rows) <= frontier - self._delay for each in closing]
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
        """Whether no change is made of rows any more, by the watermark."""
        ticks = state.retained.rows.column(ROWTIME).to_numpy()
        mark = self._query.mark_of(name, marks, frontier)
        in_time = all(any(isinstance(each, ClosedKeys) for each in grouping) for grouping in groupings)
        if mark is None or not len(ticks) or not in_time:
            return np.zeros(len(ticks), bool)
        stream = self._plan.catalog.streams[name]
        kind = stream.frame.schema[stream.rowtime or ""]
        type_ = in_memory(StructType([kind])).field(0).type
        condition = partial(self._query.over, groupings, name)
        key = name, *map(tuple, groupings)

        def passed(ticks: npt.NDArray[np.int64]) -> Bools:
            return self._conditions.holds(key, kind, condition, of_ticks(ticks, type_), mark)

        # up to the first that is not: local times fall when a clock is set back
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
        at_once = final_at_once(self._query, self._conditions, name, alive, marks, frontier)
        if at_once is not None:
            gone[places[at_once]] = True
            if at_once.any():
                self._left_at_check[name] = int(retained.alive.sum() - gone.sum())
            return gone
        oldest = (
            places[[retained.rows.column(ROWTIME).to_numpy()[places].argmin()]] if len(places) else places
        )
        first = numbered(self._gateway, *self._whole(name, retained.rows.take(pa.array(oldest))))
        if not may_be_final(self._query, name, first, marks, frontier):
            return gone
        rows = numbered(self._gateway, *self._whole(name, retained.rows.take(pa.array(places))))
        over = final_rows(
            self._query, self._gateway, name, KnownWatermarks(rows, marks[name]), marks, frontier
        )
        if over is not None:
            gone[places[over.toArrow().column(NUMBER).to_numpy()]] = True
        self._left_at_check[name] = int(retained.alive.sum() - gone.sum())
        return gone

    def _operators_of(self, committed: CommittedBatch) -> Counted | None:
        carried = Carried.of(committed)
        return None if carried is None else Counted(carried.rows, carried.size(self._checkpoint, committed))

    def _retained_of(self, committed: CommittedBatch, name: str) -> Counted:
        if f"{ROWS}{name}" not in committed.chunks:
            return super()._retained_of(committed, name)
        rows = self._state(committed, name).retained.rows
        return Counted.of(rows.column(ROWTIME), self._checkpoint.chunk_bytes(committed, f"{ROWS}{name}"))

    def _report(self, committed: CommittedBatch, came: int, emitted: int) -> None:
        super()._report(committed, came, emitted)
        self.progress["rows_in_windows"] += sum(sum(chunks.values()) for chunks in committed.chunks.values())


def _entering(retained: TimedRows, since: int | None, until: int) -> Bools:
    """The rows that come after a processing time, by another one."""
    entering: Bools = retained.alive & (retained.enter <= until)
    if since is not None:
        entering &= retained.enter > since
    return entering


def _with_times(schema: StructType) -> StructType:
    """The columns of rows, and what is known of them."""
    return schema.add(ROWTIME, LongType()).add(ARRIVED, LongType()).add(BEFORE, LongType())


def _retained(table: pa.Table, chunk: int) -> TimedRows:
    arrived = table.column(ARRIVED).to_numpy()
    count = len(arrived)
    return TimedRows.of(table, arrived, np.full(count, NEVER), np.full(count, chunk))


def _with(state: InputState, rows: pa.Table, number: int) -> InputState:
    """With more rows that came."""
    if not rows.num_rows:
        return state
    schema = state.retained.rows.schema
    chunk = number * 1000
    retained = state.retained.with_rows(
        _retained(rows.select(schema.names).cast(schema).combine_chunks(), chunk)
    )
    return replace(state, retained=retained, chunks={**state.chunks, chunk: rows.num_rows})
