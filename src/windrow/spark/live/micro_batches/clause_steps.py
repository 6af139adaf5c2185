"""The steps of a query that is one clause over one live stream: on the driver, over the partitions touched.

What is kept is what :class:`windrow.spark.live.micro_batches.steps.Steps` keeps, under the same names, in
chunks (:mod:`.kept_rows`). A step with more rows than the driver takes is one of those, evaluated by tasks
over all that is kept, which it writes as they do; and the next one may be here again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from windrow.errors import ExecutionError, WindrowError
from windrow.kernels.advance import Ended
from windrow.spark.analysis.keyed_rows import travelling_schema
from windrow.spark.analysis.plan_tree import choice_of, optimized_tree
from windrow.spark.clauses.batch import explained
from windrow.spark.collected import frame_of_few
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.micro_batches.affected_partitions import first_open, step_of
from windrow.spark.live.micro_batches.in_memory import (
    TOO_LARGE,
    Come,
    InMemorySteps,
    numbered,
    waiting_schema,
)
from windrow.spark.live.micro_batches.retained_rows import KeptRows, Marks, union
from windrow.spark.live.micro_batches.steps import HELD
from windrow.spark.live.operators.clause_operator import stage_of
from windrow.spark.live.plans.cascade import TOLD
from windrow.spark.live.plans.clause_plan import SequencePlan
from windrow.spark.live.reports.state_table import QueryState, retained_of, state_of
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Sink, TableSink, takes_tables
from windrow.spark.logs.session_streams import ROWTIME
from windrow.streams import FOREVER

__all__ = ["MOST", "ClauseSteps", "is_one_clause"]

MOST = 1 << 22
"""So many rows are kept on the driver; of more, tasks evaluate the step."""


def is_one_clause(plan: SequencePlan) -> bool:
    """Whether a query is one clause over one live stream, and no view."""
    if len(plan.read) != 1 or len(plan.clauses) != 1:
        return False
    (name,), (clause,) = plan.read, plan.clauses
    is_source = plan.catalog.streams[name].live is not None and not clause.follows and clause.pairs is None
    read = {*clause.clause.rows.relations(), *plan.statement.text.relations()}
    return is_source and clause.takes_few and read == {name, clause.clause.key}


_Choice = Mapping[str, tuple[str, str | None]]
"""Of each column of a result the input's column that it is, and the field if it is one of a struct."""


_GONE = ".gone"
"""What the name of what is kept ends with where places of rows are that were taken out of it."""


@dataclass(frozen=True, eq=False)
class _Memory:
    """What is in memory after a step.

    Attributes
    ----------
    number
        Of the step.
    waits, kept
        The rows that wait for the frontier, and those that are kept of the clause; both by the keys of
        partitions.
    is_settled
        Whether nothing is kept of the partitions that have ended.
    """

    number: int
    waits: KeptRows
    kept: KeptRows
    is_settled: bool


