"""Runs MATCH_RECOGNIZE as batch DataFrames.

    rows ─▶ arguments ─▶ hoisted columns ─▶ exchange and sort ─▶ kernel ─▶ SELECT of keys, measures, other
    columns

The kernel returns the values at rows and the aggregates; the expressions of MEASURES are Spark's, over its
result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, StructType

from windrow.algebra.match_node import Match
from windrow.algebra.names import ROW, visible_field
from windrow.algebra.physical import Hoisted, field_of, is_field
from windrow.errors import (
    AnalysisError,
    NotSupportedError,
    Span,
    WindrowError,
    did_you_mean,
    no_column,
)
from windrow.kernels.advance.slices import is_followed
from windrow.kernels.aggregates import AggregateSpec, supports
from windrow.kernels.patterns.pattern_plan import (
    CLASSIFIER,
    STATE,
    Aggregated,
    Answers,
    MatchNumber,
    MatchPlan,
    Measure,
    Navigation,
    PatternFrame,
)
from windrow.kernels.patterns.pattern_slices import matches_halo
from windrow.kernels.slices import Halo
from windrow.kernels.sorting import SortKey
from windrow.kernels.tasks.fragment import Fragment, halo_for
from windrow.kernels.tasks.task_phases import phases
from windrow.plan.arrow_types import arrow_type, contains
from windrow.rules.match_conditions import ConditionSource
from windrow.rules.match_draft import ARGUMENT, AggregateLeaf, MatchDraft, calls_of_spark
from windrow.rules.match_rows import draft_match
from windrow.spark.analysis.keyed_rows import (
    KeyedRows,
    arrow_of,
    refuse_unorderable,
    travelling_schema,
)
from windrow.spark.analysis.row_fields import row_type, with_distinct_names
from windrow.spark.arrow import decode
from windrow.spark.clauses.join_plan import POSITION
from windrow.spark.clauses.match_neighbours import beside, needs_positions
from windrow.spark.clauses.match_requests import Search, answers_of
from windrow.spark.clauses.spark_aggregates import aggregate_lists
from windrow.spark.gateway import Gateway, is_ansi
from windrow.spark.scan.file_scan import Scanned, file_scan
from windrow.spark.tasks.exchange import run_fragment
from windrow.spark.tasks.layout import survey
from windrow.syntax.sqltext import RelationText, SqlText, quoted
from windrow.syntax.subqueries import opens_query

__all__ = [
    "BoundMatch",
    "MatchStage",
    "MatchTypes",
    "bind_match",
    "build_match",
    "result_types",
    "selected",
]

_SCOPE = "scope"


@dataclass
class BoundMatch:
    """A clause, its plan, and Spark's analysis: enough to run it and to explain it."""

    match: Match
    draft: MatchDraft
    analyzer: MatchTypes
    reads: tuple[str, ...] = ()
    exchanges: int = 1
    has_slices: bool = False
    halo: Halo | None = None
    is_followed: bool = False
    types: dict[str, DataType] = field(default_factory=dict)


def bind_match(gateway: Gateway, match: Match, rows: DataFrame, *, whole: bool = True) -> BoundMatch:
    """Analyse a clause over its rows, which are complete if they are `whole`."""
    analyzer = MatchTypes(gateway, match, rows, whole=whole)
    try:
        draft = draft_match(match, analyzer)
    except WindrowError as error:
        raise error.located(match.sql) from None
    return BoundMatch(match, draft, analyzer)


def build_match(gateway: Gateway, bound: BoundMatch) -> DataFrame:
    """The rows that the clause returns."""
    return MatchStage(gateway, bound).run()


