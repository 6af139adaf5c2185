"""The steps of a query that is one clause over one live stream: on the driver, over rows that are kept there.

What is kept is what :class:`windrow.spark.live.steps.Steps` keeps, under the same names and in the same form.
So a step with more rows than the driver takes is one of those, evaluated by tasks, and the next one may be
here again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from windrow.errors import ExecutionError
from windrow.spark.batch import explained
from windrow.spark.gateway import Gateway
from windrow.spark.keyed_rows import explain_cost, travelling_schema
from windrow.spark.live.cascade import TOLD
from windrow.spark.live.checkpoint import KeptTable, Step
from windrow.spark.live.clauses import stage_of
from windrow.spark.live.few import frame_of_few
from windrow.spark.live.in_memory import TOO_LARGE, Come, InMemorySteps
from windrow.spark.live.into_stream import IntoStream
from windrow.spark.live.sequences import SequencePlan
from windrow.spark.live.sinks import Sink, TableSink, takes_tables
from windrow.spark.live.steps import HELD
from windrow.spark.plan_text import chosen_fields, optimized
from windrow.spark.streams import ROWTIME

__all__ = ["MOST", "ClauseSteps", "is_one_clause"]

MOST = 1 << 22
"""So many rows are kept on the driver; of more, tasks evaluate the step."""


def is_one_clause(plan: SequencePlan) -> bool:
    """Whether a query is one clause over one live stream, and no view."""
    if len(plan.read) != 1 or len(plan.clauses) != 1:
        return False
    (name,), (clause,) = plan.read, plan.clauses
    is_source = plan.catalog.streams[name].live is not None and not clause.follows and clause.pairs is None
    read = {*clause.clause.rows.relations(), *plan.statement.text.relations()}
    return is_source and clause.takes_few and read == {name, clause.clause.key}


_Choice = Mapping[str, tuple[str, str | None]]
"""Of each column of a result the input's column that it is, and the field if it is one of a struct."""


@dataclass(frozen=True, eq=False)
class _Taken:
    """What a step has made: the rows that it gives, and the rows to keep of the clause."""

    rows: pa.Table | DataFrame
    kept: pa.Table
    until: int | None


