"""A plan as operators over punctuated streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from windrow.kernels.punctuated import (
    GroupOperator,
    OverOperator,
    ProjectOperator,
    SessionOperator,
    SetOperator,
    SortOperator,
    SymmetricJoin,
)
from windrow.kernels.punctuated.following import Follower
from windrow.kernels.punctuated.operator_graph import Operator, OperatorGraph, OperatorNode, Place
from windrow.plan import nodes as plan
from windrow.plan.columns import ROWS, Expression, Scope, schema_of
from windrow.plan.reader.read_over import AT
from windrow.plan.reasons import Reason
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway, is_ansi
from windrow.spark.live.operators.punctuated.operators_of_plan import has_line, why_no_operator
from windrow.spark.live.operators.punctuated.row_maps import Followed, Moved, RowMap, arrow_schema
from windrow.spark.relations.aggregates_of_plan import kernel_aggregates
from windrow.syntax.sqltext import SqlText

__all__ = ["graph_of"]


def graph_of(gateway: Gateway, root: plan.Node) -> tuple[OperatorGraph, Mapping[str, SqlText]] | Reason:
    """The operators of a plan, and the queries of its tables by the names of these inputs.

    Or the part that no operator supports, and its position.
    """
    nodes = plan.walk(root)
    for node in nodes:
        why = why_no_operator(gateway, node)
        if why is not None:
            return why
    lowering = _Lowering(gateway, _merged(nodes))
    for node in nodes:
        lowering.add(node)
    return OperatorGraph(tuple(lowering.nodes)), lowering.tables


def _merged(nodes: Sequence[plan.Node]) -> set[int]:
    """The filters that one job computes together with the projection above, their only reader."""
    readers = Counter(id(below) for node in nodes for below in node.inputs)
    return {
        id(node.input)
        for node in nodes
        if isinstance(node, plan.Project)
        and isinstance(node.input, plan.Filter)
        and node.scope == node.input.scope
        and readers[id(node.input)] == 1
    }


@dataclass(frozen=True)
class SparkColumns:
    """Columns that Spark computes of ordered rows, also over windows of them.

    Attributes
    ----------
    gateway
        The session, and the parameters of the query.
    text
        The query, which returns the columns, followed by `AT`.
    read, result
        The columns of the rows, and the computed ones.
    """

    gateway: Gateway
    text: SqlText
    read: StructType
    result: StructType

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The columns, in the order of the rows."""
        schema = arrow_schema(self.result)
        if not rows.num_rows:
            return schema.empty_table()
        numbered = rows.append_column(AT, pa.array(range(rows.num_rows), pa.int64()))
        gateway = Gateway(self.gateway.spark, self.gateway.parameters)
        kinds = StructType([*self.read.fields]).add(AT, LongType())
        # in one partition, where rows with equal keys stay in their order from micro-batch to micro-batch
        frame = frame_of_collected(gateway.spark, numbered, kinds).coalesce(1)
        made = gateway.sql(self.text, {ROWS: frame})
        made = made.toDF(*(f"c{at}" for at in range(len(made.columns))))
        with gateway.translated():
            found = made.toArrow()
        found = found.sort_by(found.column_names[-1]).select(found.column_names[:-1])
        return found.rename_columns(schema.names).cast(schema)