class MatchTypes:
    """Spark's analysis for the rules (:class:`windrow.rules.match_draft.MatchAnalyzer`)."""

    def __init__(self, gateway: Gateway, match: Match, rows: DataFrame, *, whole: bool = True) -> None:
        self.gateway, self.match, self.whole = gateway, match, whole
        self.twins = self.twins_of(rows)
        self.rows = rows = with_distinct_names(rows) if self.twins else rows
        row = rows.schema[ROW].dataType
        assert isinstance(row, StructType)
        self.row = row
        self.fields = {item.name: item.dataType.simpleString() for item in row.fields}
        self.ansi = is_ansi(gateway)
        refuse_unorderable(match, rows)

    def stands_alone(self, query: SqlText) -> bool:
        """See the protocol."""
        try:
            self.gateway.sql(SqlText.of(self.match.prefix, "SELECT * FROM ", query))
        except WindrowError:
            return False
        return True

    def kernel_supports(self, function: str, argument: SqlText, arguments: Sequence[SqlText]) -> bool:
        """See the protocol."""
        kind = self.analyse([argument], self.scope(arguments)).schema[0].dataType
        found = arrow_type(kind)
        odd = contains(kind, "collated") or contains(kind, "months")
        return found is not None and not odd and supports(function, found)

    def twins_of(self, rows: DataFrame) -> frozenset[str]:
        """The names, in lower case, that several columns of the rows have, as joins may return them."""
        names = row_type(rows).fieldNames()
        count = Counter((visible_field(name) or name).lower() for name in names)
        return frozenset(name for name, times in count.items() if times > 1)

    def ambiguous(self, name: str, span: Span) -> AnalysisError:
        """The error for a name in the clause that several columns of the rows have."""
        hint = "rename one of them in a subquery in FROM, or join by USING"
        return AnalysisError(
            f"the rows have two columns {name}",
            condition="AMBIGUOUS_REFERENCE_TO_FIELDS",
            sqlstate="42000",
            sql=self.match.sql,
            span=span,
            hint=hint if self.match.clause.frame is None else "write the relation before it: t.x, t.*",
        )

    def types_of(
        self, texts: Sequence[SqlText], arguments: Sequence[SqlText], sources: Sequence[ConditionSource]
    ) -> list[str]:
        """See the protocol."""
        schema = self.analyse(texts, self.scope(arguments, sources)).schema
        return [item.dataType.simpleString() for item in schema.fields]

    def scope(self, arguments: Sequence[SqlText], sources: Sequence[ConditionSource] = ()) -> DataFrame:
        """The rows: fields, the row as a struct, the arguments, and the sources as structs of all these."""
        scope = self.rows.select(f"{ROW}.*", "*") if self.row.fields else self.rows
        if arguments:
            items = [
                SqlText.of("(", text, f") AS {ARGUMENT}{number}") for number, text in enumerate(arguments)
            ]
            query = SqlText.of(
                self.match.prefix, "SELECT *, ", SqlText.join(", ", items), " FROM ", RelationText(_SCOPE)
            )
            scope = self.run(query, scope)
        columns = [F.col(f"{ROW}.{quoted(name)}") for name in self.fields]
        columns += [F.col(f"{ARGUMENT}{number}") for number in range(len(arguments))]
        for source in sources:
            if source.value is not None:
                kind = self.analyse([source.value], scope).schema[0].dataType
                value = F.struct(F.lit(None).cast(kind).alias("value"))
            elif source.is_classifier:
                value = F.struct(F.lit("x").alias("name"))
            else:
                value = F.struct(*columns)
            scope = scope.withColumn(source.variable.name, value)
        return scope

    def analyse(self, texts: Sequence[SqlText], scope: DataFrame) -> DataFrame:
        """These expressions over a relation."""
        items = SqlText.join(", ", (SqlText.of(text, f" AS x{number}") for number, text in enumerate(texts)))
        query = SqlText.of(self.match.prefix, "SELECT ", items, " FROM ", RelationText(_SCOPE))
        return self.run(query, scope)

    def run(self, query: SqlText, scope: DataFrame) -> DataFrame:
        """Run SQL over the rows, with errors in terms of the clause."""
        try:
            return self.gateway.sql(query, {_SCOPE: scope})
        except WindrowError as error:
            raise self.in_match_terms(error) from None

    def in_match_terms(self, error: WindrowError) -> WindrowError:
        """Add to an error about an unknown qualifier that it is not a variable."""
        if error.span is None or error.sql is None or self.is_in_query(error.span):
            return error
        if error.condition == "FIELD_NOT_FOUND":
            return self.unknown_field(error)
        if not error.condition.startswith("UNRESOLVED_COLUMN"):
            return error
        path = [part.strip("` ") for part in error.sql[error.span.start : error.span.stop].split(".")]
        known = [*self.match.members]
        if len(path) < 2:
            return self.unknown_field(error)
        if path[0] in known:
            return error
        return AnalysisError(
            f"variable {path[0]} is not in PATTERN",
            condition="UNKNOWN_VARIABLE",
            sqlstate="42703",
            sql=error.sql,
            span=error.span,
            hint=did_you_mean(path[0].upper(), known) or f"use one of {', '.join(known)}",
        )

    def is_in_query(self, span: Span) -> bool:
        """Whether a position is in a subquery of the clause, which has its own names."""
        tokens = self.match.tokens
        at = next((at for at, token in enumerate(tokens.tokens) if token.start == span.start), None)
        while at is not None and at >= 0 and tokens[at].start > self.match.span.start:
            if opens_query(tokens, at):
                return True
            at = tokens.parent[at]
        return False

    def unknown_field(self, error: WindrowError) -> WindrowError:
        """The error for a column of a variable that the rows do not have."""
        tokens = self.match.tokens
        assert error.span is not None
        starts = [token.start for token in tokens.tokens]
        if error.span.start not in starts:
            return error
        first = starts.index(error.span.start)
        stop = first + 1
        while tokens.is_symbol(stop, ".") and stop + 1 < len(tokens) and tokens[stop + 1].is_name:
            stop += 2
        unknown = tokens[stop - 1].name
        if unknown.lower() in self.twins:
            return self.ambiguous(unknown, tokens.span(first, stop))
        visible = [name for name in self.fields if visible_field(name) is not None]
        span = tokens.span(first, stop)
        return no_column("rows have", unknown, visible, condition="UNKNOWN_FIELD", sql=error.sql, span=span)

    def constants(self, draft: MatchDraft) -> pa.Table:
        """The values of constants and of expressions over missing rows: a table of one row."""
        if not draft.constants:
            return pa.table({})
        scope = self.scope(draft.arguments, draft.sources)
        one = self.gateway.spark.sql("SELECT 1 AS __one")
        nothing = F.lit(None)
        nulls = [nothing.cast(item.dataType).alias(item.name) for item in scope.schema.fields]
        frame = self.analyse([text for _, text in draft.constants], one.select(*nulls))
        with self.gateway.translated():
            table = frame.toArrow()
        return table.rename_columns([name for name, _ in draft.constants])

    def aggregate(self, leaf: AggregateLeaf, scope: DataFrame) -> DataType:
        """The type of an aggregate in Spark."""
        return self.analyse([leaf.text], scope).schema[0].dataType