class ClauseSteps(InMemorySteps):
    """As :class:`windrow.spark.live.micro_batches.steps.Steps`, which says what it takes."""

    def __init__(
        self, plan: SequencePlan, sink: Sink | IntoStream, folder: Path, envelope: str, on_late: str
    ) -> None:
        super().__init__(plan, sink, folder, envelope, on_late)
        self._sequence = plan
        (self._name,), (self._clause,) = plan.read, plan.clauses
        self._stream = plan.catalog.streams[self._name]
        self._held = f"{HELD}{self._name}"
        self._window = f"window{self._clause.clause.key}"
        keys = [one.columns for one in self._clause.keys]
        self._partition = self._clause.growing.partition
        self._keys = tuple(keys[0][name] for name in self._partition) if len(keys) == 1 else ()
        self._known: _Memory | None = None

    @property
    def _result(self) -> StructType:
        return self._sequence.outer.schema

    def _step(self, batch: DataFrame, number: int, before: CommittedBatch) -> None:
        are_many = sum(self._checkpoint.count(before, name) for name in before.rows) > MOST
        self._known = None if are_many else self._memory(before)
        if self._known is None or len(self._known.waits) + len(self._known.kept) > MOST:
            super()._step(batch, number, before)
            return
        try:
            come = self._come(batch, before)
        except ExecutionError as error:
            if error.condition != TOO_LARGE:
                raise
            super()._step(batch, number, before)
        else:
            self._take(come, number, before)

    def _take(self, come: Come, number: int, before: CommittedBatch) -> None:
        found, key = come.found[self._name], self._clause.clause.key
        self._tell_late({self._name: self._late(self._name, found.late)}, number)
        clocks = {self._name: found.position}
        until = self._frontier(clocks)
        came = numbered(self._stream, found.rows, number)
        memory = self._memory(before)
        waits, kept, is_settled = memory.waits, memory.kept, memory.is_settled
        moved = until is not None and (before.frontier is None or until > before.frontier)
        closes = self._endings.take(number, before.number, before.clocks, clocks)
        over = self._endings.closed_now(key, self._partition) if is_settled else None
        origin, given, used = before.origin, 0, 0
        marks = dict(before.marks)
        if moved and origin is None:
            firsts = [pc.min(rows.column(ROWTIME)).as_py() for rows in (came, *waits.tables(ROWTIME))]
            first = min((first for first in firsts if first is not None), default=None)
            origin = first if first is not None and until is not None and first < until else None
        is_closed = self._endings.closed(key, came)
        closed = waits.where(partial(self._endings.closed, key), None if over is None else waits.having(over))
        reaches = until if moved and origin is not None else before.frontier
        if (moved and origin is not None) or closes or is_closed.any() or closed:
            is_due, places = is_closed, closed
            if reaches is not None:
                is_due = is_due | _before(reaches, came)
                places = union(places, waits.where(partial(_before, reaches)))
            waited, due = waits.rows(places), came.filter(pa.array(is_due))
            due = due if waited is None else pa.concat_tables([waited.cast(due.schema), due])
            used, came = due.num_rows, came.filter(pa.array(~is_due))
            waits = waits.without(places).with_rows(came, number)
            keyed, rows = self._keyed(due)
            moves = reaches != before.frontier and self._clause.moves_by_time(reaches)
            ended = self._endings.ended(key, lambda _, columns: _waiting(came, waits, columns, over))
            told, kept = self._stepped(keyed, kept, reaches, ended, over, number, moves=moves)
            given = self._given(self._shown(told, rows), kept, reaches, before, number, marks)
            is_settled = True
        else:
            waits = waits.with_rows(came, number)
        counts = {
            "now": come.now,
            "entries": come.entries,
            **self._came_and_late(before, clocks, come.count),
            "rows_used": before.counts.get("rows_used", 0) + used,
            "rows_given": before.counts.get("rows_given", 0) + given,
        }
        frontier = before.frontier if origin is None or until is None else until
        memory = _Memory(number, waits.merged(number), kept.merged(number), is_settled)
        chunks = self._written(memory)
        step = CommittedBatch(number, clocks, frontier, origin, {}, counts, chunks, marks)
        step = self._checkpoint.commit(step, {})
        self._known = memory
        self._report(step, come.count, given)

    # -- the clause ----------------------------------------------------------------------------------

    def _keyed(self, due: pa.Table) -> tuple[pa.Table, DataFrame | None]:
        """The columns that the clause takes of rows; the rows of the clause where Spark computes these."""
        if self._hoisted is not None:
            return _chosen(due, self._hoisted), None
        clause, columns, gateway = self._clause, self._columns, self._fresh_gateway()
        gateway.frames[self._name] = frame_of_few(self._spark, due.select(columns.names), columns)
        with explained([clause.bound]):
            rows = gateway.sql(clause.clause.rows)
        stage = stage_of(gateway, clause.bound, rows)
        with gateway.translated():
            return stage.keyed(stage.wide()).toArrow(), rows

    def _stepped(
        self,
        keyed: pa.Table,
        kept: KeptRows,
        until: int | None,
        ended: Ended | None,
        over: Marks | None,
        number: int,
        *,
        moves: bool,
    ) -> tuple[pa.Table, KeptRows]:
        """What the clause gives when these rows have come, and what is kept."""
        clause = self._clause
        frontier = None if until is not None and until >= FOREVER else clause.frontier(until)
        try:
            return step_of(clause.growing, kept, keyed, frontier, ended, over, number, moves=moves)
        except WindrowError as error:
            raise error.located(clause.clause.sql) from None

    def _shown(self, told: pa.Table, rows: DataFrame | None) -> pa.Table | DataFrame:
        """What the query gives where the clause gives this."""
        if self._chosen is not None:
            return _chosen(told, self._chosen)
        clause, gateway = self._clause, self._fresh_gateway()
        if rows is None:
            rows = self._shown_rows(gateway)
        made = frame_of_few(self._spark, told, travelling_schema(clause.result))
        made = stage_of(gateway, clause.bound, rows).finished(made, clause.result)
        gateway.frames[clause.clause.key] = made
        with explained([clause.bound]):
            return gateway.sql(self._sequence.statement.text)

    def _fresh_gateway(self) -> Gateway:
        return Gateway(self._spark, self._plan.gateway.parameters)

    @cached_property
    def _hoisted(self) -> _Choice | None:
        """The stream's column behind each that the clause takes; None if they are computed."""
        if self._is_connect:
            return None
        gateway = Gateway(self._spark, self._plan.gateway.parameters)
        rows = self._shown_rows(gateway)
        stage = stage_of(gateway, self._clause.bound, rows)
        return _choice(gateway, stage.keyed(stage.wide()), self._columns)

    @cached_property
    def _chosen(self) -> _Choice | None:
        """The clause's column behind each that the query gives; None if they are computed."""
        result = self._clause.result
        if self._is_connect or travelling_schema(result) != result:
            return None
        gateway = Gateway(self._spark, self._plan.gateway.parameters)
        stage = stage_of(gateway, self._clause.bound, self._shown_rows(gateway))
        made = stage.finished(self._some(result), result)
        gateway.frames[self._clause.clause.key] = made
        with explained([self._clause.bound]):
            whole = gateway.sql(self._sequence.statement.text)
        if len({name.lower() for name in whole.columns}) < len(whole.columns):
            return None
        return _choice(gateway, whole, result)

    def _shown_rows(self, gateway: Gateway) -> DataFrame:
        """The rows of the clause over a stream of which nothing is known but its columns."""
        gateway.frames[self._name] = self._some(self._columns)
        with explained([self._clause.bound]):
            return gateway.sql(self._clause.clause.rows)

    def _some(self, schema: StructType) -> DataFrame:
        """Rows that Spark's planner cannot look at."""
        if self._is_connect:
            return self._spark.createDataFrame([], schema)
        return self._spark.createDataFrame(self._spark.sparkContext.emptyRDD(), schema)

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
    def _columns(self) -> StructType:
        """Those of the stream."""
        return StructType([self._stream.frame.schema[name] for name in self._stream.columns])

    @cached_property
    def _waiting(self) -> StructType:
        """Of rows that wait for the frontier."""
        return waiting_schema(self._stream)

    @cached_property
    def _is_connect(self) -> bool:
        return self._plan.gateway.is_connect

    def _memory(self, before: CommittedBatch) -> _Memory:
        """What the last step kept."""
        if self._known is not None and self._known.number == before.number:
            return self._known
        waits = self._read(before, self._held, self._keys)
        kept = self._read(before, self._window, self._partition)
        return _Memory(before.number, waits, kept, is_settled=False)

    def _read(self, before: CommittedBatch, name: str, key: tuple[str, ...]) -> KeptRows:
        rows, gone = (
            {
                int(chunk): self._checkpoint.read_chunk(kind, int(chunk))
                for chunk in before.chunks.get(kind, {})
            }
            for kind in (name, f"{name}{_GONE}")
        )
        table = self._checkpoint.table(before, name)  # of a step that tasks evaluated
        found = KeptRows.read(key, rows, gone)
        return found if table is None else found.with_rows(table, before.number + 1)

    def _written(self, memory: _Memory) -> dict[str, dict[str, int]]:
        """The chunks of what is kept, of which new ones are written."""
        chunks = {}
        for name, kept in ((self._held, memory.waits), (self._window, memory.kept)):
            rows, gone = kept.written(memory.number)
            for kind, all_, new in ((name, kept.chunks, rows), (f"{name}{_GONE}", kept.gone, gone)):
                for chunk, table in new.items():
                    self._checkpoint.write_chunk(kind, chunk, table)
                chunks[kind] = {str(chunk): len(one) for chunk, one in all_.items()}
        return chunks

    def _kept_counts(self, before: CommittedBatch) -> dict[str, int]:
        if not before.chunks:
            return super()._kept_counts(before)
        memory = self._memory(before)
        return {self._held: len(memory.waits), self._window: len(memory.kept)}

    def _kept_rows(self, before: CommittedBatch, name: str) -> DataFrame | None:
        if name not in before.chunks:
            return super()._kept_rows(before, name)
        memory = self._memory(before)
        rows, schema = (
            (memory.waits, self._waiting) if name == self._held else (memory.kept, self._clause.schema)
        )
        table = rows.rows(rows.all())
        return None if table is None else frame_of_few(self._spark, table.select(schema.names), schema)

    def state(self) -> QueryState:
        """What is kept after the last step."""
        step = self._checkpoint.last()
        if not step.chunks:
            return super().state()
        memory, told = self._memory(step), {}
        for name, rows, clock, columns in (
            (self._held, memory.waits, self._stream.clock, [ROWTIME]),
            (self._window, memory.kept, self._clock, self._plan.rowtimes),
        ):
            size = sum(self._checkpoint.chunk_bytes(step, kind) for kind in (name, f"{name}{_GONE}"))
            told[name] = retained_of(rows.tables(*columns), size, clock, columns)
        return state_of(self._plan, step, {self._name: told[self._held]}, {self._window: told[self._window]})


