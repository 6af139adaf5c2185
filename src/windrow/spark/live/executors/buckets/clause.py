"""WINDOW BY or MATCH_RECOGNIZE in a bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.advance.retained_rows import GONE, RetainedRows
from windrow.kernels.incremental import Program, Run
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.spark.live.executors.bucket_state import Moment, Store, StoredChunks, not_here
from windrow.spark.live.executors.bucket_task import BucketTask, watermarks_in
from windrow.spark.live.micro_batches.around_clause import Choice, chosen_of, keyed_by
from windrow.spark.live.micro_batches.clause_state import rows_before
from windrow.spark.live.operators.clause_operator import ClauseKernel
from windrow.spark.live.operators.ended_partitions import ClosedPartitions, Closings, EndingPartitions
from windrow.spark.live.reports.state_table import retained_of
from windrow.spark.logs.session_streams import ROWTIME

__all__ = ["BucketClause", "Chosen", "ClauseInBucket"]

_WAITS, _RETAINED = "waits", "kept"


@dataclass(frozen=True, eq=False)
class BucketClause:
    """The clause of a query, whose stream is the task's only side.

    Attributes
    ----------
    kernel
        The kernel of the clause.
    program
        The program that computes its columns, from rows of the stream at leaf 0.
    schema
        The columns of rows that wait for the watermark.
    rowtimes
        The columns of retained rows with rowtimes.
    name, closings
        The key of the clause, and the stream that ends its partitions, if they may end.
    """

    kernel: ClauseKernel
    program: Program
    schema: pa.Schema
    rowtimes: tuple[str, ...]
    name: str
    closings: Closings

    def begin(self, task: BucketTask) -> ClauseInBucket:
        """A clause without rows."""
        partition, ends = self.kernel.growing.partition, self.closings.get(self.name, ())
        key = tuple(ends[0].keys[name] for name in partition) if ends else ()
        return ClauseInBucket(task, self, RetainedRows(key), RetainedRows(partition))

    def again(self, task: BucketTask, stored: Mapping[str, Any], store: Store) -> ClauseInBucket:
        """The stored state."""
        state = self.begin(task)
        found = {name: state.chunks[name].read(store, chunks) for name, chunks in stored["chunks"].items()}
        state.waits, state.retained = (
            RetainedRows.read(rows.key, found[name], found[f"{name}{GONE}"]) for name, rows in state.named()
        )
        state.frontier = stored["frontier"]
        return state


@dataclass
class ClauseInBucket:
    """The state of a clause in a bucket.

    Attributes
    ----------
    waits, retained
        The rows buffered until the watermark, and those of windows and matches that are not final.
    frontier
        The watermark up to which windows and matches have been emitted.
    chunks
        Where the rows are stored.
    """

    task: BucketTask
    work: BucketClause
    waits: RetainedRows
    retained: RetainedRows
    frontier: int | None = None
    chunks: dict[str, StoredChunks] = field(init=False)
    admitted: list[pa.Table] = field(init=False, default_factory=list)
    run: Run = field(init=False)
    closed: ClosedPartitions = field(init=False)
    ending: EndingPartitions = field(init=False)

    takes_late = False

    def __post_init__(self) -> None:
        names = [f"{name}{end}" for name, _ in self.named() for end in ("", GONE)]
        self.chunks = {name: StoredChunks(name) for name in names}
        self.run = Run(self.work.program, not_here)
        self.closed, partition = ClosedPartitions(self.work.closings), self.work.kernel.growing.partition
        self.ending = EndingPartitions(self.closed, self.work.name, partition)

    def named(self) -> tuple[tuple[str, RetainedRows], ...]:
        """The retained rows, by the names under which they are stored."""
        return (_WAITS, self.waits), (_RETAINED, self.retained)

    @property
    def size(self) -> int:
        """The stored bytes."""
        return sum(one.size for one in self.chunks.values())

    @property
    def first(self) -> int | None:
        """None: no second part of a query follows."""
        return None

    def take(self, side: int, rows: pa.Table, moment: Moment) -> pa.Table | None:  # noqa: ARG002 - of others
        """Add rows of the stream."""
        read = self.task.sides[side]
        columns = {name: rows.column(own) for name, own in read.columns.items()}
        columns[ROWTIME] = rows.column(self.task.streams[read.stream].rowtime)
        table = pa.table({name: columns[name] for name in self.work.schema.names})
        self.admitted.append(table.cast(self.work.schema))
        return None

    def process(self, moment: Moment, account: BucketAccount) -> Sequence[pa.Table]:
        """The windows or matches that are final, as the kernel emits them."""
        admitted, self.admitted = self.admitted, []
        new_rows = pa.concat_tables([self.work.schema.empty_table(), *admitted])
        number, last, kernel = moment.number, moment.number - 1, self.work.kernel
        marks = (watermarks_in(self.task.streams, one) for one in (moment.before, moment.marks))
        closes = self.closed.take(number, last, *marks)
        over, closed = self.ending.closed(new_rows, self.waits, last)
        until, since = self.task.frontier(moment.marks), self.frontier
        moved = until is not None and (since is None or until > since)
        reaches = until if moved else since
        goes = moved or closes or bool(closed[0].any() or closed[1])
        is_due = rows_before(reaches) if goes and reaches is not None else None
        due, self.waits = self.waits.due(new_rows, is_due, number, closed)
        self.ending.is_after(number, last, is_final=goes)
        if not goes:
            return ()
        self.frontier, account.used = reaches, due.num_rows
        ended = self.ending.ended(over, due, self._waiting)
        keyed, moves = keyed_by(self.run, due), reaches != since and kernel.moves_by_time(reaches)
        output, self.retained = kernel.advance(
            self.retained, keyed, reaches, number, ended, over, moves=moves
        )
        return (output,)

    def _waiting(self, _: str, columns: tuple[str, ...]) -> pa.Table:
        """These columns of the buffered rows."""
        nothing = self.work.schema.empty_table().select(columns)
        return pa.concat_tables(
            [nothing, *(rows.cast(nothing.schema) for rows in self.waits.tables(*columns))]
        )

    def save(self, store: Store, number: int) -> dict[str, Any]:
        """Store new state."""
        self.waits, self.retained = self.waits.merged(number), self.retained.merged(number)
        stored = {
            kind: self.chunks[kind].save(store, counts, new)
            for name, rows in self.named()
            for kind, counts, new in rows.stored(name, number)
        }
        return {"frontier": self.frontier, "chunks": stored}

    def report(self, account: BucketAccount) -> None:
        """Report the state."""
        (side,) = self.task.sides
        firsts = [pc.min(rows.column(ROWTIME)).as_py() for rows in self.waits.tables(ROWTIME)]
        account.waiting[side.stream] = len(self.waits)
        account.oldest_waiting[side.stream] = min((one for one in firsts if one is not None), default=None)
        size = sum(self.chunks[name].size for name in (_RETAINED, f"{_RETAINED}{GONE}"))
        rowtimes = self.work.rowtimes
        found = retained_of(self.retained.tables(*rowtimes), size, self.work.kernel.scale, rowtimes)
        account.retained[0], account.oldest[0], account.size[0] = found.rows, found.oldest, size


@dataclass(frozen=True)
class Chosen:
    """The form of an output that is some columns of the clause."""

    columns: Choice

    def of(self, rows: pa.Table) -> pa.Table:
        """These columns."""
        return chosen_of(rows, self.columns)