class MatchStage(KeyedRows):
    """The exchange, sort and kernel call of one clause."""

    def __init__(self, gateway: Gateway, bound: BoundMatch) -> None:
        super().__init__(bound.match, bound.analyzer.rows, bound.draft.shared)
        self.gateway, self.bound = gateway, bound
        self.match, self.draft, self.analyzer = bound.match, bound.draft, bound.analyzer
        self.by_position = self.analyzer.whole and needs_positions(self.draft)
        if self.by_position:
            self.order = (SortKey(POSITION),)

    def run(self) -> DataFrame:
        """The rows that the clause returns."""
        wide = self.wide()
        types = self.types(wide)
        result = self.result(types)
        keyed = self.keyed(wide)
        plan = self.plan(result)
        if self.draft.requested and not self.gateway.plan_only:
            plan = replace(plan, answers=self.answers(plan, keyed, types))
        scanned = file_scan(self.gateway, keyed, self.partition)
        self.bound.halo, self.bound.is_followed = matches_halo(plan), is_followed(plan)
        sliceable = self.bound.halo is not None or self.bound.is_followed
        layout, scan = survey(
            self.gateway, keyed, self.partition, self.order[0], scanned, sliceable=sliceable, soon=True
        )
        self.bound.reads = scanned.lines
        key = pa.field(self.order[0].column, pa.null())
        halo = halo_for(plan, layout, self.order[0], key)
        read = tuple(name for name in keyed.columns if name in types) or (keyed.columns[0],)
        fragment = Fragment(plan, self.partition, self.order, read, frozenset(), layout, scan, halo)
        self.bound.exchanges, self.bound.has_slices = len(phases(fragment)) - 1, bool(layout.sequences)
        output = run_fragment(keyed, fragment, travelling_schema(result))
        return self.finished(output, result)

    def answers(self, plan: MatchPlan, keyed: DataFrame, types: Mapping[str, DataType]) -> Answers:
        """Spark's results for the conditions that it evaluates, by jobs that run now."""
        layout, _ = survey(self.gateway, keyed, self.partition, self.order[0], Scanned(), sliceable=False)
        read = tuple(name for name in keyed.columns if name in types) or (keyed.columns[0],)

        def search(asking: MatchPlan, result: StructType) -> pa.Table:
            fragment = Fragment(asking, self.partition, self.order, read, frozenset(), layout)
            return run_fragment(keyed, fragment, travelling_schema(result)).toArrow()

        return self.answers_of(plan, types, search)

    def answers_of(self, plan: MatchPlan, types: Mapping[str, DataType], search: Search) -> Answers:
        """Spark's results for the conditions that it evaluates, for all values that a search needs."""
        scope = self.analyzer.scope(self.draft.arguments)
        running = {item.name: self.analyzer.aggregate(item, scope) for item in self.draft.running}
        return answers_of(self.gateway, self.draft, plan, {**types, **running}, self.analyzer.run, search)

    def types(self, wide: DataFrame) -> dict[str, DataType]:
        """The types of the hoisted columns."""
        return {item.name: self.plain_type(item, wide) for item in self.draft.hoisted}

    def finished(self, output: DataFrame, result: StructType) -> DataFrame:
        """The rows as the statement reads them, from the output of the kernel."""
        decoded = [decode(F.col(item.name), item.dataType).alias(item.name) for item in result.fields]
        return selected(self.bound, output.select(*decoded))

    def wide(self) -> DataFrame:
        """The keys and the hoisted columns: all that the kernel reads, and nothing else."""
        used = {item.variable for item in self.draft.hoisted}
        sources = [source for source in self.draft.sources if source.variable.name in used]
        scope = self.analyzer.scope(self.draft.arguments, sources)
        if self.by_position:
            scope = beside(self.match, self.draft, self.analyzer.row, scope)
        sorting = {*self.partition, *(key.column for key in self.order)}
        passed = [SqlText.of(quoted(name)) for name in [*self.rows.columns, POSITION] if name in sorting]
        items = [*passed, *(SqlText.of(item.text, f" AS {item.name}") for item in self.draft.hoisted)]
        query = SqlText.of(
            self.match.prefix, "SELECT ", SqlText.join(", ", items), " FROM ", RelationText(_SCOPE)
        )
        return self.analyzer.run(query, scope)

    def plain_type(self, item: Hoisted, wide: DataFrame) -> DataType:
        """The type of a hoisted column; of a field, its full type."""
        if is_field(item):
            return self.analyzer.row[field_of(item)].dataType
        return wide.schema[item.name].dataType

    def plan(self, result: StructType) -> MatchPlan:
        """The plan of the kernel."""
        draft, clause = self.draft, self.match.clause
        target = clause.skip.target
        measures: list[Measure] = [*draft.values, *(MatchNumber(name) for name in draft.numbers)]
        for item in draft.aggregates:
            kind = arrow_of(result[item.name].dataType)
            spec = self.spec(item, kind)
            members = self.match.members_of(item.leaf.variable)
            measures.append(Aggregated(item.name, members, item.leaf.final and clause.all_rows, spec))
        outputs = enumerate(column for _, column in (*draft.before, *draft.after))
        schema = pa.schema([pa.field(item.name, arrow_of(item.dataType)) for item in result.fields])
        return MatchPlan(
            self.match.program, self.match.labels, draft.conditions, draft.registers, clause.skip.kind,
            self.match.members[target] if target is not None else frozenset(),
            clause.all_rows, clause.shows_empty, clause.with_unmatched,
            tuple((f"__f{number}", column) for number, column in outputs), tuple(measures),
            tuple(self.running()), schema,
            self.analyzer.ansi, self.match.sql, (clause.skip.span.start, clause.skip.span.stop),
            self.analyzer.constants(draft), clause.every, draft.duration,
            None if clause.frame is None else PatternFrame(clause.frame.following, clause.frame.seek),
            self.match.tree, draft.by_label, draft.of_names,
        )  # fmt: skip

    def running(self) -> Iterator[tuple[str, AggregateSpec]]:
        """The aggregates that conditions read."""
        scope = self.analyzer.scope(self.draft.arguments)
        for item in self.draft.running:
            yield item.name, self.spec(item, arrow_of(self.analyzer.aggregate(item, scope)))

    def spec(self, item: AggregateLeaf, kind: pa.DataType) -> AggregateSpec:
        """An aggregate of the kernel's plan."""
        return AggregateSpec(item.function, item.column, kind, item.ignores_nulls, ansi=self.analyzer.ansi)

    def result(self, types: Mapping[str, DataType]) -> StructType:
        """The output of the kernel, with Spark's types."""
        types = {**types, **{name: types[columns[0]] for name, columns in self.draft.by_label}}
        fields = [
            StructField(f"__f{number}", types[column])
            for number, (_, column) in enumerate((*self.draft.before, *self.draft.after))
        ]
        for value in self.draft.values:
            fields.append(StructField(value.name, _value_type(value, types)))
        fields += [StructField(name, LongType()) for name in self.draft.numbers]
        scope = self.analyzer.scope(self.draft.arguments)
        for item in self.draft.running:
            self.refuse_unknown(item, types)
        for item in self.draft.aggregates:
            self.refuse_unknown(item, types)
            fields.append(StructField(item.name, self.analyzer.aggregate(item, scope)))
        fields.append(StructField(STATE, IntegerType()))
        return StructType(fields)

    def refuse_unknown(self, item: AggregateLeaf, types: Mapping[str, DataType]) -> None:
        """Refuse aggregates that the kernel does not support for this type."""
        kind: DataType = (
            StringType() if item.column == CLASSIFIER else types.get(item.column or "", LongType())
        )
        found = arrow_type(kind)
        odd = contains(kind, "months") or (item.of_spark is None and contains(kind, "collated"))
        if found is None or odd or not supports(item.function, found):
            function = self.match.tokens[item.leaf.call[0]].text
            raise NotSupportedError(
                f"aggregate {function} of {kind.simpleString()} is not supported",
                condition="UNSUPPORTED_MEASURE",
                sql=self.match.sql,
                span=self.match.tokens.span(*item.leaf.range),
                hint="cast the argument, or aggregate the rows of ALL ROWS PER MATCH in an outer query",
            )


