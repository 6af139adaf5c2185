"""The micro-batches of clauses over live streams, on the driver.

due rows ─▶ columns ─▶ advance ─▶ SELECT    of one clause over one stream, whose SQL Arrow computes
due rows ─▶ upstream                        else: each clause in turn, with Spark's SQL between them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from windrow.kernels.advance.retained_rows import Marks, RetainedRows
from windrow.spark.analysis.keyed_rows import travelling_schema
from windrow.spark.collected import frame_of_collected
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.micro_batches.around_clause import AroundClause, chosen_of, is_one_clause
from windrow.spark.live.micro_batches.clause_state import BUFFERED, Buffered, ClauseState, first_before
from windrow.spark.live.micro_batches.entry_reader import CollectedBatch, EntryReader
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.live.micro_batches.output import RowsForSink, RowsForStream
from windrow.spark.live.micro_batches.query_steps import Advanced, Retained, Steps
from windrow.spark.live.operators.ended_partitions import (
    ClosedPartitions,
    EndingPartitions,
    closings_of,
    watermarks_of,
)
from windrow.spark.live.plans.clause_plan import ClausePlan
from windrow.spark.live.plans.upstream import EMITTED
from windrow.spark.live.reports.state_table import QueryState, state_of
from windrow.spark.live.sinks.into_stream import IntoStream

__all__ = ["ClauseSteps"]


class ClauseSteps(Steps[CollectedBatch]):
    """Runs clauses: in memory where the query is one of them, else each in turn.

    Parameters
    ----------
    plan
        The query.
    context
        Its sink and checkpoint.
    """

    def __init__(self, plan: ClausePlan, context: LiveContext) -> None:
        self._query, self._context = plan, context
        self._entries = EntryReader(context)
        self._cached: list[DataFrame] = []
        self._closed = ClosedPartitions(closings_of(plan.ends if context.takes_any_order else {}))
        self._alone = _Alone.of(plan, self._closed)
        sources = {name: stream for _, name, stream in context.streams()}
        key = () if self._alone is None else self._alone.key
        self._state = ClauseState(plan, context.checkpoint, sources, plan.retained(), key)

    def release(self) -> None:
        """Release the caches of a micro-batch."""
        while self._cached:
            self._cached.pop().unpersist()

    def judge(self, batch: DataFrame, before: CommittedBatch) -> CollectedBatch:
        """Read the entries, and judge them."""
        return self._entries.read(batch, before)

    def advance(self, collected: CollectedBatch, number: int, before: CommittedBatch) -> Advanced:
        """Advance the clauses."""
        alone, plan = self._alone, self._query
        positions = collected.positions
        closes = self._closed.take(number, before.number, *map(watermarks_of, (before.positions, positions)))
        until, origin, marks = self._context.frontier(positions), before.origin, dict(before.marks)
        moved = until is not None and (before.frontier is None or until > before.frontier)
        buffered = self._state.buffered(collected, before)
        to_retain = self._state.unchanged(before)
        if moved and until is not None and origin is None:
            origin = first_before(until, self._context.scale, buffered.rows())
        moved = moved and origin is not None
        reaches, output = until if moved else before.frontier, None
        if alone is not None:
            (new_rows,), (waits,) = buffered.new_rows.values(), buffered.waits.values()
            over, closed = alone.ending.closed(new_rows, waits, before.number)
            goes = moved or closes or bool(closed[0].any() or closed[1])
            due, buffered = buffered.due(reaches if goes else None, closed)
            if goes:
                retained = self._state.retained(before, alone.name)
                made, retained = alone.advanced(due, buffered, retained, over, reaches, before.frontier)
                to_retain[alone.name] = retained
                output = self._output(made, marks)
            alone.ending.is_after(number, before.number, is_final=goes)
        else:
            goes = (moved or closes) and reaches is not None and origin is not None
            due, buffered = buffered.due(reaches if goes else None)
            if goes and reaches is not None and origin is not None:
                ended = {key: self._closed.ended(key, buffered.waiting) for key in plan.ends}
                instants = before.frontier, reaches, origin
                span = self._state.span(due, before, instants, marks, self._cached, ended)
                part = plan.output(span)
                output = self._output(_Made(part.rows, lambda: part.until), marks)
                to_retain |= span.to_retain
        used = sum(rows.num_rows for rows in due.values())
        frontier = before.frontier if origin is None or until is None else until
        manifest = CommittedBatch(
            number, positions, frontier, origin, collected.counts(before, used), marks=marks
        )
        return Advanced(output, partial(self._store, manifest, to_retain, buffered))

    def _store(
        self, manifest: CommittedBatch, to_retain: Mapping[str, RetainedRows], buffered: Buffered
    ) -> CommittedBatch:
        """Write the retained rows after a micro-batch; returns its manifest with the chunks."""
        return replace(manifest, chunks=self._state.write(to_retain, buffered))

    def _output(self, made: _Made, marks: dict[str, int]) -> RowsForSink | RowsForStream:
        """The rows of a micro-batch in the form of the sink; for a stream, with the bound of later output."""
        context, rows, plan = self._context, made.rows, self._query
        schema = plan.outer.schema
        with context.gateway.translated():
            if isinstance(context.sink, IntoStream):
                least = made.find_least()
                if least is not None:
                    marks[EMITTED] = least
                if isinstance(rows, pa.Table):
                    rows = frame_of_collected(context.spark, rows, schema)
                return RowsForStream(plan.as_stream(rows, tuple(plan.columns)), least)
            if not isinstance(rows, pa.Table) and context.table_sink(schema, plan.columns) is not None:
                rows = rows.toArrow()
        return RowsForSink(rows, schema)

    # -- what is retained --------------------------------------------------------------------------------

    def retained(self, committed: CommittedBatch) -> Retained:
        """The buffered rows, and those that the clauses retain; these may emit before the watermark of the
        sources.
        """
        counts = self._state.counts(committed)
        buffered = sum(count for name, count in counts.items() if name.startswith(BUFFERED))
        retained = sum(count for name, count in counts.items() if name.startswith("window"))
        reached = {"frontier": committed.marks[EMITTED]} if EMITTED in committed.marks else {}
        return Retained(buffered, retained, reached)

    def state(self, committed: CommittedBatch) -> QueryState:
        """The state after a micro-batch."""
        return state_of(self._query, committed, *self._state.reported(committed))


@dataclass(frozen=True)
class _Made:
    """The output of a micro-batch, and a function that finds the bound of later output."""

    rows: pa.Table | DataFrame
    find_least: Callable[[], int | None]


class _Alone:
    """The only clause of a query: its partitions end at once, including buffered rows.

    Attributes
    ----------
    plan
        The query.
    name
        Under which its rows are retained.
    key
        The columns of the stream that are its partitions' keys; none if they are computed.
    """

    def __init__(self, plan: ClausePlan, closed: ClosedPartitions) -> None:
        self.plan, self._around = plan, AroundClause(plan)
        self._spark = plan.gateway.spark
        self._clause = self._around.clause
        partition = self._clause.kernel.growing.partition
        self.ending = EndingPartitions(closed, self._clause.clause.key, partition)
        self.name = f"window{self._clause.clause.key}"
        keys = [one.columns for one in self._clause.keys]
        self.key = tuple(keys[0][name] for name in partition) if len(keys) == 1 else ()

    @staticmethod
    def of(plan: ClausePlan, closed: ClosedPartitions) -> _Alone | None:
        """The only clause of a query; None for other queries."""
        return _Alone(plan, closed) if is_one_clause(plan) else None

    def advanced(
        self,
        due: Mapping[str, pa.Table],
        buffered: Buffered,
        retained: RetainedRows,
        over: Marks | None,
        until: int | None,
        since: int | None,
    ) -> tuple[_Made, RetainedRows]:
        """The output of the query for these due rows, and the rows that its clause retains."""
        around, clause, kernel = self._around, self._clause, self._clause.kernel
        ended = self.ending.ended(over, due[around.name], buffered.waiting)
        moves = until != since and kernel.moves_by_time(until)
        keyed = around.keyed(due[around.name])
        output, retained = clause.advanced(retained, keyed, until, buffered.number, ended, over, moves=moves)
        if around.chosen is not None:
            rows: pa.Table | DataFrame = chosen_of(output, around.chosen)
        else:
            rows = around.after(frame_of_collected(self._spark, output, travelling_schema(clause.result)))
        return _Made(rows, partial(clause.least, retained, until)), retained
