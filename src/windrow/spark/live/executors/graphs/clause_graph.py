"""The graph of a query with one WINDOW BY or MATCH_RECOGNIZE over a live stream.

    entries ─▶ buckets by PARTITION BY ─▶ columns of the clause ─▶ advance ─▶ SELECT

Buckets compute the columns of the clause from rows; Spark's SQL computes the SELECT over the clause's output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructType

from windrow.spark.analysis.arrow_columns import in_memory
from windrow.spark.analysis.keyed_rows import travelling_schema
from windrow.spark.clauses.batch import Bound, BoundWindow
from windrow.spark.live.executors.bucket_task import BucketTask
from windrow.spark.live.executors.buckets.clause import BucketClause, Chosen
from windrow.spark.live.executors.graphs.programs import Key, key_labels, keys_of
from windrow.spark.live.executors.packets import Graph, RetainedInput, numbered
from windrow.spark.live.executors.unpacking import Form, Unchanged, outputs
from windrow.spark.live.input.entry_columns import inside
from windrow.spark.live.micro_batches.around_clause import AroundClause
from windrow.spark.live.operators.ended_partitions import closings_of
from windrow.spark.live.plans.clause_plan import ClausePlan
from windrow.spark.logs.session_streams import ROWTIME
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.tasks.exchange import in_worker

__all__ = ["ClauseGraph"]


@dataclass(frozen=True)
class ClauseGraph(Graph):
    """As :class:`..packets.Graph`; made by :func:`.graph.graph_of` if nothing prevents it."""

    plan: ClausePlan

    @cached_property
    def why_not(self) -> str | None:
        """The part of the query that executors do not support; None if there is none."""
        clause = self._around.clause
        if _has_aggregates_of_spark(clause.bound):
            return "aggregates that only Spark computes"
        if self._around.why_by_spark is not None:
            return self._around.why_by_spark
        return None if self._keys is not None else "PARTITION BY what is not computed of each row alone"

    @cached_property
    def sides(self) -> Sequence[RetainedInput]:
        """The stream."""
        assert self._keys is not None
        name = f"window{self._around.clause.clause.key}"
        labels = key_labels(self._keys, {one: one for one in self._reads})
        return [RetainedInput(name, self._around.name, self._keys, labels)]

    @property
    def result(self) -> StructType:
        """The columns of the query."""
        return self.plan.outer.schema

    def of_entries(self, arriving: DataFrame) -> tuple[DataFrame, BucketTask]:
        """As :meth:`.packets.Graph.of_entries`."""
        ((place, _, _),) = self.streams
        return self._with_task(arriving, [{name: inside(place, name) for name in self._reads}], self._work)

    def changes(self, packets: DataFrame) -> DataFrame:
        """The rows that the query emits, from packets."""
        sql = travelling_schema(self._around.clause.result)
        read = in_worker(lambda batches, _: outputs(Unchanged(), batches), self.plan.text)
        return self._around.after(map_in_arrow(packets, read, numbered(sql)).toDF(*sql.names))

    @property
    def form(self) -> Form | None:
        """Columns of the clause; None if the query does more than select."""
        return None if self._around.chosen is None else Chosen(self._around.chosen)

    @property
    def nothing(self) -> pa.Table:
        """The output without rows."""
        return self.changes_of([self._around.clause.kernel.growing.plan.result.empty_table()])

    # -- what it is made of ----------------------------------------------------------------------------

    @cached_property
    def _around(self) -> AroundClause:
        return AroundClause(self.plan)

    @cached_property
    def _keys(self) -> Key | None:
        """The columns of the stream, or what is computed from each of its rows, by which rows are divided;
        None if PARTITION BY has neither.
        """
        clause = self._around.clause
        partition = clause.kernel.growing.partition
        if not partition:
            return ()
        found = {tuple(one.columns[name] for name in partition) for one in clause.keys}
        if len(found) == 1:
            return found.pop()
        rows = in_memory(StructType([self._around.columns[name] for name in self._reads]))
        (key,) = keys_of(self._around.before.program, {0: rows}, partition, {0: pa.schema([])})
        return key or None

    @cached_property
    def _reads(self) -> tuple[str, ...]:
        """The columns of the stream that buffered rows retain."""
        read = self._around.before.read(0)
        return tuple(name for name in self._around.columns.names if name in read)

    @cached_property
    def _work(self) -> BucketClause:
        columns = StructType([self._around.columns[name] for name in self._reads]).add(ROWTIME, LongType())
        around = self._around
        clause, program = around.clause, around.before.program
        rows = in_memory(columns), self.plan.rowtimes
        return BucketClause(clause.kernel, program, *rows, clause.clause.key, closings_of(self.plan.ends))


def _has_aggregates_of_spark(bound: Bound) -> bool:
    """Whether Spark computes aggregates over the kernel's output, for which it groups."""
    if isinstance(bound, BoundWindow):
        return bool(bound.draft.spark_aggregates)
    return any(leaf.of_spark is not None for leaf in bound.draft.aggregates)