def _value_type(value: Navigation, types: Mapping[str, DataType]) -> DataType:
    return StringType() if value.column == CLASSIFIER else types[value.column]


def result_types(gateway: Gateway, bound: BoundMatch) -> StructType:
    """The output of the kernel, before it is encoded."""
    fragment = MatchStage(gateway, bound)
    wide = fragment.wide()
    return fragment.result({item.name: fragment.plain_type(item, wide) for item in bound.draft.hoisted})


def selected(bound: BoundMatch, frame: DataFrame) -> DataFrame:
    """The result: keys, measures and other columns, over the output of the kernel."""
    match, draft = bound.match, bound.draft
    calls = calls_of_spark(draft.aggregates)
    frame = aggregate_lists(
        calls, match.prefix, frame, bound.analyzer.run, steady=bound.analyzer.gateway.is_steady
    )
    scope = frame.select(*frame.columns, *(F.col(value).alias(name) for name, value in draft.scope))
    names = [name for name, _ in (*draft.before, *draft.after)]
    visible = (visible_field(name) or name for name in names)
    columns = [SqlText.of(f"__f{number} AS {quoted(name)}") for number, name in enumerate(visible)]
    measures = []
    for name, text in draft.texts:
        whole = SqlText.of("(", text, ")")
        if match.clause.with_unmatched and name not in match.functions:
            whole = SqlText.of(f"CASE WHEN {STATE} < 2 THEN ", whole, " END")
        measures.append(SqlText.of(whole, f" AS {quoted(name)}"))
    split = len(draft.before)
    items = [*columns[:split], *measures, *columns[split:], SqlText.of(STATE)]
    query = SqlText.of(match.prefix, "SELECT ", SqlText.join(", ", items), " FROM ", RelationText(_SCOPE))
    return bound.analyzer.run(query, scope).drop(STATE)


def unchanged_columns(bound: BoundMatch, result: StructType) -> dict[str, str]:
    """The columns of a clause that the kernel returns unchanged, with its names for them."""
    match, draft = bound.match, bound.draft
    names = [name for name, _ in (*draft.before, *draft.after)]
    found = {name: f"__f{number}" for number, name in enumerate(names)}
    values = {quoted(name): value for name, value in draft.scope} | dict(draft.scope)
    for name, text in draft.texts:
        written = text.render().strip("() ")
        if not match.clause.with_unmatched or name in match.functions:
            found[name] = values.get(written, written)
    return {name: value for name, value in found.items() if value in result.names}
