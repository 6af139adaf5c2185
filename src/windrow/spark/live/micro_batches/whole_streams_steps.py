"""The micro-batches of SELECT STREAM over whole streams: operators emit rows as punctuation closes keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from windrow.kernels.operator_state import Carried, StateInChunks
from windrow.kernels.punctuated import Delta as Fed
from windrow.kernels.punctuated import ProjectOperator
from windrow.kernels.punctuated.operator_graph import FlowCarry
from windrow.kernels.stored import from_stored, stored
from windrow.punctuations import EVERYTHING, Pattern
from windrow.punctuations.pattern import put_together
from windrow.spark.collected import frame_of_collected
from windrow.spark.live.checkpoints.carried_state import carried_in, with_carried
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.input.arrivals import VIOLATED
from windrow.spark.live.micro_batches.entry_reader import EntryReader
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.live.micro_batches.output import RowsForSink, RowsForStream
from windrow.spark.live.micro_batches.query_steps import Advanced, Retained, Steps
from windrow.spark.live.operators.punctuated.new_punctuation import new_patterns, reached, schema_of
from windrow.spark.live.operators.punctuated.row_maps import RowMap, arrow_schema
from windrow.spark.live.plans.whole_streams_plan import NOT_CLOSED, WholeStreamsPlan
from windrow.spark.live.reading.whole_stream_queries import Blocking
from windrow.spark.live.reports.state_table import QueryState, StateRow, state_of
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.logs.columns_taken import columns_taken
from windrow.spark.logs.live_source import PRODUCER
from windrow.spark.logs.session_streams import REASON, ROWTIME, Stream
from windrow.spark.logs.storable import scale_of
from windrow.streams import NO_BOUND, Position
from windrow.streams.admission.reordering import too_late

__all__ = ["WholeStreamsSteps"]

_ARRIVED = "came"
_SEEN = "seen "
_LATE = "late within"
_MOST = 64  # files


@dataclass
class _State:
    """The state of the operators after a micro-batch, and its files.

    Attributes
    ----------
    carry
        The state of the operators.
    carried
        The files of their state after some earlier micro-batch.
    arrived
        The files with entries that have arrived since, and their number of rows.
    """

    carry: FlowCarry | None = None
    carried: Carried | None = None
    arrived: dict[int, int] = field(default_factory=dict)

    @property
    def is_long(self) -> bool:
        """Whether more rows have arrived since than the state writes again."""
        return Carried.is_due(self.carried, sum(self.arrived.values())) or len(self.arrived) >= _MOST

    def named(self, manifest: CommittedBatch) -> CommittedBatch:
        """A micro-batch with these files."""
        chunks = {_ARRIVED: {str(chunk): rows for chunk, rows in self.arrived.items()}}
        return with_carried(replace(manifest, chunks=chunks), self.carried)


@dataclass(frozen=True, eq=False)
class _Entries:
    """The judged entries of a micro-batch.

    Attributes
    ----------
    late
        The late rows of each stream.
    count
        How many rows arrived.
    fed
        What operators get: the rows and punctuations of each stream.
    counts, positions
        As in a manifest.
    """

    late: Mapping[str, pa.Table | None]
    count: int
    fed: Mapping[str, Fed]
    counts: Mapping[str, int]
    positions: Mapping[str, Position]


class WholeStreamsSteps(Steps[_Entries]):
    """Runs SELECT STREAM over whole streams.

    A micro-batch writes its input to a file. Now and then it writes the state of all operators instead; a
    restart reads that, and processes the input since. So a micro-batch writes about as much as it reads.

    Parameters
    ----------
    plan
        The query.
    blocking
        Its operators.
    context
        The query, as it runs.
    """

    def __init__(self, plan: WholeStreamsPlan, blocking: Blocking, context: LiveContext) -> None:
        self._plan, self._blocking, self._context = plan, blocking, context
        self._entries = EntryReader(context)
        self._in_chunks = StateInChunks()
        self._known: tuple[int, _State] | None = None

    def state(self, committed: CommittedBatch) -> QueryState:
        """The state after a micro-batch."""
        state = self._state(committed)
        counts = [] if state.carry is None else state.carry.retained
        found = state_of(self._plan, committed, {}, {})
        unbounded = {one.operator: f"{one.retains}: {one.needs}" for one in self._plan.unbounded()}
        operators = [
            StateRow("operator", node.name, rows=sum(rows), why=unbounded.get(node.name, NOT_CLOSED))
            for node, rows in zip(self._blocking.graph.nodes, counts, strict=False)
            if not isinstance(node.operator, ProjectOperator | RowMap)
        ]
        return QueryState((*found.rows, *operators))

    def judge(self, batch: DataFrame, before: CommittedBatch) -> _Entries:
        """Read the entries, and judge them; rows are late within the allowed disorder, too."""
        collected = self._entries.read(batch, before)
        own = (_SEEN, _LATE)
        counts = {name: count for name, count in before.counts.items() if name.startswith(own)}
        fed = self._tables(is_first=before.number < 0)
        late: dict[str, pa.Table | None] = {}
        for name, one in collected.found.items():
            rows, wrong = self._within(name, one.rows, counts)
            late[name] = _together(one.late, wrong)
            stream = self._plan.catalog.streams[name]
            seen = (before.counts.get(_SEEN + name), counts.get(_SEEN + name))
            punctuations = self._punctuations(name, stream, (before.positions.get(name), one.position), seen)
            fed[name] = Fed(_columns(name, stream, rows), punctuations)
        counts |= collected.counts(before, sum(fed[name].rows.num_rows for name in collected.found))
        counts["rows_late"] += counts.get(_LATE, 0)
        return _Entries(late, collected.count, fed, counts, collected.positions)

    def advance(self, entries: _Entries, number: int, before: CommittedBatch) -> Advanced:
        """Advance the operators, and emit the final rows."""
        state = self._state(before)
        self._known = None  # the state changes now: if this fails, it is read from the files again
        emitted, state.carry = self._blocking.graph.advance(state.carry, entries.fed)
        frontier = self._context.frontier(entries.positions)
        manifest = CommittedBatch(number, entries.positions, frontier, before.origin, entries.counts)
        return Advanced(self._output(emitted), partial(self._store, manifest, state, entries.fed))

    def retained(self, committed: CommittedBatch) -> Retained:
        """The state of the operators."""
        if (known := Retained.known(committed)) is not None:
            return known
        carry = self._state(committed).carry
        return Retained(0, 0 if carry is None else sum(map(sum, carry.retained)))

    # -- what is fed to the operators ----------------------------------------------------------------

    def _tables(self, *, is_first: bool) -> dict[str, Fed]:
        """The tables beside the streams: all of their rows arrive in the first micro-batch."""
        fed = {}
        for key, text in self._blocking.tables.items():
            frame = self._context.gateway.sql(text)
            names = [f"{key}_{at}" for at in range(len(frame.columns))]
            frame = frame.toDF(*names)
            schema = arrow_schema(frame.schema)
            rows = schema.empty_table()
            if is_first:
                with self._context.gateway.translated():
                    rows = frame.toArrow().cast(schema)
            fed[key] = Fed(rows, (EVERYTHING,) if is_first else ())
        return fed

    def _within(self, name: str, rows: pa.Table, counts: dict[str, int]) -> tuple[pa.Table, pa.Table | None]:
        """The rows within the allowed disorder, and the others; records the greatest rowtime."""
        if name not in self._plan.within or not rows.num_rows:
            return rows, None
        found = too_late(rows.column(ROWTIME).to_numpy(), counts.get(_SEEN + name), self._plan.within[name])
        counts[_SEEN + name] = found.seen
        if not found.late.any():
            return rows, None
        counts[_LATE] = counts.get(_LATE, 0) + int(found.late.sum())
        wrong = rows.filter(pa.array(found.late))
        tie = self._plan.catalog.streams[name].ties[1]
        producer = wrong.column(tie) if tie in wrong.column_names else pa.repeat("", wrong.num_rows)
        bounds, reason = pa.array(found.bounds[found.late]), pa.repeat("watermark", wrong.num_rows)
        wrong = wrong.append_column(PRODUCER, producer).append_column(VIOLATED, bounds)
        return rows.filter(pa.array(~found.late)), wrong.append_column(REASON, reason)

    def _punctuations(
        self,
        name: str,
        stream: Stream,
        positions: tuple[Position | None, Position],
        seen: tuple[int | None, int | None],
    ) -> tuple[Pattern, ...]:
        """The stream's new punctuations after a micro-batch."""
        named = {column: f"{name}.{column}" for column in stream.columns}
        bounds = tuple(self._reached(name, *one) for one in zip(positions, seen, strict=True))
        before, after = positions
        since = None if before is None else before.watermark
        found = new_patterns(
            schema_of(stream), stream.rowtime, since, after.watermark, (bounds[0], bounds[1])
        )
        return tuple(pattern.renamed(named) for pattern in found)

    def _reached(self, name: str, position: Position | None, seen: int | None) -> int:
        """The least rowtime that may still arrive."""
        within = NO_BOUND if seen is None else seen - self._plan.within[name]
        return max(reached(None if position is None else position.watermark), within)

    # -- what is retained ----------------------------------------------------------------------------

    def _state(self, before: CommittedBatch) -> _State:
        """The state after the last micro-batch."""
        if self._known is not None and self._known[0] == before.number:
            return self._known[1]
        arrived = {int(chunk): rows for chunk, rows in before.chunks.get(_ARRIVED, {}).items()}
        carried = carried_in(before)
        carry: FlowCarry | None = (
            None if carried is None else self._in_chunks.read(self._context.checkpoint, carried)
        )
        if carry is not None:
            self._blocking.graph.check(carry)
        for chunk in arrived:
            fed = from_stored(self._context.checkpoint.read_chunk(_ARRIVED, chunk))
            _, carry = self._blocking.graph.advance(carry, fed)
        return _State(carry, carried, arrived)

    def _store(self, manifest: CommittedBatch, state: _State, fed: Mapping[str, Fed]) -> CommittedBatch:
        """Write the input of a micro-batch, or all state; returns its manifest with these files."""
        number, rows = manifest.number, sum(one.rows.num_rows + len(one.punctuations) for one in fed.values())
        checkpoint = self._context.checkpoint
        if rows:
            state.arrived = {**state.arrived, number: rows}
            if state.is_long:
                assert state.carry is not None
                count = sum(map(sum, state.carry.retained))
                state.carried = self._in_chunks.write(checkpoint, number, number, count, state.carry)
                state.arrived = {}
            else:
                checkpoint.write_chunk(_ARRIVED, number, stored(dict(fed)))
        self._known = number, state  # which counts once it is committed
        return state.named(manifest)

    # -- what goes out -------------------------------------------------------------------------------

    def _output(self, emitted: Fed) -> RowsForSink | RowsForStream:
        """Final rows in the form of the sink; for a stream, with their punctuations."""
        sink, names, result = self._context.sink, self._blocking.names, self._blocking.result
        if not isinstance(sink, IntoStream):
            named = [StructField(name, one.dataType) for name, one in zip(names, result, strict=True)]
            return RowsForSink(emitted.rows.rename_columns(list(names)), StructType(named))
        frame = frame_of_collected(self._context.spark, emitted.rows, result)
        columns, scale = columns_taken(sink.stream, names, sink.columns), scale_of(sink.stream)
        rowtime = columns.index(sink.stream.definition.rowtime.column)
        place = F.expr(scale.of_column(frame.columns[rowtime], scale.kind, scale.unit))
        with self._context.gateway.translated():
            stream = Stream(frame.withColumn(ROWTIME, place), tuple(frame.columns), scale, ())
        own_types, wanted = arrow_schema(result), sink.stream.definition.columns
        same = {
            own: name
            for own, name in zip(own_types.names, columns, strict=True)
            if own_types.field(own).type == wanted.field(name).type
        }
        punctuations = [one.renamed(same) for one in emitted.punctuations if same.keys() >= {*one.names}]
        return RowsForStream(stream, None, tuple(put_together(punctuations)))


def _columns(name: str, stream: Stream, rows: pa.Table) -> pa.Table:
    """The rows with the columns of the program's input."""
    schema = _schema(name, stream)
    return rows.select(list(stream.columns)).rename_columns(schema.names).cast(schema)


def _schema(name: str, stream: Stream) -> pa.Schema:
    return pa.schema([field.with_name(f"{name}.{field.name}") for field in schema_of(stream)])


def _together(late: pa.Table | None, wrong: pa.Table | None) -> pa.Table | None:
    """Late rows of either kind, with the columns that both have."""
    if late is None or wrong is None:
        return late if wrong is None else wrong
    names = [name for name in late.column_names if name in wrong.column_names]
    return pa.concat_tables([late.select(names), wrong.select(names).cast(late.select(names).schema)])
