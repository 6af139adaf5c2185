"""The views of streams that clauses read and queries over windows make, in memory on the driver.

    sources, clauses ─ their frontier ─▶ windows of the view ─▶ its rows ─▶ clauses

What the windows of a view retain is committed beside the state of clauses, in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from windrow.kernels.incremental import PER_MICRO_BATCH, InputState, Times
from windrow.spark.analysis.arrow_columns import travelling
from windrow.spark.arrow import is_orderable
from windrow.spark.catalog import Catalog
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import Checkpoint, CommittedBatch
from windrow.spark.live.micro_batches.windowed_columns import WindowedColumns
from windrow.spark.live.micro_batches.windowed_relation import WindowedRelation
from windrow.spark.live.plans.live_plan import RowtimePlan
from windrow.spark.live.plans.planned_views import planned_views
from windrow.spark.live.reading.windowed_query import WindowedQuery, WindowedSide
from windrow.spark.live.reports.state_table import RetainedRowsOf
from windrow.spark.logs.micro_batch import Coming, MicroBatch, PartOutput
from windrow.spark.logs.session_streams import ROWTIME

__all__ = ["StreamViews"]


class StreamViews:
    """The views that the clauses of a query read, and what their windows retain.

    Parameters
    ----------
    plan, checkpoint
        Those of the query.
    """

    def __init__(self, plan: RowtimePlan, checkpoint: Checkpoint) -> None:
        views = planned_views(plan.gateway, plan.catalog, plan.views_of_windows)
        self._views = {name: _View(plan, checkpoint, name, one) for name, one in views.items()}
        self._known: int | None = None

    def begin(self, before: CommittedBatch) -> None:
        """Let the views be what they were after a micro-batch."""
        if self._known != before.number:
            for view in self._views.values():
                view.begin(before)
        self._known = None  # what goes on changes now: a micro-batch that fails begins again from the files

    def coming(self, batch: MicroBatch, name: str) -> Coming:
        """What a view emits in a micro-batch."""
        return self._views[name].coming(batch)

    def write(self, number: int) -> dict[str, dict[str, int]]:
        """Write the new chunks of what the windows retain; all chunks, by the names of the windows."""
        self._known = number  # which counts once it is committed
        return dict(chunk for view in self._views.values() for chunk in view.write(number))

    def reported(self, committed: CommittedBatch) -> dict[str, RetainedRowsOf]:
        """What the windows had after a micro-batch, by their names."""
        if self._known != committed.number:
            self.begin(committed)
            self._known = committed.number
        return {name: one for view in self._views.values() for name, one in view.reported(committed)}


class _View:
    def __init__(self, plan: RowtimePlan, checkpoint: Checkpoint, name: str, windowed: WindowedQuery) -> None:
        self._catalog: Catalog = plan.catalog
        self._checkpoint, self._windowed, self._name = checkpoint, windowed, name
        self._gateway = Gateway(plan.gateway.spark, plan.gateway.parameters)
        self._stream, self._scale = plan.catalog.streams[name], plan.scale
        self._names = plan.catalog.definitions[name].names
        self._columns = WindowedColumns(self._gateway, plan.catalog, windowed, self._stream.scale)
        folder = checkpoint.folder.resolve()
        self._relation = WindowedRelation(self._gateway, windowed, folder, self._columns.rows, f".{name}")
        self._states: dict[str, InputState] = {}
        self._mark = f"until.{name}"

    @property
    def _sides(self) -> Iterator[WindowedSide]:
        """The windows whose rows come from elsewhere."""
        return (side for side in self._windowed.windows if side.made is None)

    def begin(self, before: CommittedBatch) -> None:
        reached = before.marks.get(self._mark)
        self._states = {}
        for side in self._windowed.windows:
            chunks = {int(chunk): rows for chunk, rows in before.chunks.get(side.name, {}).items()}
            tables = (self._checkpoint.read_chunk(side.name, chunk) for chunk in chunks)
            self._states[side.name] = InputState.read(side.window_input, chunks, tables, reached)
        self._relation.begin(
            self._states, reached, None if before.origin is None else self._own(before.origin)
        )

    def coming(self, batch: MicroBatch) -> Coming:
        span = batch.span
        came = {name: batch.coming(name) for name in dict.fromkeys(side.stream for side in self._sides)}
        until = min(one.until(self._stream.scale) for one in came.values())
        tables = {name: self._table(batch, name, one) for name, one in came.items()}
        for side in self._sides:
            rows, chunk = self._columns.rows(side, tables[side.stream]), span.number * PER_MICRO_BATCH
            self._states[side.name] = self._states[side.name].with_arrivals(rows, chunk)
        since, origin = span.marks.get(self._mark), self._own(span.origin)
        kinds = zip(self._names, self._windowed.result, strict=True)
        schema = StructType([StructField(name, field.dataType) for name, field in kinds])
        schema = schema.add(ROWTIME, LongType())
        made: pa.Table | None = None
        if until > (origin if since is None else since):
            states, made = self._relation.stream(
                self._states, span.number, Times(since, until), origin, self._names
            )
            self._states, span.marks[self._mark] = dict(states), until
        rows = made if made is not None else pa.table({name: [] for name in schema.names})
        frame = frame_of_collected(self._gateway.spark, rows, schema)
        # rows of one instant are ordered by their values
        ordered = [field.name for field in schema.fields[:-1] if is_orderable(field.dataType)]
        ties = dict(zip(self._stream.ties, map(F.col, ordered), strict=True))
        frame = frame.withColumns(ties)
        return Coming(self._stream, PartOutput(frame, lambda: until))

    def _table(self, batch: MicroBatch, name: str, coming: Coming) -> pa.Table:
        if name in batch.span.due:
            return batch.span.due[name]
        with self._gateway.translated():
            return travelling(coming.rows).toArrow()

    def write(self, number: int) -> Iterator[tuple[str, dict[str, int]]]:
        for name, state in self._states.items():
            self._states[name], new = state.merged(number)
            yield name, self._checkpoint.write_chunks(name, self._states[name].chunks, new)

    def reported(self, committed: CommittedBatch) -> Iterator[tuple[str, RetainedRowsOf]]:
        for name, state in self._states.items():
            rowtimes = pa.concat_tables(
                [
                    state.retained.rows.filter(pa.array(state.retained.alive)).select([ROWTIME]),
                    state.waiting.select([ROWTIME]),
                ]
            ).column(ROWTIME)
            yield name, RetainedRowsOf.of(rowtimes, self._checkpoint.chunk_bytes(committed, name))

    def _own(self, origin: int) -> int:
        """An instant of the query's time scale."""
        return origin * self._scale.nanoseconds // self._stream.scale.nanoseconds
