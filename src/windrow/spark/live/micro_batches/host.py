"""The common part of the micro-batches of all live queries: judge, advance, write, commit, account."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, WindrowError
from windrow.spark.collected import collected, frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.plans import in_session
from windrow.spark.live.checkpoints.checkpoint import Checkpoint, CommittedBatch
from windrow.spark.live.checkpoints.side_outputs import Listing, SideOutput
from windrow.spark.live.input.arrivals import VIOLATED
from windrow.spark.live.input.entry_columns import STREAM, entries_of, in_one, inside, ticks_among
from windrow.spark.live.input.file_order import placed
from windrow.spark.live.input.malformed import MALFORMED_SCHEMA, malformed_rows, sound_rows, uncomputable_rows
from windrow.spark.live.micro_batches.uncomputable import Uncomputable, is_of_a_value
from windrow.spark.live.operators.ended_partitions import ClosedPartitions
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.live.reports.account import Account
from windrow.spark.live.reports.failures import failure
from windrow.spark.live.reports.rows_set_aside import SetAside, counted
from windrow.spark.live.reports.state_table import QueryState, RetainedRowsOf
from windrow.spark.live.reports.wrong_clocks import WrongClocks
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.latest import latest_of
from windrow.spark.live.sinks.sink import Sink, uri
from windrow.spark.logs.live_source import PLACE, PRODUCER
from windrow.spark.logs.session_streams import REASON, ROWTIME, Stream
from windrow.streams import FOREVER, Position
from windrow.streams.entries import REASONS
from windrow.syntax.sqltext import quoted

__all__ = ["ASIDE", "BUFFERED", "Done", "MicroBatches", "Retained", "by_kind", "late_columns"]

LATE_SCHEMA = StructType(
    [
        *(StructField(name, StringType()) for name in ("stream", "row", "rowtime", "bound", "producer")),
        StructField("batch", LongType()),
        StructField("reason", StringType()),
    ]
)
"""The columns of late rows; for quarantined bounds, `row` is NULL."""

ASIDE = {"late": LATE_SCHEMA, "malformed": MALFORMED_SCHEMA}
"""The side outputs."""

BUFFERED = "held-"

_KEEP = (
    "restart the query with its checkpoint and on_malformed='keep', which puts such rows into a side output;"
    " or write functions such as try_divide and try_cast in the query"
)
_OF_SEVERAL = (
    "write functions such as try_sum, try_divide and try_cast in the query, which return NULL instead"
)
"""Of what no row has alone, or is not read as computed of each row."""


@dataclass(frozen=True, eq=False)
class Done:
    """A micro-batch whose changes are in the sink.

    Attributes
    ----------
    committed
        The state to commit.
    arrived, emitted
        How many rows it took, and emitted.
    """

    committed: CommittedBatch
    arrived: int
    emitted: int


@dataclass(frozen=True)
class Retained:
    """How many rows are buffered, and in windows or operators, after a micro-batch; and other reported
    counts.
    """

    waiting: int
    rows: int
    besides: Mapping[str, int | None] = field(default_factory=dict)


class MicroBatches(ABC):
    """Runs micro-batches one after the other.

    A micro-batch that was processed completely is not processed again. An interrupted one is: it starts from
    the state after the last micro-batch, so it returns the same rows, and the sink replaces those emitted
    before.

    Parameters
    ----------
    plan
        The query.
    sink
        Takes its rows.
    folder
        The folder of the checkpoint: state, and late rows.
    envelope, on_late
        As for :meth:`windrow.relation.Relation.start`.

    Attributes
    ----------
    progress
        The progress of the last micro-batch.
    late
        Where late rows go.
    """

    settings: Mapping[str, str] = MappingProxyType({})
    """Settings of Spark for the query, set when it starts."""

    _form: str | None = None
    """The form of the state, if it differs from the plan's."""

    def __init__(
        self, plan: LivePlan, sink: Sink | IntoStream, folder: Path, envelope: str, on_late: str
    ) -> None:
        self._plan, self._sink, self._envelope, self._on_late = plan, sink, envelope, on_late
        self._spark = plan.gateway.spark
        self._scale = plan.scale
        self._closed = ClosedPartitions(plan.ends if _takes_any_order(sink) else {})
        fingerprint = {
            **plan.fingerprint(),
            "mode": sink.mode,
            "envelope": envelope if plan.is_relation else None,
            "target": sink.target,
        }
        self.late = SideOutput(folder / "late")
        if self._form is not None:
            fingerprint["state"] = self._form
        sides = {"late": self.late, "malformed": SideOutput(folder / "malformed")}
        self._checkpoint = Checkpoint(self._spark, folder / "windrow", fingerprint, sides, sink.had)
        try:
            self._checkpoint.last()  # of another query it is refused before anything runs
            sink.begin(self._spark, self._checkpoint.identity)
        except BaseException:
            self._checkpoint.close()
            raise
        self.progress: dict[str, Any] = {}
        self._wrong_clocks = WrongClocks(self._spark, plan.catalog)

    @property
    def wants(self) -> int | None:
        """When the query needs a tick, in microseconds; None for never."""
        return None

    def tick(self, instant: int) -> None:  # noqa: B027 - most want none
        """Put a tick for an instant into the query's input."""

    @property
    def last(self) -> int:
        """The number of the last micro-batch, -1 before the first."""
        return self._checkpoint.last().number

    @property
    def identity(self) -> str:
        """The identity of the checkpoint."""
        return self._checkpoint.identity

    @property
    def positions(self) -> Mapping[str, Position]:
        """How far each stream has been read by the last micro-batch."""
        return self._checkpoint.last().positions

    def close(self) -> None:
        """Release the checkpoint."""
        try:
            self._sink.end()
        finally:
            self._checkpoint.close()

    @abstractmethod
    def state(self) -> QueryState:
        """The state after the last micro-batch."""

    def aside_table(self, name: str) -> pa.Table:
        """The rows of a side output up to the last micro-batch, in memory."""
        tables = [pq.read_table(path) for path in self.side_files(name)]
        wanted = to_arrow_schema(ASIDE[name])
        whole = pa.concat_tables([wanted.empty_table(), *tables], promote_options="default")
        return whole.select(wanted.names).cast(wanted)

    def aside(self, name: str) -> DataFrame:
        """The rows of a side output up to the last micro-batch."""
        columns = ASIDE[name]
        paths = self.side_files(name)
        if not paths:
            return self._spark.createDataFrame([], columns)
        return self._spark.read.schema(columns).parquet(*map(uri, paths))

    def side_files(self, name: str) -> list[Path]:
        """The files with the rows of a side output up to the last micro-batch, each once."""
        return self._checkpoint.sides[name].paths(self._listed(name))

    def set_aside(self, name: str, most: int) -> tuple[SetAside, ...]:
        """The counts of a side output, with a sample of rows of each stream and reason."""
        side = self._checkpoint.sides[name]
        return counted(name, side.batches(self._listed(name)), most, side.folder)

    def _listed(self, name: str) -> Listing:
        return self._checkpoint.last().sides.get(name, Listing())

    def latest(self, count: int) -> pa.Table | None:
        """The last emitted rows, if they can be read back."""
        return latest_of(self._sink, count)

    def streams(self) -> list[tuple[int, str, Stream]]:
        """The live streams, by number and name."""
        known = self._plan.catalog.streams
        return [(number, name, known[name]) for number, name in enumerate(sorted(self._plan.streams))]

    def input(self, frames: Mapping[str, DataFrame] | None = None) -> DataFrame:
        """All arriving entries: each stream has separate columns, and a number.

        Parameters
        ----------
        frames
            Entries in place of the streams' own.
        """
        parts = entries_of(self.streams(), frames)
        ticks = self._ticks(frames)
        if ticks is not None:
            parts.append(ticks_among(ticks))
        return in_one(parts)

    def _ticks(self, frames: Mapping[str, DataFrame] | None) -> DataFrame | None:
        """The entries that advance processing time, if that matters: ``tick``, in microseconds."""
        sources = [stream.live for _, _, stream in self.streams()]
        if frames is not None or not any(source is not None and source.idle for source in sources):
            return None
        rate = self._spark.readStream.format("rate").option("rowsPerSecond", 1).load()
        return rate.select(F.unix_micros(F.current_timestamp()).alias("tick"))

    @cached_property
    def _gateway(self) -> Gateway:
        return Gateway(self._spark, self._plan.gateway.parameters)

    def _own(self, batch: DataFrame) -> DataFrame:
        """A micro-batch in the session with the query's tables and functions; Spark runs it in another."""
        return in_session(batch, self._spark)

    def take(self, batch: DataFrame, number: int) -> None:
        """Process a micro-batch, unless it has been processed completely."""
        if not self.retains_malformed:
            self._take_sound(batch, None, number)
            return
        with self._checkpoint.stored(placed(batch), number) as whole:
            sound, malformed = (
                sound_rows(whole, self.streams()),
                malformed_rows(whole, self.streams(), number),
            )
            found = self._uncomputable.among(self._rows_of_streams(sound))
            if found is not None:
                reasons = F.broadcast(self._spark.createDataFrame(found))
                wrong = sound.join(reasons, PLACE)
                malformed = malformed.unionAll(uncomputable_rows(wrong, self.streams(), number))
                sound = sound.join(reasons, PLACE, "left_anti")
            self._take_sound(sound, malformed, number)

    def _take_sound(self, sound: DataFrame, malformed: DataFrame | None, number: int) -> None:
        """Process the sound entries, and write the malformed ones to the side output."""
        before = self._checkpoint.before(number, lambda: self._count(sound))
        if before is None:
            return
        if malformed is not None:
            self._set_malformed_aside(malformed, number)
        try:
            self._advance(sound, number, before)
        except Exception as error:
            raised = failure(error)
            if raised is None or not is_of_a_value(raised):
                raise
            raise self._with_hint(raised, sound) from error.__cause__
        self._wrong_clocks.look(self.streams(), self._checkpoint.last())
        malformed_in_all = sum(pq.read_metadata(path).num_rows for path in self.side_files("malformed"))
        rows_in, used, buffered, late = (
            self.progress[f"rows_{name}"] for name in ("in", "used", "buffered", "late")
        )
        account = Account(rows_in + malformed_in_all, used, buffered, late, malformed_in_all)
        self.progress |= account.counts

    def _count(self, batch: DataFrame) -> int:
        """How many entries a micro-batch has."""
        return batch.count()

    retains_malformed = False
    """Whether malformed entries go to a side output."""

    @cached_property
    def _uncomputable(self) -> Uncomputable:
        return Uncomputable(self._plan)

    def _rows_of_streams(self, batch: DataFrame) -> dict[str, DataFrame]:
        """The rows of each stream among entries, with `PLACE`."""
        found = {}
        for at, name, stream in self.streams():
            is_row = (F.col(STREAM) == at) & F.col(quoted(inside(at, ROWTIME))).isNotNull()
            columns = [F.col(quoted(inside(at, own))).alias(own) for own in stream.columns]
            found[name] = batch.where(is_row).select(*columns, PLACE)
        return found

    def _with_hint(self, error: WindrowError, batch: DataFrame) -> WindrowError:
        """The error that a value cannot be computed, with a hint."""
        hint = _OF_SEVERAL if error.sqlstate.startswith("22") else None
        try:
            if not self.retains_malformed and self._uncomputable.fails(self._rows_of_streams(placed(batch))):
                hint = _KEEP
        except (WindrowError, PySparkException):  # the query has failed, and says why in any case
            return error
        error.hint = "; ".join(filter(None, (error.hint, hint))) or None
        return error

    def _set_malformed_aside(self, rows: DataFrame, number: int) -> None:
        table = collected(rows)
        if table is None or table.num_rows:
            malformed = rows if table is None else frame_of_collected(self._spark, table, MALFORMED_SCHEMA)
            self._checkpoint.sides["malformed"].write(malformed, number)

    def _advance(self, batch: DataFrame, number: int, before: CommittedBatch) -> None:
        """Process the sound entries after a commit, and commit."""
        try:
            done = self._evaluated(batch, number, before)
            committed = self._checkpoint.commit(done.committed)
        finally:
            self._release()
        retained = self._retained(committed)
        self.progress = {
            "batch": number,
            "batch_rows_in": done.arrived,
            "batch_rows_emitted": done.emitted,
            "frontier": committed.frontier,
            **self._counted(committed, retained.waiting),
            "rows_in_windows": retained.rows,
            "state_bytes": self._checkpoint.size(committed),
            **retained.besides,
        }

    @abstractmethod
    def _evaluated(self, batch: DataFrame, number: int, before: CommittedBatch) -> Done:
        """Judge the entries, advance the operators, and pass the changes to the sink."""

    @abstractmethod
    def _retained(self, committed: CommittedBatch) -> Retained:
        """The retained rows after a micro-batch."""

    def _release(self) -> None:  # noqa: B027 - most have nothing
        """Release the caches of a micro-batch, however it ended."""

    def _frontier(self, positions: Mapping[str, Position]) -> int | None:
        """The instant before which no more rows arrive, in ticks of the query's time scale."""
        reached = []
        for name, position in positions.items():
            reached_here = position.watermark.value
            if reached_here is None:
                return None
            factor = self._plan.catalog.streams[name].scale.nanoseconds // self._scale.nanoseconds
            reached.append(FOREVER if reached_here == FOREVER else reached_here * factor)
        return min(reached)

    def _late(self, name: str, late: pa.Table | None) -> DataFrame | None:
        """Late rows as a DataFrame."""
        if late is None:
            return None
        schema = self._schema_apart(name, VIOLATED).add(REASON, StringType())
        return frame_of_collected(self._spark, late.select(schema.names), schema)

    def _schema_apart(self, name: str, *ticks: str) -> StructType:
        """The columns of a stream's rows in side outputs: its own, and the added ones."""
        stream = self._plan.catalog.streams[name]
        fields = [field for field in stream.frame.schema if field.name in stream.columns]
        schema = StructType(fields).add(ROWTIME, LongType()).add(PRODUCER, StringType())
        for own in ticks:
            schema = schema.add(own, LongType())
        return schema

    def _set_late_aside(self, late: Mapping[str, DataFrame | None], number: int) -> None:
        found: DataFrame | None = None
        for name, rows in late.items():
            if rows is None:
                continue
            stream = self._plan.catalog.streams[name]
            fails = stream.live is not None and stream.live.on_late == "fail"
            if fails or self._on_late == "fail":
                raise _late_row(name, rows)
            batch = F.lit(number).cast("bigint").alias("batch")
            one = late_columns(name, stream, rows).select("*", batch).select(*LATE_SCHEMA.names)
            found = one if found is None else found.unionByName(one)
        if found is not None:
            self.late.write(found, number)

    @staticmethod
    def _rows_in_and_late(
        before: CommittedBatch, positions: Mapping[str, Position], rows_in: int
    ) -> dict[str, int]:
        """How many rows have arrived in total, and how many of them are below a bound."""
        refused = sum(position.watermark.refused for position in positions.values())
        return {"rows_in": before.counts.get("rows_in", 0) + rows_in, "rows_late": refused}

    @staticmethod
    def _counted(committed: CommittedBatch, buffered: int) -> dict[str, int]:
        """The account after a micro-batch, with so many buffered rows, and the other counts."""
        counts = committed.counts
        account = Account(counts["rows_in"], counts["rows_used"], buffered, counts["rows_late"])
        return {
            **{name: count for name, count in counts.items() if name.startswith("rows_")},
            **account.counts,
        }


