"""A query with EMIT in a bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.algebra.watermarks import least_watermark
from windrow.kernels.incremental import (
    PER_MICRO_BATCH,
    InputState,
    Program,
    Run,
    TimedRows,
    Times,
    UnmatchedError,
    over_panes,
)
from windrow.kernels.zset.relation import NEVER
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.spark.live.executors.bucket_state import BucketWindow, Moment, Store, StoredState, not_here
from windrow.spark.live.executors.bucket_task import BucketTask, TaskStream
from windrow.spark.live.executors.buckets.droppable_rows import DroppableRows
from windrow.spark.live.executors.buckets.emit_punctuation import BucketPunctuation, EmitPunctuation
from windrow.spark.live.input.arrivals import VIOLATED
from windrow.spark.live.micro_batches.emit_rows import FINAL_FROM
from windrow.spark.live.micro_batches.late_for_groups import late_by
from windrow.spark.live.operators.emit_program import EmitProgram, EmitRun, EmitSource, times_of
from windrow.spark.live.operators.incremental_plan import unstable
from windrow.spark.live.operators.watermark_conditions import where_true
from windrow.spark.logs.arrived import before_end
from windrow.spark.logs.session_streams import ARRIVED, REASON, ROWTIME
from windrow.streams.entries import BEFORE, NO_BOUND, REASONS

__all__ = ["SPARE", "Emits", "Emitting", "Judge", "moved_marks", "reached_by", "run_of"]

_MARKS = "marks"
SPARE = 1_000_000
"""Operators that have processed so many rows more than twice the retained ones are rebuilt."""
_MARK_SCHEMA = pa.schema([("stream", pa.string()), ("at", pa.int64()), ("mark", pa.int64())])


def run_of(program: EmitProgram, mapping: Program | None) -> EmitRun:
    """A query without state; `mapping` maps the changes of a watermark."""
    maps = None if mapping is None else Run(mapping, not_here)

    def mapped(history: pa.Table) -> pa.Table:
        assert maps is not None
        (found,) = maps.advance({0: history}, Times(None, 0))
        return found

    return EmitRun(program, Run(over_panes(program.program), not_here), mapped)


def moved_marks(
    streams: Sequence[TaskStream], known: dict[str, Marks], moment: Moment
) -> list[tuple[str, int, int]]:
    """The streams that are complete further than `known`, to which it is added: each with the time and its
    watermark.
    """
    moved = []
    for place, stream in enumerate(streams):
        mark, history = moment.marks[place].watermark(stream.ordering), known.setdefault(stream.name, [])
        if mark is not None and (not history or history[-1][1] != mark):
            history.append((moment.now, mark))
            moved.append((stream.name, moment.now, mark))
    return moved


def reached_by(program: EmitProgram, known: Mapping[str, Marks]) -> dict[str, Marks]:
    """Watermark changes, as times for computations."""
    return {name: before_end(program.scales[name], history) for name, history in known.items()}


@dataclass(frozen=True, eq=False)
class Judge:
    """Decides which rows of a stream are late for groups, at one place of the query.

    Attributes
    ----------
    source
        There.
    rowtime
        The column of its rowtimes.
    conditions
        The conditions, any of which makes a row late, as in
        :meth:`windrow.spark.live.operators.watermark_conditions.WatermarkConditions.planned`.
    """

    source: EmitSource
    rowtime: pa.Field
    conditions: tuple[Program, ...]


@dataclass(frozen=True, eq=False)
class Emits:
    """A query with EMIT, whose sources are the task's sides.

    Attributes
    ----------
    program
        The query.
    schemas
        The retained columns of the rows of each source.
    mapping
        The program that maps the changes of a watermark; None if it is not needed.
    judges
        For each stream, the conditions that decide which of its rows are late for groups.
    has_state
        Whether there is state between micro-batches.
    droppable
        When rows of each stream are droppable, if rows are retained until then; empty if the state of
        operators is stored in place of rows.
    crosses
        Whether the output is that of crossing leaves, at which the program ends.
    punctuation
        The punctuation that it reads; None without.
    """

    program: EmitProgram
    schemas: tuple[pa.Schema, ...]
    mapping: Program | None
    judges: Mapping[str, tuple[Judge, ...]]
    has_state: bool
    droppable: Mapping[str, DroppableRows]
    crosses: bool = False
    punctuation: EmitPunctuation | None = None

    def begin(self, task: BucketTask) -> Emitting:
        """A query without rows."""
        windows = [BucketWindow(f"rows-{at}", _nothing(schema)) for at, schema in enumerate(self.schemas)]
        return Emitting(task, self, windows, BucketWindow(_MARKS, _nothing(_MARK_SCHEMA)))

    def again(self, task: BucketTask, stored: Mapping[str, Any], store: Store) -> Emitting:
        """The stored state."""
        state = self.begin(task)
        for one, schema, chunks in zip(
            [*state.windows, state.marks], [*self.schemas, _MARK_SCHEMA], stored["chunks"], strict=True
        ):
            one.state = _nothing(schema)
            for chunk, (_, rows) in one.read(store, chunks).items():
                one.state = _with(one.state, rows, chunk)
        state.frontier, state.origin, state.for_groups = (
            stored["frontier"],
            stored["origin"],
            stored["for_groups"],
        )
        if stored["carried"] is not None:
            state.run.restore(state.carried.read(store, stored["carried"]))
        if state.punctuation is not None:
            state.punctuation.restore(stored.get("punctuation", {}))
        since = state.carried.at
        state.again(since)
        return state


@dataclass
class Emitting:
    """The state of a query in a bucket.

    Attributes
    ----------
    windows
        The rows of each source that have arrived since the operators were stored.
    marks
        Up to which rowtime streams were complete, over time, since then.
    known
        The same, as far as the next micro-batch needs it.
    frontier, origin
        The processing time up to which changes have been emitted, and that of the first micro-batch.
    carried
        The stored state of the operators.
    for_groups
        How many rows so far are late for a group.
    """

    task: BucketTask
    work: Emits
    windows: list[BucketWindow]
    marks: BucketWindow
    known: dict[str, Marks] = field(default_factory=dict)
    frontier: int | None = None
    origin: int | None = None
    carried: StoredState = field(default_factory=StoredState)
    new_tables: list[list[pa.Table]] = field(init=False)
    for_groups: int = 0
    late: int = field(init=False, default=0)
    run: EmitRun = field(init=False)
    punctuation: BucketPunctuation | None = field(init=False, default=None)

    takes_late = True

    def __post_init__(self) -> None:
        self.new_tables = [[] for _ in self.windows]
        self._left = [0 for _ in self.windows]  # how many rows were left the last time
        self._processed = 0  # how many rows operators have processed since they were rebuilt
        self.run = run_of(self.work.program, self.work.mapping)
        if self.work.punctuation is not None:
            self.punctuation = BucketPunctuation(self.work.punctuation)
        self._judges = {
            name: [(one, [Run(each, not_here) for each in one.conditions]) for one in judges]
            for name, judges in self.work.judges.items()
        }

    @property
    def size(self) -> int:
        """The stored bytes."""
        return self.carried.size + sum(one.size for one in (*self.windows, self.marks))

    @property
    def first(self) -> int | None:
        """The processing time of the first micro-batch; None before it."""
        return self.origin

    # -- a micro-batch ---------------------------------------------------------------------------------

    def take(self, side: int, rows: pa.Table, moment: Moment) -> pa.Table | None:
        """Add rows of a source; those that are late for a group are returned."""
        read, schema = self.task.sides[side], self.work.schemas[side]
        stream = self.task.streams[read.stream]
        arrived = pa.array(np.full(rows.num_rows, moment.now))
        columns = {name: rows.column(own) for name, own in read.columns.items()}
        columns |= {ROWTIME: rows.column(stream.rowtime), ARRIVED: arrived, BEFORE: rows.column(BEFORE)}
        table = pa.table({name: columns[name] for name in schema.names}).cast(schema).combine_chunks()
        self.new_tables[side].append(table)
        return self._late_for_groups(stream.name, rows, table) if read.is_first else None

    def _late_for_groups(self, name: str, entries: pa.Table, rows: pa.Table) -> pa.Table | None:
        """The late rows, as they arrived."""
        judges = self._judges.get(name, [])
        below = pc.fill_null(pc.less(rows.column(ROWTIME), rows.column(BEFORE)), False)
        if not judges or not pc.any(below).as_py():
            return None
        entries, rows = entries.filter(below), rows.filter(below).combine_chunks()
        scales = self.work.program.scales
        judged = [
            (
                one.source.mark_before(rows, self.known_of(one.source.watermark_of), scales),
                [partial(where_true, run, one.rowtime.name) for run in runs],
            )
            for one, runs in judges
        ]
        bounds = late_by(rows, judges[0][0].rowtime.type, judged)
        is_late = bounds != NO_BOUND
        if not is_late.any():
            return None
        late = entries.append_column(VIOLATED, pa.array(bounds))
        late = late.append_column(REASON, pa.repeat(REASONS[0], late.num_rows)).filter(pa.array(is_late))
        self.late += late.num_rows
        self.for_groups += late.num_rows
        return late

    def known_of(self, streams: frozenset[str]) -> dict[str, Marks]:
        """Up to which rowtime these streams are complete, over time."""
        return {name: self.known.get(name, []) for name in streams}

    def process(self, moment: Moment, account: BucketAccount) -> Sequence[pa.Table]:
        """The output up to the time of the micro-batch."""
        if self.origin is None and not moment.has_entries:  # processing time begins with the first entry
            return ()
        new_tables, self.new_tables = self.new_tables, [[] for _ in self.windows]
        late, self.late = self.late, 0
        rows = [
            pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
            for schema, tables in zip(self.work.schemas, new_tables, strict=True)
        ]
        self._move(moment)
        if self.punctuation is not None:
            self.punctuation.take(self.task.streams, moment)
        self.origin = moment.now if self.origin is None else self.origin
        try:
            changes = self.advance(rows, (self.frontier, moment.now))
        except UnmatchedError as error:
            raise unstable(error) from None
        self.frontier = moment.now
        for side, one, table in zip(self.task.sides, self.windows, rows, strict=True):
            account.used += table.num_rows if side.is_first else 0
            if self.work.has_state:
                one.state = _with(one.state, table, moment.number * PER_MICRO_BATCH)
        account.used -= late
        self._drop_unneeded()
        return changes

    def again(self, since: int | None) -> None:
        """Restore the state of operators, from the rows that arrived after a processing time."""
        self.known, self._processed = self.all_known(), 0
        if self.frontier is not None and since != self.frontier:
            self.advance([one.state.retained.rows for one in self.windows], (since, self.frontier))

    def _drop_unneeded(self) -> None:
        """Drop rows on which no change depends any more; checked again when their number has doubled."""
        streams = self.work.program.streams
        watermark = least_watermark(
            [history for name, history in self.reached(self.known).items() if name in streams]
        )
        self.known = {name: history[-1:] for name, history in self.known.items()}
        if self.punctuation is not None and self.frontier is not None:
            oldest = self._oldest
            self.punctuation.fold(self.frontier if oldest is None else oldest)
        if not self._retains_rows or self.frontier is None:
            return
        mark = watermark[-1][1] if watermark else None
        for at, (side, one) in enumerate(zip(self.task.sides, self.windows, strict=True)):
            retained = one.state.retained
            if len(retained) >= max(2 * self._left[at], FINAL_FROM):
                droppable = self.work.droppable[self.task.streams[side.stream].name]
                over = droppable.of(retained.rows, mark, self.punctuation, self.frontier)
                one.state = replace(one.state, retained=retained.where(~over))
                self._left[at] = len(one.state.retained)
        self._forget_marks(self._oldest)
        if self._processed > 2 * sum(len(one.state.retained) for one in self.windows) + SPARE:
            self.run.empty()
            self.again(None)

    @property
    def _oldest(self) -> int | None:
        """When the first of the retained rows arrived."""
        firsts = [pc.min(one.state.retained.rows.column(ARRIVED)).as_py() for one in self.windows]
        return min((first for first in firsts if first is not None), default=None)

    def _forget_marks(self, first: int | None) -> None:
        """Drop the watermark changes of each stream before a processing time, except the last one."""
        marks, last = self.marks.state.retained, dict[str, int]()
        places = list(zip(*(marks.rows.column(name).to_pylist() for name in ("stream", "at")), strict=True))
        for name, at in places:
            if first is None or at < first:
                last[name] = max(at, last.get(name, at))
        stays = np.array([at >= last.get(name, at) for name, at in places], bool)
        if not stays.all():
            self.marks.state = replace(self.marks.state, retained=marks.where(stays))

    def advance(self, rows: Sequence[pa.Table], span: tuple[int | None, int]) -> list[pa.Table]:
        """The output for rows of each source from one processing time, excluded, to another."""
        since, _ = span
        self._processed += sum(table.num_rows for table in rows)
        marks, origin = self.reached(self.known), self.origin if since is None else None
        if not self.work.crosses:
            promising = None if self.punctuation is None else self.punctuation.promising
            return [self.run.advance(rows, marks, span, origin, promising)]
        return self.run.operators.advance(self.run.leaves(rows, marks), times_of(span), origin)

    def _move(self, moment: Moment) -> None:
        """Record how far streams are complete now."""
        moved = moved_marks(self.task.streams, self.known, moment)
        if moved and self.work.has_state:
            table = pa.Table.from_pylist(
                [dict(zip(_MARK_SCHEMA.names, one, strict=True)) for one in moved], _MARK_SCHEMA
            )
            self.marks.state = _with(self.marks.state, table, moment.number * PER_MICRO_BATCH)

    def all_known(self) -> dict[str, Marks]:
        """All recorded watermark changes of the streams."""
        known: dict[str, Marks] = {stream.name: [] for stream in self.task.streams}
        columns = [column.to_pylist() for column in self.marks.state.retained.rows.columns]
        for name, at, mark in zip(*columns, strict=True):
            known[name].append((at, mark))
        return known

    def reached(self, known: Mapping[str, Marks]) -> dict[str, Marks]:
        """The same, as times for computations."""
        return reached_by(self.work.program, known)

    # -- what is stored --------------------------------------------------------------------------------

    def save(self, store: Store, number: int) -> dict[str, Any]:
        """Store new state; now and then the state of operators in place of rows."""
        row_count = sum(len(one.state.retained) for one in self.windows)
        if self.frontier is not None and not self._retains_rows and self.carried.is_due(row_count):
            self._carry(store, self.frontier, number)
        chunks = [one.save(store, number) for one in (*self.windows, self.marks)]
        return {
            "frontier": self.frontier,
            "origin": self.origin,
            "chunks": chunks,
            "carried": self.carried.to_json(),
            "for_groups": self.for_groups,
            "punctuation": {} if self.punctuation is None else self.punctuation.to_json,
        }

    @property
    def _retains_rows(self) -> bool:
        """Whether rows are retained until they are droppable.

        Otherwise the state of operators is stored in their place: nothing drops rows, or only punctuation
        does, and there has been none.
        """
        waits = self.work.droppable.values()
        in_vain = (
            self.punctuation is not None
            and self.punctuation.is_empty
            and not all(one.in_time for one in waits)
        )
        return bool(waits) and self.carried.at is None and not in_vain

    def _carry(self, store: Store, frontier: int, number: int) -> None:
        if self.work.program.forgets:
            self.run.forget(self.reached(self.known))
        self.carried.write(store, number, frontier, self.run.retained, self.run.state)
        for one in self.windows:
            retained = one.state.retained
            one.state = replace(one.state, retained=retained.where(np.zeros(len(retained), bool)))
        self._forget_marks(None)

    def report(self, account: BucketAccount) -> None:
        """Report the state."""
        account.groups, account.for_groups, account.due = self.run.retained, self.for_groups, self.run.due
        account.stored = self.carried.size
        for at, one in enumerate(self.windows):
            rows = one.state.retained.rows
            account.retained[at] = rows.num_rows
            account.oldest[at] = pc.min(rows.column(ROWTIME)).as_py()
            account.size[at] = one.size


def _nothing(schema: pa.Schema) -> InputState:
    none, empty = np.zeros(0, np.int64), schema.empty_table()
    return InputState(TimedRows.of(empty, none, none, none), empty, none)


def _with(state: InputState, rows: pa.Table, chunk: int) -> InputState:
    """The state with more rows, which are retained in a chunk."""
    if not rows.num_rows:
        return state
    count = rows.num_rows
    enter, leave = np.zeros(count, np.int64), np.full(count, NEVER)
    retained = state.retained.with_rows(
        TimedRows.of(rows.combine_chunks(), enter, leave, np.full(count, chunk))
    )
    return replace(state, retained=retained, chunks={**state.chunks, chunk: count})
