"""Live queries: started, watched and stopped."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from windrow.algebra.clock import Clock
from windrow.algebra.continuous import Continuous, Reader
from windrow.errors import AnalysisError, NotSupportedError, WindrowError
from windrow.spark.changelog import changelog
from windrow.spark.gateway import Gateway
from windrow.spark.live.arrivals import VIOLATED, Arrivals, arrivals
from windrow.spark.live.checkpoint import Checkpoint, Step
from windrow.spark.live.runner import LiveRunner, Span
from windrow.spark.live.sinks import Files, Sink, sink_of
from windrow.spark.live.source import PLACE, PRODUCER, PTIME
from windrow.spark.streams import ROWTIME, Catalog, Stream
from windrow.spark.varying import Varying
from windrow.streams import FOREVER, State

__all__ = ["LivePlan", "LiveQuery"]

_STREAM = "__stream"
_TICKS = -1


@dataclass(frozen=True)
class LivePlan:
    """A query over live streams, and all that is needed to run it."""

    gateway: Gateway
    catalog: Catalog
    reader: Reader
    query: Continuous
    execution: str
    streams: frozenset[str]

    def fingerprint(self, clock: Clock) -> dict[str, Any]:
        """What tells it from other queries."""
        streams = {
            name: [*self.catalog.streams[name].frame.schema.simpleString().split(","), str(live.ordering)]
            for name in sorted(self.streams)
            if (live := self.catalog.streams[name].live) is not None
        }
        views = {
            name: hashlib.sha256(definition.reader.tokens.sql.encode()).hexdigest()
            for name, definition in sorted(self.catalog.definitions.items())
        }
        return {
            "text": self.reader.tokens.sql, "clock": str(clock), "streams": streams, "views": views,
        }  # fmt: skip

    def start(
        self,
        sink: Any,
        checkpoint: str | Path | None,
        trigger: Mapping[str, Any] | None,
        envelope: str,
        on_late: str,
    ) -> LiveQuery:
        """Start it; see :meth:`windrow.relation.LiveRelation.start`."""
        if self.gateway.is_connect:
            raise NotSupportedError(
                "live queries on Spark Connect are not supported",
                condition="UNSUPPORTED_STREAM",
                hint="run them in a classic session",
            )
        return LiveQuery(self, sink_of(sink), checkpoint, trigger, envelope, on_late)


class LiveQuery:
    """A query that runs.

    Attributes
    ----------
    streaming
        Spark's query, with its own progress.
    progress
        Of the last step: micro-batch, rows that came, rows given, frontier, and in all: `rows_in`, which are
        `rows_used` + `rows_held` + `rows_late`.
    """

    def __init__(
        self,
        plan: LivePlan,
        sink: Sink,
        checkpoint: str | Path | None,
        trigger: Mapping[str, Any] | None,
        envelope: str,
        on_late: str,
    ) -> None:
        self._plan, self._sink, self._envelope, self._on_late = plan, sink, envelope, on_late
        self._spark = plan.gateway.spark
        folder = Path(checkpoint) if checkpoint is not None else Path(tempfile.mkdtemp(prefix="windrow-"))
        runner = LiveRunner(plan.gateway, plan.catalog, plan.reader, plan.execution, _nothing())
        self._clock = runner.clock_of(plan.query)
        self._checkpoint = Checkpoint(self._spark, folder / "windrow", plan.fingerprint(self._clock))
        self._checkpoint.last()  # of another query it is refused before anything runs
        self._late = Files(folder / "late")
        self._error: WindrowError | None = None
        self._lock = threading.Lock()
        self.progress: dict[str, Any] = {}
        writer = self._input().writeStream.foreachBatch(self._step)
        writer = writer.option("checkpointLocation", str(folder / "spark"))
        if trigger is not None:
            writer = writer.trigger(**trigger)
        self.streaming: StreamingQuery = writer.start()

    # -- what users ask ------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return bool(self.streaming.isActive)

    def stop(self) -> None:
        """Stop it; started again with its checkpoint it goes on where it was."""
        self.streaming.stop()

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
        files = sorted(self._late.folder.glob("*.parquet"))
        return self._spark.read.parquet(*map(str, files)) if files else None

    def _watched(self, wait: Callable[[], Any]) -> Any:
        try:
            return wait()
        except StreamingQueryException:
            if self._error is not None:
                raise self._error from None
            raise

    # -- the micro-batches ---------------------------------------------------------------------------

    def _live(self) -> list[tuple[int, str, Stream]]:
        streams = self._plan.catalog.streams
        return [(number, name, streams[name]) for number, name in enumerate(sorted(self._plan.streams))]

    def _input(self) -> DataFrame:
        """All that arrives: the entries of each stream as a struct, told apart by a number."""
        parts = []
        for number, _, stream in self._live():
            assert stream.live is not None
            whole = F.struct(*(F.col(f"`{name}`") for name in stream.live.frame.columns))
            parts.append(stream.live.frame.select(F.lit(number).alias(_STREAM), whole.alias(f"__s{number}")))
        if any(stream.live is not None and stream.live.idle for _, _, stream in self._live()):
            rate = self._spark.readStream.format("rate").option("rowsPerSecond", 1).load()
            parts.append(
                rate.select(
                    F.lit(_TICKS).alias(_STREAM),
                    F.struct(F.unix_micros(F.current_timestamp()).alias(PTIME)).alias("__tick"),
                )
            )
        union = parts[0]
        for part in parts[1:]:
            union = union.unionByName(part, allowMissingColumns=True)
        return union

    def _step(self, batch: DataFrame, number: int) -> None:
        try:
            with self._lock:
                self._run(batch, number)
        except WindrowError as error:
            self._error = error
            raise

    def _run(self, batch: DataFrame, number: int) -> None:
        if self._checkpoint.has(number):
            return  # all of it was done, and only Spark did not know
        before = self._checkpoint.last(number)
        placed = batch.withColumn(PLACE, F.monotonically_increasing_id())
        # read once, and into the session in which the query's tables are: that of the micro-batch is another
        with self._checkpoint.stored(placed, number) as stored:
            self._take(stored, number, before)

    def _take(self, batch: DataFrame, number: int, before: Step) -> None:
        now = self._now(batch)
        came: dict[str, Arrivals] = {}
        arrived: dict[str, Stream] = {}
        for place, name, stream in self._live():
            rows = batch.where(F.col(_STREAM) == place).select(f"__s{place}.*", PLACE)
            state = before.clocks.get(name, State())
            came[name] = arrivals(name, stream, rows, number, state, now)
            held = self._checkpoint.rows(before, f"held-{name}")
            frame = came[name].rows if held is None else held.unionByName(came[name].rows)
            arrived[name] = replace(stream, frame=frame)
        self._tell_late(came, number)
        clocks = {name: found.state for name, found in came.items()}
        until = self._frontier(clocks)
        origin, given = before.origin, 0
        keep: dict[str, DataFrame] = {}
        moved = until is not None and (before.frontier is None or until > before.frontier)
        if moved and until is not None and origin is None:
            origin = self._first(arrived, until)
        if moved and until is not None and origin is not None:
            kept_rows = partial(self._checkpoint.rows, before)
            span = Span(before.frontier, until, origin, arrived, kept_rows, keep)
            given = self._give(span, number) or 0
        else:
            for name in before.rows:
                kept = self._checkpoint.rows(before, name)
                if name.startswith("window") and kept is not None:
                    keep[name] = kept
        reached = until if origin is not None else None
        for name, stream in arrived.items():
            waits = stream.frame
            if reached is not None:
                factor = stream.clock.nanoseconds // self._clock.nanoseconds
                waits = waits.where(F.col(ROWTIME) >= -(-reached // factor))
            keep[f"held-{name}"] = waits
        counts = {
            "rows_in": before.counts.get("rows_in", 0) + sum(found.count for found in came.values()),
            "rows_late": sum(state.late + state.rejected for state in clocks.values()),
            "rows_given": before.counts.get("rows_given", 0) + given,
        }
        frontier = reached if reached is not None else before.frontier
        step = self._checkpoint.commit(Step(number, clocks, frontier, origin, {}, counts), keep)
        self._report(step, sum(found.count for found in came.values()), given)

    def _give(self, span: Span, number: int) -> int | None:
        """Evaluate the step and give its rows to the sink."""
        plan = self._plan
        gateway = Gateway(self._spark, plan.gateway.parameters)
        runner = LiveRunner(gateway, plan.catalog, plan.reader, plan.execution, span)
        result = runner.run(plan.query)
        if isinstance(result, Varying):
            rows = changelog(result, self._envelope)
        else:
            assert isinstance(result, Stream)
            rows = result.df()
        with gateway.translated():
            return self._sink.write(rows, number)

    def _now(self, batch: DataFrame) -> int:
        """The time of the micro-batch, as Spark recorded it."""
        return int(batch.sparkSession.range(1).select(F.unix_micros(F.current_timestamp())).collect()[0][0])

    def _frontier(self, clocks: Mapping[str, State]) -> int | None:
        """The instant before which nothing more will come, in ticks of the query's clock."""
        reached = []
        for name, state in clocks.items():
            if state.clock is None:
                return None
            factor = self._plan.catalog.streams[name].clock.nanoseconds // self._clock.nanoseconds
            reached.append(FOREVER if state.clock == FOREVER else state.clock * factor)
        return min(reached)

    def _first(self, arrived: Mapping[str, Stream], until: int) -> int | None:
        """The first instant of the rows before the frontier."""
        firsts = []
        for stream in arrived.values():
            rows = stream.on(self._clock).frame.where(F.col(ROWTIME) < until)
            firsts.append(rows.agg(F.min(ROWTIME)).collect()[0][0])
        return min((first for first in firsts if first is not None), default=None)

    def _tell_late(self, came: Mapping[str, Arrivals], number: int) -> None:
        told: DataFrame | None = None
        for name, found in came.items():
            if found.late is None:
                continue
            stream = self._plan.catalog.streams[name]
            if self._on_late == "fail":
                raise AnalysisError(
                    f"a row of stream {name} is late: its rowtime is below a bound of its producer",
                    condition="LATE_ROW",
                    hint="on_late='keep' keeps late rows apart",
                )
            one = found.late.select(
                F.lit(name).alias("stream"),
                F.to_json(F.struct(*(F.col(f"`{column}`") for column in stream.columns))).alias("row"),
                F.expr(stream.clock.to_column(ROWTIME)).cast("string").alias("rowtime"),
                F.expr(stream.clock.to_column(VIOLATED)).cast("string").alias("bound"),
                F.col(PRODUCER).alias("producer"),
                F.lit(number).cast("bigint").alias("batch"),
            )
            told = one if told is None else told.unionByName(one)
        if told is not None:
            self._late.write(told, number)

    def _report(self, step: Step, came: int, given: int) -> None:
        held = sum(self._checkpoint.count(step, name) for name in step.rows if name.startswith("held-"))
        kept = sum(self._checkpoint.count(step, name) for name in step.rows if name.startswith("window"))
        late = step.counts["rows_late"]
        self.progress = {
            "batch": step.number,
            "came": came,
            "given": given,
            "frontier": step.frontier,
            **step.counts,
            "rows_held": held,
            "rows_used": step.counts["rows_in"] - late - held,
            "rows_in_windows": kept,
        }


def _nothing() -> Span:
    return Span(None, 0, 0, {}, lambda _: None)