@dataclass
class _Lowering:
    gateway: Gateway
    merged: set[int]
    nodes: list[OperatorNode] = field(default_factory=list)
    tables: dict[str, SqlText] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)

    def add(self, node: plan.Node) -> None:
        """Record the operator of a node; its inputs are already recorded."""
        if id(node) not in self.merged:
            self.places[id(node)] = self._place(node)

    def _place(self, node: plan.Node) -> Place:
        match node:
            case plan.Scan():
                return self._scan(node)
            case plan.Filter():
                return self._filter(node)
            case plan.Project():
                return self._project(node)
            case plan.Join():
                join = SymmetricJoin(node.keys, node.kind, self._condition(node))
                return self._node(node.label, join, node.left, node.right)
            case plan.Mark():
                join = SymmetricJoin(node.keys, "mark", self._condition(node), node.column.id)
                return self._node(node.label, join, node.left, node.right)
            case plan.TimeWindows():
                return self.places[id(node.spelled)]
            case plan.Aggregate():
                return self._aggregate(node)
            case plan.Over():
                return self._over(node)
            case plan.SessionWindows():
                compute = SparkColumns(self.gateway, node.text, _kinds(node.input), schema_of(node.bounds))
                begin, end = (column.id for column in node.bounds[:2])
                operator = SessionOperator(
                    node.keys, node.time, node.gap, (begin, end), compute, node.longest
                )
                return self._node(node.label, operator, node.input)
            case plan.Distinct():
                return self._node(node.label, SetOperator("distinct"), node.input)
            case plan.SetOperation():
                name = node.operator + (" all" if node.all else "")
                return self._node(node.label.split(" ALL")[0], SetOperator(name), node.left, node.right)
            case plan.Sort():
                first = SortOperator(node.keys, (), node.offset, node.limit)
                return self._node(node.label, first, node.input)
        raise AssertionError(node)

    def _node(self, label: str, operator: Operator, *inputs: plan.Node) -> int:
        return self._put(label, operator, *(self.places[id(one)] for one in inputs))

    def _put(self, label: str, operator: Operator, *places: Place) -> int:
        self.nodes.append(OperatorNode(label, operator, places))
        return len(self.nodes) - 1

    # -- rows ----------------------------------------------------------------------------------------

    def _scan(self, node: plan.Scan) -> Place:
        if node.table is None:
            sources = [f"{node.name}.{source}" for source in node.sources]
        else:
            self.tables[node.name] = node.table
            sources = [f"{node.name}_{at}" for at in range(len(node.columns))]
        pairs = tuple((column.id, source) for column, source in zip(node.columns, sources, strict=True))
        return self._put("columns", ProjectOperator(pairs), node.name)

    def _filter(self, node: plan.Filter) -> Place:
        text = node.scope.select(SqlText.of(f"{ROWS}.*"), [one.text for one in node.conditions])
        plain = tuple((column.id, column.id) for column in node.columns)
        kinds = _kinds(node.input)
        operator = RowMap(self.gateway, text, ROWS, kinds, kinds, plain, are_null=_are_null(node.conditions))
        return self._node(node.label, operator, node.input)

    def _project(self, node: plan.Project) -> Place:
        below, label = node.input, node.label
        conditions: Sequence[Expression] = ()
        if isinstance(below, plan.Filter) and id(below) in self.merged:
            conditions, label, below = below.conditions, below.label, below.input
        elif node.passes_only:
            pairs = [(column.id, one.column) for column, one in node.outputs if one.column is not None]
            return self._node(label, ProjectOperator(tuple(pairs)), below)
        text = node.scope.select(node.listed, [one.text for one in conditions])
        plain, moved, followed, widened = [], [], [], []
        for column, one in node.outputs:
            if one.column is not None:
                plain.append((column.id, one.column))
                continue
            if one.widens is not None:
                widened.append((column.id, one.widens))
            if one.rises_with is not None:
                alone = _alone(node.scope, one)
                moved.append(Moved(column.id, one.rises_with, alone))
            goes = one.follows
            if goes is not None and has_line(_type(node.input, goes.column)):
                is_prefixed = one.rises_with == goes.column
                follower = Follower(column.id, goes.column, goes.rises, goes.differs, is_prefixed)
                followed.append(Followed(follower, _alone(node.scope, one, goes.column)))
        operator = RowMap(
            self.gateway,
            text,
            ROWS,
            _kinds(below),
            _kinds(node),
            tuple(plain),
            tuple(moved),
            tuple(followed),
            tuple(widened),
            _are_null(conditions),
        )
        return self._node(label, operator, below)

    # -- several rows --------------------------------------------------------------------------------

    def _condition(self, node: plan.Join | plan.Mark) -> Callable[[pa.Table], npt.NDArray[np.bool_]] | None:
        """Which pairs a join takes, beside their keys."""
        if not node.conditions:
            return None
        both = [SqlText.of("(", one.text, ")") for one in node.conditions]
        listed = SqlText.of(SqlText.join(" AND ", both), f", {ROWS}.{AT}")
        read = schema_of([*node.left.columns, *node.right.columns])
        holds = StructType([StructField("holds", BooleanType())])
        return partial(_true, SparkColumns(self.gateway, node.scope.select(listed), read, holds))

    def _aggregate(self, node: plan.Aggregate) -> Place:
        specs = kernel_aggregates(self.gateway, node)
        assert not isinstance(specs, Reason), "asked before"
        keys = tuple((column.id, source) for column, source in node.keys)
        return self._node(node.label, GroupOperator(keys, specs), node.input)

    def _over(self, node: plan.Over) -> Place:
        kinds = {column.id: column.type for column in node.input.columns}
        calls = [call for _, call, _ in node.calls]
        looks_back = all(call.looks_back for call in calls) and all(
            has_line(kinds[key.column]) for key in node.order
        )
        reaches = [call.reach for call in calls]
        reach = None if None in reaches else max(one for one in reaches if one is not None)
        listed = SqlText.join(", ", [one.text for _, _, one in node.calls])
        text = node.scope.select(SqlText.of(listed, f", {ROWS}.{AT}"))
        compute = SparkColumns(self.gateway, text, _kinds(node.input), schema_of(c for c, _, _ in node.calls))
        totals = _totals(self.gateway, node) if looks_back else None
        operator = OverOperator(
            node.partition, node.order, looks_back, reach if looks_back else None, compute, totals
        )
        return self._node(node.label, operator, node.input)


def _true(compute: SparkColumns, rows: pa.Table) -> npt.NDArray[np.bool_]:
    """For which rows a condition is true."""
    return np.asarray(pc.fill_null(compute(rows).column(0), False))


def _are_null(conditions: Iterable[Expression]) -> tuple[tuple[str, bool], ...]:
    return tuple(one.is_null for one in conditions if one.is_null is not None)


_COUNTING = {"COUNT", "ROW_NUMBER", "RANK", "DENSE_RANK"}
_COMPARED = (ByteType, ShortType, IntegerType, LongType, DateType, TimestampType, TimestampNTZType)


def _totals(gateway: Gateway, node: plan.Over) -> tuple[tuple[str, str], ...] | None:
    """How functions over all earlier rows continue from their totals; None if one needs the rows."""
    found = []
    for column, call, _ in node.calls:
        is_sum = call.function == "SUM" and isinstance(column.type, LongType) and is_ansi(gateway)
        if call.runs and (call.function in _COUNTING or is_sum):
            found.append((column.id, "sum"))
        elif call.runs and call.function in ("MIN", "MAX") and isinstance(column.type, _COMPARED):
            found.append((column.id, call.function.lower()))
        else:
            return None
    return tuple(found)


def _alone(scope: Scope, one: Expression, *after: str) -> SqlText:
    """A query for an expression, followed by other columns."""
    listed = "".join(f", {ROWS}.{column} AS c{at}" for at, column in enumerate(after, 1))
    return scope.select(SqlText.of("(", one.text, f") AS c0{listed}"))


def _kinds(node: plan.Node) -> StructType:
    return schema_of(node.columns)


def _type(node: plan.Node, column: str) -> DataType:
    return next(one.type for one in node.columns if one.id == column)
