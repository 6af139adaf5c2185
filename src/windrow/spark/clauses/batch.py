"""Runs windows as batch DataFrames: Spark computes the columns, sorts, and calls the kernel.

    rows ─▶ [join plan: positions] ─▶ hoisted columns ─▶ exchange and sort ─▶ kernel
         ─▶ [Spark's aggregates] ─▶ outer SELECT

The exchange is by the partition keys, in packed chunks (:mod:`windrow.spark.tasks.exchange`). One Python call
handles all partitions of a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, LongType, StructField, StructType

from windrow.algebra.bound_statement import BoundStatement
from windrow.algebra.chosen_columns import ChosenColumn, chosen_columns
from windrow.algebra.match_node import Match
from windrow.algebra.names import AGGREGATE, QUALIFIED, ROW, visible_field
from windrow.algebra.physical import Hoisted, PlanDraft, field_of
from windrow.algebra.window_node import Window
from windrow.errors import NotSupportedError, WindrowError
from windrow.kernels import slices, window_plan
from windrow.kernels.sorting import SortKey
from windrow.kernels.tasks.fragment import Fragment, halo_for, only_put_out
from windrow.kernels.tasks.task_phases import phases
from windrow.plan.arrow_types import travels_as_it_is
from windrow.rules import optimize
from windrow.rules.kernel_plan import (
    IS_LABEL,
    ROWS,
    flat,
    is_flat,
    joined_position,
    kernel_plan,
    needs_join,
)
from windrow.rules.known_types import has_plain_names
from windrow.spark.analysis.analyzer import SparkAnalyzer
from windrow.spark.analysis.keyed_rows import KeyedRows, arrow_of, travelling_schema
from windrow.spark.analysis.row_fields import as_variable, visible_type, with_visible_names
from windrow.spark.arrow import decode
from windrow.spark.clauses.join_plan import POSITION, add_positions
from windrow.spark.clauses.matching import BoundMatch, bind_match, build_match
from windrow.spark.clauses.native import CHOSEN, Native, native_frame, windows_of, with_chosen
from windrow.spark.clauses.spark_aggregates import aggregate_in_spark
from windrow.spark.errors import in_window_terms
from windrow.spark.gateway import Gateway, is_ansi
from windrow.spark.jvm.plans import rows_change_by_run
from windrow.spark.scan.file_scan import Scanned, file_scan
from windrow.spark.tasks.exchange import run_fragment
from windrow.spark.tasks.layout import estimated_rows, survey
from windrow.syntax.nodes import Side
from windrow.syntax.sqltext import RelationText, SqlText, quoted

__all__ = [
    "Bound",
    "BoundWindow",
    "WindowStage",
    "bind_clause",
    "bind_statement",
    "bind_window",
    "build_window",
    "explained",
    "refuse_streaming",
    "run_statement",
]


_UNSTEADY = "NON_DETERMINISTIC_LATERAL_SUBQUERIES"


@dataclass
class BoundWindow:
    """A window, its plan, and Spark's analysis: enough to run it and to explain it.

    Once it is built, `reads` has EXPLAIN's lines about who reads its rows, `exchanges` is the number of times
    that tasks exchange them, `has_slices` says whether tasks have slices of a partition, and `native` is
    set if Spark's OVER finds the windows.
    """

    window: Window
    draft: PlanDraft
    analyzer: SparkAnalyzer
    reads: tuple[str, ...] = ()
    exchanges: int = 1
    has_slices: bool = False
    native: Native | None = None


Bound = BoundWindow | BoundMatch
Builder = Callable[[Gateway, Bound], DataFrame]


def run_statement(
    gateway: Gateway, statement: BoundStatement, build: Builder
) -> tuple[DataFrame, tuple[Bound, ...]]:
    """The DataFrame of a statement, and its bound windows."""
    bound: list[Bound] = []
    for window in statement.windows:
        bound.append(_bound(gateway, window, bound))
        if window is statement.windows[-1] and build is build_window:
            straight = _straight(gateway, statement, bound[-1])
            if straight is not None:
                return straight, tuple(bound)
        gateway.frames[window.key] = build(gateway, bound[-1])
    try:
        with explained(bound):
            return gateway.sql(statement.text, gateway.frames), tuple(bound)
    except WindrowError as error:
        if gateway.is_steady or not error.condition.endswith(_UNSTEADY):
            raise
        gateway.is_steady = True
        return run_statement(gateway, statement, build)


def _straight(gateway: Gateway, statement: BoundStatement, bound: Bound) -> DataFrame | None:
    """The result directly from the kernel, if the statement only selects and renames its columns.

    Otherwise Spark would analyse one more query, and copy every row once more.
    """
    if isinstance(bound, BoundMatch) or needs_join(bound.draft) or bound.draft.spark_aggregates:
        return None
    chosen = chosen_columns(statement)
    return None if chosen is None else WindowStage(gateway, bound, bound.analyzer.rows).straight(chosen)


def bind_statement(
    gateway: Gateway, statement: BoundStatement, build: Builder
) -> tuple[tuple[Bound, ...], dict[str, DataFrame]]:
    """Bind and build every window of a statement, inputs first."""
    bound: list[Bound] = []
    for window in statement.windows:
        bound.append(_bound(gateway, window, bound))
        gateway.frames[window.key] = build(gateway, bound[-1])
    return tuple(bound), gateway.frames


def _bound(gateway: Gateway, window: Window | Match, before: Iterable[Bound]) -> Bound:
    """A clause of a statement, bound after those that it reads."""
    with explained(before):
        rows = gateway.sql(window.rows)
    refuse_streaming(window, rows)
    _refuse_changing_values(gateway, window)
    return bind_clause(gateway, window, rows)


class explained:  # noqa: N801 - used as a context manager, like a function
    """Reports an error in SQL over windows in terms of the window that it names."""

    def __init__(self, bound: Iterable[Bound]) -> None:
        self.bound = list(bound)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        windows = [item for item in self.bound if not isinstance(item, BoundMatch)]
        if not isinstance(error, WindrowError) or (error.span is None and len(windows) > 1):
            return
        for item in windows:
            inside = error.span is None or any(
                part.source is not None and part.offset <= error.span.start < part.offset + len(part.text)
                for part in item.window.outer.parts
                if not isinstance(part, RelationText)
            )
            if inside:
                better = in_window_terms(error, item.window, item.analyzer.fields, None)
                if better is not error:
                    raise better from None


def _refuse_changing_values(gateway: Gateway, window: Window | Match) -> None:
    """Refuse a source that changes between runs, where values of the outer query are computed separately from
    it.
    """
    if window.around is not None:
        place = window.around.locate(0, len(window.around.render()))
        if rows_change_by_run(gateway.sql(window.around)):
            raise NotSupportedError(
                "the outer query returns different rows each time, and a clause in a subquery reads them"
                " again",
                condition="NONDETERMINISTIC_QUERY",
                sql=window.sql,
                span=window.span if place is None else place[1],
                hint="store the rows of the outer query in a table first",
            )


def refuse_streaming(window: Window | Match, rows: DataFrame) -> None:
    """Refuse a clause over a streaming DataFrame that is not a stream of the session."""
    if rows.isStreaming:
        what = "MATCH_RECOGNIZE" if isinstance(window, Match) else "WINDOW BY"
        raise NotSupportedError(
            f"{what} over a streaming DataFrame that is not declared as a stream is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=window.sql,
            span=window.span,
            hint="declare its rowtime: session.stream('s', df, rowtime='ts'), then FROM s",
        )


def bind_clause(gateway: Gateway, window: Window | Match, rows: DataFrame, *, whole: bool = True) -> Bound:
    """Analyse a clause over its rows, which are complete if they are `whole`, and apply the rules."""
    if isinstance(window, Match):
        return bind_match(gateway, window, rows, whole=whole)
    return bind_window(gateway, window, rows)


def bind_window(gateway: Gateway, window: Window, rows: DataFrame) -> BoundWindow:
    """Analyse a window over its rows and apply the rules."""
    analyzer = SparkAnalyzer(gateway, window, rows)
    try:
        draft = optimize(window, analyzer)
    except WindrowError as error:
        raise error.located(window.sql) from None
    return BoundWindow(window, draft, analyzer)


def build_window(gateway: Gateway, bound: Bound) -> DataFrame:
    """One row per window: a column for each variable that is read, `w` if it is, and the aggregates.

    For MATCH_RECOGNIZE, its rows.
    """
    if isinstance(bound, BoundMatch):
        return build_match(gateway, bound)
    rows = bound.analyzer.rows
    if needs_join(bound.draft):
        rows = add_positions(gateway, bound.window, bound.draft, bound.analyzer)
    return WindowStage(gateway, bound, rows).run()


class WindowStage(KeyedRows):
    """The exchange, sort and kernel call of one window."""

    window: Window

    def __init__(self, gateway: Gateway, bound: BoundWindow, rows: DataFrame) -> None:
        super().__init__(bound.window, rows, bound.draft.shared)
        self.gateway, self.bound = gateway, bound
        self.draft, self.analyzer = bound.draft, bound.analyzer
        if POSITION in rows.columns:
            self.order = (SortKey(POSITION),)

    def run(self) -> DataFrame:
        """The windows."""
        wide = self.wide()
        types = self.types(wide)
        result = self.result(types)
        keyed = self.keyed(wide)
        scanned = file_scan(self.gateway, keyed, self.partition)
        return self.finished(self.output(keyed, scanned, types, travelling_schema(result)), result)

    def straight(self, chosen: Sequence[ChosenColumn]) -> DataFrame | None:
        """These columns of the windows, as the kernel returns them; None if Spark must do more."""
        wide = self.wide()
        types = self.types(wide)
        kernels = {field.name: field.dataType for field in self.result(types)}
        positions = self.window.positions()
        columns = []
        for column in chosen:
            source = column.source if column.field is None else flat(column.source, column.field)
            is_whole = column.source in positions or column.source.startswith(AGGREGATE)
            if source not in kernels or is_whole != (column.field is None):
                return None
            columns.append(source)
        if not has_plain_names(self.analyzer.fields) or not all(
            travels_as_it_is(kernels[source]) and visible_type(kernels[source]) == kernels[source]
            for source in columns
        ):
            return None
        names = [column.name for column in chosen]
        keyed = self.keyed(wide)
        scanned = file_scan(self.gateway, keyed, self.partition)
        crossing = None if scanned.scan is not None else estimated_rows(self.gateway, keyed)
        has_positions = any(column.source in positions for column in chosen)
        native = None if has_positions else native_frame(self.gateway, self.draft, types, crossing)
        if native is not None:
            self.bound.native = native
            self.rows = with_chosen(self.rows, native)
            wide = self.wide([CHOSEN] if native.frame.own.when is not None else [])
            fields = {flat(name, field): column for name, of in self.draft.fields for field, column in of}
            sources = [fields.get(source, source) for source in columns]
            keys = (self.partition, self.order)
            return windows_of(wide, native, self.draft, keys, list(zip(sources, names, strict=True)))
        result = [StructField(name, kernels[source]) for name, source in zip(names, columns, strict=True)]
        return self.output(keyed, scanned, types, StructType(result), tuple(columns))

    def output(
        self,
        keyed: DataFrame,
        scanned: Scanned,
        types: Mapping[str, DataType],
        result: StructType,
        columns: tuple[str, ...] | None = None,
    ) -> DataFrame:
        """The kernel's result, or these of its columns."""
        plan = self.plan(types)
        sliceable = slices.unsliceable(plan) is None and not needs_join(self.draft)
        soon = slices.halo_of(plan, self.order[0]) is not None  # slices need no exchange
        layout, scan = survey(
            self.gateway, keyed, self.partition, self.order[0], scanned, sliceable=sliceable, soon=soon
        )
        self.bound.reads = scanned.lines
        read = self.read(keyed, types)
        key = keyed.schema[self.order[0].column]
        may_be_null = key.nullable and (scan is None or not scan.is_full(key.name))
        column = pa.field(key.name, arrow_of(key.dataType), may_be_null)
        coded, halo = only_put_out(plan, read), halo_for(plan, layout, self.order[0], column)
        fragment = Fragment(plan, self.partition, self.order, read, coded, layout, scan, halo)
        self.bound.exchanges, self.bound.has_slices = len(phases(fragment)) - 1, bool(layout.sequences)
        return run_fragment(keyed, fragment, result, columns)

    def types(self, wide: DataFrame) -> dict[str, DataType]:
        """The types of the hoisted columns."""
        return {item.name: self.plain_type(item, wide) for item in self.draft.hoisted}

    def finished(self, output: DataFrame, result: StructType) -> DataFrame:
        """The windows as the statement reads them, from the output of the kernel."""
        windows = output.select(*self.outputs(result))
        if self.draft.spark_aggregates:
            keys = [name for name in windows.columns if name != ROWS]
            windows = aggregate_in_spark(
                self.gateway, self.window, self.draft.spark_aggregates, windows, keys
            )
        names = [name for name, _ in self.draft.fields] + [call.name for call in self.window.aggregates]
        return windows.select(*(F.col(quoted(name)) for name in names)) if names else windows

    def wide(self, more: Iterable[str] = ()) -> DataFrame:
        """The keys and the hoisted columns, which is all that the kernel reads, and `more` columns of the
        rows.
        """
        sorting = {*self.partition, *(key.column for key in self.order), *more}
        joined = {IS_LABEL, joined_position(Side.START), joined_position(Side.END)}
        passed = [quoted(name) for name in self.rows.columns if name in sorting | joined]
        if all(item.column is None and item.variable == ROW for item in self.draft.hoisted):
            fields = [f"{item.text.render()} AS {item.name}" for item in self.draft.hoisted]
            return self.rows.selectExpr(*passed, *fields)
        variables = {item.variable for item in self.draft.hoisted if item.variable != ROW}
        rows = [
            column
            for name in sorted(variables)
            for column in as_variable(F.col(ROW), self.analyzer.fields, name)
        ]
        scope = self.rows.select("*", *rows)
        for item in self.draft.hoisted:
            if item.column is not None:
                scope = scope.withColumn(item.name, item.column)
        passed += [item.name for item in self.draft.hoisted if item.column is not None]
        texts = [item for item in self.draft.hoisted if item.column is None]
        items = SqlText.join(
            ", ", [*map(SqlText.of, passed), *(SqlText.of(item.text, f" AS {item.name}") for item in texts)]
        )
        query = SqlText.of(self.window.prefix, "SELECT ", items, " FROM ", RelationText("scope"))
        return self.gateway.sql(query, {"scope": scope})

    def read(self, keyed: DataFrame, types: Mapping[str, DataType]) -> tuple[str, ...]:
        """The columns that the kernel reads: all except those that are only keys."""
        joined = {IS_LABEL, joined_position(Side.START), joined_position(Side.END)}
        return tuple(name for name in keyed.columns if name in types or name in joined) or (keyed.columns[0],)

    def plan(self, types: Mapping[str, DataType]) -> window_plan.WindowPlan:
        """The plan of the kernel."""
        columns = {name: arrow_of(kind) for name, kind in types.items()}
        aggregates = {
            call.name: arrow_of(self.analyzer.aggregate(call)) for call, _ in self.draft.kernel_aggregates
        }
        constants = self.analyzer.constants(dict(self.draft.constants))
        return kernel_plan(self.draft, columns, aggregates, constants, ansi=is_ansi(self.gateway))

    def result(self, types: Mapping[str, DataType]) -> StructType:
        """The output of the kernel, with Spark's types and in the order of the plan."""
        positions = self.window.positions()
        fields = []
        for name, columns in self.draft.fields:
            struct = _struct(columns, types)
            if name in positions:
                fields.append(StructField(name, LongType()))
            elif name.removeprefix(QUALIFIED) == self.window.name:
                fields.append(StructField(name, ArrayType(struct)))
            elif is_flat(self.window, name, columns):
                fields += [StructField(flat(name, field), types[column]) for field, column in columns]
            else:
                fields.append(StructField(name, struct))
        if self.draft.spark_aggregates:
            fields.append(StructField(ROWS, ArrayType(_struct(self.draft.spark_fields, types))))
        fields += [
            StructField(call.name, self.analyzer.aggregate(call)) for call, _ in self.draft.kernel_aggregates
        ]
        return StructType(fields)

    def outputs(self, result: StructType) -> list[Column]:
        """The variables and aggregates, decoded."""
        decoded = {
            field.name: decode(F.col(quoted(field.name)), field.dataType).alias(field.name)
            for field in result.fields
        }
        out = []
        for name, columns in self.draft.fields:
            if name in decoded:
                out.append(with_visible_names(decoded.pop(name), result[name].dataType).alias(name))
            else:
                fields = [
                    decoded.pop(flat(name, field)).alias(visible_field(field) or field)
                    for field, _ in columns
                ]
                out.append(F.struct(*fields).alias(name))
        return [*out, *decoded.values()]

    def plain_type(self, item: Hoisted, wide: DataFrame) -> DataType:
        """The type of a hoisted column; of a field, its full type."""
        if item.variable == ROW:
            return self.analyzer.row[field_of(item)].dataType
        return wide.schema[item.name].dataType


def _struct(fields: tuple[tuple[str, str], ...], types: Mapping[str, DataType]) -> StructType:
    return StructType([StructField(name, types[column]) for name, column in fields])
