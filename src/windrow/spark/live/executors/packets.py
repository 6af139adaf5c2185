"""The streaming DataFrame of a live query: packed entries, buckets in the state store, and their output."""

from __future__ import annotations

import hashlib
import json
import uuid
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from windrow.spark.gateway import Gateway
from windrow.spark.live.executors.bucket_task import (
    BucketTask,
    Onward,
    OnwardWork,
    TaskSide,
    TaskStream,
    Work,
)
from windrow.spark.live.executors.graphs.programs import Key
from windrow.spark.live.executors.input.marked_files import MarkedSources
from windrow.spark.live.executors.input.packing import BUCKET, DATA, LATE_AT, NOTE, PACKETS, pack
from windrow.spark.live.executors.processor import BucketProcessor
from windrow.spark.live.executors.unpacking import FILE, Form, late_rows, tables_of, written
from windrow.spark.live.input.arrivals import VIOLATED
from windrow.spark.live.input.entry_columns import (
    STREAM,
    TICKS,
    entries_of,
    in_one,
    inside,
    ticks_among,
)
from windrow.spark.live.input.file_order import ORIGIN
from windrow.spark.live.input.malformed import MALFORMED, OF_ENTRY, marked
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.logs.live_source import BOUND, PRODUCER, PTIME
from windrow.spark.logs.session_streams import REASON, ROWTIME, Stream
from windrow.spark.runtime.interpreter import map_in_arrow, transform_with_state
from windrow.spark.tasks.exchange import in_worker
from windrow.spark.tasks.to_shards import first_of_each
from windrow.streams.entries import PATTERN
from windrow.syntax.canonical_text import canonical_text
from windrow.syntax.sqltext import quoted

__all__ = ["Graph", "OnwardInput", "RetainedInput", "numbered"]

_EMITTED = f"{NOTE} string, {DATA} binary"


@dataclass(frozen=True)
class RetainedInput:
    """The input of a query from a stream at one place.

    Attributes
    ----------
    name
        The name of its state.
    stream
        The name of the stream.
    key
        The retained columns, or expressions over these, by which rows are divided; none if one bucket has all
        rows.
    labels
        The same for users.
    """

    name: str
    stream: str
    key: Key
    labels: tuple[str, ...]


@dataclass(frozen=True)
class OnwardInput:
    """The second part of a query.

    Attributes
    ----------
    work
        It.
    keys
        For each crossing leaf, the columns by which its rows are divided.
    """

    work: OnwardWork
    keys: Mapping[int, Key]


