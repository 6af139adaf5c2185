"""WINDOW BY or MATCH_RECOGNIZE as a live operator: emits final output, retains rows that may change it.

         rows of the clause ─▶ hoisted columns ─┐
              rows buffered until the frontier ─┤
              retained rows, with their state ──┴▶ advance ─▶ windows or matches
                                                      └─▶ retained rows ─▶ the least rowtime still to come

:mod:`windrow.kernels.advance` defines what is final.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, DateType, IntegerType, LongType, StructType

from windrow.algebra.match_node import Match
from windrow.algebra.names import ROW, partition_key
from windrow.algebra.physical import field_of, is_field
from windrow.algebra.time_scale import TimeScale
from windrow.algebra.window_node import Window
from windrow.errors import InputError, WindrowError
from windrow.kernels.advance import (
    AT,
    CARRIED,
    Ended,
    Frontier,
    Growing,
    advance,
    moves_by_time,
)
from windrow.kernels.advance.affected import first_open, requested_in, step_of
from windrow.kernels.advance.retained_rows import Bools, Marks, RetainedRows
from windrow.kernels.patterns.pattern_plan import Answers, MatchPlan, Navigation
from windrow.kernels.sorting import SortKey
from windrow.kernels.window_plan import WindowPlan
from windrow.rules.elsewhere import carry_fields
from windrow.rules.kernel_plan import is_flat, needs_join
from windrow.spark.analysis.analyzer import SparkAnalyzer
from windrow.spark.analysis.keyed_rows import arrow_of, travelling_schema
from windrow.spark.clauses.batch import Bound, BoundWindow, WindowStage, bind_clause
from windrow.spark.clauses.join_plan import POSITION
from windrow.spark.clauses.matching import BoundMatch, MatchStage, MatchTypes, unchanged_columns
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.pairs_by_spark import Pairs
from windrow.spark.live.operators.rising_columns import rises, says_missing
from windrow.spark.logs.clause_view import Feed
from windrow.spark.logs.micro_batch import InstantSpan, PartOutput
from windrow.streams import FOREVER

__all__ = ["ClauseKernel", "LiveClause", "bind_live", "fragment_of"]

_NO_ROWTIME = "a row has NULL as its rowtime"
_WITHOUT_ONE = "filter out such rows with WHERE"


@dataclass(frozen=True)
class ClauseKernel:
    """Advances a clause, on the driver and in tasks.

    Attributes
    ----------
    growing
        The clause in the kernel's form.
    rising, fixed
        The columns with the rowtime, with their types, and those that say whether there is a row.
    scale
        The unit of rowtimes.
    """

    growing: Growing
    rising: Mapping[str, DataType]
    fixed: frozenset[str]
    scale: TimeScale

    def frontier(self, until: int | None) -> Frontier:
        """The frontier in the columns of the rowtime; without columns if the watermark is unknown."""
        if until is None:
            return Frontier(pa.table({"nothing": [0]}))
        values = {name: _at(until, kind, self.scale) for name, kind in self.rising.items()}
        columns = {name: value for name, value in values.items() if value is not None}
        columns |= {name: pa.array([False]) for name in self.fixed}
        return Frontier(pa.table(columns), self.fixed)

    def reached(self, until: int | None) -> Frontier | None:
        """The frontier when the watermark is at an instant; None if no more rows arrive."""
        return None if until is not None and until >= FOREVER else self.frontier(until)

    def moves_by_time(self, until: int | None) -> bool:
        """Whether partitions without new rows may change when the watermark moves to an instant."""
        return moves_by_time(self.growing.plan, self.reached(until))

    def with_answers(self, answers: Answers) -> ClauseKernel:
        """The same for a micro-batch with these results of Spark for conditions in DEFINE."""
        assert isinstance(self.growing.plan, MatchPlan)
        return replace(self, growing=replace(self.growing, plan=replace(self.growing.plan, answers=answers)))

    def advance(
        self,
        retained: RetainedRows,
        new_rows: pa.Table,
        until: int | None,
        number: int,
        ended: Ended | None = None,
        over: Marks | None = None,
        *,
        moves: bool,
    ) -> tuple[pa.Table, RetainedRows]:
        """The output of a micro-batch with these due rows, in these columns, and the rows to retain.

        The arguments are those of :func:`windrow.kernels.advance.affected.step_of`, with the watermark.
        """
        frontier = self.reached(until)
        return step_of(self.growing, retained, new_rows, frontier, ended, over, number, moves=moves)


@dataclass(frozen=True)
class LiveClause:
    """A clause that is bound once, for all micro-batches.

    Attributes
    ----------
    clause, bound
        The clause as written, and bound.
    kernel, result
        The kernel, and its result.
    schema, waiting, due
        The columns of retained rows, of rows buffered until the frontier, and of those that it has reached.
    rowtime
        The column of the rows' rowtimes.
    follows
        Whether rows come from another clause, so that they may arrive before the frontier has reached them.
    displayed, rowtimes
        The columns that it returns, and those with rowtimes: for windows that of the label row, for matches
        that of every row of the match. Fields of row variables are named `s.ts`.
    pairs
        Spark's evaluation in each micro-batch, if the kernel does not support a condition of a window.
    requested
        The types of the columns read by those conditions of a pattern that Spark evaluates in each
        micro-batch; None without such conditions.
    collated
        The columns of its keys that have a collation, whose values Spark compares.
    keys
        For the columns of its partition keys, and each stream of its rows: the stream's columns; none if one
        of them is computed, or rows have another source.
    lineage
        The same for its output columns `displayed`; none if its partitions do not end.
    """

    clause: Window | Match
    bound: Bound
    kernel: ClauseKernel
    result: StructType
    schema: StructType
    waiting: StructType
    due: StructType
    rowtime: str
    follows: bool
    displayed: StructType
    rowtimes: frozenset[str]
    pairs: Pairs | None
    requested: Mapping[str, DataType] | None
    collated: frozenset[str]
    keys: tuple[Feed, ...]
    lineage: tuple[Feed, ...]

    @property
    def hoisted(self) -> list[str]:
        """The retained columns of each row: of another clause, the rows would have no meaning."""
        return [f"{item.name} = {item.text.render()}" for item in self.bound.draft.hoisted]

    @property
    def is_spark_per_batch(self) -> bool:
        """Whether Spark evaluates conditions over retained and new rows in each micro-batch."""
        return self.pairs is not None or self.requested is not None

    # -- a micro-batch --------------------------------------------------------------------------------------

    def advance(
        self,
        gateway: Gateway,
        rows: DataFrame,
        span: InstantSpan,
        until: int,
        name: str,
        ended: Ended | None = None,
    ) -> PartOutput:
        """The windows or matches that are final in a micro-batch.

        Parameters
        ----------
        gateway, span
            The gateway and span of the micro-batch.
        rows
            The new rows of the clause.
        until
            No more rows before this instant arrive, in ticks of the time scale.
        name
            Under which rows are retained.
        ended
            The partitions that receive no more rows.
        """
        fragment = fragment_of(gateway, self.bound, rows)
        known = self._known(gateway.spark, span, name, fragment.partition)
        keyed = fragment.keyed(fragment.wide(), known, is_ranked=not self.follows)
        with gateway.translated():
            emitted, retained, report = self._advanced_by(gateway, fragment, keyed, span, until, name, ended)
        span.to_retain[name] = retained
        return PartOutput(fragment.finished(emitted, self.result), report)

    def _known(
        self, spark: SparkSession, span: InstantSpan, name: str, partition: tuple[str, ...]
    ) -> DataFrame | None:
        """The keys of partitions of retained or buffered rows, which equal keys of new rows get; None if
        there are none, or keys need no comparison.
        """
        if self.collated.isdisjoint(partition):
            return None
        found = ((span.before(name), self.schema), (span.before(_waiting(name)), self.waiting))
        frames = [_frame_of(spark, one, kinds).select(*partition) for one, kinds in found if one is not None]
        return reduce(DataFrame.unionAll, frames) if frames else None

    def _ranked(self, spark: SparkSession, fragment: WindowStage | MatchStage, due: pa.Table) -> pa.Table:
        """Buffered rows, once no other rows with their instants can arrive."""
        if self.waiting == self.due:
            return due
        found = fragment.ranked(frame_of_collected(spark, due, self.waiting)).toArrow()
        # rows that are carried have no ranks any more
        return found.cast(pa.schema([field.with_nullable(True) for field in found.schema]))

    def _advanced_by(
        self,
        gateway: Gateway,
        fragment: WindowStage | MatchStage,
        keyed: DataFrame,
        span: InstantSpan,
        until: int,
        name: str,
        ended: Ended | None,
    ) -> tuple[DataFrame, RetainedRows, Callable[[], int]]:
        spark, kernel, number = gateway.spark, self.kernel, span.number
        new_rows, retained = keyed.toArrow(), _retained_before(span, name, kernel.growing.partition)

        def is_due(rows: pa.Table) -> Bools:
            column = rows.column(self.rowtime)
            if column.null_count:
                raise self._no_rowtime()
            due: Bools = pc.less(_ticks(column, kernel.scale), until).to_numpy()
            return due if ended is None else due | ended.rows(rows)

        if self.follows:
            new_rows, waits = _retained_before(span, _waiting(name), ()).due(new_rows, is_due, number)
            span.to_retain[_waiting(name)] = waits
            new_rows = self._ranked(spark, fragment, new_rows)
        if self.pairs is None:
            moves = kernel.moves_by_time(until)

            def search(asking: Growing) -> pa.Table:
                return requested_in(asking, retained, new_rows, kernel.reached(until), ended, moves=moves)

            clause = self._answered(fragment, search)
            emitted, retained = clause.advanced(retained, new_rows, until, number, ended, moves=moves)
        else:
            rows = frame_of_collected(spark, new_rows, self.due)
            found = self.pairs.found(gateway, _frame_of(spark, retained, self.schema), rows).toArrow()
            is_new = pc.is_null(found.column(AT))
            old, new_rows = found.filter(pc.invert(is_new)), found.filter(is_new).drop_columns(CARRIED.names)
            emitted, left = self._advanced_anew(old, new_rows, until, ended)
            retained = retained.without(retained.all()).with_rows(left, number)
        return (
            frame_of_collected(spark, emitted, travelling_schema(self.result)),
            retained,
            lambda: until if (least := self.least(retained, until)) is None else least,
        )

    def advanced(
        self,
        retained: RetainedRows,
        new_rows: pa.Table,
        until: int | None,
        number: int,
        ended: Ended | None = None,
        over: Marks | None = None,
        *,
        moves: bool,
    ) -> tuple[pa.Table, RetainedRows]:
        """As :meth:`ClauseKernel.advance`, with errors at their places in the text."""
        try:
            return self.kernel.advance(retained, new_rows, until, number, ended, over, moves=moves)
        except WindrowError as error:
            raise error.located(self.clause.sql) from None

    def _advanced_anew(
        self, retained: pa.Table, new_rows: pa.Table, until: int, ended: Ended | None
    ) -> tuple[pa.Table, pa.Table]:
        """The output of a micro-batch of all partitions, and the rows to retain, if rows have columns that
        are valid for that micro-batch only.
        """
        growing = self.kernel.growing
        try:
            emitted, left = advance(growing, retained, new_rows, self.kernel.reached(until), ended)
        except WindrowError as error:
            raise error.located(self.clause.sql) from None
        return pa.Table.from_batches(emitted, growing.plan.result), left

    def least(self, retained: RetainedRows, until: int | None) -> int | None:
        """The instant before which no later micro-batch emits a row, if these rows are retained."""
        first = first_open(retained, self.rowtime)
        if first is None or until is None:
            return until
        return int(min(until, _ticks(pa.array([first]), self.kernel.scale)[0].as_py()))

    def _answered(
        self, fragment: WindowStage | MatchStage, search: Callable[[Growing], pa.Table]
    ) -> LiveClause:
        """The clause with Spark's results for its conditions in a micro-batch; `search` finds the values to
        evaluate.
        """
        if self.requested is None:
            return self
        growing = self.kernel.growing
        assert isinstance(fragment, MatchStage)
        assert isinstance(growing.plan, MatchPlan)

        def searched(asking: MatchPlan, _: StructType) -> pa.Table:
            return search(replace(growing, plan=asking))

        answers = fragment.answers_of(growing.plan, self.requested, searched)
        return replace(self, kernel=self.kernel.with_answers(answers))

    def _no_rowtime(self) -> InputError:
        return InputError(
            _NO_ROWTIME,
            condition="NULL_ROWTIME",
            sql=self.clause.sql,
            span=self.clause.order_by[0][0].span,
            hint=_WITHOUT_ONE,
        )


def bind_live(
    gateway: Gateway,
    clause: Window | Match,
    rows: DataFrame,
    scale: TimeScale,
    rowtimes: Collection[str],
    lineage: Sequence[Feed],
    *,
    follows: bool,
) -> LiveClause:
    """Analyse a clause over rows that are only analysed.

    `rowtimes` are the columns of its rows
    that have the rowtime, and `lineage` those of its rows; fields of a row are called `__row.field`.
    """
    bound = bind_clause(gateway, clause, rows, whole=False)
    fields: tuple[tuple[str, str], ...] = ()
    by_pairs = isinstance(bound, BoundWindow) and needs_join(bound.draft)
    if isinstance(bound, BoundWindow) and by_pairs:
        draft, fields = carry_fields(bound.draft, bound.analyzer)
        bound = BoundWindow(bound.window, draft, bound.analyzer)
    fragment = fragment_of(gateway, bound, rows)
    wide = fragment.wide()
    collated = fragment.collated(wide)
    keyed = fragment.keyed(wide)
    types = fragment.types(wide)
    result = fragment.result(types)
    plan = fragment.plan(types if isinstance(fragment, WindowStage) else result)  # type: ignore[arg-type]
    read = [name for name in keyed.columns if name in types] or [keyed.columns[0]]
    # the rowtime is carried too: that of the first open row says what may still be emitted
    rowtime = fragment.order[0].column
    columns = tuple(dict.fromkeys([*read, rowtime]))
    growing, pairs = Growing(plan, fragment.partition, fragment.order, columns), None
    if isinstance(fragment, WindowStage) and isinstance(plan, WindowPlan) and by_pairs:
        of_fields = tuple((field, column, types[column]) for field, column in fields)
        pairs = Pairs(fragment.window, fragment.draft, fragment.partition, fragment.order, of_fields, plan)
        growing = replace(growing, order=(SortKey(POSITION),), passing=pairs.columns)
    carried = StructType([keyed.schema[name] for name in growing.carried])
    for retained in from_arrow_schema(CARRIED):
        carried = carried.add(retained)
    zone = gateway.spark.conf.get("spark.sql.session.timeZone") or ""
    row = rows.schema[ROW].dataType
    assert isinstance(row, StructType)
    times = {item.name: item.dataType for item in row if f"{ROW}.{item.name}" in rowtimes}
    hoisted = bound.draft.hoisted
    rising = {item.name: kind for item in hoisted if (kind := rises(item, times, zone)) is not None}
    fixed = frozenset(item.name for item in hoisted if says_missing(item))
    sources = _sources(bound, fragment, rows, keyed)
    whole = fragment.finished(gateway.spark.createDataFrame([], travelling_schema(result)), result).schema
    as_is = _unchanged_columns(fragment, result)
    own = {item.name for item in hoisted if is_field(item) and field_of(item) in times}
    if isinstance(fragment, MatchStage):
        own = _of_matches(fragment.plan(result), own)
        outputs = dict(fragment.plan(result).outputs)
        origins = {name: sources.get(outputs.get(value, ""), "") for name, value in as_is.items()}
    else:
        origins = {name: sources.get(value, "") for name, value in as_is.items()}
    keys = [one.only({name: sources.get(name, "") for name in fragment.partition}) for one in lineage]
    if not fragment.partition or not all(len(one.columns) == len(fragment.partition) for one in keys):
        keys = []
    gives = [
        one.only(origins).where(set(key.columns.values())) for one, key in zip(lineage, keys, strict=False)
    ]
    return LiveClause(
        clause, bound, ClauseKernel(growing, rising, fixed, scale), result, carried,
        fragment.keyed(wide, is_ranked=not follows).schema, keyed.schema, rowtime, follows, whole,
        frozenset(name for name, value in as_is.items() if value in own), pairs,
        types if isinstance(bound, BoundMatch) and bound.draft.requested else None, collated,
        tuple(keys), tuple(gives),
    )  # fmt: skip


def _sources(
    bound: Bound, fragment: WindowStage | MatchStage, rows: DataFrame, keyed: DataFrame
) -> dict[str, str]:
    """For each column of the kernel, the column of the clause's rows that it is."""
    found = {item.name: f"{ROW}.{field_of(item)}" for item in bound.draft.hoisted if is_field(item)}
    for number, name in enumerate(fragment.partition):
        key = partition_key(number)
        if keyed.schema[name].dataType == rows.schema[key].dataType:
            found[name] = key
    return found


