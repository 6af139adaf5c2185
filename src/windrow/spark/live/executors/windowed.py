"""CQL in a bucket: its windows, and one block or program over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InputError
from windrow.kernels.stages import (
    PER_STEP,
    Block,
    Held,
    Holding,
    Operated,
    Program,
    Run,
    Times,
    UnmatchedError,
    WindowInput,
    rows_of,
)
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.spark.live.executors.bucket_state import BucketWindow, Carry, Moment, Store, not_here
from windrow.spark.live.executors.bucket_task import BucketTask
from windrow.spark.live.operators.flow import unstable
from windrow.streams.entries import FOREVER

__all__ = ["EARLIER", "BucketWindows", "OverWindows", "Windowed"]

EARLIER = -NEVER
"""When rows enter that a micro-batch before has told of."""


@dataclass(frozen=True, eq=False)
class OverWindows:
    """Operators over windows.

    Attributes
    ----------
    program
        They.
    leaves, reads
        Of each window where its rows come, and the columns that are read.
    """

    program: Program
    leaves: tuple[int, ...]
    reads: tuple[tuple[str, ...], ...]

    def step(self, run: Run, held: Sequence[Held], times: Times, origin: int | None) -> pa.Table:
        """What enters and leaves by what enters and leaves the windows; `origin` is their first instant."""
        parts = zip(self.leaves, held, self.reads, strict=True)
        try:
            moves = {leaf: rows_of(own, times, reads) for leaf, own, reads in parts}
            (rows,) = run.step(moves, times, origin if times.since is None else None)
        except UnmatchedError as error:
            raise unstable(error) from None
        return rows


@dataclass(frozen=True)
class BucketWindows:
    """What a bucket makes of the windows of a query.

    Attributes
    ----------
    block
        That; its windows are the task's sides.
    passes_on
        Whether rows are given as they are at their rowtimes, and no window holds them.
    plan
        Operators that take what enters and leaves the windows, in place of the block's; None for those.
    """

    block: Block
    passes_on: bool
    plan: OverWindows | None = None

    def begin(self, task: BucketTask) -> Windowed:
        """Windows that hold nothing."""
        kept = [BucketWindow(side.name, Holding.nothing(side)) for side in self.block.inputs]
        return Windowed(task, self, kept, self.block.going_on())

    def again(self, task: BucketTask, told: Mapping[str, Any], store: Store) -> Windowed:
        """What windows held."""
        held, frontier = self.begin(task), told["frontier"]
        # of rows that are given as they are, those at the frontier have been, too
        reached = frontier + 1 if self.passes_on and frontier not in (None, FOREVER) else frontier
        for one, side, chunks in zip(held.kept, self.block.inputs, told["chunks"], strict=True):
            read = one.read(store, chunks)
            rows = {chunk: count for chunk, (count, _) in read.items()}
            one.holding = Holding.read(side, rows, (table for _, table in read.values()), reached)
        held.frontier, held.origin = frontier, told["origin"]
        if held.run is not None and frontier is not None:
            held.rows_of_block(Times(None, frontier))
        if held.groups is not None and frontier is not None:
            if told["carried"] is not None:
                held.carried = Carry(**told["carried"])
                held.groups.restore(held.carried.read(store))
            since = None if held.carried is None else held.carried.at
            if since is None or since < frontier:
                held.rows_of_block(Times(since, frontier))
        return held


@dataclass
class Windowed:
    """What the windows of a bucket hold.

    Attributes
    ----------
    kept
        The rows of each window.
    groups
        What goes on with groups in place of rows.
    frontier, origin
        Changes before the one have been given; the other is the first instant of the rows.
    carried
        What is stored of `groups`.
    """

    task: BucketTask
    work: BucketWindows
    kept: list[BucketWindow]
    groups: Operated | None
    frontier: int | None = None
    origin: int | None = None
    carried: Carry | None = None
    came: list[list[pa.Table]] = field(init=False)
    run: Run | None = field(init=False)

    takes_late = False

    def __post_init__(self) -> None:
        self.came = [[] for _ in self.kept]
        self.run = None if self.work.plan is None else Run(self.work.plan.program, not_here)

    @property
    def size(self) -> int:
        """The bytes of what is stored of windows."""
        return sum(one.size for one in self.kept)

    def take(self, side: int, rows: pa.Table, moment: Moment) -> pa.Table | None:  # noqa: ARG002 - of others
        """Take in rows of a window, as it keeps them."""
        told, block = self.task.sides[side], self.work.block.inputs[side]
        stream = self.task.streams[told.stream]
        ticks = rows.column(stream.rowtime)
        if stream.ticks > 1:
            if (np.abs(ticks.to_numpy()) > 2**62 // stream.ticks).any():
                raise InputError(
                    "a rowtime is too large for the clock of the query", condition="ROWTIME_OVERFLOW"
                )
            ticks = pc.multiply_checked(ticks, stream.ticks)
        columns = [rows.column(told.columns[name]) for name in block.schema.names[:-1]]
        table = pa.table([*columns, ticks], names=block.schema.names).cast(block.schema)
        self.came[side].append(table)
        return None

    def step(self, moment: Moment, account: BucketAccount) -> pa.Table | None:
        """Rows with `ENTER` and `LEAVE`, of which those enter at `EARLIER` that were there before."""
        came, self.came = self.came, [[] for _ in self.kept]
        until = self.task.frontier(moment.said)
        if self.work.passes_on:
            return self._passed(came[0], account, moment.number, until)
        for one, tables in zip(self.kept, came, strict=True):
            for table in tables:
                one.holding = one.holding.with_arrivals(table, moment.number * PER_STEP)
        if until is None or (self.frontier is not None and until <= self.frontier):
            return None
        self.origin = self._first_before(until) if self.origin is None else self.origin
        if self.origin is None:
            return None
        waited, times = self._waiting, Times(self.frontier, until)
        inputs = self.work.block.inputs
        for one, side in zip(self.kept, inputs, strict=True):
            one.holding = one.holding.taken(side, times)
        rows = self.rows_of_block(times)
        for one, side in zip(self.kept, inputs, strict=True):
            one.holding = one.holding.after(side, times)
        self.frontier = until
        account.used = waited - self._waiting
        if times.since is None or not rows.num_rows:
            return rows
        place, enter = rows.column_names.index(ENTER), rows.column(ENTER).to_numpy()
        return rows.set_column(place, ENTER, pa.array(np.where(enter < times.since, EARLIER, enter)))

    def _first_before(self, until: int) -> int | None:
        """The first rowtime of the rows that have come, if it is before an instant."""
        waiting = [one.holding.waiting.column(side.window.rowtime) for one, side in self._sides]
        firsts = [first for one in waiting if (first := pc.min(one).as_py()) is not None and first < until]
        return min(firsts, default=None)

    @property
    def _sides(self) -> list[tuple[BucketWindow, WindowInput]]:
        return list(zip(self.kept, self.work.block.inputs, strict=True))

    def rows_of_block(self, times: Times) -> pa.Table:
        """What is made of what enters and leaves; groups and operators hold what they hold after it."""
        held = [one.holding.held for one in self.kept]
        if self.work.plan is not None:
            assert self.run is not None
            return self.work.plan.step(self.run, held, times, self.origin)
        return self.work.block.rows(held, times, self.groups)

    def _passed(
        self, came: list[pa.Table], account: BucketAccount, number: int, until: int | None
    ) -> pa.Table | None:
        """The rows that are given as they are: also those at the frontier, at which more may come."""
        (side,) = self.work.block.inputs
        (own,) = self.kept
        rows = pa.concat_tables([side.schema.empty_table(), *came])
        if until is None:
            own.holding = own.holding.with_arrivals(rows, number * PER_STEP)
            return None
        waited, chunk = own.holding.waiting.num_rows + rows.num_rows, number * PER_STEP
        left, given = own.holding.passing(side, rows, chunk, until if until == FOREVER else until + 1)
        own.holding, self.frontier = left, until
        account.used = waited - left.waiting.num_rows
        if side.passes is not None:
            given = given.filter(given.column(side.passes))
        at = given.column(side.window.rowtime)
        leave = pa.array(np.full(given.num_rows, NEVER))
        return given.append_column(ENTER, at).append_column(LEAVE, leave)

    @property
    def _waiting(self) -> int:
        """How many rows wait, each once."""
        pairs = zip(self.task.sides, self.kept, strict=True)
        return sum(one.holding.waiting.num_rows for side, one in pairs if side.is_first)

    def keep(self, store: Store, number: int) -> dict[str, Any]:
        """Store what is new after a step."""
        if self.groups is not None and self.frontier is not None:
            self._carry(store, self.groups, self.frontier, number)
        chunks = [one.keep(store, number) for one in self.kept]
        carried = None if self.carried is None else asdict(self.carried)
        return {"frontier": self.frontier, "origin": self.origin, "chunks": chunks, "carried": carried}

    def _carry(self, store: Store, groups: Operated, frontier: int, number: int) -> None:
        """Store what groups hold in place of the rows that they are made of, where these are more."""
        (own,) = self.kept
        held = own.holding.held
        if Carry.is_due(self.carried, len(held)):
            self.carried = Carry.written(store, self.carried, number, frontier, groups.held, groups.state)
            own.holding = replace(own.holding, held=held.where(np.zeros(len(held), bool)))

    def tell(self, account: BucketAccount) -> None:
        """Say what windows hold."""
        account.groups = 0 if self.groups is None else self.groups.held
        account.stored = 0 if self.carried is None else self.carried.size
        sides = zip(self.task.sides, self.work.block.inputs, self.kept, strict=True)
        for at, (side, block, one) in enumerate(sides):
            rowtime, holding = block.window.rowtime, one.holding
            held = holding.held
            account.held[at] = int(held.alive.sum())
            account.oldest[at] = pc.min(held.rows.column(rowtime).filter(pa.array(held.alive))).as_py()
            account.size[at] = one.size
            if side.is_first:
                account.waiting[side.stream] = holding.waiting.num_rows
                account.oldest_waiting[side.stream] = pc.min(holding.waiting.column(rowtime)).as_py()
