"""The micro-batches of a query with EMIT, from one processing time to the next.

Processing times increase from micro-batch to micro-batch. The rows of a streaming DataFrame have that of
their micro-batch, which Spark logs before it runs; those of a named stream have that of their entries. A
micro-batch reaches the time up to which all streams are complete.

The operators run in memory. The state on disk is the needed rows of each stream, in chunks; a restart
recomputes the rest from them. If rows would be needed forever, the state of the operators is written now and
then in their place, with the rows since. If a part of a query has no operator, Spark computes the changes of
each micro-batch from the same rows (:mod:`windrow.spark.live.plans.emit_by_spark`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.errors import AnalysisError
from windrow.kernels.incremental import InputState, UnmatchedError
from windrow.kernels.operator_state import Carried, StateInChunks
from windrow.plan.arrow_types import pattern_schema
from windrow.plan.event_time import ClosedKeys
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.carried_state import carried_bytes, carried_in, with_carried
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.input.arrivals import Arrivals
from windrow.spark.live.input.entry_columns import inside
from windrow.spark.live.input.ticks import TickFiles
from windrow.spark.live.micro_batches.emit_rows import ROWS, EmittedRows, entering, with_rows
from windrow.spark.live.micro_batches.entry_reader import CollectedBatch, EntryReader
from windrow.spark.live.micro_batches.late_for_groups import JudgedEntries, judged, judging
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.live.micro_batches.output import RowsForSink, RowsForStream
from windrow.spark.live.micro_batches.query_steps import Advanced, Retained, Steps
from windrow.spark.live.operators.incremental_plan import unstable
from windrow.spark.live.operators.watermark_conditions import WatermarkConditions
from windrow.spark.live.plans.emit_by_spark import EmittedBySpark
from windrow.spark.live.plans.emit_evaluation import EmitEvaluation
from windrow.spark.live.plans.emit_flow import EmittedFlow
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.live.reports.account import Account
from windrow.spark.live.reports.state_table import QueryState, timed_state_of
from windrow.spark.live.reports.state_table import RetainedRowsOf as Counted
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.logs.session_streams import ARRIVED, ROWTIME
from windrow.spark.recorded.punctuation_times import LoggedPunctuation, folded, stream_kinds
from windrow.spark.recorded.rows_late_for_groups import LATE_FOR_GROUP
from windrow.streams import Position
from windrow.streams.entries import BEFORE

__all__ = ["EmittedSteps"]

_BELOW = "below-"
_LATE = "late_for_groups"
_GRACE = 1_000_000
"""The microseconds for which a micro-batch waits, before it ticks, for a named stream that is behind
others.
"""
_SPARE = 1_000_000
"""Operators that have processed so many rows more than twice the retained ones are rebuilt."""


@dataclass(frozen=True, eq=False)
class _Known:
    """The state after a micro-batch, in memory and in a file, which has that of all rows before it."""

    number: int
    evaluation: EmitEvaluation
    rows: Mapping[str, InputState]
    processed: int
    carried: Carried | None = None


@dataclass(frozen=True, eq=False)
class _Entries:
    """The judged entries of a micro-batch.

    Attributes
    ----------
    late
        The late rows of each stream.
    collected
        All entries.
    judged
        Those that are late for a group.
    marks
        The changes of each stream's watermark, with their processing times.
    origin, until
        The first processing time of the logs, and that up to which all streams are complete.
    """

    late: Mapping[str, DataFrame | None]
    collected: CollectedBatch
    judged: JudgedEntries
    marks: Mapping[str, Marks]
    origin: int | None
    until: int | None

    @property
    def count(self) -> int:
        """How many rows arrived."""
        return self.collected.count


@dataclass(frozen=True, eq=False)
class _Done:
    """The account of a micro-batch: its entries, the rows that it used and buffered; when the oldest retained
    row arrived, and when a change is due.
    """

    number: int
    entries: _Entries
    used: int
    buffered: int
    oldest: int | None
    due: int | None


class EmittedSteps(Steps[_Entries]):
    """Runs a query with EMIT.

    Parameters
    ----------
    plan
        The query.
    context
        Its sink and checkpoint.
    """

    def __init__(self, plan: EmittedPlan, context: LiveContext) -> None:
        self._query, self._context = plan, context
        self._judges = any(part.timed.judgings for part in plan.query.parts)
        self._entries = EntryReader(context, self._reading, timed=True, judges=self._judges)
        self._named = {
            name: known.stream for name, known in plan.catalog.named.items() if name in plan.streams
        }
        self._files = TickFiles(context.folder / "ticks") if plan.is_endless else None
        self._in_chunks = StateInChunks()
        self._known_last: _Known | None = None
        self._rows = EmittedRows(
            plan, context.checkpoint, self._conditions, lambda: context.gateway, self._read_by_operators
        )

    def _read_by_operators(self, name: str) -> list[str]:
        return self._first_evaluation.read(name)

    # -- ticks -----------------------------------------------------------------------------------------

    def input(self, context: LiveContext, frames: Mapping[str, DataFrame] | None) -> DataFrame:
        """All arriving entries, with ticks; those of `frames` in place of the streams' own, with ticks under
        an empty name.
        """
        if frames is not None:
            return context.input(frames, frames.get(""))
        return context.input(None, None if self._files is None else self._files.arriving(context.spark))

    @property
    def wants(self) -> int | None:
        """When the query needs a tick."""
        return self._context.checkpoint.last().counts.get("wanted")

    def tick(self, instant: int) -> None:
        """Put a tick for an instant into the inputs that have not reached it."""
        positions = self._context.checkpoint.last().positions
        for name, stream in self._named.items():
            if name not in positions or positions[name].ptime < instant:
                stream.tick()
        if self._files is not None:
            self._files.add(instant)

    # -- in memory -------------------------------------------------------------------------------------

    @cached_property
    def _changes_schema(self) -> StructType:
        return self._query.query.emitted(self._context.envelope).schema

    @cached_property
    def _first_evaluation(self) -> EmitEvaluation:
        """The evaluation of the query, without state: its operators, or Spark if a part of it has none."""
        gateway = self._context.new_gateway()
        folder = self._context.checkpoint.folder.resolve() / ".flow"
        evaluation = EmittedFlow(gateway, self._query, self._context.envelope, folder)
        return (
            evaluation
            if evaluation.why_not is None
            else EmittedBySpark(gateway, self._query, self._context.envelope)
        )

    def judge(self, batch: DataFrame, before: CommittedBatch) -> _Entries:
        """Read the entries, and judge them; rows may be late for a group."""
        collected = self._entries.read(batch, before)
        found = collected.found
        marks = {name: [*before.moves.get(name, []), *one.watermarks] for name, one in found.items()}
        origin = self._origin([*collected.firsts.values()], before)
        until = None if origin is None else self._until(collected.positions, collected.now)
        judged = self._judged(before, {name: one.below for name, one in found.items()}, marks, until)
        refused = {name: self._context.late.frame(name, one.late) for name, one in found.items()}
        late = {name: self._all_late(name, rows, judged) for name, rows in refused.items()}
        return _Entries(late, collected, judged, marks, origin, until)

    def advance(self, entries: _Entries, number: int, before: CommittedBatch) -> Advanced:
        """Advance the operators to the processing time up to which all streams are complete."""
        try:
            return self._advanced(entries, number, before)
        except UnmatchedError as error:
            raise unstable(error) from None

    def _reading(
        self,
        frame: DataFrame,
        at: int,
        name: str,
        is_row: Column,  # noqa: ARG002 - nothing is computed
    ) -> tuple[DataFrame, dict[str, str]]:
        """The columns that the query reads."""
        return frame, {own: inside(at, own) for own in self._rows.columns(name)}

    def _advanced(self, entries: _Entries, number: int, before: CommittedBatch) -> Advanced:
        collected, judged, marks = entries.collected, entries.judged, entries.marks
        origin, until = entries.origin, entries.until
        punctuations = self._punctuations_since(before, collected.found)
        known, self._known_last = self._known_before(before), None  # if this fails, it is read again
        rows = {
            name: with_rows(state, collected.found[name].rows, number) for name, state in known.rows.items()
        }
        if punctuations:
            known.evaluation.add_punctuation(
                {name: one.punctuations for name, one in collected.found.items()}
            )
        used, frontier, output = -judged.count, before.frontier, None
        if until is not None and origin is not None and (frontier is None or until > frontier):
            used += sum(int(entering(state.retained, frontier, until).sum()) for state in rows.values())
            self._refuse_late(known.evaluation, marks, (frontier, until))
            changed = self._changes_by(known.evaluation, rows, marks, (frontier, until), origin)
            output = self._output(changed, marks, until)
            frontier = until
        known = replace(known, number=number, rows=rows)
        return Advanced(output, partial(self._store, entries, known, punctuations, used, frontier, before))

    def _store(
        self,
        entries: _Entries,
        known: _Known,
        punctuations: Mapping[str, LoggedPunctuation],
        used: int,
        frontier: int | None,
        before: CommittedBatch,
    ) -> CommittedBatch:
        """Write the state after a micro-batch; returns its manifest."""
        collected, judged, marks, origin = entries.collected, entries.judged, entries.marks, entries.origin
        number, evaluation = known.number, known.evaluation
        carried = self._carried(
            known, known.rows, marks, frontier, number, has_punctuation=any(punctuations.values())
        )
        rows = self._rows.left(
            known.rows, marks, evaluation.punctuation, frontier, None if carried is None else carried.at
        )
        arrived = np.concatenate([state.retained.enter[state.retained.alive] for state in rows.values()])
        needed = [] if origin is None else [evaluation.judged_from(origin, frontier or 0)]
        needed += [int(arrived.min())] if len(arrived) else []
        oldest = min((at for at in needed if at is not None), default=None)
        waiting = int((arrived > (frontier or 0)).sum())
        due = None if frontier is None else evaluation.due(frontier)
        done = _Done(number, entries, used, waiting, oldest, due)
        manifest = self._after(before, done, punctuations, frontier)
        rows, manifest = self._merged(rows, manifest, carried)
        manifest = self._with_waiting(manifest, judged.waiting)
        processed = known.processed + collected.count
        # rows that are not needed stay in operators until these are built anew, as after a restart
        if processed <= 2 * len(arrived) + _SPARE or evaluation.retained <= _SPARE or carried is not None:
            self._known_last = _Known(number, evaluation, rows, processed, carried)
        return manifest

    @cached_property
    def _state_may_replace_rows(self) -> bool:
        """Whether the state of operators may replace rows, as long as no undeclared punctuation arrives.

        This applies if operators drop state by time, and if only punctuation could drop rows.
        """
        if self._query.emits_at_once or self._query.has_sessions:
            return False
        streams = [(name, stream.live) for _, name, stream in self._context.streams()]
        by_time = [
            any(isinstance(each, ClosedKeys) for each in part)
            for name, _ in streams
            for part in self._query.closings(name)
        ]
        is_declared = any(live is not None and live.domain for _, live in streams)
        return not is_declared and (not all(by_time) or self._first_evaluation.forgets)

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

        As soon as there is punctuation, rows are retained instead: it closes rows, not state.
        """
        last = known.carried
        may_be = (
            last is not None
            or self._query.needs_all
            or (self._state_may_replace_rows and not has_punctuation)
        )
        evaluation = known.evaluation
        if frontier is None or not may_be or not isinstance(evaluation, EmittedFlow):
            return last
        since = None if last is None else last.at
        row_count = sum(int(entering(state.retained, since, frontier).sum()) for state in rows.values())
        if not Carried.is_due(last, row_count):
            return last
        if evaluation.forgets:
            evaluation.forget(marks, frontier - self._query.delay)
        checkpoint = self._context.checkpoint
        return self._in_chunks.write(checkpoint, number, frontier, evaluation.retained, evaluation.state)

    def _merged(
        self, rows: Mapping[str, InputState], committed: CommittedBatch, carried: Carried | None
    ) -> tuple[dict[str, InputState], CommittedBatch]:
        """The retained rows with their chunks, which are written; and the micro-batch with these."""
        merged, chunks = {}, {}
        for name, state in rows.items():
            merged[name], new = state.merged(committed.number)
            own = f"{ROWS}{name}"
            chunks[own] = self._context.checkpoint.write_chunks(own, merged[name].chunks, new)
        committed = replace(committed, chunks=chunks)
        return merged, with_carried(committed, carried)

    def _known_before(self, before: CommittedBatch) -> _Known:
        """The state after the last micro-batch: in memory, or recomputed from its retained rows."""
        if self._known_last is not None and self._known_last.number == before.number:
            return self._known_last
        rows = {name: self._rows.after(before, name) for _, name, _ in self._context.streams()}
        evaluation = self._first_evaluation.emptied()
        evaluation.add_punctuation(before.punctuations)
        carried = carried_in(before)
        if carried is not None:
            assert isinstance(evaluation, EmittedFlow)
            evaluation.restore(self._in_chunks.read(self._context.checkpoint, carried))
        since = None if carried is None else carried.at
        if before.frontier is not None and before.frontier != since:
            assert before.origin is not None
            self._changes_by(evaluation, rows, before.moves, (since, before.frontier), before.origin)
        processed = sum(len(state.retained) for state in rows.values())
        return _Known(before.number, evaluation, rows, processed, carried)

    def _changes_by(
        self,
        evaluation: EmitEvaluation,
        rows: Mapping[str, InputState],
        marks: Mapping[str, Marks],
        span: tuple[int | None, int],
        origin: int,
    ) -> pa.Table | DataFrame:
        """The changes after one processing time, up to another."""
        since, until = span
        first = None if evaluation.reads_all_rows else since
        new_rows = {}
        for name, state in rows.items():
            is_entering = pa.array(entering(state.retained, first, until))
            new_rows[name] = state.retained.rows.filter(is_entering).combine_chunks()
        with self._context.gateway.translated():
            return evaluation.advance(new_rows, marks, since, until, origin)

    def _refuse_late(
        self, evaluation: EmitEvaluation, marks: Mapping[str, Marks], span: tuple[int | None, int]
    ) -> None:
        """Raise an error if a row is late for a group, in a recorded stream whose late rows are errors."""
        streams = self._query.query.streams
        below = {
            name: rows
            for name, rows in evaluation.recorded(*span).items()
            if streams[name].on_late == "fail" and judging(self._query, name)
        }
        if judged(self._query, self._conditions, below, marks, span[1]).count:
            raise AnalysisError(
                LATE_FOR_GROUP,
                condition="LATE_ROW",
                hint="set on_late='keep', in SQL ON LATE KEEP, which puts late rows into a side output",
            )

    def _output(
        self, changed: pa.Table | DataFrame, marks: Mapping[str, Marks], until: int
    ) -> RowsForSink | RowsForStream:
        """Changes in the form of the sink; for a stream, complete rows with the bound of all others."""
        context, schema = self._context, self._changes_schema
        if not isinstance(context.sink, IntoStream):
            return RowsForSink(changed, schema)
        if isinstance(changed, pa.Table):
            changed = frame_of_collected(context.spark, changed, schema)
        gateway = context.new_gateway()
        bound = self._query.rowtime_until(gateway, marks, until)
        with gateway.translated():
            return RowsForStream(self._query.as_stream(changed), bound)

    # -- rows that are late for a group ----------------------------------------------------------------

    @cached_property
    def _conditions(self) -> WatermarkConditions:
        def gateway() -> Gateway:
            return self._context.new_gateway()

        return WatermarkConditions(gateway, self._context.checkpoint.folder.resolve())

    def _judged(
        self,
        before: CommittedBatch,
        new_rows: Mapping[str, pa.Table | None],
        marks: Mapping[str, Marks],
        until: int | None,
    ) -> JudgedEntries:
        """Judges the rows below their stream's watermark, including buffered ones."""
        below = {}
        for name, rows in new_rows.items() if self._judges else ():
            own = f"{_BELOW}{name}"
            waited = [
                self._context.checkpoint.read_chunk(own, int(chunk)) for chunk in before.chunks.get(own, {})
            ]
            names = self._context.late.schema(name, ARRIVED, BEFORE).names
            parts = [part.select(names) for part in (*waited, rows) if part is not None]
            if parts:
                below[name] = pa.concat_tables([part.cast(parts[-1].schema) for part in parts])
        return judged(self._query, self._conditions, below, marks, until)

    def _all_late(self, name: str, refused: DataFrame | None, apart: JudgedEntries) -> DataFrame | None:
        """The late rows of a stream: below a bound or closed by punctuation, and late for a group."""
        late = self._context.late.frame(name, apart.late.get(name))
        return refused if late is None else late if refused is None else refused.unionByName(late)

    def _with_waiting(self, committed: CommittedBatch, waiting: Mapping[str, pa.Table]) -> CommittedBatch:
        """The micro-batch with the chunks, which are written, of rows below a watermark that stay
        buffered.
        """
        chunks = {
            (own := f"{_BELOW}{name}"): self._context.checkpoint.write_chunks(
                own, {committed.number: rows.num_rows}, {committed.number: rows}
            )
            for name, rows in waiting.items()
        }
        return replace(committed, chunks={**committed.chunks, **chunks})

    # -- times -----------------------------------------------------------------------------------------

    def _punctuations_since(
        self, before: CommittedBatch, arrivals: Mapping[str, Arrivals]
    ) -> dict[str, LoggedPunctuation]:
        """The punctuations of the streams, with their processing times; none if nothing reads them."""
        if not self._query.reads_punctuations:
            return {}
        return {
            name: [*before.punctuations.get(name, []), *found.punctuations]
            for name, found in arrivals.items()
        }

    def _until(self, positions: Mapping[str, Position], now: int) -> int | None:
        """The processing time up to which all streams are complete."""
        reached = [
            positions[name].ptime if stream.is_log else now for _, name, stream in self._context.streams()
        ]
        return min(reached) or None

    def _origin(self, firsts: Sequence[int], before: CommittedBatch) -> int | None:
        """The first processing time of the logs; None before the first entry."""
        return min([*firsts, *([] if before.origin is None else [before.origin])], default=None)

    def _back_to(self, oldest: int | None, frontier: int) -> int:
        """The processing time from which on the changes of watermarks are needed."""
        since = frontier - self._query.delay
        return since + 1 if oldest is None else min(oldest, since + 1)

    def _wanted(
        self, positions: Mapping[str, Position], frontier: int | None, now: int, due: int | None
    ) -> int | None:
        """When the query needs a tick: when something is due, streams wait for each other, or become idle."""
        wanted = [] if due is None else [due]
        for _, name, stream in self._context.streams():
            reached = positions[name].ptime if stream.is_log else now
            if reached > (frontier or 0):
                wanted.append(reached + _GRACE)
            idle = stream.live.idle if stream.live is not None else None
            if idle is not None:
                producers = positions[name].watermark.producers.values()
                wanted += [known.heard + idle for known in producers if known.is_open]
        return min(wanted, default=None)

    # -- what a micro-batch leaves ---------------------------------------------------------------------

    def _after(
        self,
        before: CommittedBatch,
        done: _Done,
        punctuations: Mapping[str, LoggedPunctuation],
        frontier: int | None,
    ) -> CommittedBatch:
        """The manifest after a micro-batch."""
        entries, known = done.entries, before.counts
        collected, marks, positions = entries.collected, entries.marks, entries.collected.positions
        for_groups = known.get(_LATE, 0) + entries.judged.count
        account = Account(
            arrived=known.get("rows_in", 0) + collected.count,
            used=known.get("rows_used", 0) + done.used,
            buffered=done.buffered,
            late=sum(each.watermark.rejected + each.watermark.quarantined for each in positions.values())
            + for_groups,
        )
        counts = {
            "now": collected.now,
            "entries": collected.entries,
            _LATE: for_groups,
            **account.counts,
            "marks_held": sum(at > (frontier or 0) for at in _times(marks) + _times(punctuations)),
        }
        if done.due is not None:
            counts["due"] = done.due
        wanted = self._wanted(positions, frontier, collected.now, done.due)
        if wanted is not None:
            counts["wanted"] = wanted
        if frontier is not None:
            back_to = self._back_to(done.oldest, frontier)
            marks = {name: _pruned(each, back_to) for name, each in marks.items()}
            schemas = {
                name: pattern_schema(stream_kinds(self._query.catalog.streams[name])) for name in punctuations
            }
            punctuations = {
                name: folded(logged, back_to, schemas[name]) for name, logged in punctuations.items()
            }
        return CommittedBatch(
            done.number, positions, frontier, entries.origin, counts, moves=marks, punctuations=punctuations
        )

    def state(self, committed: CommittedBatch) -> QueryState:
        """The state after a micro-batch, with reasons."""
        retained = {name: self._retained_of(committed, name) for _, name, _ in self._context.streams()}
        return timed_state_of(
            self._query, committed, retained, self._query.retains, self._operators_of(committed)
        )

    def _operators_of(self, committed: CommittedBatch) -> Counted | None:
        """The state of operators in place of rows."""
        carried = carried_in(committed)
        return (
            None
            if carried is None
            else Counted(carried.rows, carried_bytes(self._context.checkpoint, committed))
        )

    def _retained_of(self, committed: CommittedBatch, name: str) -> Counted:
        """The retained rows of a stream after a micro-batch."""
        own = f"{ROWS}{name}"
        if own not in committed.chunks:
            return Counted()
        rows = self._rows.after(committed, name).retained.rows
        return Counted.of(rows.column(ROWTIME), self._context.checkpoint.chunk_bytes(committed, own))

    def retained(self, committed: CommittedBatch) -> Retained:
        """The entries buffered until their processing time, and the rows of streams and operators.

        The files of a stream may have more rows than are retained.
        """
        if (stored := Retained.known(committed)) is not None:
            return stored
        known, carried = self._known_last, carried_in(committed)
        states = (
            known.rows.values()
            if known is not None and known.number == committed.number
            else [self._rows.after(committed, name) for _, name, _ in self._context.streams()]
        )
        rows = sum(int(state.retained.alive.sum()) for state in states)
        return Retained(committed.counts["rows_buffered"], rows + (0 if carried is None else carried.rows))


def _times(logged: Mapping[str, Sequence[tuple[int, object]]]) -> list[int]:
    return [at for one in logged.values() for at, _ in one]


def _pruned(marks: Marks, since: int) -> Marks:
    """The changes of a watermark from an instant on, and the last before it."""
    before = [mark for mark in marks if mark[0] < since]
    return [*before[-1:], *(mark for mark in marks if mark[0] >= since)]