def fragment_of(gateway: Gateway, bound: Bound, rows: DataFrame) -> WindowStage | MatchStage:
    """The plan for the columns of the clause over these rows."""
    if isinstance(bound, BoundMatch):
        return MatchStage(
            gateway, BoundMatch(bound.match, bound.draft, MatchTypes(gateway, bound.match, rows, whole=False))
        )
    analyzer = SparkAnalyzer(gateway, bound.window, rows)
    return WindowStage(gateway, BoundWindow(bound.window, bound.draft, analyzer), analyzer.rows)


def _unchanged_columns(fragment: WindowStage | MatchStage, result: StructType) -> dict[str, str]:
    """The result columns and fields of a clause that the kernel returns unchanged, with its names for them.

    For windows, these are fields of the label row.
    """
    if isinstance(fragment, MatchStage):
        return unchanged_columns(fragment.bound, result)
    return {
        f"{name}.{field}": column
        for name, columns in fragment.draft.fields
        if is_flat(fragment.window, name, columns)
        for field, column in columns
    }


def _of_matches(plan: MatchPlan, rowtimes: Collection[str]) -> set[str]:
    """The kernel's result columns that have the rowtime of a row of the match."""
    found = {name for name, column in plan.outputs if column in rowtimes}
    for measure in plan.measures:
        if isinstance(measure, Navigation) and not measure.shift and measure.column in rowtimes:
            found.add(measure.name)
    return found


