"""A live query that runs: its plan, sink and checkpoint, and what all kinds of queries do with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.spark.collected import is_plain
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.plans import in_session
from windrow.spark.live.checkpoints.checkpoint import Checkpoint
from windrow.spark.live.checkpoints.side_outputs import SideOutput
from windrow.spark.live.input.entry_columns import entries_of, in_one, ticks_among
from windrow.spark.live.input.late_rows import LateRows
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Sink, TableSink, takes_tables
from windrow.spark.logs.session_streams import Stream
from windrow.streams import FOREVER, Position

__all__ = ["LiveContext"]


class LiveContext:
    """The plan, sink and checkpoint of a query that runs, which its steps share.

    Parameters
    ----------
    plan
        The query.
    sink
        Takes its rows.
    folder
        The folder of the checkpoint: state, and side outputs.
    envelope, on_late
        As for :meth:`windrow.relation.Relation.start`.
    retains_malformed
        Whether malformed entries go to a side output.
    form
        The form of the state, if it differs from the plan's.

    Attributes
    ----------
    checkpoint
        The committed micro-batches.
    late
        The late rows.
    """

    def __init__(
        self,
        plan: LivePlan,
        sink: Sink | IntoStream,
        folder: Path,
        envelope: str,
        on_late: str,
        *,
        retains_malformed: bool = False,
        form: str | None = None,
    ) -> None:
        self.plan, self.sink, self.folder, self.envelope = plan, sink, folder, envelope
        self.retains_malformed = retains_malformed
        self.spark, self.scale = plan.gateway.spark, plan.scale
        fingerprint = {
            **plan.fingerprint(),
            "mode": sink.mode,
            "envelope": envelope if plan.is_relation else None,
            "target": sink.target,
        }
        if form is not None:
            fingerprint["state"] = form
        sides = {name: SideOutput(folder / name) for name in ("late", "malformed")}
        self.checkpoint = Checkpoint(self.spark, folder / "windrow", fingerprint, sides, sink.had)
        try:
            self.checkpoint.last()  # of another query it is refused before anything runs
            sink.begin(self.spark, self.checkpoint.identity)
        except BaseException:
            self.checkpoint.close()
            raise
        self.late = LateRows(plan, sides["late"], on_late)

    def close(self) -> None:
        """Release the checkpoint."""
        try:
            self.sink.end()
        finally:
            self.checkpoint.close()

    @cached_property
    def gateway(self) -> Gateway:
        """A gateway of the query's own."""
        return self.new_gateway()

    def new_gateway(self) -> Gateway:
        """Another such gateway."""
        return Gateway(self.spark, self.plan.gateway.parameters)

    @property
    def takes_any_order(self) -> bool:
        """Whether rows may be emitted before others with an earlier rowtime."""
        sink = self.sink
        return not isinstance(sink, IntoStream) or sink.stream.definition.ordering.lag is None

    def table_sink(self, result: StructType, names: Sequence[str]) -> TableSink | None:
        """The sink, if it accepts rows with columns of these types and names in memory."""
        sink = self.sink
        # columns must have the same form in files and in memory as Spark would write
        is_plain_table = is_plain(result) and len({name.lower() for name in names}) == len(names)
        return sink if isinstance(sink, TableSink) and takes_tables(sink) and is_plain_table else None

    def streams(self) -> list[tuple[int, str, Stream]]:
        """The live streams, by number and name."""
        known = self.plan.catalog.streams
        return [(number, name, known[name]) for number, name in enumerate(sorted(self.plan.streams))]

    def input(self, frames: Mapping[str, DataFrame] | None, ticks: DataFrame | None) -> DataFrame:
        """All arriving entries: each stream has separate columns, and a number.

        Parameters
        ----------
        frames
            Entries in place of the streams' own.
        ticks
            Entries that advance processing time.
        """
        parts = entries_of(self.streams(), frames)
        if ticks is not None:
            parts.append(ticks_among(ticks))
        return in_one(parts)

    def idle_ticks(self, frames: Mapping[str, DataFrame] | None) -> DataFrame | None:
        """The entries that advance processing time, if that matters: ``tick``, in microseconds."""
        sources = [stream.live for _, _, stream in self.streams()]
        if frames is not None or not any(source is not None and source.idle for source in sources):
            return None
        rate = self.spark.readStream.format("rate").option("rowsPerSecond", 1).load()
        return rate.select(F.unix_micros(F.current_timestamp()).alias("tick"))

    def own(self, batch: DataFrame) -> DataFrame:
        """A micro-batch in the session with the query's tables and functions; Spark runs it in another."""
        return in_session(batch, self.spark)

    def frontier(self, positions: Mapping[str, Position]) -> int | None:
        """The instant before which no more rows arrive, in ticks of the query's time scale."""
        reached = []
        for name, position in positions.items():
            reached_here = position.watermark.value
            if reached_here is None:
                return None
            factor = self.plan.catalog.streams[name].scale.nanoseconds // self.scale.nanoseconds
            reached.append(FOREVER if reached_here == FOREVER else reached_here * factor)
        return min(reached)
