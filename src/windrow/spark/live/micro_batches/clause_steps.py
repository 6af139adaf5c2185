"""The micro-batches of a query that is one clause over one live stream, on the driver.

The state has the names that :class:`windrow.spark.live.micro_batches.steps.Steps` gives it, in chunks
(:mod:`.retained_rows`). A micro-batch with too many rows for the driver runs there, as Spark tasks over all
retained rows; the next one may run here again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from windrow.errors import WindrowError
from windrow.kernels.advance import Ended
from windrow.spark.analysis.keyed_rows import travelling_schema
from windrow.spark.collected import frame_of_few
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.micro_batches.affected_partitions import first_open
from windrow.spark.live.micro_batches.around_clause import AroundClause, chosen_of
from windrow.spark.live.micro_batches.clause_rows import ClauseRows
from windrow.spark.live.micro_batches.in_memory import (
    MOST,
    Come,
    InMemorySteps,
    numbered,
    waiting_schema,
)
from windrow.spark.live.micro_batches.retained_rows import GONE, KeptRows, Marks
from windrow.spark.live.micro_batches.steps import BUFFERED
from windrow.spark.live.plans.cascade import TOLD
from windrow.spark.live.plans.clause_plan import ClausePlan
from windrow.spark.live.reports.state_table import QueryState, retained_of, state_of
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Sink, TableSink, takes_tables
from windrow.spark.logs.session_streams import ROWTIME

__all__ = ["ClauseSteps"]


@dataclass(frozen=True, eq=False)
class _Memory:
    """What is in memory after a step.

    Attributes
    ----------
    number
        Of the step.
    rows
        What is retained; both what waits and what is kept by the keys of partitions.
    is_settled
        Whether nothing is kept of the partitions that have ended.
    """

    number: int
    rows: ClauseRows
    is_settled: bool

    @property
    def count(self) -> int:
        """How many rows."""
        return len(self.rows.waits) + len(self.rows.kept)


class ClauseSteps(InMemorySteps):
    """As :class:`windrow.spark.live.micro_batches.steps.Steps`, which says what it takes."""

    def __init__(
        self, plan: ClausePlan, sink: Sink | IntoStream, folder: Path, envelope: str, on_late: str
    ) -> None:
        super().__init__(plan, sink, folder, envelope, on_late)
        self._sequence = plan
        self._around = AroundClause(plan)
        self._name, self._clause, self._stream = self._around.name, self._around.clause, self._around.stream
        self._buffered = f"{BUFFERED}{self._name}"
        self._window = f"window{self._clause.clause.key}"
        keys = [one.columns for one in self._clause.keys]
        self._partition = self._clause.kernel.growing.partition
        self._keys = tuple(keys[0][name] for name in self._partition) if len(keys) == 1 else ()
        self._known: _Memory | None = None

    @property
    def _result(self) -> StructType:
        return self._sequence.outer.schema

    def _step(self, batch: DataFrame, number: int, before: CommittedBatch) -> None:
        are_many = sum(self._checkpoint.count(before, name) for name in before.rows) > MOST
        self._known = None if are_many else self._memory(before)
        if self._known is None or self._known.count > MOST:
            super()._step(batch, number, before)
            return
        come = self._come_if_it_fits(batch, before)
        if come is None:
            super()._step(batch, number, before)
        else:
            self._take(come, number, before)

    def _take(self, come: Come, number: int, before: CommittedBatch) -> None:
        found, key = come.found[self._name], self._clause.clause.key
        self._tell_late({self._name: self._late(self._name, found.late)}, number)
        positions = {self._name: found.position}
        until = self._frontier(positions)
        came = numbered(self._stream, found.rows, number)
        memory = self._memory(before)
        rows, is_settled = memory.rows, memory.is_settled
        moved = until is not None and (before.frontier is None or until > before.frontier)
        closes = self._endings.take(number, before.number, before.positions, positions)
        over = self._endings.closed_now(key, self._partition) if is_settled else None
        origin, given, used = before.origin, 0, 0
        marks = dict(before.marks)
        if moved and origin is None:
            firsts = [pc.min(some.column(ROWTIME)).as_py() for some in (came, *rows.waits.tables(ROWTIME))]
            first = min((first for first in firsts if first is not None), default=None)
            origin = first if first is not None and until is not None and first < until else None
        is_closed = self._endings.closed(key, came)
        waiting = None if over is None else rows.waits.having(over)
        closed = rows.waits.where(partial(self._endings.closed, key), waiting)
        reaches = until if moved and origin is not None else before.frontier
        if (moved and origin is not None) or closes or is_closed.any() or closed:
            due, rows = rows.due(came, reaches, number, is_closed, closed)
            used, waits = due.num_rows, rows.waits
            moves = reaches != before.frontier and self._clause.kernel.moves_by_time(reaches)
            ended = self._endings.ended(key, lambda _, columns: _waiting(came, waits, columns, over))
            keyed = self._around.keyed(due)
            told, rows = self._advanced(rows, keyed, reaches, ended, over, number, moves=moves)
            given = self._given(self._shown(told), rows.kept, reaches, before, number, marks)
            is_settled = True
        else:
            _, rows = rows.due(came, None, number)
        counts = {
            "now": come.now,
            "entries": come.entries,
            **self._came_and_late(before, positions, come.count),
            "rows_used": before.counts.get("rows_used", 0) + used,
            "rows_given": before.counts.get("rows_given", 0) + given,
        }
        frontier = before.frontier if origin is None or until is None else until
        memory = _Memory(number, rows.merged(number), is_settled)
        chunks = self._written(memory)
        step = CommittedBatch(number, positions, frontier, origin, {}, counts, chunks, marks)
        step = self._checkpoint.commit(step, {})
        self._known = memory
        self._report(step, come.count, given)

    # -- the clause ----------------------------------------------------------------------------------

    def _advanced(
        self,
        rows: ClauseRows,
        keyed: pa.Table,
        until: int | None,
        ended: Ended | None,
        over: Marks | None,
        number: int,
        *,
        moves: bool,
    ) -> tuple[pa.Table, ClauseRows]:
        """What the clause emits when these rows are due, and what is retained."""
        clause = self._clause
        try:
            return rows.advanced(clause.kernel, keyed, until, number, ended, over, moves=moves)
        except WindrowError as error:
            raise error.located(clause.clause.sql) from None

    def _shown(self, told: pa.Table) -> pa.Table | DataFrame:
        """What the query emits where the clause emits this."""
        if self._around.chosen is not None:
            return chosen_of(told, self._around.chosen)
        return self._around.after(frame_of_few(self._spark, told, travelling_schema(self._clause.result)))

    # -- what goes out -------------------------------------------------------------------------------

    def _given(
        self,
        rows: pa.Table | DataFrame,
        kept: KeptRows,
        until: int | None,
        before: CommittedBatch,
        number: int,
        marks: dict[str, int],
    ) -> int:
        """Give the rows of a step to the sink; where it is a stream, with what no later step gives."""
        sink = self._sink
        with self._gateway.translated():
            if isinstance(sink, IntoStream):
                least = self._clause.least(first_open(kept, self._clause.rowtime), until)
                if least is not None:
                    marks[TOLD] = least
                names = tuple(self._sequence.columns)
                stream = self._sequence.as_stream(self._framed(rows), names)
                return sink.insert(stream, least, before.counts.get("rows_given", 0))
            named = {name.lower() for name in self._sequence.columns}
            is_plain = len(named) == len(self._sequence.columns) and self._is_plain
            if isinstance(sink, TableSink) and takes_tables(sink) and is_plain:
                return sink.write_table(rows if isinstance(rows, pa.Table) else rows.toArrow(), number)
            return sink.write(self._framed(rows), number) or 0

    def _framed(self, rows: pa.Table | DataFrame) -> DataFrame:
        return frame_of_few(self._spark, rows, self._result) if isinstance(rows, pa.Table) else rows

    # -- what is kept --------------------------------------------------------------------------------

    @cached_property
    def _waiting(self) -> StructType:
        """Of rows that wait for the frontier."""
        return waiting_schema(self._stream)

    def _memory(self, before: CommittedBatch) -> _Memory:
        """What the last step kept."""
        if self._known is not None and self._known.number == before.number:
            return self._known
        waits = self._read(before, self._buffered, self._keys)
        kept = self._read(before, self._window, self._partition)
        return _Memory(before.number, ClauseRows(waits, kept), is_settled=False)

    def _read(self, before: CommittedBatch, name: str, key: tuple[str, ...]) -> KeptRows:
        rows, gone = (
            {
                int(chunk): self._checkpoint.read_chunk(kind, int(chunk))
                for chunk in before.chunks.get(kind, {})
            }
            for kind in (name, f"{name}{GONE}")
        )
        table = self._checkpoint.table(before, name)  # of a step that tasks evaluated
        found = KeptRows.read(key, rows, gone)
        return found if table is None else found.with_rows(table, before.number + 1)

    def _written(self, memory: _Memory) -> dict[str, dict[str, int]]:
        """The chunks of what is kept, of which new ones are written."""
        chunks = {}
        for name, kept in self._names(memory):
            for kind, counts, new in kept.stored(name, memory.number):
                for chunk, table in new.items():
                    self._checkpoint.write_chunk(kind, chunk, table)
                chunks[kind] = {str(chunk): count for chunk, count in counts.items()}
        return chunks

    def _kept_counts(self, before: CommittedBatch) -> dict[str, int]:
        if not before.chunks:
            return super()._kept_counts(before)
        memory = self._memory(before)
        return {name: len(rows) for name, rows in self._names(memory)}

    def _names(self, memory: _Memory) -> tuple[tuple[str, KeptRows], ...]:
        """What is retained, by the names under which it is."""
        return (self._buffered, memory.rows.waits), (self._window, memory.rows.kept)

    def _kept_rows(self, before: CommittedBatch, name: str) -> DataFrame | None:
        if name not in before.chunks:
            return super()._kept_rows(before, name)
        memory = self._memory(before)
        rows, schema = (
            (memory.rows.waits, self._waiting)
            if name == self._buffered
            else (memory.rows.kept, self._clause.schema)
        )
        table = rows.rows(rows.all())
        return None if table is None else frame_of_few(self._spark, table.select(schema.names), schema)

    def state(self) -> QueryState:
        """What is kept after the last step."""
        step = self._checkpoint.last()
        if not step.chunks:
            return super().state()
        memory, told = self._memory(step), {}
        for name, rows, scale, columns in (
            (self._buffered, memory.rows.waits, self._stream.scale, [ROWTIME]),
            (self._window, memory.rows.kept, self._scale, self._plan.rowtimes),
        ):
            size = sum(self._checkpoint.chunk_bytes(step, kind) for kind in (name, f"{name}{GONE}"))
            told[name] = retained_of(rows.tables(*columns), size, scale, columns)
        return state_of(
            self._plan, step, {self._name: told[self._buffered]}, {self._window: told[self._window]}
        )


def _waiting(came: pa.Table, waits: KeptRows, columns: Sequence[str], over: Marks | None) -> pa.Table:
    """These columns of the rows that wait whose partitions may be closed."""
    nothing = came.slice(0, 0).select(columns)
    if over is not None:  # such rows wait no more
        return nothing
    return pa.concat_tables([nothing, *(rows.cast(nothing.schema) for rows in waits.tables(*columns))])