def _ticks(rowtimes: pa.ChunkedArray | pa.Array, scale: TimeScale) -> pa.ChunkedArray | pa.Array:
    """Rowtimes in ticks of their time scale."""
    if pa.types.is_date(rowtimes.type):
        return rowtimes.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(rowtimes.type):
        return pc.divide(rowtimes.cast(pa.int64()), scale.nanoseconds // 1000)
    return rowtimes.cast(pa.int64())


def _at(until: int, kind: DataType, scale: TimeScale) -> pa.Array | None:
    """An instant as a rowtime of a type; None if the type cannot represent it."""
    match kind:
        case IntegerType() | LongType():
            stored = arrow_of(kind)
            fits = -(2 ** (stored.bit_width - 1)) <= until < 2 ** (stored.bit_width - 1)
            return pa.array([until], stored) if fits else None
        case DateType():
            return pa.array([until], pa.int32()).cast(pa.date32())
        case _:
            return pa.array([until * scale.nanoseconds // 1000], pa.int64()).cast(arrow_of(kind))


def _retained_before(span: InstantSpan, name: str, key: tuple[str, ...]) -> RetainedRows:
    """The rows that the last micro-batch retained under a name, in memory."""
    before = span.before(name)
    return RetainedRows(key) if before is None else before


def _frame_of(spark: SparkSession, retained: RetainedRows, schema: StructType) -> DataFrame:
    """Retained rows as a DataFrame."""
    rows = retained.rows(retained.all())
    if rows is None:
        return spark.createDataFrame([], schema)
    return frame_of_collected(spark, rows.select(schema.names), schema)


def _waiting(name: str) -> str:
    return f"{name}.waiting"
