"""The graph of CQL over windows of live streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from windrow.plan.columns import ROWS
from windrow.spark.analysis.arrow_columns import in_memory
from windrow.spark.analysis.collations import collated
from windrow.spark.live.checkpoints.stored_tables import stored_tables
from windrow.spark.live.executors.bucket_task import BucketTask
from windrow.spark.live.executors.graphs.programs import Key, key_labels, keys_of, with_tables
from windrow.spark.live.executors.packets import Graph, RetainedInput, numbered
from windrow.spark.live.executors.unpacking import Shape, outputs, rows_of_groups
from windrow.spark.live.executors.windowed import BucketWindows, OverWindows
from windrow.spark.live.input.entry_columns import STREAM, inside
from windrow.spark.live.micro_batches.windowed_columns import WindowedColumns
from windrow.spark.live.operators.envelopes import IN_MEMORY
from windrow.spark.live.operators.incremental_plan import computed_elsewhere
from windrow.spark.live.operators.window_flow import WindowFlow
from windrow.spark.live.reading.windowed_query import WindowedQuery
from windrow.spark.logs.session_streams import ROWTIME
from windrow.spark.relations.changelog import as_cql
from windrow.spark.relations.time_varying_relation import ENTER, LEAVE, columns_of
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.tasks.exchange import in_worker

__all__ = ["WindowGraph"]


@dataclass(frozen=True)
class WindowGraph(Graph):
    """As :class:`..packets.Graph`; made by :func:`.graph.graph_of`."""

    windowed: WindowedQuery
    tables: Mapping[str, DataFrame] = field(default_factory=dict)
    """The rows of the tables beside the windows as of the first start, by the names of their scans; without,
    their current rows.
    """

    @property
    def needs_checkpoint(self) -> str | None:
        """Rows leave a window beside the rows of a table that were there when they entered."""
        query = self.windowed.over_windows
        return "a table beside windows" if query is not None and query.tables else None

    def begun(self, checkpoint: Path, *, has_begun: bool) -> WindowGraph:
        """The query with the rows of its tables as of the first start."""
        query = self.windowed.over_windows
        texts = {} if query is None else query.tables
        return replace(self, tables=stored_tables(checkpoint, self._gateway, texts, has_begun=has_begun))

    @cached_property
    def sides(self) -> Sequence[RetainedInput]:
        """The windows."""
        made = []
        for side, key in zip(self.windowed.sides, self._keys, strict=True):
            made.append(RetainedInput(side.name, side.stream, key, key_labels(key, side.columns)))
        return made

    @cached_property
    def _keys(self) -> tuple[Key, ...]:
        return _keys(self.windowed) if self._operators is None else self._keys_of_operators

    @cached_property
    def why_not(self) -> str | None:
        """The part of the query that executors do not support; None if there is none."""
        if self.windowed.passes_on and self._operators is not None:
            return "rows as they arrive, joined with a table"
        if any(side.made is not None for side in self.windowed.sides):
            return "derived or recorded streams"
        if any(side.window.by_value is not None for side in self.windowed.sides):
            return "windows that move by values"
        if self.windowed.using:
            return "DIFFERENCE USING"
        if self.windowed.kind == "RSTREAM" and not self.windowed.passes_on:
            return "all rows at each instant"
        if collated(self.windowed.result):
            return "texts with a collation"  # which buckets would compare by their bytes
        return (
            None
            if self._operators is None
            else computed_elsewhere(self._operators.program, takes_tables=True)
        )

    @cached_property
    def _operators(self) -> WindowFlow | None:
        """The operators of a plan that is not a single :class:`WindowOperator`."""
        query = self.windowed.over_windows
        return (
            None if query is None else WindowFlow(self._gateway, query, Path("of-a-plan-alone"), self.tables)
        )

    @cached_property
    def _over(self) -> OverWindows | None:
        if self._operators is None:
            return None
        keys = self._windows
        reads = tuple(tuple(sorted(self._operators.read(key))) for key in keys)
        return OverWindows(self._operators.program, tuple(map(self._operators.leaf, keys)), reads)

    @property
    def _windows(self) -> list[str]:
        """The keys of the windows of such a plan, in the order of the sides."""
        query = self.windowed.over_windows
        return [] if query is None else [window.key for window in query.windows]

    @cached_property
    def _keys_of_operators(self) -> tuple[Key, ...]:
        """The columns by which rows are divided for such a plan; none if no columns work for all windows.

        Rows of a partition that is counted are in one bucket.
        """
        operators, over = self._operators, self._over
        assert operators is not None
        assert over is not None
        leaves, missing = dict[int, pa.Schema](), dict[int, pa.Schema]()
        for side, leaf, read in zip(self.windowed.sides, over.leaves, over.reads, strict=True):
            own = read if side.window.rows is None else [one for one in side.window.partition if one in read]
            leaves[leaf] = pa.schema([side.schema.field(name) for name in own])
            if side.window.rows is None:
                missing[leaf] = pa.schema([])
        return keys_of(operators.program, leaves, operators.columns, missing)

    @property
    def result(self) -> StructType:
        """The columns of the query."""
        return self.windowed.result

    def entries(
        self, frames: Mapping[str, DataFrame] | None = None, ticks: DataFrame | None = None
    ) -> tuple[DataFrame, BucketTask]:
        """As :meth:`.packets.Graph.entries`."""
        frame = self._arriving(frames, ticks)
        columns = WindowedColumns(self._gateway, self.plan.catalog, self.windowed, self.plan.scale)
        sides: dict[str, dict[str, str]] = {}
        for at, name, _ in self.streams:
            is_row = (F.col(STREAM) == at) & F.col(inside(at, ROWTIME)).isNotNull()
            frame, read = columns.reading(frame, at, name, is_row)
            for side, emitted in read.items():
                retained = columns.retained(next(one for one in self.windowed.sides if one.name == side))
                sides[side] = {inner: emitted[own] for inner, own in retained.items()}
        over = self._over
        if over is not None:
            over = replace(over, program=with_tables(over.program))
        work = BucketWindows(self.windowed.operator, self.windowed.passes_on, over)
        return self._with_task(frame, [sides[side.name] for side in self.windowed.sides], work)

    def changes(self, packets: DataFrame) -> DataFrame:
        """The output, from packets: for a relation, changes in an envelope; for a stream, its rows."""
        shape, rows = self._shape, packets
        if not shape.is_packed:
            rows = self._after(packets)
        result = shape.schema(self.windowed.result)
        made = map_in_arrow(
            rows, in_worker(lambda batches, _: outputs(shape, batches), self.plan.text), numbered(result)
        ).toDF(*result.names)
        if shape.form is not None:
            return made
        return as_cql(made, columns_of(self.windowed.names), self.plan.scale)

    def changes_of(self, tables: Sequence[pa.Table]) -> pa.Table | None:
        """The same for the rows of packets, in memory; None if Spark is needed for it."""
        shape = self._shape
        if not shape.is_packed or shape.form is None:
            return None
        if not tables:
            return in_memory(shape.schema(self.windowed.result)).empty_table()
        return shape.of(pa.concat_tables(tables))

    @cached_property
    def _shape(self) -> Shape:
        """The form of the output; unchanged if Spark makes the envelope."""
        windowed, columns = self.windowed, columns_of(self.windowed.names)
        chosen = windowed.operator.chosen if windowed.after is None else columns
        chosen = chosen if self._operators is None else self._operators.columns
        emitted = windowed.kind or (self.envelope if self.envelope in IN_MEMORY else None)
        is_net, is_packed = windowed.is_net or windowed.passes_on, windowed.after is None
        return Shape(tuple(windowed.names), tuple(chosen), self.plan.scale, emitted, is_net, is_packed)

    def _after(self, packets: DataFrame) -> DataFrame:
        """The rows that Spark computes from groups."""
        windowed = self.windowed
        assert windowed.after is not None
        schema = StructType([*windowed.groups.fields]).add(ENTER, LongType()).add(LEAVE, LongType())
        names = schema.names
        groups = map_in_arrow(
            packets, in_worker(lambda batches, _: rows_of_groups(names, batches), None), schema
        )
        made = self._gateway.sql(windowed.after, {ROWS: groups})
        return made.toDF(*columns_of(windowed.names), ENTER, LEAVE)


def _keys(windowed: WindowedQuery) -> tuple[tuple[str, ...], ...]:
    """The columns by which the rows of each window may be divided, such that each bucket can run alone.

    Rows of a counted partition are in one bucket, and so are rows of a group, rows that join, and equal rows
    of the result if one may enter as the other leaves.
    """
    operator = windowed.operator
    first, *others = operator.inputs
    limits = [None if one.window.rows is None else set(one.window.partition) for one in operator.inputs]
    if operator.joined is not None:
        pairs = [
            (left, right)
            for left, right in zip(*operator.joined, strict=True)
            if (limits[0] is None or left in limits[0]) and (limits[1] is None or right in limits[1])
        ]
        same = all(first.schema.field(one).type == others[0].schema.field(other).type for one, other in pairs)
        emitted = all((0, one) in operator.outputs or (1, other) in operator.outputs for one, other in pairs)
        if not pairs or not same or not (emitted or windowed.is_net):
            return (), ()
        left, right = zip(*pairs, strict=True)
        return left, right
    wanted = operator.key if operator.aggregates is not None else tuple(dict.fromkeys(operator.chosen))
    key = tuple(name for name in wanted if limits[0] is None or name in limits[0])
    return (key,) if windowed.is_net or set(key) <= windowed.shows else ((),)
