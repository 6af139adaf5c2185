"""Live queries: started, watched and stopped."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from windrow.errors import NotSupportedError, WindrowError
from windrow.spark.live.plan import LivePlan
from windrow.spark.live.sinks import sink_of
from windrow.spark.live.steps import Steps

__all__ = ["LiveQuery"]


class LiveQuery:
    """A query that runs; see :meth:`windrow.relation.LiveRelation.start`.

    Attributes
    ----------
    streaming
        Spark's query, with its own progress.
    """

    def __init__(
        self,
        plan: LivePlan,
        sink: Any,
        *,
        checkpoint: str | Path | None,
        trigger: Mapping[str, Any] | None,
        envelope: str,
        on_late: str,
    ) -> None:
        if plan.gateway.is_connect:
            raise NotSupportedError(
                "live queries on Spark Connect are not supported",
                condition="UNSUPPORTED_STREAM",
                hint="run them in a classic session",
            )
        folder = Path(checkpoint if checkpoint is not None else tempfile.mkdtemp(prefix="windrow-")).resolve()
        self._spark = plan.gateway.spark
        self._steps = Steps(plan, sink_of(sink), folder, envelope, on_late)
        self._error: WindrowError | None = None
        writer = self._steps.input().writeStream.foreachBatch(self._step)
        writer = writer.option("checkpointLocation", str(folder / "spark"))
        if trigger is not None:
            writer = writer.trigger(**trigger)
        self.streaming: StreamingQuery = writer.start()

    @property
    def progress(self) -> dict[str, Any]:
        """Of the last step: the micro-batch, rows that came and were given, the frontier; and in all
        `rows_in`, which are `rows_used` + `rows_held` + `rows_late`, and the rows that windows keep.
        """
        return self._steps.progress

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return bool(self.streaming.isActive)

    def stop(self) -> None:
        """Stop it; started again with its checkpoint it goes on where it was."""
        self.streaming.stop()
        self._steps.close()

    def process_all_available(self) -> None:
        """Wait until everything that has arrived is processed.

        Raises
        ------
        WindrowError
            What the query failed with.
        """
        self._watched(self.streaming.processAllAvailable)

    def await_termination(self, timeout: int | None = None) -> bool:
        """Wait until it stops, or for so many seconds; whether it has stopped."""
        if timeout is None:
            self._watched(self.streaming.awaitTermination)
            return True
        return bool(self._watched(lambda: self.streaming.awaitTermination(timeout)))

    @property
    def late(self) -> DataFrame | None:
        """The late rows so far, each with its stream, rowtime, producer and the bound that it violates."""
        files = sorted(self._steps.late.folder.glob("*.parquet"))
        return self._spark.read.parquet(*map(str, files)) if files else None

    def _watched(self, wait: Callable[[], Any]) -> Any:
        try:
            return wait()
        except StreamingQueryException:
            self._steps.close()
            if self._error is not None:
                raise self._error from None
            raise

    def _step(self, batch: DataFrame, number: int) -> None:
        try:
            self._steps.take(batch, number)
        except WindrowError as error:
            self._error = error
            raise
