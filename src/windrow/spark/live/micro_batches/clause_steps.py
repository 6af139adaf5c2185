"""The micro-batches of clauses over live streams, or of a row-by-row query over views of them, on the driver.

    due rows ─▶ columns ─▶ advance ─▶ SELECT    of one clause over one stream, whose SQL Arrow computes
    due rows ─▶ cascade                         else: each clause in turn, with Spark's SQL between them

A micro-batch with too many rows for the driver runs as Spark tasks over all retained rows; the next may run
here again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from windrow.kernels.advance.kept_rows import Bools, KeptRows, Marks, Places
from windrow.spark.analysis.keyed_rows import travelling_schema
from windrow.spark.collected import frame_of_few
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.micro_batches.around_clause import AroundClause, chosen_of, is_one_clause
from windrow.spark.live.micro_batches.clause_state import Buffered, ClauseState, first_before
from windrow.spark.live.micro_batches.in_memory import MOST, Come, InMemorySteps
from windrow.spark.live.operators.ended_partitions import Endings
from windrow.spark.live.plans.cascade import TOLD
from windrow.spark.live.plans.clause_plan import ClausePlan
from windrow.spark.live.reports.state_table import QueryState, state_of
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Sink

__all__ = ["ClauseSteps"]


class ClauseSteps(InMemorySteps):
    """As :class:`windrow.spark.live.micro_batches.steps.Steps`, which says what it takes."""

    def __init__(
        self, plan: ClausePlan, sink: Sink | IntoStream, folder: Path, envelope: str, on_late: str
    ) -> None:
        super().__init__(plan, sink, folder, envelope, on_late)
        self._sequence = plan
        self._alone = _Alone(plan, self._endings) if is_one_clause(plan) else None
        sources = {name: stream for _, name, stream in self.streams()}
        key = () if self._alone is None else self._alone.key
        self._state = ClauseState(plan, self._checkpoint, sources, plan.kept(), key)

    @property
    def _result(self) -> StructType:
        return self._sequence.outer.schema

    def _step(self, batch: DataFrame, number: int, before: CommittedBatch) -> None:
        are_many = sum(self._kept_counts(before).values()) > MOST
        come = None if are_many else self._come_if_it_fits(batch, before)
        if come is None:
            super()._step(batch, number, before)
            return
        cached: list[DataFrame] = []
        try:
            self._take(come, number, before, cached)
        finally:
            for frame in cached:
                frame.unpersist()

    def _take(self, come: Come, number: int, before: CommittedBatch, cached: list[DataFrame]) -> None:
        found, alone = come.found, self._alone
        self._tell_late({name: self._late(name, one.late) for name, one in found.items()}, number)
        positions = come.positions
        closes = self._endings.take(number, before.number, before.positions, positions)
        until, origin, marks = self._frontier(positions), before.origin, dict(before.marks)
        moved = until is not None and (before.frontier is None or until > before.frontier)
        buffered, keep = self._state.came(come, before), self._state.unchanged(before)
        if moved and until is not None and origin is None:
            origin = first_before(until, self._scale, buffered.rows())
        moved = moved and origin is not None
        reaches, output = until if moved else before.frontier, None
        if alone is not None:
            over, closed = alone.closed(buffered, before.number)
            goes = moved or closes or bool(closed[0].any() or closed[1])
            due, buffered = buffered.taken(reaches if goes else None, closed)
            if goes:
                kept = self._state.kept(before, alone.name)
                output, kept = alone.advanced(due, buffered, kept, over, reaches, before.frontier)
                keep[alone.name] = self._state.in_memory(alone.name, kept)
            alone.is_after(number, before.number, is_settled=goes)
        else:
            goes = (moved or closes) and reaches is not None and origin is not None
            due, buffered = buffered.taken(reaches if goes else None)
            if goes and reaches is not None and origin is not None:
                ended = {key: self._endings.ended(key, buffered.waiting) for key in self._plan.ends}
                instants = before.frontier, reaches, origin
                span = self._state.span(due, before, instants, marks, cached, ended)
                part = self._sequence.output(Gateway(self._spark, self._plan.gateway.parameters), span)
                output, keep = _Output(part.rows, lambda: part.until), keep | span.keep
        given = 0 if output is None else self._give_output(output, before, number, marks)
        used = sum(rows.num_rows for rows in due.values())
        counts = self._counts(come, before, used, given)
        frontier = before.frontier if origin is None or until is None else until
        chunks, rows = self._state.write(keep, buffered)
        step = CommittedBatch(number, positions, frontier, origin, {}, counts, chunks, marks)
        self._report(self._checkpoint.commit(step, rows), come.count, given)

    def _give_output(
        self, output: _Output, before: CommittedBatch, number: int, marks: dict[str, int]
    ) -> int:
        """Give the rows of a step to the sink; where it is a stream, with what no later step gives."""
        sink, rows, columns = self._sink, output.rows, self._sequence.columns
        with self._gateway.translated():
            if isinstance(sink, IntoStream):
                least = output.find_least()
                if least is not None:
                    marks[TOLD] = least
                stream = self._sequence.as_stream(self._framed(rows), tuple(columns))
                return sink.insert(stream, least, before.counts.get("rows_given", 0))
            into = self._table_sink(columns)
            if into is not None:
                return into.write_table(rows if isinstance(rows, pa.Table) else rows.toArrow(), number)
            return sink.write(self._framed(rows), number) or 0

    def _framed(self, rows: pa.Table | DataFrame) -> DataFrame:
        return frame_of_few(self._spark, rows, self._result) if isinstance(rows, pa.Table) else rows

    # -- what is retained --------------------------------------------------------------------------------

    def _kept_counts(self, before: CommittedBatch) -> dict[str, int]:
        return self._state.counts(before)

    def _kept_rows(self, before: CommittedBatch, name: str) -> DataFrame | None:
        if name not in before.chunks:
            return super()._kept_rows(before, name)
        kept = self._state.kept(before, name)
        return self._state.in_memory(name, kept).frame if len(kept) else None

    def state(self) -> QueryState:
        """What is kept after the last step."""
        step = self._checkpoint.last()
        return state_of(self._plan, step, *self._state.told(step))


@dataclass(frozen=True)
class _Output:
    """What a step gives, and what finds the instant before which no later one gives anything."""

    rows: pa.Table | DataFrame
    find_least: Callable[[], int | None]


class _Alone:
    """The only clause of a query: its partitions end at once, with rows that wait.

    Attributes
    ----------
    name
        Under which its rows are retained.
    key
        The columns of the stream that are its partitions' keys; none if they are computed.
    """

    def __init__(self, plan: ClausePlan, endings: Endings) -> None:
        self._around, self._endings = AroundClause(plan), endings
        self._spark = plan.gateway.spark
        self._clause = self._around.clause
        self._settled: int | None = None
        self._partition = self._clause.kernel.growing.partition
        self.name = f"window{self._clause.clause.key}"
        keys = [one.columns for one in self._clause.keys]
        self.key = tuple(keys[0][name] for name in self._partition) if len(keys) == 1 else ()

    def is_after(self, number: int, last: int, *, is_settled: bool) -> None:
        """Note a step, and whether after it nothing is kept of the partitions that have ended."""
        self._settled = number if is_settled or self._settled == last else None

    def closed(self, buffered: Buffered, last: int) -> tuple[Marks | None, tuple[Bools, Places]]:
        """The hashes of the keys that are closed since the last step, None if rows have to be looked for, and
        the rows of partitions that have ended, as :meth:`Buffered.taken` takes them.
        """
        key, (came,), (waits,) = self._clause.clause.key, buffered.came.values(), buffered.waits.values()
        over = self._endings.closed_now(key, self._partition) if self._settled == last else None
        holds = partial(self._endings.closed, key)
        return over, (holds(came), waits.where(holds, None if over is None else waits.having(over)))

    def advanced(
        self,
        due: Mapping[str, pa.Table],
        buffered: Buffered,
        kept: KeptRows,
        over: Marks | None,
        until: int | None,
        since: int | None,
    ) -> tuple[_Output, KeptRows]:
        """What the query gives when these rows are due, and what its clause keeps."""
        around, clause, kernel = self._around, self._clause, self._clause.kernel

        def waiting(name: str, columns: tuple[str, ...]) -> pa.Table:
            # those of partitions that were closed now wait no more
            return buffered.waiting(name, columns) if over is None else due[name].slice(0, 0).select(columns)

        ended = self._endings.ended(clause.clause.key, waiting)
        moves = until != since and kernel.moves_by_time(until)
        keyed = around.keyed(due[around.name])
        told, kept = clause.advanced(kept, keyed, until, buffered.number, ended, over, moves=moves)
        if around.chosen is not None:
            rows: pa.Table | DataFrame = chosen_of(told, around.chosen)
        else:
            rows = around.after(frame_of_few(self._spark, told, travelling_schema(clause.result)))
        return _Output(rows, partial(clause.least, kept, until)), kept
