"""The SQL around the clause of a query: the columns that the clause reads, and the SELECT over it.

    rows of the stream ─▶ columns of the clause ─▶ advance ─▶ windows or matches ─▶ SELECT

Columns that Arrow computes need no Spark job in a micro-batch, and neither does a SELECT that only selects
columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from windrow.kernels.incremental import ProgramFragment, Run, Times
from windrow.plan.arrow_types import contains
from windrow.spark.analysis.keyed_rows import travelling_schema
from windrow.spark.analysis.plan_tree import choice_of, optimized_tree
from windrow.spark.clauses.batch import explained
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.clause_operator import fragment_of
from windrow.spark.live.operators.incremental_plan import IncrementalPlan, computed_elsewhere
from windrow.spark.live.plans.clause_plan import ClausePlan
from windrow.spark.logs.session_streams import Stream

__all__ = ["AroundClause", "Choice", "chosen_of", "is_one_clause", "keyed_by", "why_not_one_clause"]

Choice: TypeAlias = Mapping[str, tuple[str, str | None]]
"""For each result column, the input column that it copies, and the field if it is one of a struct."""


def is_one_clause(plan: ClausePlan) -> bool:
    """Whether a query is a single clause over one live stream, not over a view."""
    return why_not_one_clause(plan) is None


def why_not_one_clause(plan: ClausePlan) -> str | None:
    """The part of a query beyond a single clause over one live stream; None if there is none."""
    if len(plan.read) != 1 or len(plan.clauses) != 1:
        return "several clauses, or several streams"
    (name,), (clause,) = plan.read, plan.clauses
    if plan.catalog.streams[name].live is None or clause.follows:
        return "a view"
    if clause.is_spark_per_batch:
        return "conditions that Spark evaluates over several rows"
    if clause.collated:
        return "keys with a collation"
    if any(contains(schema, "variant") for schema in (clause.waiting, clause.result)):
        return "values of type VARIANT"
    is_above = plan.statement.text.relations() == [clause.clause.key]
    return None if is_above else "a second stream outside the clause"


class AroundClause:
    """The SQL around the clause of a query for which :func:`is_one_clause` is true.

    Attributes
    ----------
    name, stream
        The stream that the query reads.
    clause
        Its clause.
    columns
        The columns of the stream.
    """

    def __init__(self, plan: ClausePlan) -> None:
        self._plan, self._spark = plan, plan.gateway.spark
        (self.name,), (self.clause,) = plan.read, plan.clauses
        self.stream: Stream = plan.catalog.streams[self.name]
        kinds = self.stream.frame.schema
        self.columns = StructType([kinds[name] for name in self.stream.columns])

    # -- before the clause -----------------------------------------------------------------------------

    @cached_property
    def before(self) -> IncrementalPlan:
        """The plan for the columns of the clause, from rows of the stream at its only leaf."""
        operators = IncrementalPlan(self._gateway(), Path("of-a-plan-alone"))
        _, rows = operators.leaf(self.columns)
        operators.output(self._keyed(operators.gateway, rows))
        return operators

    @cached_property
    def why_by_spark(self) -> str | None:
        """Why Spark computes the columns of the clause; None if that needs no Spark job."""
        if self._plan.gateway.is_connect:
            return "Spark Connect"
        return self.before.why_not or computed_elsewhere(self.before.program, takes_tables=False)

    def keyed(self, rows: pa.Table) -> pa.Table:
        """The columns of the clause, from rows of the stream."""
        return self._by_spark(rows) if self._run is None else keyed_by(self._run, rows)

    @cached_property
    def _run(self) -> Run | None:
        """The run that computes them in memory, except for values that do not fit; None if Spark computes
        all.
        """
        if self.why_by_spark is not None:
            return None

        def otherwise(fragment: ProgramFragment, read: Mapping[int, pa.Table]) -> pa.Table:
            (leaf,) = fragment.leaves
            return self._by_spark(read[leaf])

        return Run(self.before.program, otherwise)

    def _by_spark(self, rows: pa.Table) -> pa.Table:
        gateway = self._gateway()
        frame = frame_of_collected(self._spark, rows.select(self.columns.names), self.columns)
        keyed = self._keyed(gateway, frame)
        with gateway.translated():
            return keyed.toArrow()

    def _keyed(self, gateway: Gateway, rows: DataFrame) -> DataFrame:
        """The columns of the clause, from these rows of the stream."""
        fragment = fragment_of(gateway, self.clause.bound, self._rows(gateway, rows))
        return fragment.keyed(fragment.wide())

    def _rows(self, gateway: Gateway, rows: DataFrame) -> DataFrame:
        """The rows of the clause, from these of the stream."""
        gateway.frames[self.name] = rows
        with explained([self.clause.bound]):
            return gateway.sql(self.clause.clause.rows)

    # -- after it --------------------------------------------------------------------------------------

    def after(self, rows: DataFrame) -> DataFrame:
        """The output of the query for these rows of its clause."""
        return self._after(self._gateway(), rows)

    @cached_property
    def chosen(self) -> Choice | None:
        """For each output column of the query, the clause's column that it copies; None if some are
        computed.
        """
        result = self.clause.result
        if self._plan.gateway.is_connect or travelling_schema(result) != result:
            return None
        gateway = self._gateway()
        whole = self._after(gateway, self._some(result))
        if len({name.lower() for name in whole.columns}) < len(whole.columns):
            return None
        return _choice(gateway, whole, result)

    def _after(self, gateway: Gateway, rows: DataFrame) -> DataFrame:
        clause = self.clause
        fragment = fragment_of(gateway, clause.bound, self._rows(gateway, self._some(self.columns)))
        gateway.frames[clause.clause.key] = fragment.finished(rows, clause.result)
        with explained([clause.bound]):
            return gateway.sql(self._plan.statement.text)

    # -- what both need --------------------------------------------------------------------------------

    def _gateway(self) -> Gateway:
        return Gateway(self._spark, self._plan.gateway.parameters)

    def _some(self, schema: StructType) -> DataFrame:
        """Rows that Spark's planner cannot inspect."""
        if self._plan.gateway.is_connect:
            return self._spark.createDataFrame([], schema)
        return self._spark.createDataFrame(self._spark.sparkContext.emptyRDD(), schema)