def by_kind(
    plan: LivePlan, names: Iterable[str], count: Callable[[str, TimeScale, Sequence[str]], RetainedRowsOf]
) -> tuple[dict[str, RetainedRowsOf], dict[str, RetainedRowsOf]]:
    """The counts of buffered rows, by stream, and of the rows of windows, by name.

    Parameters
    ----------
    names
        The names of the retained rows.
    count
        Counts the rows of a name, with these columns of rowtimes on this time scale.
    """
    waiting, windows = {}, {}
    for name in names:
        if name.startswith(BUFFERED):
            stream = name.removeprefix(BUFFERED)
            waiting[stream] = count(name, plan.catalog.streams[stream].scale, [ROWTIME])
        else:
            windows[name] = count(name, plan.scale, plan.rowtimes)
    return waiting, windows


def _late_row(name: str, rows: DataFrame) -> AnalysisError:
    """The error for late rows of a stream."""
    first = rows.select(REASON).first()
    assert first is not None
    reasons = {
        "punctuation": "it matches a punctuation of its producer",
        "future": "its rowtime is too far ahead of its processing time",
        "future bound": "it carries a bound that is too far ahead of its processing time",
    }
    return AnalysisError(
        f"a row of stream {name} is late: "
        + reasons.get(first[REASON], "its rowtime was below the bound when it arrived"),
        condition="LATE_ROW",
        hint="set on_late='keep', which puts late rows into a side output",
    )


def _takes_any_order(sink: Sink | IntoStream) -> bool:
    """Whether rows may be emitted before others with an earlier rowtime."""
    return not isinstance(sink, IntoStream) or sink.stream.definition.ordering.lag is None


def late_columns(name: str, stream: Stream, rows: DataFrame) -> DataFrame:
    """Late rows of a stream for users: `LATE_SCHEMA` without the micro-batch.

    Parameters
    ----------
    rows
        With the stream's columns, `ROWTIME`, `VIOLATED`, `PRODUCER` and `REASON`.
    """
    is_row = F.col(REASON) != REASONS[-1]
    return rows.select(
        F.lit(name).alias("stream"),
        F.when(is_row, F.to_json(F.struct(*map(quoted, stream.columns)))).alias("row"),
        F.expr(stream.scale.to_column(ROWTIME)).cast("string").alias("rowtime"),
        F.expr(stream.scale.to_column(VIOLATED)).cast("string").alias("bound"),
        F.col(PRODUCER).alias("producer"),
        F.col(REASON).alias("reason"),
    )