class ClauseSteps(InMemorySteps):
    """As :class:`windrow.spark.live.steps.Steps`, which says what it takes."""

    def __init__(
        self, plan: SequencePlan, sink: Sink | IntoStream, folder: Path, envelope: str, on_late: str
    ) -> None:
        super().__init__(plan, sink, folder, envelope, on_late)
        self._sequence = plan
        (self._name,), (self._clause,) = plan.read, plan.clauses
        self._stream = plan.catalog.streams[self._name]
        self._window = f"window{self._clause.clause.key}"
        self._known: tuple[int, Mapping[str, pa.Table]] | None = None

    @property
    def _result(self) -> StructType:
        return self._sequence.outer.schema

    def _step(self, batch: DataFrame, number: int, before: Step) -> None:
        if sum(self._checkpoint.count(before, name) for name in before.rows) > MOST:
            super()._step(batch, number, before)
            return
        try:
            come = self._come(batch, before)
        except ExecutionError as error:
            if error.condition != TOO_LARGE:
                raise
            super()._step(batch, number, before)
        else:
            self._take(come, number, before)

    def _take(self, come: Come, number: int, before: Step) -> None:
        found = come.found[self._name]
        self._tell_late({self._name: self._late(self._name, found.late)}, number)
        clocks = {self._name: found.position}
        until = self._frontier(clocks)
        waits = self._numbered(found.rows, number)
        held = self._before(before, f"{HELD}{self._name}")
        if held is not None and held.num_rows:
            waits = pa.concat_tables([held.cast(waits.schema), waits]).combine_chunks()
        kept = self._before(before, self._window)
        moved = until is not None and (before.frontier is None or until > before.frontier)
        closes = self._endings.take(number, before.number, before.clocks, clocks)
        origin, given, used = before.origin, 0, 0
        marks = dict(before.marks)
        if moved and origin is None:
            first = pc.min(waits.column(ROWTIME)).as_py()
            origin = first if first is not None and first < until else None
        is_closed = self._endings.closed(self._clause.clause.key, waits)
        reaches = until if moved and origin is not None else before.frontier
        if (moved and origin is not None) or closes or is_closed.any():
            is_due = (
                is_closed if reaches is None else is_closed | (waits.column(ROWTIME).to_numpy() < reaches)
            )
            due, waits = waits.filter(pa.array(is_due)), waits.filter(pa.array(~is_due))
            used = due.num_rows
            made = self._made(due, waits, kept, reaches)
            kept = made.kept
            given = self._given(made, number, before, marks)
        counts = {
            "now": come.now,
            "entries": come.entries,
            "rows_in": before.counts.get("rows_in", 0) + come.count,
            "rows_late": found.position.clock.late + found.position.clock.rejected,
            "rows_used": before.counts.get("rows_used", 0) + used,
            "rows_given": before.counts.get("rows_given", 0) + given,
        }
        frontier = before.frontier if origin is None or until is None else until
        keep = {f"{HELD}{self._name}": KeptTable(waits, self._waiting)}
        if kept is not None:
            keep[self._window] = KeptTable(kept, self._clause.schema)
        step = self._checkpoint.commit(Step(number, clocks, frontier, origin, {}, counts, marks=marks), keep)
        self._known = number, {name: one.rows for name, one in keep.items()}
        self._report(step, come.count, given)

    # -- the clause ----------------------------------------------------------------------------------

    def _made(self, due: pa.Table, waits: pa.Table, kept: pa.Table | None, until: int | None) -> _Taken:
        """What a step gives when these rows have come, and those wait."""
        clause, gateway = self._clause, Gateway(self._spark, self._plan.gateway.parameters)
        rows = None
        if self._hoisted is not None:
            keyed = _chosen(due, self._hoisted)
        else:
            columns = self._columns
            gateway.frames[self._name] = frame_of_few(self._spark, due.select(columns.names), columns)
            with explained([clause.bound]):
                rows = gateway.sql(clause.clause.rows)
            stage = stage_of(gateway, clause.bound, rows)
            with gateway.translated():
                keyed = stage.keyed(stage.wide()).toArrow()
        ended = self._endings.ended(clause.clause.key, lambda _, columns: waits.select(columns))
        given, left, least = clause.advanced(keyed, kept, until, ended)
        if self._chosen is not None:
            return _Taken(_chosen(given, self._chosen), left, least)
        if rows is None:
            rows = self._shown_rows(gateway)
        made = frame_of_few(self._spark, given, travelling_schema(clause.result))
        gateway.frames[clause.clause.key] = stage_of(gateway, clause.bound, rows).finished(
            made, clause.result
        )
        with explained([clause.bound]):
            return _Taken(gateway.sql(self._sequence.statement.text), left, least)

    @cached_property
    def _hoisted(self) -> _Choice | None:
        """The stream's column behind each that the clause takes; None if they are computed."""
        if self._is_connect:
            return None
        gateway = Gateway(self._spark, self._plan.gateway.parameters)
        rows = self._shown_rows(gateway)
        stage = stage_of(gateway, self._clause.bound, rows)
        return _choice(gateway, stage.keyed(stage.wide()), self._columns)

    @cached_property
    def _chosen(self) -> _Choice | None:
        """The clause's column behind each that the query gives; None if they are computed."""
        result = self._clause.result
        if self._is_connect or travelling_schema(result) != result:
            return None
        gateway = Gateway(self._spark, self._plan.gateway.parameters)
        stage = stage_of(gateway, self._clause.bound, self._shown_rows(gateway))
        made = stage.finished(self._some(result), result)
        gateway.frames[self._clause.clause.key] = made
        with explained([self._clause.bound]):
            whole = gateway.sql(self._sequence.statement.text)
        if len({name.lower() for name in whole.columns}) < len(whole.columns):
            return None
        return _choice(gateway, whole, result)

    def _shown_rows(self, gateway: Gateway) -> DataFrame:
        """The rows of the clause over a stream of which nothing is known but its columns."""
        gateway.frames[self._name] = self._some(self._columns)
        with explained([self._clause.bound]):
            return gateway.sql(self._clause.clause.rows)

    def _some(self, schema: StructType) -> DataFrame:
        """Rows that Spark's planner cannot look at."""
        if self._is_connect:
            return self._spark.createDataFrame([], schema)
        return self._spark.createDataFrame(self._spark.sparkContext.emptyRDD(), schema)

    # -- what goes out -------------------------------------------------------------------------------

    def _given(self, made: _Taken, number: int, before: Step, marks: dict[str, int]) -> int:
        """Give the rows of a step to the sink."""
        rows, sink = made.rows, self._sink
        with self._gateway.translated():
            if isinstance(sink, IntoStream):
                if made.until is not None:
                    marks[TOLD] = made.until
                names = tuple(self._sequence.columns)
                stream = self._sequence.as_stream(self._framed(rows), names)
                return sink.insert(stream, made.until, before.counts.get("rows_given", 0))
            named = {name.lower() for name in self._sequence.columns}
            is_plain = len(named) == len(self._sequence.columns) and self._is_plain
            if isinstance(sink, TableSink) and takes_tables(sink) and is_plain:
                return sink.write_table(rows if isinstance(rows, pa.Table) else rows.toArrow(), number)
            return sink.write(self._framed(rows), number) or 0

    def _framed(self, rows: pa.Table | DataFrame) -> DataFrame:
        return frame_of_few(self._spark, rows, self._result) if isinstance(rows, pa.Table) else rows

    # -- what is kept --------------------------------------------------------------------------------

    @cached_property
    def _columns(self) -> StructType:
        """Those of the stream."""
        return StructType([self._stream.frame.schema[name] for name in self._stream.columns])

    @cached_property
    def _waiting(self) -> StructType:
        """Of rows that wait for the frontier."""
        stream = self._stream
        return StructType([stream.frame.schema[name] for name in (*stream.columns, ROWTIME, *stream.ties)])

    @cached_property
    def _is_connect(self) -> bool:
        return self._plan.gateway.is_connect

    def _numbered(self, rows: pa.Table, number: int) -> pa.Table:
        """Rows with what orders those of one rowtime."""
        if self._stream.live is not None and not self._stream.live.identity:
            step, place = self._stream.ties
            rows = rows.append_column(step, pa.array(np.full(rows.num_rows, number, np.int64)))
            rows = rows.append_column(place, pa.array(np.arange(rows.num_rows, dtype=np.int64)))
        return rows.select(self._waiting.names)

    def _before(self, before: Step, name: str) -> pa.Table | None:
        """Rows that the last step kept."""
        if self._known is not None and self._known[0] == before.number:
            return self._known[1].get(name)
        return self._checkpoint.table(before, name)


