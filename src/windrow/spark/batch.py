"""Runs windows as batch DataFrames: Spark computes the columns, sorts, and calls the kernel.

    rows ─▶ [join plan: positions] ─▶ hoisted columns ─▶ exchange and sort ─▶ kernel ─▶ [Spark's aggregates] ─▶ outer SELECT

The exchange is by the partition keys, the sort is Spark's own, so ties, NULLs, NaN, collations and every
orderable type are Spark's. One Python call handles all partitions of a task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, LongType, StructField, StructType

from windrow.algebra.nodes import Statement, Window
from windrow.algebra.physical import Draft, Found
from windrow.errors import NotSupportedError, WindrowError
from windrow.kernels import plan as kernel
from windrow.kernels.aggregates import Aggregate
from windrow.rules import optimize
from windrow.spark.analyzer import SparkAnalyzer
from windrow.spark.arrow import arrow_schema, arrow_type, can_travel, contains, decode, encode, travelling_type
from windrow.spark.errors import MARK, in_window_terms
from windrow.spark.gateway import Gateway
from windrow.spark.join_plan import POSITION, add_positions, needs_join
from windrow.spark.spark_aggregates import ROWS, aggregate_in_spark
from windrow.syntax.nodes import Role, Side, Variable
from windrow.syntax.sqltext import Relation, SqlText, quoted

__all__ = ["BoundWindow", "bind_statement", "build_window", "is_ansi", "run_statement"]


@dataclass(frozen=True)
class BoundWindow:
    """A window, its plan, and what Spark was asked: enough to run it and to explain it."""

    window: Window
    draft: Draft
    analyzer: SparkAnalyzer


Builder = Callable[[Gateway, BoundWindow], DataFrame]


def run_statement(gateway: Gateway, statement: Statement, build: Builder) -> tuple[DataFrame, tuple[BoundWindow, ...]]:
    """The DataFrame of a statement, and its bound windows."""
    bound, frames = bind_statement(gateway, statement, build)
    with explained(bound):
        return gateway.sql(statement.text, frames), bound


def bind_statement(
    gateway: Gateway, statement: Statement, build: Builder
) -> tuple[tuple[BoundWindow, ...], dict[str, DataFrame]]:
    """Bind and build every window of a statement, inputs first."""
    frames: dict[str, DataFrame] = {}
    bound: list[BoundWindow] = []
    for window in statement.windows:
        with explained(bound):
            rows = gateway.sql(window.rows, frames)
        bound.append(bind_window(gateway, window, rows))
        frames[window.key] = build(gateway, bound[-1])
    return tuple(bound), frames


class explained:  # noqa: N801 - used as a context manager, like a function
    """Tells an error in SQL over windows in terms of the window that it names."""

    def __init__(self, bound: Iterable[BoundWindow]) -> None:
        self.bound = list(bound)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, WindrowError) or error.span is None:
            return
        for item in self.bound:
            inside = any(
                part.source is not None and part.offset <= error.span.start < part.offset + len(part.text)
                for part in item.window.outer.parts
                if not isinstance(part, Relation)
            )
            if inside:
                better = in_window_terms(error, item.window, item.analyzer.fields, None)
                if better is not error:
                    raise better from None


def bind_window(gateway: Gateway, window: Window, rows: DataFrame) -> BoundWindow:
    """Analyse a window over its rows and apply the rules."""
    analyzer = SparkAnalyzer(gateway, window, rows)
    try:
        draft = optimize(window, analyzer)
    except WindrowError as error:
        raise error.located(window.sql) from None
    return BoundWindow(window, draft, analyzer)


def build_window(gateway: Gateway, bound: BoundWindow) -> DataFrame:
    """One row per window: a column per variable that is read, `w` if it is, and the aggregates."""
    window, draft, analyzer = bound.window, bound.draft, bound.analyzer
    rows = analyzer.rows
    if needs_join(draft):
        rows = add_positions(gateway, bound.window, draft, analyzer)
    stage = _Stage(gateway, bound, rows)
    windows = stage.run()
    if draft.spark_aggregates:
        windows = aggregate_in_spark(gateway, bound.window, draft.spark_aggregates, windows, stage.keys)
    names = [name for name, _ in draft.fields] + [call.name for call in window.aggregates]
    return windows.select(*(F.col(quoted(name)) for name in names)) if names else windows


class _Stage:
    """The exchange, sort and kernel call of one window."""

    def __init__(self, gateway: Gateway, bound: BoundWindow, rows: DataFrame) -> None:
        self.gateway, self.bound, self.rows = gateway, bound, rows
        self.window, self.draft, self.analyzer = bound.window, bound.draft, bound.analyzer
        self.partition = [f"p{number}" for number in range(len(self.window.partition_by))]
        self.joined = needs_join(self.draft)
        self.result: list[tuple[str, DataType]] = []  # what the kernel gives, in Spark's own types
        self.keys: list[str] = []

    def run(self) -> DataFrame:
        wide = self.wide()
        sorted_ = self.sort(wide)
        plan = self.plan(wide)
        travelling = StructType([StructField(name, _travelling(kind)) for name, kind in self.result])
        out = sorted_.mapInArrow(_runner(plan), travelling)
        if any(contains(kind, "months") for _, kind in self.result):
            out = out.select(*(decode(F.col(quoted(name)), kind).alias(name) for name, kind in self.result))
        return out

    # -- before the kernel -------------------------------------------------------------------------

    def wide(self) -> DataFrame:
        """The keys and the hoisted columns: all that the kernel reads, and nothing else."""
        frame = self.rows
        aliases = {item.variable for item in self.draft.hoisted if item.variable != "r"}
        scope = frame.select("*", *(F.col("r").alias(name) for name in sorted(aliases)))
        texts = [item for item in self.draft.hoisted if item.column is None]
        for item in self.draft.hoisted:
            if item.column is not None:
                scope = scope.withColumn(item.name, item.column)
        kept = [name for name in frame.columns if name != "r"]
        kept += [item.name for item in self.draft.hoisted if item.column is not None]
        if texts:
            items = SqlText.join(", ", (SqlText.of(item.text, f" AS {item.name}") for item in texts))
            keep = "".join(f"{quoted(name)}, " for name in kept)
            query = SqlText.of(self.window.prefix, "SELECT ", keep, items, " FROM ", Relation("scope"))
            scope = self.gateway.sql(query, {"scope": scope})
        else:
            scope = scope.select(*kept)
        return scope.select(*(self.travelling(scope, name) for name in scope.columns))

    def travelling(self, frame: DataFrame, name: str) -> Column:
        kind = frame.schema[name].dataType
        if name.startswith("h") and not can_travel(kind):
            raise NotSupportedError(
                f"a value of type {kind.simpleString()} cannot be carried through a window",
                condition="UNSUPPORTED_TYPE",
                sql=self.window.sql,
                span=self.window.span,
                hint="cast it to a string or to a number in a subquery in FROM",
            )
        if name in self.partition:
            if contains(kind, "collated"):
                # equal strings of a collation differ in bytes, never in these 96 bits
                return F.concat(F.hex(F.xxhash64(name)), F.hex(F.hash(name).cast("bigint"))).alias(name)
            return encode(F.col(name), kind).alias(name)
        return encode(F.col(name), kind).alias(name) if name.startswith("h") else F.col(name)

    def sort(self, wide: DataFrame) -> DataFrame:
        exchanged = wide.repartition(*self.partition) if self.partition else wide.repartition(1)
        order: list[Column] = [F.col(name).asc() for name in self.partition]
        if self.joined:
            order.append(F.col(POSITION).asc())
        else:
            for number, (_, item) in enumerate(self.window.order_by):
                order.append(sort_key(f"o{number}", item.descending, item.nulls_first))
        unread = [f"o{number}" for number in range(len(self.window.order_by))] + [POSITION]
        return exchanged.sortWithinPartitions(*order).drop(*unread)

    # -- the kernel's plan -------------------------------------------------------------------------

    def plan(self, wide: DataFrame) -> kernel.WindowPlan:
        window, draft = self.window, self.draft
        types = {item.name: self.plain_type(item.name, wide) for item in draft.hoisted}
        variables = {variable.name: variable for variable in window.variables()}
        outputs: list[kernel.RowOutput | kernel.PositionOutput | kernel.RowsOutput] = []
        for name, fields in draft.fields:
            if name == window.name:
                outputs.append(kernel.RowsOutput(name, fields))
                self.result.append((name, ArrayType(_struct(fields, types))))
            else:
                outputs.append(self.variable_output(variables[name], fields, types))
        if draft.spark_aggregates:
            outputs.append(kernel.RowsOutput(ROWS, draft.spark_fields, markers=False))
            self.result.append((ROWS, ArrayType(_struct(draft.spark_fields, types))))
        self.keys = [name for name, _ in self.result if name != ROWS]
        aggregates = []
        for call, column in draft.kernel_aggregates:
            kind = self.analyzer.aggregate(call)
            self.result.append((call.name, kind))
            self.keys.append(call.name)
            result = arrow_type(kind)
            assert call.function is not None and result is not None
            spec = Aggregate(call.function, column, result, call.ignore_nulls, call.parameters, self.ansi)
            aggregates.append((call.name, spec))
        label = draft.predicate(Side.LABEL if window.label is not None else Side.START)
        labels = draft.labels
        if label is not None and label.typed is None:
            labels = kernel.ColumnRef("__is_label", "label" if window.label is not None else "start")
        start, end = draft.search(Side.START), draft.search(Side.END)
        result_schema = arrow_schema(StructType([StructField(name, _travelling(kind)) for name, kind in self.result]))
        return kernel.WindowPlan(
            tumbling=window.tumbling,
            partition=tuple(self.partition),
            has_label=window.label is not None,
            labels=labels,
            start=self.search(start),
            end=self.search(end),
            only_start=window.start.only,
            only_end=window.end is not None and window.end.only,
            first_only=window.label is None and window.start.unbounded,
            outputs=tuple(outputs),
            aggregates=tuple(aggregates),
            result=result_schema,
            ansi=self.ansi,
            sql=window.sql,
            constants=self.analyzer.constants(dict(draft.constants)),
        )

    @property
    def ansi(self) -> bool:
        return is_ansi(self.gateway)

    def search(self, found: Found | None) -> kernel.Search | None:
        """The search of a boundary: by the join plan's positions for all, where it is needed for one."""
        if found is None:
            return None
        if self.joined and found.search.strategy not in ("unbounded", "always"):
            return kernel.Search("given", column=f"__{found.side.value}_position")
        return found.search

    def variable_output(
        self, variable: Variable, fields: tuple[tuple[str, str], ...], types: Mapping[str, DataType]
    ) -> kernel.RowOutput | kernel.PositionOutput:
        if variable.role is Role.POSITION:
            self.result.append((variable.name, LongType()))
            return kernel.PositionOutput(variable.name, variable.side.value)
        self.result.append((variable.name, _struct(fields, types)))
        return kernel.RowOutput(variable.name, variable.side.value, variable.role.shift, fields)

    def plain_type(self, column: str, wide: DataFrame) -> DataType:
        """The type of a hoisted column before it was dressed for travelling."""
        item = next(item for item in self.draft.hoisted if item.name == column)
        if item.variable == "r":
            field = item.text.render()[3:-1].replace("``", "`")
            return self.analyzer.row[field].dataType
        return wide.schema[column].dataType