def _before(instant: int, rows: pa.Table) -> np.ndarray:
    """Which rows have an earlier rowtime: bool."""
    is_before: np.ndarray = rows.column(ROWTIME).to_numpy() < instant
    return is_before


def _waiting(came: pa.Table, waits: KeptRows, columns: Sequence[str], over: Marks | None) -> pa.Table:
    """These columns of the rows that wait whose partitions may be closed."""
    nothing = came.slice(0, 0).select(columns)
    if over is not None:  # such rows wait no more
        return nothing
    return pa.concat_tables([nothing, *(rows.cast(nothing.schema) for rows in waits.tables(*columns))])


def _choice(gateway: Gateway, frame: DataFrame, given: StructType) -> _Choice | None:
    """What a frame takes of rows that it is made of, if it does nothing but choose."""
    plan = optimized_tree(gateway, frame)
    choice = None if plan is None else choice_of(plan)
    if choice is None or choice.below.name != "LogicalRDD":
        return None
    found = [(given.names[place], _field(given[place].dataType, field)) for place, field in choice.columns]
    kinds = [_kind(given, *origin) for origin in found]
    if kinds != [field.dataType for field in frame.schema]:
        return None
    return dict(zip(frame.columns, found, strict=True))


def _field(kind: DataType, place: int | None) -> str | None:
    """The name of a field of a struct."""
    return kind.names[place] if isinstance(kind, StructType) and place is not None else None


def _kind(schema: StructType, column: str, field: str | None) -> DataType:
    kind = schema[column].dataType
    return kind[field].dataType if field is not None and isinstance(kind, StructType) else kind


def _chosen(rows: pa.Table, choice: _Choice) -> pa.Table:
    columns = [
        rows.column(column) if field is None else pc.struct_field(rows.column(column), field)
        for column, field in choice.values()
    ]
    return pa.Table.from_arrays(columns, names=list(choice))
