"""A query with EMIT in a bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.algebra.watermarks import Steps as Marks
from windrow.algebra.watermarks import held_back
from windrow.kernels.stages import PER_STEP, Held, Holding, Program, Run, Times, UnmatchedError
from windrow.kernels.zset.relation import NEVER
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.spark.live.executors.bucket_state import BucketWindow, Carry, Moment, Store, not_here
from windrow.spark.live.executors.bucket_task import BucketTask
from windrow.spark.live.executors.over import Endings
from windrow.spark.live.input.arrivals import VIOLATED
from windrow.spark.live.micro_batches.emit_in_memory import SETTLED_FROM
from windrow.spark.live.micro_batches.late_for_groups import late_by
from windrow.spark.live.operators.emit_program import EmitProgram, EmitRun, EmitSource
from windrow.spark.live.operators.flow import unstable
from windrow.spark.live.operators.watermark_conditions import is_held
from windrow.spark.logs.arrived import before_end
from windrow.spark.logs.session_streams import ARRIVED, REASON, ROWTIME
from windrow.streams.entries import BEFORE, NO_BOUND, REASONS

__all__ = ["SPARE", "Emits", "Emitting", "Judge"]

_MARKS = "marks"
SPARE = 1_000_000
"""Operators that have taken so many rows more than twice those that are kept are made anew."""
_MARK_SCHEMA = pa.schema([("stream", pa.string()), ("at", pa.int64()), ("mark", pa.int64())])


@dataclass(frozen=True, eq=False)
class Judge:
    """Says which rows of a stream are late for groups, by where it stands in the query.

    Attributes
    ----------
    source
        There.
    rowtime
        The column of its rowtimes.
    conditions
        Any of which a row is late by, as
        :meth:`windrow.spark.live.operators.watermark_conditions.WatermarkConditions.planned` has them.
    """

    source: EmitSource
    rowtime: pa.Field
    conditions: tuple[Program, ...]


@dataclass(frozen=True, eq=False)
class Emits:
    """A query with EMIT, of which the sources are the task's sides.

    Attributes
    ----------
    program
        The query.
    schemas
        What is kept of the rows of each source.
    mapping
        What maps steps of a watermark; None where nothing asks for it.
    judges
        Of each stream what says which of its rows are late for groups.
    holds
        Whether anything is held from one micro-batch to the next.
    endings
        Of each stream when rows are over, where rows are kept until then; none where what operators hold is
        stored in place of rows.
    """

    program: EmitProgram
    schemas: tuple[pa.Schema, ...]
    mapping: Program | None
    judges: Mapping[str, tuple[Judge, ...]]
    holds: bool
    endings: Mapping[str, Endings]

    def begin(self, task: BucketTask) -> Emitting:
        """A query of which no row has come."""
        kept = [BucketWindow(f"rows-{at}", _nothing(schema)) for at, schema in enumerate(self.schemas)]
        return Emitting(task, self, kept, BucketWindow(_MARKS, _nothing(_MARK_SCHEMA)))

    def again(self, task: BucketTask, told: Mapping[str, Any], store: Store) -> Emitting:
        """What was held."""
        held = self.begin(task)
        for one, schema, chunks in zip(
            [*held.kept, held.marks], [*self.schemas, _MARK_SCHEMA], told["chunks"], strict=True
        ):
            one.holding = _nothing(schema)
            for chunk, (_, rows) in one.read(store, chunks).items():
                one.holding = _with(one.holding, rows, chunk)
        held.frontier, held.origin, held.for_groups = told["frontier"], told["origin"], told["for_groups"]
        if told["carried"] is not None:
            held.carried = Carry(**told["carried"])
            held.run.restore(held.carried.read(store))
        since = None if held.carried is None else held.carried.at
        held.again(since)
        return held


@dataclass
class Emitting:
    """What a bucket holds of a query.

    Attributes
    ----------
    kept
        The rows of each source that have come since operators were stored.
    marks
        Up to which rowtime streams were known, in time, since then.
    known
        The same, as far as the next micro-batch has to know.
    frontier, origin
        The processing time up to which changes have been emitted, and that of the first micro-batch.
    carried
        What is stored of the operators.
    for_groups
        How many rows so far are late for a group.
    """

    task: BucketTask
    work: Emits
    kept: list[BucketWindow]
    marks: BucketWindow
    known: dict[str, Marks] = field(default_factory=dict)
    frontier: int | None = None
    origin: int | None = None
    carried: Carry | None = None
    came: list[list[pa.Table]] = field(init=False)
    for_groups: int = 0
    late: int = field(init=False, default=0)
    run: EmitRun = field(init=False)

    takes_late = True

    def __post_init__(self) -> None:
        self.came = [[] for _ in self.kept]
        mapping = None if self.work.mapping is None else Run(self.work.mapping, not_here)

        def mapped(steps: pa.Table) -> pa.Table:
            assert mapping is not None
            (found,) = mapping.step({0: steps}, Times(None, 0))
            return found

        self._left = [0 for _ in self.kept]  # how many rows were left when it was asked last
        self._taken = 0  # how many rows operators have taken since they were made anew
        self.run = EmitRun(self.work.program, Run(self.work.program.program, not_here), mapped)
        self._judges = {
            name: [(one, [Run(each, not_here) for each in one.conditions]) for one in judges]
            for name, judges in self.work.judges.items()
        }

    @property
    def size(self) -> int:
        """The bytes that are stored."""
        carried = 0 if self.carried is None else self.carried.size
        return carried + sum(one.size for one in (*self.kept, self.marks))

    # -- a micro-batch ---------------------------------------------------------------------------------

    def take(self, side: int, rows: pa.Table, moment: Moment) -> pa.Table | None:
        """Take in rows of a source; those that are late for a group are given back."""
        told, schema = self.task.sides[side], self.work.schemas[side]
        stream = self.task.streams[told.stream]
        arrived = pa.array(np.full(rows.num_rows, moment.now))
        columns = {name: rows.column(own) for name, own in told.columns.items()}
        columns |= {ROWTIME: rows.column(stream.rowtime), ARRIVED: arrived, BEFORE: rows.column(BEFORE)}
        table = pa.table({name: columns[name] for name in schema.names}).cast(schema).combine_chunks()
        self.came[side].append(table)
        return self._late_for_groups(stream.name, rows, table) if told.is_first else None

    def _late_for_groups(self, name: str, entries: pa.Table, rows: pa.Table) -> pa.Table | None:
        """Those of the rows, as they came."""
        judges = self._judges.get(name, [])
        below = pc.fill_null(pc.less(rows.column(ROWTIME), rows.column(BEFORE)), False)
        if not judges or not pc.any(below).as_py():
            return None
        entries, rows = entries.filter(below), rows.filter(below).combine_chunks()
        clocks = self.work.program.clocks
        asked = [
            (
                one.source.mark_before(rows, self.known_of(one.source.watermark_of), clocks),
                [partial(is_held, run, one.rowtime.name) for run in runs],
            )
            for one, runs in judges
        ]
        bounds = late_by(rows, judges[0][0].rowtime.type, asked)
        is_late = bounds != NO_BOUND
        if not is_late.any():
            return None
        late = entries.append_column(VIOLATED, pa.array(bounds))
        late = late.append_column(REASON, pa.repeat(REASONS[0], late.num_rows)).filter(pa.array(is_late))
        self.late += late.num_rows
        self.for_groups += late.num_rows
        return late

    def known_of(self, streams: frozenset[str]) -> dict[str, Marks]:
        """Up to which rowtime these streams are known, in time."""
        return {name: self.known.get(name, []) for name in streams}

    def step(self, moment: Moment, account: BucketAccount) -> pa.Table | None:
        """What is told by the time of the micro-batch."""
        came, self.came = self.came, [[] for _ in self.kept]
        late, self.late = self.late, 0
        rows = [
            pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
            for schema, tables in zip(self.work.schemas, came, strict=True)
        ]
        self._move(moment)
        self.origin = moment.now if self.origin is None else self.origin
        try:
            told = self.advance(rows, (self.frontier, moment.now))
        except UnmatchedError as error:
            raise unstable(error) from None
        self.frontier = moment.now
        for side, one, table in zip(self.task.sides, self.kept, rows, strict=True):
            account.used += table.num_rows if side.is_first else 0
            if self.work.holds:
                one.holding = _with(one.holding, table, moment.number * PER_STEP)
        account.used -= late
        self._let_go()
        return told

    def again(self, since: int | None) -> None:
        """Let operators hold what they held, by the rows that have come after a processing time."""
        self.known, self._taken = self.all_known(), 0
        if self.frontier is not None and since != self.frontier:
            self.advance([one.holding.held.rows for one in self.kept], (since, self.frontier))

    def _let_go(self) -> None:
        """Keep no rows of which no change is made any more; ask for that when they are twice as many."""
        streams = self.work.program.streams
        watermark = held_back([steps for name, steps in self.reached(self.known).items() if name in streams])
        self.known = {name: steps[-1:] for name, steps in self.known.items()}
        if not watermark or not self.work.endings:
            return
        for at, (side, one) in enumerate(zip(self.task.sides, self.kept, strict=True)):
            held = one.holding.held
            if len(held) >= max(2 * self._left[at], SETTLED_FROM):
                over = self.work.endings[self.task.streams[side.stream].name].of(held.rows, watermark[-1][1])
                one.holding = replace(one.holding, held=held.where(~over))
                self._left[at] = len(one.holding.held)
        firsts = [pc.min(one.holding.held.rows.column(ARRIVED)).as_py() for one in self.kept]
        self._forget_marks(min((first for first in firsts if first is not None), default=None))
        if self._taken > 2 * sum(len(one.holding.held) for one in self.kept) + SPARE:
            self.run.empty()
            self.again(None)

    def _forget_marks(self, first: int | None) -> None:
        """Keep the last mark of each stream before a processing time, and those after it."""
        marks, last = self.marks.holding.held, dict[str, int]()
        places = list(zip(*(marks.rows.column(name).to_pylist() for name in ("stream", "at")), strict=True))
        for name, at in places:
            if first is None or at < first:
                last[name] = max(at, last.get(name, at))
        stays = np.array([at >= last.get(name, at) for name, at in places], bool)
        if not stays.all():
            self.marks.holding = replace(self.marks.holding, held=marks.where(stays))

    def advance(self, rows: Sequence[pa.Table], span: tuple[int | None, int]) -> pa.Table:
        """What is emitted by rows of each source from one processing time, which is left out, to another."""
        since, _ = span
        self._taken += sum(table.num_rows for table in rows)
        return self.run.step(rows, self.reached(self.known), span, self.origin if since is None else None)

    def _move(self, moment: Moment) -> None:
        """Note how far streams are known now."""
        moved = []
        for place, stream in enumerate(self.task.streams):
            clock, known = (
                moment.said[place].watermark(stream.ordering),
                self.known.setdefault(stream.name, []),
            )
            if clock is not None and (not known or known[-1][1] != clock):
                known.append((moment.now, clock))
                moved.append((stream.name, moment.now, clock))
        if moved and self.work.holds:
            table = pa.Table.from_pylist(
                [dict(zip(_MARK_SCHEMA.names, one, strict=True)) for one in moved], _MARK_SCHEMA
            )
            self.marks.holding = _with(self.marks.holding, table, moment.number * PER_STEP)

    def all_known(self) -> dict[str, Marks]:
        """All that is kept of how far streams were known."""
        known: dict[str, Marks] = {stream.name: [] for stream in self.task.streams}
        columns = [column.to_pylist() for column in self.marks.holding.held.rows.columns]
        for name, at, mark in zip(*columns, strict=True):
            known[name].append((at, mark))
        return known

    def reached(self, known: Mapping[str, Marks]) -> dict[str, Marks]:
        """The same, as times with which can be computed."""
        clocks = self.work.program.clocks
        return {name: before_end(clocks[name], steps) for name, steps in known.items()}

    # -- what is stored --------------------------------------------------------------------------------

    def keep(self, store: Store, number: int) -> dict[str, Any]:
        """Store what is new; now and then what operators hold in place of rows."""
        came = sum(len(one.holding.held) for one in self.kept)
        if self.frontier is not None and not self.work.endings and Carry.is_due(self.carried, came):
            self._carry(store, self.frontier, number)
        chunks = [one.keep(store, number) for one in (*self.kept, self.marks)]
        carried = None if self.carried is None else asdict(self.carried)
        return {
            "frontier": self.frontier,
            "origin": self.origin,
            "chunks": chunks,
            "carried": carried,
            "for_groups": self.for_groups,
        }

    def _carry(self, store: Store, frontier: int, number: int) -> None:
        if self.work.program.forgets:
            self.run.forget(self.reached(self.known))
        self.carried = Carry.written(store, self.carried, number, frontier, self.run.held, self.run.state)
        for one in self.kept:
            held = one.holding.held
            one.holding = replace(one.holding, held=held.where(np.zeros(len(held), bool)))
        self._forget_marks(None)

    def tell(self, account: BucketAccount) -> None:
        """Say what is held."""
        account.groups, account.for_groups = self.run.held, self.for_groups
        account.stored = 0 if self.carried is None else self.carried.size
        for at, one in enumerate(self.kept):
            rows = one.holding.held.rows
            account.held[at] = rows.num_rows
            account.oldest[at] = pc.min(rows.column(ROWTIME)).as_py()
            account.size[at] = one.size


def _nothing(schema: pa.Schema) -> Holding:
    none, empty = np.zeros(0, np.int64), schema.empty_table()
    return Holding(Held.of(empty, none, none, none), empty, none)


def _with(holding: Holding, rows: pa.Table, chunk: int) -> Holding:
    """With more rows, which are kept in a chunk."""
    if not rows.num_rows:
        return holding
    count = rows.num_rows
    enter, leave = np.zeros(count, np.int64), np.full(count, NEVER)
    held = holding.held.with_rows(Held.of(rows.combine_chunks(), enter, leave, np.full(count, chunk)))
    return replace(holding, held=held, chunks={**holding.chunks, chunk: count})