@dataclass(frozen=True)
class Graph:
    """A query on executors.

    Attributes
    ----------
    plan
        The query.
    buckets
        Into how many its rows are divided.
    envelope
        The form of its changes.
    exchanges
        How often its rows may be divided, each time by another key.
    """

    plan: LivePlan
    buckets: int
    envelope: str
    exchanges: int = field(default=2, kw_only=True)

    is_timed: ClassVar[bool] = False
    """Whether it emits by processing time."""

    @property
    def waits(self) -> bool:
        """Whether time alone causes changes, so that the query needs ticks."""
        return self.has_idle_producers

    @property
    def has_idle_producers(self) -> bool:
        """Whether producers become idle as time passes, for which other producers do not wait."""
        lives = [stream.live for _, _, stream in self.streams]
        return any(live is not None and live.idle and PRODUCER in live.declared for live in lives)

    @property
    def needs_checkpoint(self) -> str | None:
        """Why the query needs a checkpoint of ours; None if it needs none."""
        return None

    def begun(self, checkpoint: Path, *, has_begun: bool) -> Graph:  # noqa: ARG002 - others store rows there
        """The query as a checkpoint has it, which is in a folder.

        Parameters
        ----------
        has_begun
            Whether it has processed a micro-batch.
        """
        return self

    @property
    @abstractmethod
    def sides(self) -> Sequence[RetainedInput]:
        """Its inputs from its streams."""

    @property
    def onward(self) -> OnwardInput | None:
        """The second part of the query, if its rows are divided again."""
        return None

    @property
    @abstractmethod
    def result(self) -> StructType:
        """The columns of the query, whatever the form of the output."""

    def entries(
        self, frames: Mapping[str, DataFrame] | None = None, ticks: DataFrame | None = None
    ) -> tuple[DataFrame, BucketTask]:
        """The entries with computed columns, and the description for tasks.

        Parameters
        ----------
        frames
            Entries in place of the streams' own.
        ticks
            The ticks that advance processing time while no entries arrive: ``tick``, in microseconds.
        """
        return self.of_entries(self._arriving(frames, ticks))

    @abstractmethod
    def of_entries(self, arriving: DataFrame) -> tuple[DataFrame, BucketTask]:
        """The same for entries of all streams, which may be marked as malformed."""

    @abstractmethod
    def changes(self, packets: DataFrame) -> DataFrame:
        """The output, from packets: for a relation its changes, for a stream its rows."""

    @property
    @abstractmethod
    def form(self) -> Form | None:
        """The form of the output; None if Spark is needed for it."""

    @property
    @abstractmethod
    def nothing(self) -> pa.Table:
        """The output without rows, if Spark is not needed for it."""

    def changes_of(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The output for the rows of packets, in memory."""
        assert self.form is not None
        return self.form.of(pa.concat_tables(tables)) if tables else self.nothing

    def written(self, packets: DataFrame, folder: Path) -> Path | None:
        """Let a task write the output into a file of a folder; None if there is none."""
        form = self.form
        assert form is not None
        write = in_worker(lambda batches, _: written(form, folder, batches), self.plan.text)
        names = map_in_arrow(packets.coalesce(1), write, f"{FILE} string").toArrow().column(0).to_pylist()
        return folder / names[0] if names else None

    def packets(
        self,
        ticks: DataFrame | None = None,
        *,
        retains_malformed: bool = False,
        sources: MarkedSources | None = None,
    ) -> DataFrame:
        """The output of the buckets for each micro-batch: `NOTE` and `DATA`.

        Parameters
        ----------
        ticks
            As for :meth:`entries`.
        retains_malformed
            Whether malformed entries are among it, for a side output; otherwise they are errors.
        sources
            Reads the files of the streams in tasks where it can, unless malformed entries are retained.
        """
        arriving = self._arriving(None, ticks)
        entries, task = self.of_entries(marked(arriving, self.streams) if retains_malformed else arriving)
        if sources is not None and not retains_malformed:
            entries, task = sources.marking(self._gateway, entries, task, ticks, self.buckets)
        task = replace(task, start=uuid.uuid4().hex)
        sql = self.plan.text
        packed = map_in_arrow(
            entries, in_worker(lambda batches, number: pack(task, batches, number), sql), PACKETS
        )
        buckets, own = packed.groupBy(BUCKET), BucketProcessor(task, sql)
        if task.onward is None:
            return transform_with_state(buckets, own, _EMITTED)
        onward = transform_with_state(buckets, own, PACKETS).groupBy(BUCKET)
        return transform_with_state(onward, BucketProcessor(task, sql, is_onward=True), _EMITTED)

    def late(self, packets: DataFrame, place: int) -> DataFrame:
        """The late rows of a stream, from packets: its columns, `ROWTIME`, `PRODUCER`, `VIOLATED` and
        `REASON`.
        """
        _, _, stream = self.streams[place]
        schema = StructType([field for field in stream.frame.schema if field.name in stream.columns])
        whole = StructType([*schema.fields]).add(LATE_AT, LongType()).add(VIOLATED, LongType())
        whole = whole.add(REASON, StringType())
        assert stream.live is not None
        has_producer = PRODUCER in stream.live.declared
        whole = whole.add(PRODUCER, StringType()) if has_producer else whole
        made = map_in_arrow(
            packets,
            in_worker(lambda batches, _: late_rows(place, batches), self.plan.text),
            numbered(whole),
        )
        late = made.toDF(*whole.names).withColumnRenamed(LATE_AT, ROWTIME)
        return late if has_producer else late.withColumn(PRODUCER, F.lit(""))

    def malformed(self, packets: DataFrame) -> DataFrame:
        """The malformed entries, from packets."""
        read = in_worker(lambda batches, _: tables_of("malformed", batches), self.plan.text)
        return map_in_arrow(packets, read, OF_ENTRY)

    # -- what it is made of ----------------------------------------------------------------------------

    @cached_property
    def _gateway(self) -> Gateway:
        return Gateway(self.plan.gateway.spark, self.plan.gateway.parameters)

    @cached_property
    def streams(self) -> list[tuple[int, str, Stream]]:
        """The streams that are read, by number and name."""
        known = self.plan.catalog.streams
        return [(at, name, known[name]) for at, name in enumerate(sorted(self.plan.streams))]

    def _arriving(self, frames: Mapping[str, DataFrame] | None, ticks: DataFrame | None) -> DataFrame:
        """The entries of all streams and ticks, as the input of :meth:`of_entries`."""
        return in_one([*entries_of(self.streams, frames), *([] if ticks is None else [ticks_among(ticks)])])

    def _with_task(
        self, frame: DataFrame, columns: Sequence[Mapping[str, str]], work: Work
    ) -> tuple[DataFrame, BucketTask]:
        """The columns of entries that tasks read, and the task that reads them.

        Parameters
        ----------
        columns
            The retained columns of the rows of each side: names there, and in entries.
        """
        streams, own = [], self.plan.scale
        for at, name, stream in self.streams:
            live = stream.live
            assert live is not None
            bound, producer, pattern = (
                inside(at, one) if one in live.declared else None for one in (BOUND, PRODUCER, PATTERN)
            )
            streams.append(
                TaskStream(
                    name,
                    at,
                    live.ordering,
                    stream.scale.nanoseconds // own.nanoseconds,
                    inside(at, ROWTIME),
                    inside(at, PTIME),
                    bound,
                    {column: inside(at, column) for column in stream.columns},
                    producer,
                    live.idle,
                    pattern,
                    stream.rowtime,
                )
            )
        places, seen, sides = {name: at for at, name, _ in self.streams}, set[int](), []
        for side, retained in zip(self.sides, columns, strict=True):
            place = places[side.stream]
            sides.append(TaskSide(place, retained, side.key, place not in seen))
            seen.add(place)
        tick = inside(TICKS, PTIME)
        task = BucketTask(
            self._identity,
            tuple(streams),
            tuple(sides),
            work,
            tuple(name for name in ORIGIN if name in frame.columns),
            STREAM if len(streams) > 1 or tick in frame.columns else None,
            tick if tick in frame.columns else None,
            self._numbers(has_key=any(side.key for side in self.sides)),
            MALFORMED if MALFORMED in frame.columns else None,
            self._onward_task,
        )
        besides = (task.stream, task.tick, task.malformed)
        wanted = [*task.origin, *(name for name in besides if name is not None)]
        for one in task.streams:
            wanted += [one.rowtime, one.ptime]
            wanted += [name for name in (one.bound, one.producer, one.pattern) if name is not None]
            wanted += one.columns.values()
        for each in task.sides:
            wanted += each.columns.values()
        return frame.select(*map(quoted, dict.fromkeys(wanted))), task

    @property
    def _onward_task(self) -> Onward | None:
        onward = self.onward
        if onward is None:
            return None
        return Onward(onward.work, onward.keys, self._numbers(has_key=any(onward.keys.values())))

    def _numbers(self, *, has_key: bool) -> tuple[int, ...]:
        """The numbers of the buckets; one, if no key divides the rows."""
        return tuple(first_of_each(self.buckets if has_key else 1).tolist())

    @property
    def _identity(self) -> str:
        fingerprint = self.plan.fingerprint()
        known = {**fingerprint, "text": canonical_text(fingerprint["text"])}
        del known["views"]  # as they are written; their canonical texts stay
        text = json.dumps(known, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def numbered(schema: StructType) -> StructType:
    """The same types under generated names: names in a query need not be unique."""
    return StructType([StructField(f"o{at}", field.dataType) for at, field in enumerate(schema)])
