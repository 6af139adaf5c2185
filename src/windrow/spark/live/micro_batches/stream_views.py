"""The views of streams that clauses read, on the driver.

    rows of sources that are due ─▶ windows of the view ─▶ rows of the view ─▶ clauses

A view that processes each row alone has no state between micro-batches. Of others, the rows in windows are
committed beside the state of the clauses.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from windrow.kernels.incremental import PER_MICRO_BATCH, Times
from windrow.plan.arrow_types import is_orderable
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import Checkpoint, CommittedBatch
from windrow.spark.live.checkpoints.window_states import States, WindowStates
from windrow.spark.live.micro_batches.windowed_columns import WindowedColumns
from windrow.spark.live.micro_batches.windowed_relation import WindowedRelation
from windrow.spark.live.plans.live_plan import RowtimePlan
from windrow.spark.live.plans.planned_views import planned_views
from windrow.spark.live.reading.windowed_query import WindowedQuery, WindowedSide
from windrow.spark.live.reports.state_table import RetainedRowsOf, in_windows
from windrow.spark.logs.micro_batch import InstantSpan, PartOutput, StreamOutput, upwards
from windrow.spark.logs.session_streams import ROWTIME
from windrow.syntax.sqltext import quoted

__all__ = ["StreamViews"]

Chunks = dict[str, dict[str, int]]


class StreamViews:
    """The views that the clauses of a query read.

    Parameters
    ----------
    plan, checkpoint
        The plan and checkpoint of the query.
    """

    def __init__(self, plan: RowtimePlan, checkpoint: Checkpoint) -> None:
        views = planned_views(plan.gateway, plan.catalog, plan.views_of_rows)
        self._views = {name: _View(plan, checkpoint, name, one) for name, one in views.items()}

    def begin(self, before: CommittedBatch) -> None:
        """Begin the micro-batch that follows another."""
        for view in self._views.values():
            view.before, view.after = before, None

    def output(self, span: InstantSpan, name: str) -> StreamOutput:
        """The output of a view in a micro-batch."""
        return self._views[name].output(span)

    def write(self, number: int) -> Chunks:
        """Write the rows in windows after a micro-batch; returns all chunks, by name."""
        chunks: Chunks = {}
        for view in self._views.values():
            chunks |= view.write(number)
        return chunks

    def reported(self, committed: CommittedBatch) -> dict[str, RetainedRowsOf]:
        """The rows in windows after a micro-batch, by the names of their state."""
        found: dict[str, RetainedRowsOf] = {}
        for view in self._views.values():
            found |= view.reported(committed)
        return found


class _View:
    """A view. `before` is the micro-batch before this one, and `after` the windows after this one; None if it
    reads no rows.
    """

    before: CommittedBatch
    after: States | None

    def __init__(self, plan: RowtimePlan, checkpoint: Checkpoint, name: str, windowed: WindowedQuery) -> None:
        gateway = Gateway(plan.gateway.spark, plan.gateway.parameters)
        self._spark, self._windowed, self._checkpoint = gateway.spark, windowed, checkpoint
        self._stream, self._scale = plan.catalog.streams[name], plan.scale
        self._names = plan.catalog.definitions[name].names
        self._columns = WindowedColumns(gateway, plan.catalog, windowed, self._stream.scale)
        folder = checkpoint.folder.resolve()
        self._relation = WindowedRelation(
            gateway, windowed, folder, self._columns.rows, self._stream.scale, f".{name}"
        )
        self._reached: int | None = None
        self._states = WindowStates(checkpoint, [side.window_input for side in windowed.windows])

    def output(self, span: InstantSpan) -> StreamOutput:
        scale = self._stream.scale
        since = None if span.since is None else upwards(span.since, self._scale, scale)
        until = upwards(span.until, self._scale, scale)
        origin = span.origin * self._scale.nanoseconds // scale.nanoseconds
        states, chunk = self._states.after(self.before, since), span.number * PER_MICRO_BATCH
        if since is None or self._reached != since:  # at a start, and when a micro-batch is repeated
            self._relation.begin(states, since, origin)
        self._reached = None  # until it is over
        self._states.forget()
        for side in self._arriving:
            rows = self._columns.rows(side, span.due[side.stream])
            states[side.name] = states[side.name].with_arrivals(rows, chunk)
        times = Times(since, until)
        self.after, rows = self._relation.stream(states, span.number, times, origin, self._names)
        self._reached = until
        kinds = zip(self._names, self._windowed.result, strict=True)
        schema = StructType([StructField(name, field.dataType) for name, field in kinds])
        frame = frame_of_collected(self._spark, rows, schema.add(ROWTIME, LongType()))
        # rows of one instant are ordered by their values
        ordered = [quoted(name) for name in self._names if is_orderable(schema[name].dataType)]
        frame = frame.withColumns(dict(zip(self._stream.ties, map(F.col, ordered), strict=True)))
        return StreamOutput(self._stream, PartOutput(frame, lambda: until))

    def write(self, number: int) -> Chunks:
        """Write the rows in windows after a micro-batch; returns all chunks, by name."""
        if self.after is None:
            return self._states.unchanged(self.before, number)
        return self._states.write(self.after, number)

    def reported(self, committed: CommittedBatch) -> dict[str, RetainedRowsOf]:
        """The rows in windows after a micro-batch, by the names of their state; none of those that never have
        any between micro-batches.
        """
        reached = committed.frontier
        since = None if reached is None else upwards(reached, self._scale, self._stream.scale)
        states = self._states.after(committed, since)
        stored = {name: state for name, state in states.items() if committed.chunks.get(name)}
        return in_windows(stored, partial(self._checkpoint.chunk_bytes, committed))

    @property
    def _arriving(self) -> list[WindowedSide]:
        """The windows of live streams."""
        return [side for side in self._windowed.windows if side.made is None]
