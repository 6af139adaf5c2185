"""A plan as a time-varying relation, for whole logs at once.

Spark evaluates projections and filters, which pass on the validity of every row. Joins, groups and set
operators are kernels (:mod:`windrow.kernels.zset`). Expressions are the user's text, which Spark evaluates in
a scope in which the relations of FROM have their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from windrow.algebra.continuous import ChangelogOf, Query, Reader
from windrow.algebra.continuous import Input as QueryInput
from windrow.algebra.rewriting.time_windows_as_sql import last_instant
from windrow.algebra.time_scale import TimeScale
from windrow.errors import Span
from windrow.kernels.zset.grouped import is_compared
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.time_windows import WindowingFunction
from windrow.plan import nodes as plan
from windrow.plan.arrow_types import arrow_type
from windrow.plan.columns import ROWS, schema_of
from windrow.plan.net import net_by
from windrow.plan.reader import QueryReader
from windrow.plan.reasons import Reason
from windrow.plan.rules import applied
from windrow.plan.rules.join_marks import split_marks
from windrow.spark.analysis.schemas import SparkAnalyser
from windrow.spark.errors import raising
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import Stream
from windrow.spark.relations.bags import BagRows, Bags
from windrow.spark.relations.clauses_in_pieces import clause_in_pieces
from windrow.spark.relations.groups_of_plan import (
    Specs,
    distinct,
    evaluated,
    first,
    framed,
    grouped,
    in_sessions,
    kernel_groups,
)
from windrow.spark.relations.pairs_of_plan import joined, marked, valued
from windrow.spark.relations.time_varying_relation import TimeVarying, columns_of
from windrow.spark.tasks.keyed import can_be_keyed, run_keyed
from windrow.syntax.sqltext import SqlText

__all__ = ["plan_of", "relation_of_plan"]


def plan_of(
    gateway: Gateway,
    reader: Reader,
    query: Query,
    inputs: Mapping[str, TimeVarying],
    tables: Mapping[str, DataFrame],
) -> plan.Node | Reason:
    """The plan of a query, or the reason why it has none.

    Parameters
    ----------
    inputs, tables
        The time-varying inputs of the query and the tables, by key.
    """
    return QueryReader(reader, SparkAnalyser(gateway), _Inputs(inputs, tables)).relation(query)


def relation_of_plan(
    gateway: Gateway,
    node: plan.Node,
    scale: TimeScale,
    inputs: Mapping[str, TimeVarying],
    tables: Mapping[str, DataFrame],
) -> TimeVarying:
    """The relation of a plan whose columns pass :func:`why_not_carried`.

    Parameters
    ----------
    scale
        The unit of instants.
    inputs, tables
        The time-varying inputs of the query and the windows in it, in that unit, and the tables, by key. A
        scan reads the table itself if there is none with its name.
    """
    node = applied(node, (split_marks,))
    bags = Bags(gateway, inputs)
    lowering = _Lowering(bags, tables)
    rows = bags.temporal(lowering.rows_of(node))
    streams: dict[int, Stream] = {}
    instants: DataFrame | None = None
    for item in inputs.values():
        streams |= {id(stream): stream for stream in item.streams}
        instants = item.instants if instants is None else instants.unionAll(item.instants)
    assert instants is not None
    names = dict(zip(_ids(node), columns_of(_ids(node)), strict=True))
    by = lowering.net_by(node)
    return TimeVarying.of(
        rows.frame.select(*(column.id for column in node.columns), ENTER, LEAVE),
        scale,
        list(streams.values()),
        instants.distinct(),
        net_by=None if by is None else frozenset(names[column] for column in by),
    )


@dataclass(frozen=True)
class _Inputs:
    """The relations of names in a query whose inputs are all known."""

    inputs: Mapping[str, TimeVarying]
    tables: Mapping[str, DataFrame]

    def stream(self, name: str) -> None:
        """None: streams already have windows."""

    def view(self, name: str) -> None:
        """None: views are already relations."""

    def fields_of(self, item: QueryInput) -> tuple[Sequence[StructField], bool]:
        """The columns of an input, and whether it is time-varying."""
        if isinstance(item, ChangelogOf):
            return self.tables[item.key].schema.fields, False
        temporal = self.inputs[item.key]
        kinds = [temporal.frame.schema[column].dataType for column in temporal.columns]
        return [StructField(name, kind) for name, kind in zip(temporal.names, kinds, strict=True)], True


@dataclass
class _Lowering:
    bags: Bags
    tables: Mapping[str, DataFrame]
    known: dict[int, BagRows] = field(default_factory=dict)
    groups: dict[int, Specs | None] = field(default_factory=dict)

    def rows_of(self, node: plan.Node) -> BagRows:
        """The rows of a node, made once."""
        if id(node) not in self.known:
            self.known[id(node)] = self._made(node)
        return self.known[id(node)]

    def net_by(self, node: plan.Node) -> frozenset[str] | None:
        """The columns for which no row follows an equal one at the same instant."""

        def input_net_by(one: plan.Input | plan.StreamWindow) -> frozenset[str] | None:
            is_temporal = isinstance(one, plan.StreamWindow) or one.is_temporal
            found = self.bags.inputs[one.key].net_by if is_temporal else None
            ids = dict(zip(columns_of(_ids(one)), _ids(one), strict=True))
            return None if found is None else frozenset(ids[column] for column in found)

        def is_net(one: plan.Aggregate) -> bool:
            kinds = [arrow_type(call.column.type) for call in one.calls]
            return self.groups.get(id(one)) is not None and all(kind and is_compared(kind) for kind in kinds)

        return net_by(node, input_net_by, is_net)

    def _made(self, node: plan.Node) -> BagRows:
        bags = self.bags
        match node:
            case plan.Scan(table=SqlText() as text):
                table = self.tables[node.name] if node.name in self.tables else bags.gateway.sql(text)
                return BagRows(table.toDF(*_ids(node)), is_temporal=False)
            case plan.Input():
                if not node.is_temporal:
                    return BagRows(self.tables[node.key].toDF(*_ids(node)), is_temporal=False)
                return BagRows(self._input_frame(node, bags.inputs[node.key]), is_temporal=True)
            case plan.StreamWindow():
                return BagRows(self._input_frame(node, bags.inputs[node.key]), is_temporal=True)
            case plan.Filter():
                rows = self.rows_of(node.input)
                text = node.scope.select(SqlText.of(f"{ROWS}.*"), [one.text for one in node.conditions])
                return BagRows(bags.gateway.sql(text, {ROWS: rows.frame}), rows.is_temporal)
            case plan.Project():
                return self._projected(node, self.rows_of(node.input))
            case plan.Join():
                return joined(bags, node, self.rows_of(node.left), self.rows_of(node.right))
            case plan.Mark():
                return marked(bags, node, self.rows_of(node.left), self.rows_of(node.right))
            case plan.Value():
                return valued(bags, node, self.rows_of(node.left), self.rows_of(node.right))
            case plan.Aggregate():
                self.groups[id(node)] = kernel_groups(bags, node)
                return grouped(bags, node, self.groups[id(node)], self.rows_of)
            case plan.OneRow():
                return self._only(node)
            case plan.Pieces():
                return evaluated(bags, node, self.rows_of)
            case plan.ClauseRelation():
                return self._of_clause(node)
            case plan.Over():
                return framed(bags, node, self.rows_of, self._projected)
            case plan.TimeWindows():
                return self._windowed(node)
            case plan.Distinct():
                return distinct(bags, bags.temporal(self.rows_of(node.input)))
            case plan.SetOperation():
                return self._combined(node)
            case plan.Sort():
                return first(bags, node, self.rows_of(node.input))
            case plan.SessionWindows():
                return in_sessions(bags, node, self.rows_of(node.input))
            case plan.Scan():
                raise AssertionError("a stream without a window is not a relation")
        assert_never(node)

    def _input_frame(self, node: plan.Input | plan.StreamWindow, temporal: TimeVarying) -> DataFrame:
        """The rows of an input; a plan may read only some of its columns."""
        columns = temporal.columns
        if len(node.columns) < len(columns):
            places = dict(zip(temporal.names, columns, strict=True))
            columns = [places[column.name] for column in node.columns]
        return temporal.frame.select(*columns, ENTER, LEAVE).toDF(*_ids(node), ENTER, LEAVE)

    def _projected(self, node: plan.Project, rows: BagRows) -> BagRows:
        times = [ENTER, LEAVE] if rows.is_temporal else []
        if node.passes_only:
            columns = [F.col(one.column or "").alias(column.id) for column, one in node.outputs]
            return BagRows(rows.frame.select(*columns, *times), rows.is_temporal)
        listed = SqlText.of(node.listed, f", {plan.TIMES}") if rows.is_temporal else node.listed
        frame = self.bags.gateway.sql(node.scope.select(listed), {ROWS: rows.frame})
        return BagRows(frame.toDF(*_ids(node), *times), rows.is_temporal)

    def _of_clause(self, node: plan.ClauseRelation) -> BagRows:
        """The result of a clause over its rows at each instant."""
        rows = self.bags.temporal(self.rows_of(node.input)).frame
        named = rows.select(*_ids(node.input), ENTER, LEAVE)
        named = named.toDF(*(column.name for column in node.input.columns), ENTER, LEAVE)
        made, _ = clause_in_pieces(self.bags.gateway, node.clause, named)
        return BagRows(made.toDF(*_ids(node), ENTER, LEAVE), is_temporal=True)

    def _only(self, node: plan.OneRow) -> BagRows:
        """The only row of each key; several are an error."""
        rows, written = self.rows_of(node.input), node.written
        several = raising(
            "SCALAR_SUBQUERY_TOO_MANY_ROWS",
            "a subquery used as an expression returned more than one row",
            "select an aggregate, or add ORDER BY … LIMIT 1",
            written.source,
            Span(written.offset, written.offset + len(written.text)),
        )
        value = F.when(F.col(node.count) > 1, several).otherwise(F.col(node.value.id))
        frame = rows.frame.withColumn(node.value.id, value).drop(node.count)
        return BagRows(frame, rows.is_temporal)

    def _combined(self, node: plan.SetOperation) -> BagRows:
        bags = self.bags
        sides = [bags.temporal(self.rows_of(side)) for side in (node.left, node.right)]
        frames = [
            side.frame.select(*_ids(own), ENTER, LEAVE).toDF(*_ids(node), ENTER, LEAVE)
            for side, own in zip(sides, (node.left, node.right), strict=True)
        ]
        both = BagRows(frames[0].unionAll(frames[1]), is_temporal=True)
        if node.operator == "union" and node.all:
            return both
        if node.operator == "union" and not can_be_keyed(both.frame):
            return distinct(bags, both)
        return bags.counted(node.operator + (" all" if node.all else ""), frames)

    def _windowed(self, node: plan.TimeWindows) -> BagRows:
        """The rows with their time windows.

        Windows other than sessions are evaluated like any SELECT, in Spark's tasks, without an exchange.
        """
        if node.kind != "SESSION" and self.bags.gateway.operators is None:
            return self.rows_of(node.spelled)
        rows = self.bags.temporal(self.rows_of(node.rows))
        kinds = {column.id: column.type for column in node.rows.columns}
        scale = TimeScale.of(kinds[node.time].simpleString(), "NANOSECOND")
        if scale is None or scale.kind != kinds[node.time].simpleString() or not can_be_keyed(rows.frame):
            return self.rows_of(node.spelled)
        own = _ids(node.rows)
        added = node.columns[len(own) :]
        windows = WindowingFunction(
            node.kind, node.time, node.lengths, tuple(one.id for one in added), last_instant(scale)
        )
        result = StructType([*schema_of(node.rows.columns), *schema_of(added)])
        frame = run_keyed(self.bags.gateway, "windows", [rows.frame], node.keys, result, windows=windows)
        made = frame.select(*own, *(one.id for one in added), ENTER, LEAVE)
        return BagRows(made.toDF(*_ids(node), ENTER, LEAVE), is_temporal=True)


def _ids(node: plan.Node) -> list[str]:
    return [column.id for column in node.columns]
