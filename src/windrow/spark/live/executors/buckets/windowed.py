"""CQL in a bucket: its windows, and operators over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InputError
from windrow.kernels.incremental import (
    PER_MICRO_BATCH,
    InputState,
    Program,
    Run,
    TimedRows,
    Times,
    UnmatchedError,
    WindowInput,
    over_panes,
)
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.spark.live.executors.bucket_state import BucketWindow, Moment, Store, StoredState, not_here
from windrow.spark.live.executors.bucket_task import BucketTask, watermarks_in
from windrow.spark.live.operators.ended_partitions import ClosedPartitions, Closings
from windrow.spark.live.operators.incremental_plan import unstable
from windrow.spark.live.reading.closed_keys import ClosingWindows
from windrow.streams.entries import FOREVER

__all__ = ["EARLIER", "BucketWindows", "OverWindows", "Windowed", "as_output"]

EARLIER = -NEVER
"""The `ENTER` of rows that an earlier micro-batch has emitted."""


@dataclass(frozen=True, eq=False)
class OverWindows:
    """Operators over windows.

    Attributes
    ----------
    program
        They.
    leaves, reads
        The leaf of each window, and the columns that are read.
    """

    program: Program
    leaves: tuple[int, ...]
    reads: tuple[tuple[str, ...], ...]

    def advance(
        self, run: Run, windows: Sequence[tuple[WindowInput, TimedRows]], times: Times, origin: int | None
    ) -> list[pa.Table]:
        """The changes of each output by the rows that enter and leave the windows; `origin` is their first
        instant.
        """
        parts = zip(self.leaves, windows, self.reads, strict=True)
        try:
            moves = {leaf: side.moving(rows, times, reads) for leaf, (side, rows), reads in parts}
            return run.advance(moves, times, origin if times.since is None else None)
        except UnmatchedError as error:
            raise unstable(error) from None

    def passed(self, run: Run, rows: pa.Table, rowtime: str, until: int) -> pa.Table:
        """The output for rows of the only window, each at its rowtime."""
        at = rows.column(rowtime)
        ((leaf, read),) = zip(self.leaves, self.reads, strict=True)
        moves = rows.select(read).append_column(ENTER, at).append_column(LEAVE, pc.add(at, 1))
        (found,) = run.advance({leaf: moves}, Times(None, until))
        place = found.column_names.index(LEAVE)
        return found.set_column(place, LEAVE, pa.array(np.full(found.num_rows, NEVER)))


def as_output(rows: pa.Table, times: Times) -> pa.Table:
    """Changes, in which rows that were present before enter at `EARLIER`."""
    if times.since is None or not rows.num_rows:
        return rows
    place, enter = rows.column_names.index(ENTER), rows.column(ENTER).to_numpy()
    return rows.set_column(place, ENTER, pa.array(np.where(enter < times.since, EARLIER, enter)))


@dataclass(frozen=True)
class BucketWindows:
    """The computation of a bucket on the windows of a query.

    Attributes
    ----------
    inputs
        The windows; they are the task's sides.
    operators
        The operators over the rows that enter and leave these.
    passes_on
        Whether rows are emitted at their rowtimes, and no window retains them.
    only_grows
        Whether no row leaves a window, so that the state of operators can replace the rows.
    crosses
        Whether the output is that of crossing leaves.
    closing, closings
        The windows whose rows punctuation drops, None if there are none, and the streams that close their
        keys.
    """

    inputs: tuple[WindowInput, ...]
    operators: OverWindows
    passes_on: bool
    only_grows: bool
    crosses: bool = False
    closing: ClosingWindows | None = None
    closings: Closings = field(default_factory=dict)

    def begin(self, task: BucketTask) -> Windowed:
        """Windows without state."""
        windows = [BucketWindow(side.name, InputState.nothing(side)) for side in self.inputs]
        return Windowed(task, self, windows)

    def again(self, task: BucketTask, stored: Mapping[str, Any], store: Store) -> Windowed:
        """The stored windows."""
        state, frontier = self.begin(task), stored["frontier"]
        # of rows that are emitted unchanged, those at the frontier have been, too
        reached = frontier + 1 if self.passes_on and frontier not in (None, FOREVER) else frontier
        for one, side, chunks in zip(state.windows, self.inputs, stored["chunks"], strict=True):
            read = one.read(store, chunks)
            rows = {chunk: count for chunk, (count, _) in read.items()}
            one.state = InputState.read(side, rows, (table for _, table in read.values()), reached)
        state.frontier, state.origin = frontier, stored["origin"]
        if frontier is None or self.passes_on:
            return state
        if stored["carried"] is not None:
            state.run.restore(state.carried.read(store, stored["carried"]))
        since = state.carried.at
        if since is None or since < frontier:
            state.rows_of_operators(Times(since, frontier))
        return state


@dataclass
class Windowed:
    """The state of the windows of a bucket.

    Attributes
    ----------
    windows
        The rows of each window.
    frontier, origin
        Changes before the frontier have been emitted; the origin is the first instant of the rows.
    carried
        The stored state of the operators.
    """

    task: BucketTask
    work: BucketWindows
    windows: list[BucketWindow]
    frontier: int | None = None
    origin: int | None = None
    carried: StoredState = field(default_factory=StoredState)
    new_tables: list[list[pa.Table]] = field(init=False)
    run: Run = field(init=False)
    closed: ClosedPartitions = field(init=False)

    takes_late = False

    def __post_init__(self) -> None:
        self.new_tables = [[] for _ in self.windows]
        self.run = Run(over_panes(self.work.operators.program), not_here)
        self.closed, self._may_be_final = ClosedPartitions(self.work.closings), False

    @property
    def size(self) -> int:
        """The stored bytes of the windows."""
        return sum(one.size for one in self.windows)

    @property
    def first(self) -> int | None:
        """The first instant at which it has rows; None without any."""
        return self.origin

    def take(self, side: int, rows: pa.Table, moment: Moment) -> pa.Table | None:  # noqa: ARG002 - of others
        """Add rows of a window, with the columns that it retains."""
        read, window = self.task.sides[side], self.work.inputs[side]
        stream = self.task.streams[read.stream]
        ticks = rows.column(stream.rowtime)
        if stream.ticks > 1:
            if (np.abs(ticks.to_numpy()) > 2**62 // stream.ticks).any():
                raise InputError(
                    "a rowtime is too large for the time scale of the query", condition="ROWTIME_OVERFLOW"
                )
            ticks = pc.multiply_checked(ticks, stream.ticks)
        columns = [rows.column(read.columns[name]) for name in window.schema.names[:-1]]
        table = pa.table([*columns, ticks], names=window.schema.names).cast(window.schema)
        self.new_tables[side].append(table)
        return None

    def process(self, moment: Moment, account: BucketAccount) -> Sequence[pa.Table]:
        """Rows with `ENTER` and `LEAVE`; as output, those present before enter at `EARLIER`."""
        marks = (watermarks_in(self.task.streams, one) for one in (moment.before, moment.marks))
        closes = self.closed.take(moment.number, moment.number - 1, *marks)
        found, self._may_be_final = self._advanced(moment, account), self._may_be_final or closes
        if self._may_be_final and self.work.closing is not None and self.frontier is not None:
            self._drop_closed(self.work.closing, self.frontier)
        return found

    def _drop_closed(self, closing: ClosingWindows, frontier: int) -> None:
        """Drop rows that change nothing any more, because punctuation has closed their keys."""
        states = {one.name: one.state.awake() for one in self.windows}
        closed, self._may_be_final = closing.closed_rows(states, self.closed)
        gone, operators = dict[int, pa.Table](), self.work.operators
        for one, leaf, reads in zip(self.windows, operators.leaves, operators.reads, strict=True):
            one.state, rows = states[one.name], closed.get(one.name)
            if rows is not None:
                retained = one.state.retained
                gone[leaf] = retained.entered(
                    rows & (retained.enter < frontier), Times(frontier, frontier), reads
                )
                one.state = replace(one.state, retained=retained.where(~rows))
        self.run.drop(gone)

    def _advanced(self, moment: Moment, account: BucketAccount) -> Sequence[pa.Table]:
        """The output of the rows that enter and leave."""
        new_tables, self.new_tables = self.new_tables, [[] for _ in self.windows]
        until = self.task.frontier(moment.marks)
        if self.work.passes_on:
            found = self._passed(new_tables[0], account, moment.number, until)
            return () if found is None else (found,)
        for one, arrived in zip(self.windows, new_tables, strict=True):
            for table in arrived:
                one.state = one.state.with_arrivals(table, moment.number * PER_MICRO_BATCH)
        if until is None or (self.frontier is not None and until <= self.frontier):
            return ()
        self.origin = self._first_before(until) if self.origin is None else self.origin
        if self.origin is None:
            return ()
        waited, times = self._waiting, Times(self.frontier, until)
        inputs = self.work.inputs
        for one, side in zip(self.windows, inputs, strict=True):
            one.state = one.state.advanced(side, times)
        tables = self.rows_of_operators(times)
        for one, side in zip(self.windows, inputs, strict=True):
            one.state = one.state.after(side, times)
        self.frontier = until
        account.used = waited - self._waiting
        return tables if self.work.crosses else [as_output(rows, times) for rows in tables]

    def _first_before(self, until: int) -> int | None:
        """The first rowtime of the rows that have arrived, if it is before an instant."""
        waiting = [one.state.waiting.column(side.window.rowtime) for one, side in self._sides]
        firsts = [first for one in waiting if (first := pc.min(one).as_py()) is not None and first < until]
        return min(firsts, default=None)

    @property
    def _sides(self) -> list[tuple[BucketWindow, WindowInput]]:
        return list(zip(self.windows, self.work.inputs, strict=True))

    def rows_of_operators(self, times: Times) -> list[pa.Table]:
        """The changes of outputs by the rows that enter and leave; updates the state of operators."""
        windows = [(side, one.state.retained) for one, side in self._sides]
        return self.work.operators.advance(self.run, windows, times, self.origin)

    def _passed(
        self, tables: list[pa.Table], account: BucketAccount, number: int, until: int | None
    ) -> pa.Table | None:
        """The rows that are emitted, including those at the frontier, at which more may arrive."""
        (side,) = self.work.inputs
        (own,) = self.windows
        rows = pa.concat_tables([side.schema.empty_table(), *tables])
        if until is None:
            own.state = own.state.with_arrivals(rows, number * PER_MICRO_BATCH)
            return None
        waited, chunk = own.state.waiting.num_rows + rows.num_rows, number * PER_MICRO_BATCH
        left, passed = own.state.passing(side, rows, chunk, until if until == FOREVER else until + 1)
        own.state, self.frontier = left, until
        account.used = waited - left.waiting.num_rows
        return self.work.operators.passed(self.run, passed, side.window.rowtime, until)

    @property
    def _waiting(self) -> int:
        """How many rows are buffered, each counted once."""
        pairs = zip(self.task.sides, self.windows, strict=True)
        return sum(one.state.waiting.num_rows for side, one in pairs if side.is_first)

    def save(self, store: Store, number: int) -> dict[str, Any]:
        """Store new state after a micro-batch."""
        if self.work.only_grows and self.frontier is not None:
            self._carry(store, self.frontier, number)
        chunks = [one.save(store, number) for one in self.windows]
        carried = self.carried.to_json()
        return {"frontier": self.frontier, "origin": self.origin, "chunks": chunks, "carried": carried}

    def _carry(self, store: Store, frontier: int, number: int) -> None:
        """Store the state of the operators in place of the rows that it is computed from, if these are
        more.
        """
        if self.carried.is_due(sum(one.state.count for one in self.windows)):
            self.carried.write(store, number, frontier, self.run.retained, self.run.state)
            for one, side in self._sides:
                retained = side.unread(one.state.retained, frontier)
                one.state = replace(one.state, retained=retained, resting=())

    def report(self, account: BucketAccount) -> None:
        """Report the state of windows."""
        account.groups = self.run.retained if self.work.only_grows else 0
        account.stored = self.carried.size
        sides = zip(self.task.sides, self.work.inputs, self.windows, strict=True)
        for at, (side, window, one) in enumerate(sides):
            rowtime, state = window.window.rowtime, one.state
            account.retained[at], account.oldest[at] = state.count, state.oldest(rowtime)
            account.size[at] = one.size
            if side.is_first:
                account.waiting[side.stream] = state.waiting.num_rows
                account.oldest_waiting[side.stream] = pc.min(state.waiting.column(rowtime)).as_py()
