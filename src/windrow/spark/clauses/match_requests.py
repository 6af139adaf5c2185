"""Conditions of DEFINE that Spark evaluates over rows of a match, before the search for matches.

    values to evaluate ─▶ distinct values ─▶ the condition over them ─▶ results ─┐
            ▲                                                                    │
            └────────────────────────────────────────────────────────────────────┘  until there are none

Every round is a job that searches for unknown values (:mod:`windrow.kernels.patterns.requests`), and a job
that evaluates the values found, which are on the driver in between. Each round may find more, because the
results of one end threads in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, StructType

from windrow.algebra.names import ROW
from windrow.errors import NotSupportedError
from windrow.kernels.patterns.pattern_plan import (
    ANSWER,
    LABELS,
    NUMBERS,
    REQUESTED,
    Answers,
    MatchPlan,
    requested_column,
)
from windrow.kernels.patterns.requests import keys_of
from windrow.rules.match_draft import MatchDraft, SparkCondition, calls_of_spark
from windrow.spark.analysis.keyed_rows import arrow_of, travelling_schema
from windrow.spark.arrow import decode
from windrow.spark.clauses.spark_aggregates import aggregate_lists
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.syntax.sqltext import RelationText, SqlText

__all__ = ["Search", "answers_of"]

_AT_FIRST, _MORE, _MOST, _ROUNDS = 20_000, 4, 1_000_000, 50
_NUMBER = "__of_values"

Search = Callable[[MatchPlan, StructType], pa.Table]
"""The values that the kernel needs for whole partitions, or those of a micro-batch; the types are of its
result.
"""


def answers_of(
    gateway: Gateway,
    draft: MatchDraft,
    plan: MatchPlan,
    types: Mapping[str, DataType],
    run: Callable[[SqlText, DataFrame], DataFrame],
    search: Search,
) -> Answers:
    """All results that the search for matches needs.

    `types` are those of the columns, and of the aggregates that conditions read; `run` evaluates SQL over a
    relation.

    Raises
    ------
    NotSupportedError
        ``CONDITION_TOO_COSTLY``.
    """
    rounds = _Rounds(gateway, draft, types, run)
    found = rounds.searched(plan, search, of_all=True)
    if any(register.kind == "number" for register in plan.registers):
        # which number a match has follows from those before it
        found = rounds.searched(plan, search, of_all=False)
    return Answers(found)


class _Rounds:
    def __init__(
        self,
        gateway: Gateway,
        draft: MatchDraft,
        types: Mapping[str, DataType],
        run: Callable[[SqlText, DataFrame], DataFrame],
    ) -> None:
        self.gateway, self.draft, self.run = gateway, draft, run
        self.kinds = {
            item.number: {
                requested_column(item.number, place): _kind(value.column.column, types)
                for place, value in enumerate(item.reads)
            }
            for item in draft.requested
        }
        self.tables: dict[int, pa.Table] = {}
        self.count = 0

    def searched(self, plan: MatchPlan, search: Search, *, of_all: bool) -> tuple[tuple[int, pa.Table], ...]:
        """The known results, when such a search needs no others."""
        fields = [StructField(name, kind) for kinds in self.kinds.values() for name, kind in kinds.items()]
        result = StructType([StructField(REQUESTED, IntegerType()), *fields])
        schema = pa.schema([pa.field(item.name, arrow_of(item.dataType)) for item in result.fields])
        most = _AT_FIRST
        while True:
            known = tuple(self.tables.items())
            asking = replace(plan, result=schema, answers=Answers(known, most, of_all))
            with self.gateway.translated():
                requested = search(asking, result)
            if not requested.num_rows:
                return known
            self.count += 1
            for item in self.draft.requested:
                self.evaluate(item, requested)
            self.refuse_costly()
            most *= _MORE

    def evaluate(self, item: SparkCondition, requested: pa.Table) -> None:
        """Add Spark's results for the values that a condition needs."""
        kinds = self.kinds[item.number]
        rows = requested.filter(pa.compute.equal(requested.column(REQUESTED), item.number)).select(
            list(kinds)
        )
        first = {key: at for at, key in reversed(list(enumerate(keys_of(rows))))}
        rows = rows.take(pa.array(sorted(first.values()), pa.int64()))
        if not rows.num_rows:
            return
        numbered = rows.append_column(_NUMBER, pa.array(range(rows.num_rows), pa.int64()))
        schema = StructType([StructField(name, kind) for name, kind in kinds.items()])
        travelling = StructType([*travelling_schema(schema).fields, StructField(_NUMBER, LongType())])
        frame = frame_of_collected(self.gateway.spark, numbered, travelling)
        columns = {name: decode(F.col(name), kind) for name, kind in kinds.items()}
        scope = self.scope(item, frame.select(_NUMBER, *_scope(self.draft, item, columns)))
        query = SqlText.of(
            self.draft.match.prefix, f"SELECT {_NUMBER}, (", item.text, f") AS {ANSWER} FROM ",
            RelationText("scope"),
        )  # fmt: skip
        with self.gateway.translated():
            answers = self.run(query, scope).toArrow().sort_by(_NUMBER)
        found = rows.append_column(pa.field(ANSWER, pa.bool_()), answers.column(ANSWER))
        known = self.tables.get(item.number)
        self.tables[item.number] = found if known is None else pa.concat_tables([known, found])

    def scope(self, item: SparkCondition, frame: DataFrame) -> DataFrame:
        """The variables of a condition, including aggregates that the kernel does not support."""
        calls = calls_of_spark(leaf for leaf in self.draft.running if leaf.name in frame.columns)
        frame = aggregate_lists(
            calls, self.draft.match.prefix, frame, self.run, steady=self.gateway.is_steady
        )
        for value in item.reads:
            if value.column.column in calls:
                frame = frame.withColumn(
                    value.variable, F.struct(F.col(value.column.column).alias(value.field))
                )
        return frame

    def refuse_costly(self) -> None:
        """Refuse a search that would take too long."""
        rows = sum(table.num_rows for table in self.tables.values())
        if rows <= _MOST and self.count < _ROUNDS:
            return
        match = self.draft.match
        how_often = f"{_MOST:,} combinations of values" if rows > _MOST else f"values in {_ROUNDS} rounds"
        raise NotSupportedError(
            f"Spark would have to evaluate a condition of DEFINE over more than {how_often}",
            condition="CONDITION_TOO_COSTLY",
            sqlstate="54000",
            sql=match.sql,
            span=match.span,
            hint="put comparisons before the function, with AND; or add WITHIN",
        )


def _kind(column: str, types: Mapping[str, DataType]) -> DataType:
    return {LABELS: StringType(), NUMBERS: LongType()}.get(column) or types[column]


def _scope(draft: MatchDraft, item: SparkCondition, decoded: Mapping[str, Column]) -> list[Column]:
    """The variables of a condition as structs, and the columns of the current row.

    Lists that Spark aggregates are columns with the aggregates' names.
    """
    lists = calls_of_spark(draft.running)
    fields: dict[str, list[Column]] = {}
    columns = []
    for value, (_, column) in zip(item.reads, decoded.items(), strict=True):
        if value.column.column in lists:
            columns.append(column.alias(value.column.column))
            continue
        if value.variable:
            fields.setdefault(value.variable, []).append(column.alias(value.field))
        if value.variable in ("", ROW):
            columns.append(column.alias(value.field))
    return [*columns, *(F.struct(*parts).alias(name) for name, parts in fields.items())]