def _choice(gateway: Gateway, frame: DataFrame, given: StructType) -> _Choice | None:
    """What a frame takes of rows that it is made of, if it does nothing but choose."""
    plan = optimized(explain_cost(gateway, frame))
    columns = {
        field.name: field.dataType.names if isinstance(field.dataType, StructType) else [] for field in given
    }
    if len(plan) == 1 and frame.columns == given.names:
        found: tuple[tuple[str, str | None], ...] | None = tuple((name, None) for name in given.names)
    else:
        found = chosen_fields(plan[0], frame.columns, columns) if len(plan) == 2 else None
    if found is None or not plan[-1].startswith("LogicalRDD "):
        return None
    kinds = [_kind(given, *origin) for origin in found]
    if kinds != [field.dataType for field in frame.schema]:
        return None
    return dict(zip(frame.columns, found, strict=True))


def _kind(schema: StructType, column: str, field: str | None) -> DataType:
    kind = schema[column].dataType
    return kind[field].dataType if field is not None and isinstance(kind, StructType) else kind


def _chosen(rows: pa.Table, choice: _Choice) -> pa.Table:
    columns = [
        rows.column(column) if field is None else pc.struct_field(rows.column(column), field)
        for column, field in choice.values()
    ]
    return pa.Table.from_arrays(columns, names=list(choice))
