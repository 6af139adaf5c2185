"""The graph of a query with EMIT, whose operators are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructType

from windrow.kernels.dividing import undivided
from windrow.kernels.incremental import Program
from windrow.plan.arrow_types import pattern_schema
from windrow.plan.event_time import HIDDEN
from windrow.spark.analysis.arrow_columns import in_memory
from windrow.spark.collected import is_plain
from windrow.spark.gateway import Gateway
from windrow.spark.live.executors.bucket_task import BucketTask
from windrow.spark.live.executors.buckets.droppable_rows import DroppableRows, droppable_rows_of
from windrow.spark.live.executors.buckets.emit_punctuation import EmitPunctuation
from windrow.spark.live.executors.buckets.emitting import Emits, Judge
from windrow.spark.live.executors.buckets.onward_runs import EmitsOnward
from windrow.spark.live.executors.graphs.programs import (
    DividedTwice,
    Key,
    divided_twice,
    key_labels,
    keys_of,
    with_tables,
)
from windrow.spark.live.executors.packets import Graph, OnwardInput, RetainedInput, numbered
from windrow.spark.live.executors.unpacking import Form, Unchanged, outputs
from windrow.spark.live.input.entry_columns import inside
from windrow.spark.live.micro_batches.late_for_groups import judging
from windrow.spark.live.operators.emit_program import MARK, EmitProgram, EmitSource, first_part
from windrow.spark.live.operators.incremental_plan import IncrementalPlan, computed_elsewhere
from windrow.spark.live.operators.watermark_conditions import WatermarkConditions
from windrow.spark.live.plans.emit_flow import EmittedFlow
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.logs.session_streams import ARRIVED, ROWTIME
from windrow.spark.recorded.punctuation_times import stream_kinds
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.tasks.exchange import in_worker
from windrow.streams.entries import BEFORE, PATTERN

__all__ = ["EmitGraph"]

_NO_FILES = Path("of-a-plan-alone")


@dataclass(frozen=True)
class EmitGraph(Graph):
    """As :class:`..packets.Graph`; made by :func:`.graph.graph_of` if nothing prevents it."""

    plan: EmittedPlan

    is_timed = True

    @cached_property
    def why_not(self) -> str | None:
        """The part of the query that executors do not support; None if there is none."""
        if self._evaluation.why_not is not None:
            return self._evaluation.why_not
        program = self._program
        if not self.plan.streams.issuperset(source.stream for source in program.sources):
            return "recorded streams"
        if not is_plain(self.result):
            return "columns of nested or other complex types"
        why = next(
            filter(
                None, (computed_elsewhere(one, takes_tables=True) for one in (program.program, *self._beside))
            ),
            None,
        )
        if why is not None:
            return why
        if program.delay is not None and self._retains_rows:
            return "AFTER DELAY over retained rows"
        if self._retains_rows and not all(self._droppable.values()):
            return "retained rows that nothing can drop"
        if self._twice is not None and self._punctuation is not None:
            return "punctuation of rows that are divided by two keys"
        return None

    @cached_property
    def sides(self) -> Sequence[RetainedInput]:
        """The streams, at each of their places in the query."""
        pairs = zip(self._program.sources, self._keys, strict=True)
        return [
            RetainedInput(f"rows-{at}", one.stream, key, key_labels(key, {name: name for name in one.reads}))
            for at, (one, key) in enumerate(pairs)
        ]

    @cached_property
    def result(self) -> StructType:
        """The columns of the query."""
        schema = self.plan.query.schema
        return StructType([field for field in schema if not field.name.startswith(HIDDEN)])

    def of_entries(self, arriving: DataFrame) -> tuple[DataFrame, BucketTask]:
        """As :meth:`.packets.Graph.of_entries`."""
        places = {name: at for at, name, _ in self.streams}
        columns = [
            {own: inside(places[source.stream], own) for own in source.reads}
            for source in self._program.sources
        ]
        return self._with_task(arriving, columns, self._work)

    def changes(self, packets: DataFrame) -> DataFrame:
        """The output, from packets."""
        read, sql = (
            in_worker(lambda batches, _: outputs(Unchanged(), batches), self.plan.text),
            self._output_schema,
        )
        return map_in_arrow(packets, read, numbered(sql)).toDF(*sql.names)

    @property
    def form(self) -> Form:
        """As buckets emit it."""
        return Unchanged()

    @property
    def nothing(self) -> pa.Table:
        """The output without rows."""
        return in_memory(self._output_schema).empty_table()

    # -- what it is made of ----------------------------------------------------------------------------

    @cached_property
    def _evaluation(self) -> EmittedFlow:
        return EmittedFlow(self._gateway, self.plan, self.envelope, _NO_FILES)

    @cached_property
    def _output_schema(self) -> StructType:
        return self.plan.query.emitted(self.envelope).schema

    @property
    def waits(self) -> bool:
        """Whether time alone causes changes, so that the query needs ticks."""
        return self._program.delay is not None or super().waits

    @property
    def _program(self) -> EmitProgram:
        return self._evaluation.program

    @property
    def _beside(self) -> list[Program]:
        """The programs besides the operators."""
        conditions = [one for judges in self._judges.values() for judge in judges for one in judge.conditions]
        closed = [
            closing.program
            for one in self._droppable.values()
            for by_time, _ in (() if one is None else one.groupings)
            for closing in by_time
        ]
        return [*([] if self._mapping is None else [self._mapping]), *conditions, *closed]

    @cached_property
    def _mapping(self) -> Program | None:
        return self._evaluation.mapping.program if self._program.maps else None

    @cached_property
    def _has_state(self) -> bool:
        """Whether there is state between micro-batches."""
        program = self._program
        is_repeated = program.complete is not None or program.groups is not None
        return is_repeated or program.delay is not None or not undivided(program.program)

    @property
    def _retains_rows(self) -> bool:
        """Whether rows are retained until no change depends on them, instead of the state of operators."""
        return self._has_state and self.plan.query.timed.unbounded is None and not self._program.forgets

    @cached_property
    def _droppable(self) -> dict[str, DroppableRows | None]:
        """When retained rows of each stream are droppable; None if memory does not decide it."""
        names = [name for _, name, _ in self.streams] if self._retains_rows else []
        return {name: droppable_rows_of(self.plan, self._conditions, name) for name in names}

    @cached_property
    def _conditions(self) -> WatermarkConditions:
        def gateway() -> Gateway:
            return Gateway(self.plan.gateway.spark, self.plan.gateway.parameters)

        return WatermarkConditions(gateway, _NO_FILES)

    @cached_property
    def _work(self) -> Emits:
        schemas = tuple(map(self._schema_of, self._program.sources))
        twice, program = self._twice, self._program
        if twice is None:
            program = replace(program, program=with_tables(program.program))
        else:
            program = first_part(replace(program, program=with_tables(twice.parts.first)))
        closed = {name: one for name, one in self._droppable.items() if one is not None}
        has_state, crosses = self._has_state, twice is not None
        return Emits(
            program, schemas, self._mapping, self._judges, has_state, closed, crosses, self._punctuation
        )

    @property
    def _punctuation(self) -> EmitPunctuation | None:
        """The punctuation that the query reads; None without."""
        streams = {name: stream for _, name, stream in self.streams}
        declared = any(
            PATTERN in stream.live.declared for stream in streams.values() if stream.live is not None
        )
        if not declared or not self.plan.reads_punctuations:
            return None
        schemas = {name: pattern_schema(stream_kinds(stream)) for name, stream in streams.items()}
        times = self.plan.punctuation(dict.fromkeys(streams, ()))
        closing = tuple((name, columns) for _, name, columns in self._evaluation.closing_columns)
        return EmitPunctuation(times, schemas, closing, self.plan.places)

    def _schema_of(self, source: EmitSource) -> pa.Schema:
        """The schema of retained rows; sessions' columns decide which are droppable."""
        stream = self.plan.catalog.streams[source.stream]
        schema = StructType([stream.frame.schema[name] for name in source.reads])
        for name in (ROWTIME, ARRIVED, BEFORE):
            schema = schema.add(name, LongType())
        return in_memory(schema)

    @cached_property
    def _judges(self) -> dict[str, tuple[Judge, ...]]:
        conditions, found = self._conditions, dict[str, tuple[Judge, ...]]()
        sources = dict(zip(self.plan.query.timed.occurrences, self._program.sources, strict=True))
        for _, name, stream in self.streams:
            kind = stream.frame.schema[stream.rowtime or ""]
            rowtime = in_memory(StructType([kind])).field(0)
            judges = []
            for each in judging(self.plan, name):
                plans: list[IncrementalPlan] = [
                    conditions.planned((name, one), kind, partial(self.plan.below, one.row, one.least, name))
                    for one in self.plan.query.timed.judgings
                    if one.origin == each.place
                ]
                judges.append(Judge(sources[each], rowtime, tuple(plan.program for plan in plans)))
            found[name] = tuple(judges)
        return found

    @cached_property
    def _keys(self) -> tuple[Key, ...]:
        """The columns by which the rows of each source are divided; none if one bucket has all of them."""
        twice = self._twice
        return self._keys_of_all if twice is None else twice.first

    @cached_property
    def _keys_of_all(self) -> tuple[Key, ...]:
        """Those of the whole program."""
        program, sources = self._program, self._program.sources
        found = keys_of(program.program, *self._inputs)
        is_of_each = undivided(program.program) and program.program.beginning is None
        if not any(found) and is_of_each and program.groups is None and program.delay is None:
            return tuple(source.reads for source in sources)
        return found

    @property
    def _inputs(self) -> tuple[dict[int, pa.Schema], tuple[str, ...], dict[int, pa.Schema]]:
        """The arguments of :func:`.programs.keys_of` besides the program."""
        program, sources = self._program, self._program.sources
        schemas = {source.leaf: self._schema_of(source) for source in sources}
        leaves = {
            source.leaf: pa.schema([schemas[source.leaf].field(name) for name in source.reads])
            for source in sources
        }
        if program.delay is not None:
            _, output = program.delay
        elif program.groups is not None:
            output = program.groups
        elif program.envelope == "one-sql":
            output = program.columns
        else:
            output = tuple(column for _, column in program.visible)
        return leaves, output, dict.fromkeys(leaves, pa.schema([(MARK, pa.int64())]))

    @cached_property
    def _twice(self) -> DividedTwice | None:
        """The program in two parts, if no columns divide all rows.

        If rows are retained until no change depends on them, operators are computed again without those that
        have been dropped. Both parts would have to do so at once: such a program stays in one part.
        """
        if any(self._keys_of_all) or self.exchanges < 2 or self._retains_rows:
            return None
        leaves, output, missing = self._inputs
        return divided_twice(self._program.program, leaves, leaves, output, missing)

    @cached_property
    def onward(self) -> OnwardInput | None:
        """As :attr:`.packets.Graph.onward`."""
        twice = self._twice
        if twice is None:
            return None
        program = replace(self._program, program=with_tables(twice.parts.second), sources=())
        return OnwardInput(EmitsOnward(program, self._mapping), twice.second)
