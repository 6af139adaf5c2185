"""The views of arriving rows that clauses read, on the driver.

    rows of sources that are due ─▶ SELECT STREAM of the view ─▶ rows of the view ─▶ clauses

Such a view processes each row alone, so it has no state between micro-batches.
"""

from __future__ import annotations

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from windrow.kernels.incremental import InputState, Times
from windrow.plan.arrow_types import is_orderable
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import Checkpoint
from windrow.spark.live.micro_batches.windowed_columns import WindowedColumns
from windrow.spark.live.micro_batches.windowed_relation import WindowedRelation
from windrow.spark.live.plans.live_plan import RowtimePlan
from windrow.spark.live.plans.planned_views import planned_views
from windrow.spark.live.reading.windowed_query import WindowedQuery
from windrow.spark.logs.micro_batch import InstantSpan, PartOutput, StreamOutput, upwards
from windrow.spark.logs.session_streams import ROWTIME
from windrow.syntax.sqltext import quoted

__all__ = ["StreamViews"]


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

    def output(self, span: InstantSpan, name: str) -> StreamOutput:
        """The output of a view in a micro-batch."""
        return self._views[name].output(span)


class _View:
    def __init__(self, plan: RowtimePlan, checkpoint: Checkpoint, name: str, windowed: WindowedQuery) -> None:
        gateway = Gateway(plan.gateway.spark, plan.gateway.parameters)
        self._spark, self._windowed = gateway.spark, windowed
        self._stream, self._scale = plan.catalog.streams[name], plan.scale
        self._names = plan.catalog.definitions[name].names
        self._columns = WindowedColumns(gateway, plan.catalog, windowed, self._stream.scale)
        folder = checkpoint.folder.resolve()
        self._relation = WindowedRelation(
            gateway, windowed, folder, self._columns.rows, self._stream.scale, f".{name}"
        )
        self._reached: int | None = None

    def output(self, span: InstantSpan) -> StreamOutput:
        scale, nothing = self._stream.scale, self._of_no_rows()
        since = None if span.since is None else upwards(span.since, self._scale, scale)
        until = upwards(span.until, self._scale, scale)
        origin = span.origin * self._scale.nanoseconds // scale.nanoseconds
        if since is None or self._reached != since:  # at a start, and when a micro-batch is repeated
            self._relation.begin(nothing, since, origin)
        states = {
            side.name: nothing[side.name].with_arrivals(self._columns.rows(side, span.due[side.stream]), 0)
            for side in self._windowed.windows
            if side.made is None
        }
        times = Times(since, until)
        _, rows = self._relation.stream({**nothing, **states}, span.number, times, origin, self._names)
        self._reached = until
        kinds = zip(self._names, self._windowed.result, strict=True)
        schema = StructType([StructField(name, field.dataType) for name, field in kinds])
        frame = frame_of_collected(self._spark, rows, schema.add(ROWTIME, LongType()))
        # rows of one instant are ordered by their values
        ordered = [quoted(name) for name in self._names if is_orderable(schema[name].dataType)]
        frame = frame.withColumns(dict(zip(self._stream.ties, map(F.col, ordered), strict=True)))
        return StreamOutput(self._stream, PartOutput(frame, lambda: until))

    def _of_no_rows(self) -> dict[str, InputState]:
        return {side.name: InputState.nothing(side.window_input) for side in self._windowed.windows}