def is_ansi(gateway: Gateway) -> bool:
    """Whether the session raises errors where other modes give NULL."""
    return str(gateway.spark.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"


def sort_key(name: str, descending: bool, nulls_first: bool) -> Column:
    """The column as a sort key."""
    column = F.col(name)
    if descending:
        return column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if nulls_first else column.asc_nulls_last()


def _struct(fields: tuple[tuple[str, str], ...], types: Mapping[str, DataType]) -> StructType:
    return StructType([StructField(name, types[column]) for name, column in fields])


def _travelling(kind: DataType) -> DataType:
    match kind:
        case StructType():
            return StructType([StructField(field.name, travelling_type(field.dataType)) for field in kind.fields])
        case ArrayType(elementType=StructType() as element):
            return ArrayType(_travelling(element))
        case _:
            return travelling_type(kind)


def _runner(plan: kernel.WindowPlan) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark's workers call: the kernel, its errors marked so that the driver finds them."""
    mark = MARK

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from windrow.errors import WindrowError
        from windrow.kernels.window_by import run as kernel_run

        try:
            yield from kernel_run(plan, batches)
        except WindrowError as error:
            data = {key: getattr(error, key) for key in ("message", "condition", "sqlstate", "hint")}
            data |= {"sql": plan.sql, "span": [error.span.start, error.span.stop] if error.span else None}
            raise RuntimeError(mark + json.dumps(data)) from error

    return run


