"""The graph of CQL over windows of live streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.spark.analysis.arrow_columns import in_memory
from windrow.spark.analysis.collations import collated
from windrow.spark.live.checkpoints.stored_tables import stored_tables
from windrow.spark.live.executors.bucket_task import BucketTask
from windrow.spark.live.executors.buckets.onward_runs import WindowsOnward
from windrow.spark.live.executors.buckets.windowed import BucketWindows, OverWindows
from windrow.spark.live.executors.graphs.programs import (
    DividedTwice,
    Key,
    divided_twice,
    key_labels,
    keys_of,
    with_tables,
)
from windrow.spark.live.executors.packets import Graph, OnwardInput, RetainedInput, numbered
from windrow.spark.live.executors.unpacking import Form, Shape, outputs
from windrow.spark.live.input.entry_columns import STREAM, inside
from windrow.spark.live.micro_batches.windowed_columns import WindowedColumns
from windrow.spark.live.operators.ended_partitions import closings_of
from windrow.spark.live.operators.envelopes import IN_MEMORY
from windrow.spark.live.operators.incremental_plan import computed_elsewhere
from windrow.spark.live.operators.window_flow import WindowFlow
from windrow.spark.live.plans.live_plan import ContinuousPlan
from windrow.spark.live.reading.closed_keys import ClosingWindows
from windrow.spark.live.reading.windowed_query import WindowedQuery
from windrow.spark.logs.session_streams import ROWTIME
from windrow.spark.relations.changelog import as_cql
from windrow.spark.relations.time_varying_relation import columns_of
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.tasks.exchange import in_worker

__all__ = ["WindowGraph"]


@dataclass(frozen=True)
class WindowGraph(Graph):
    """As :class:`..packets.Graph`; made by :func:`.graph.graph_of`."""

    plan: ContinuousPlan
    windowed: WindowedQuery
    tables: Mapping[str, DataFrame] = field(default_factory=dict)
    """The rows of the tables beside the windows as of the first start, by the names of their scans; without,
    their current rows.
    """

    @property
    def needs_checkpoint(self) -> str | None:
        """Rows leave a window beside the rows of a table that were there when they entered."""
        return "a table beside windows" if self.windowed.query.tables else None

    def begun(self, checkpoint: Path, *, has_begun: bool) -> WindowGraph:
        """The query with the rows of its tables as of the first start."""
        texts = self.windowed.query.tables
        return replace(self, tables=stored_tables(checkpoint, self._gateway, texts, has_begun=has_begun))

    @cached_property
    def sides(self) -> Sequence[RetainedInput]:
        """The windows."""
        made = []
        for side, key in zip(self.windowed.sides, self._keys, strict=True):
            made.append(RetainedInput(side.name, side.stream, key, key_labels(key, side.columns)))
        return made

    @cached_property
    def why_not(self) -> str | None:
        """The part of the query that executors do not support; None if there is none."""
        if self.windowed.passes_on and (len(self.windowed.sides) > 1 or self.windowed.query.tables):
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
        return computed_elsewhere(self._operators.program, takes_tables=True)

    @cached_property
    def _operators(self) -> WindowFlow:
        """The operators of the query."""
        if not self.tables:
            return self.windowed.flow
        return WindowFlow(self._gateway, self.windowed.query, Path("of-a-plan-alone"), self.tables)

    @cached_property
    def _over(self) -> OverWindows:
        keys = [window.key for window in self.windowed.query.windows]
        reads = tuple(tuple(sorted(self._operators.read(key))) for key in keys)
        return OverWindows(self._operators.program, tuple(map(self._operators.leaf, keys)), reads)

    @cached_property
    def _keys(self) -> tuple[Key, ...]:
        """The columns by which rows are divided; none if no columns work for all windows.

        Rows of a partition that is counted are in one bucket.
        """
        twice = self._twice
        return self._keys_of_all if twice is None else twice.first

    @cached_property
    def _keys_of_all(self) -> tuple[Key, ...]:
        """Those of the whole program."""
        leaves, missing = self._inputs
        return keys_of(self._operators.program, leaves, self._operators.columns, missing)

    @cached_property
    def _twice(self) -> DividedTwice | None:
        """The program in two parts, if no columns work for all windows."""
        if any(self._keys_of_all) or self.exchanges < 2 or self.windowed.passes_on:
            return None
        leaves, missing = self._inputs
        sides = zip(self.windowed.sides, self._over.leaves, self._over.reads, strict=True)
        whole = {leaf: pa.schema([side.schema.field(name) for name in read]) for side, leaf, read in sides}
        return divided_twice(self._operators.program, leaves, whole, self._operators.columns, missing)

    @cached_property
    def onward(self) -> OnwardInput | None:
        """As :attr:`.packets.Graph.onward`."""
        twice = self._twice
        if twice is None:
            return None
        return OnwardInput(WindowsOnward(with_tables(twice.parts.second)), twice.second)

    @property
    def _inputs(self) -> tuple[dict[int, pa.Schema], dict[int, pa.Schema]]:
        """The leaf of each window with the columns that divide its rows, and those whose rows may also be
        divided by what is computed from each.
        """
        over = self._over
        leaves, missing = dict[int, pa.Schema](), dict[int, pa.Schema]()
        for side, leaf, read in zip(self.windowed.sides, over.leaves, over.reads, strict=True):
            own = read if side.window.rows is None else [one for one in side.window.partition if one in read]
            leaves[leaf] = pa.schema([side.schema.field(name) for name in own])
            if side.window.rows is None:
                missing[leaf] = pa.schema([])
        return leaves, missing

    @property
    def result(self) -> StructType:
        """The columns of the query."""
        return self.windowed.result

    def of_entries(self, arriving: DataFrame) -> tuple[DataFrame, BucketTask]:
        """As :meth:`.packets.Graph.of_entries`."""
        frame = arriving
        columns = WindowedColumns(self._gateway, self.plan.catalog, self.windowed, self.plan.scale)
        sides: dict[str, dict[str, str]] = {}
        for at, name, _ in self.streams:
            is_row = (F.col(STREAM) == at) & F.col(inside(at, ROWTIME)).isNotNull()
            frame, read = columns.reading(frame, at, name, is_row)
            for side, emitted in read.items():
                retained = columns.retained(next(one for one in self.windowed.sides if one.name == side))
                sides[side] = {inner: emitted[own] for inner, own in retained.items()}
        windowed, twice = self.windowed, self._twice
        program = self._over.program if twice is None else twice.parts.first
        over = replace(self._over, program=with_tables(program))
        inputs = tuple(side.window_input for side in windowed.sides)
        closing = None if twice is not None else ClosingWindows.of(windowed)
        closings = {} if closing is None else closings_of(self.plan.ends)
        only_grows = windowed.only_grows and not self.plan.forgets
        work = BucketWindows(
            inputs, over, windowed.passes_on, only_grows, twice is not None, closing, closings
        )
        return self._with_task(frame, [sides[side.name] for side in self.windowed.sides], work)

    def changes(self, packets: DataFrame) -> DataFrame:
        """The output, from packets: for a relation, changes in an envelope; for a stream, its rows."""
        shape = self._shape
        result = shape.schema(self.windowed.result)
        made = map_in_arrow(
            packets, in_worker(lambda batches, _: outputs(shape, batches), self.plan.text), numbered(result)
        ).toDF(*result.names)
        if shape.form is not None:
            return made
        return as_cql(made, columns_of(self.windowed.names), self.plan.scale)

    @property
    def form(self) -> Form | None:
        """Changes in an envelope, or the rows of a stream; None if Spark makes the envelope."""
        return None if self._shape.form is None else self._shape

    @property
    def nothing(self) -> pa.Table:
        """The output without rows."""
        return in_memory(self._shape.schema(self.windowed.result)).empty_table()

    @cached_property
    def _shape(self) -> Shape:
        """The form of the output; unchanged if Spark makes the envelope."""
        windowed = self.windowed
        emitted = windowed.kind or (self.envelope if self.envelope in IN_MEMORY else None)
        is_net = windowed.flow.is_net or windowed.passes_on
        return Shape(tuple(windowed.names), tuple(self._operators.columns), self.plan.scale, emitted, is_net)