def keyed_by(run: Run, rows: pa.Table) -> pa.Table:
    """The columns of a clause from rows of its stream, which :attr:`AroundClause.before` computes."""
    (found,) = run.advance({0: rows}, Times(None, 0))
    return found


def chosen_of(rows: pa.Table, choice: Choice) -> pa.Table:
    """The output of a query that only selects columns of its clause."""
    columns = [
        rows.column(column) if field is None else pc.struct_field(rows.column(column), field)
        for column, field in choice.values()
    ]
    return pa.Table.from_arrays(columns, names=list(choice))


def _choice(gateway: Gateway, frame: DataFrame, below: StructType) -> Choice | None:
    """The columns that a frame copies from the rows below; None if it does more than select."""
    plan = optimized_tree(gateway, frame)
    choice = None if plan is None else choice_of(plan)
    if choice is None or choice.below.name != "LogicalRDD":
        return None
    found = [(below.names[place], _field(below[place].dataType, field)) for place, field in choice.columns]
    kinds = [_kind(below, *origin) for origin in found]
    if kinds != [field.dataType for field in frame.schema]:
        return None
    return dict(zip(frame.columns, found, strict=True))


def _field(kind: DataType, place: int | None) -> str | None:
    """The name of a field of a struct."""
    return kind.names[place] if isinstance(kind, StructType) and place is not None else None


def _kind(schema: StructType, column: str, field: str | None) -> DataType:
    kind = schema[column].dataType
    return kind[field].dataType if field is not None and isinstance(kind, StructType) else kind
