"""The streaming DataFrame of a live query: packed entries, buckets in the state store, and their changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from windrow.errors import NotSupportedError
from windrow.plan.columns import ROWS
from windrow.spark.changelog import as_cql
from windrow.spark.exchange import in_worker
from windrow.spark.gateway import Gateway
from windrow.spark.interpreter import map_in_arrow, transform_with_state
from windrow.spark.live.arrivals import VIOLATED
from windrow.spark.live.envelopes import IN_MEMORY
from windrow.spark.live.executors.bucket import LATE_AT
from windrow.spark.live.executors.packing import BUCKET, DATA, NOTE, PACKETS, pack
from windrow.spark.live.executors.processor import BucketProcessor
from windrow.spark.live.executors.task import Task, TaskSide, TaskStream
from windrow.spark.live.executors.unpacking import Shape, late_rows, rows_of_groups, told
from windrow.spark.live.file_order import ORIGIN
from windrow.spark.live.plan import ContinuousPlan, LivePlan
from windrow.spark.live.stage_columns import StageColumns
from windrow.spark.live.stages import Side, Stage
from windrow.spark.live.steps import STREAM, entries_of, in_one, inside
from windrow.spark.live_source import BOUND, PRODUCER
from windrow.spark.streams import REASON, ROWTIME, Stream
from windrow.spark.to_cells import first_of_each
from windrow.spark.varying import ENTER, LEAVE, columns_of
from windrow.streams.entries import PATTERN
from windrow.syntax.sqltext import quoted

__all__ = ["BUCKETS_SETTING", "Graph", "graph_of", "why_not"]

BUCKETS_SETTING = "spark.windrow.live.buckets"
"""Into how many buckets the keys of a query are divided."""

_GIVEN = f"{NOTE} string, {DATA} binary"


def why_not(plan: LivePlan) -> str | None:
    """What of a query cannot be run on executors; None if it can."""
    if plan.gateway.is_connect:
        return "Spark Connect"
    if not isinstance(plan, ContinuousPlan):
        return "a query that is not CQL"
    if plan.stage is None:
        return plan.not_staged
    if plan.stage.flows is not None:
        return "more than one block over one window, or over two that are joined"
    for name in sorted(plan.streams):
        why = _why_not_stream(plan.catalog.streams[name])
        if why is not None:
            return f"{why} ({name})"
    return None


def _why_not_stream(stream: Stream) -> str | None:
    live = stream.live
    assert live is not None
    if live.identity:
        return "a named stream"
    if PRODUCER in live.given:
        return "a stream of several producers"
    if PATTERN in live.given:
        return "promises by patterns"
    if live.idle is not None:
        return "a stream that may be idle"
    return "FUTURE" if live.ordering.future is not None else None


def graph_of(plan: LivePlan, buckets: int | None = None) -> Graph:
    """The graph of a query.

    Parameters
    ----------
    buckets
        How many; without, as `BUCKETS_SETTING` says, or as many as Spark has partitions after an exchange.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_ON_EXECUTORS``.
    """
    why = why_not(plan)
    if why is not None:
        raise NotSupportedError(
            f"this query does not run on executors yet, because of {why}",
            condition="UNSUPPORTED_ON_EXECUTORS",
            sql=plan.text,
            span=plan.span,
            hint="SET spark.windrow.live.host = driver, and relation.start(…)",
        )
    assert isinstance(plan, ContinuousPlan)
    assert plan.stage is not None
    if buckets is None:
        conf = plan.gateway.spark.conf
        buckets = int(conf.get(BUCKETS_SETTING, None) or conf.get("spark.sql.shuffle.partitions") or 1)
    return Graph(plan, plan.stage, buckets)


@dataclass(frozen=True)
class Graph:
    """A query on executors; made by :func:`graph_of`."""

    plan: ContinuousPlan
    stage: Stage
    buckets: int

    @cached_property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """By which columns the rows of each window are divided; none where one bucket has all of them."""
        return _keys(self.stage)

    def shown(self, side: Side, key: Sequence[str]) -> list[str]:
        """Columns of a window as a user knows them."""
        return [side.columns.get(name, "what is computed") for name in key]

    # -- the plan --------------------------------------------------------------------------------------

    def packets(self) -> DataFrame:
        """What the buckets give for each micro-batch: `NOTE` and `DATA`."""
        entries, task = self.entries()
        sql = self.plan.text
        packed = map_in_arrow(
            entries, in_worker(lambda batches, number: pack(task, batches, number), sql), PACKETS
        )
        return transform_with_state(packed.groupBy(BUCKET), BucketProcessor(task, sql), _GIVEN)

    def changes(self, packets: DataFrame, envelope: str) -> DataFrame:
        """What changes, from packets: of a relation in the form of an envelope, of a stream its rows."""
        shape, rows = self._shape(envelope), packets
        if not shape.is_packed:
            rows = self._after(packets)
        result = shape.schema(self.stage.result)
        made = map_in_arrow(
            rows, in_worker(lambda batches, _: told(shape, batches), self.plan.text), _numbered(result)
        ).toDF(*result.names)
        if shape.form is not None:
            return made
        return as_cql(made, columns_of(self.stage.names), self.plan.clock)

    def changes_of(self, tables: Sequence[pa.Table], envelope: str) -> pa.Table | None:
        """The same of the rows of packets, in memory; None where Spark is needed for it."""
        shape = self._shape(envelope)
        if not shape.is_packed or shape.form is None:
            return None
        if not tables:
            return to_arrow_schema(shape.schema(self.stage.result)).empty_table()
        return shape.of(pa.concat_tables(tables))

    def _shape(self, envelope: str) -> Shape:
        """How changes are shown; without a form where an envelope is made of them by Spark."""
        stage, columns = self.stage, columns_of(self.stage.names)
        chosen = stage.block.chosen if stage.after is None else columns
        shown = stage.kind or (envelope if envelope in IN_MEMORY else None)
        is_net, is_packed = stage.is_net or stage.passes_on, stage.after is None
        return Shape(tuple(stage.names), tuple(chosen), self.plan.clock, shown, is_net, is_packed)

    def late(self, packets: DataFrame, place: int) -> DataFrame:
        """The late rows of a stream, from packets: its columns, `ROWTIME`, `PRODUCER`, `VIOLATED` and
        `REASON`.
        """
        _, _, stream = self.streams[place]
        schema = StructType([field for field in stream.frame.schema if field.name in stream.columns])
        whole = StructType([*schema.fields]).add(LATE_AT, LongType()).add(VIOLATED, LongType())
        whole = whole.add(REASON, StringType())
        made = map_in_arrow(
            packets,
            in_worker(lambda batches, _: late_rows(place, batches), self.plan.text),
            _numbered(whole),
        )
        return made.toDF(*whole.names).withColumnRenamed(LATE_AT, ROWTIME).withColumn(PRODUCER, F.lit(""))

    # -- what it is made of ----------------------------------------------------------------------------

    @cached_property
    def _gateway(self) -> Gateway:
        return Gateway(self.plan.gateway.spark, self.plan.gateway.parameters)

    @cached_property
    def streams(self) -> list[tuple[int, str, Stream]]:
        """Those that are read, by number and name."""
        known = self.plan.catalog.streams
        return [(at, name, known[name]) for at, name in enumerate(sorted(self.plan.streams))]

    def entries(self, frames: Mapping[str, DataFrame] | None = None) -> tuple[DataFrame, Task]:
        """The entries with what is computed of each, and what tasks are told of them.

        Parameters
        ----------
        frames
            Entries in place of the streams' own.
        """
        frame = in_one(entries_of(self.streams, frames))
        columns = StageColumns(self._gateway, self.plan.catalog, self.stage)
        sides: dict[str, dict[str, str]] = {}
        for at, name, _ in self.streams:
            is_row = (F.col(STREAM) == at) & F.col(inside(at, ROWTIME)).isNotNull()
            frame, read = columns.reading(frame, at, name, is_row)
            for side, shown in read.items():
                kept = columns.kept(next(one for one in self.stage.sides if one.name == side))
                sides[side] = {inner: shown[own] for inner, own in kept.items()}
        task = self._task(sides, tuple(name for name in ORIGIN if name in frame.columns))
        wanted = [*task.origin, *([] if task.stream is None else [task.stream])]
        for stream in task.streams:
            wanted += [stream.rowtime, *([] if stream.bound is None else [stream.bound])]
            wanted += stream.columns.values()
        for own in task.sides:
            wanted += own.columns.values()
        return frame.select(*map(quoted, dict.fromkeys(wanted))), task

    def _task(self, sides: Mapping[str, Mapping[str, str]], origin: tuple[str, ...]) -> Task:
        streams, own = [], self.plan.clock
        for at, name, stream in self.streams:
            live = stream.live
            assert live is not None
            bound = inside(at, BOUND) if BOUND in live.given else None
            ticks = stream.clock.nanoseconds // own.nanoseconds
            shown = {column: inside(at, column) for column in stream.columns}
            streams.append(TaskStream(name, at, live.ordering, ticks, inside(at, ROWTIME), bound, shown))
        places, seen, made = {name: at for at, name, _ in self.streams}, set[int](), []
        for side, key in zip(self.stage.sides, self.keys, strict=True):
            place = places[side.stream]
            made.append(TaskSide(place, sides[side.name], key, place not in seen))
            seen.add(place)
        buckets = self.buckets if any(self.keys) else 1
        return Task(
            self._identity,
            tuple(streams),
            tuple(made),
            self.stage.block,
            origin,
            STREAM if len(streams) > 1 else None,
            tuple(first_of_each(buckets).tolist()),
            self.stage.passes_on,
        )

    @property
    def _identity(self) -> str:
        told = json.dumps(self.plan.fingerprint(), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()

    def _after(self, packets: DataFrame) -> DataFrame:
        """The rows that Spark makes of groups."""
        stage = self.stage
        assert stage.after is not None
        schema = StructType([*stage.groups.fields]).add(ENTER, LongType()).add(LEAVE, LongType())
        names = schema.names
        groups = map_in_arrow(
            packets, in_worker(lambda batches, _: rows_of_groups(names, batches), None), schema
        )
        made = self._gateway.sql(stage.after, {ROWS: groups})
        return made.toDF(*columns_of(stage.names), ENTER, LEAVE)


def _numbered(schema: StructType) -> StructType:
    """The same types under names of ours: those of a query may be the same."""
    return StructType([StructField(f"o{at}", field.dataType) for at, field in enumerate(schema)])


def _keys(stage: Stage) -> tuple[tuple[str, ...], ...]:
    """By which columns the rows of each window may be divided, so that each bucket knows what it needs.

    Rows of a partition that is counted are together, rows of a group, rows that join; and equal rows of the
    result, where one may enter as the other leaves.
    """
    block = stage.block
    first, *others = block.inputs
    limits = [None if one.window.rows is None else set(one.window.partition) for one in block.inputs]
    if block.joined is not None:
        pairs = [
            (left, right)
            for left, right in zip(*block.joined, strict=True)
            if (limits[0] is None or left in limits[0]) and (limits[1] is None or right in limits[1])
        ]
        same = all(first.schema.field(one).type == others[0].schema.field(other).type for one, other in pairs)
        shown = all((0, one) in block.outputs or (1, other) in block.outputs for one, other in pairs)
        if not pairs or not same or not (shown or stage.is_net):
            return (), ()
        left, right = zip(*pairs, strict=True)
        return left, right
    wanted = block.key if block.aggregates is not None else tuple(dict.fromkeys(block.chosen))
    key = tuple(name for name in wanted if limits[0] is None or name in limits[0])
    return (key,) if stage.is_net or set(key) <= stage.shows else ((),)
