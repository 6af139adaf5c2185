"""Queries with EMIT in memory: makes the program, and passes the new rows of a micro-batch to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.kernels.incremental import Ending, Times
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.event_time import HIDDEN, Completeness, Occurrence
from windrow.spark.analysis.collations import collated
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.emit_program import MARK, EmitProgram, EmitRun, EmitSource, Promising
from windrow.spark.live.operators.incremental_plan import IncrementalPlan
from windrow.spark.live.plans.emit_evaluation import EmitEvaluation
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.logs.clause_view import Unbounded
from windrow.spark.relations.carried import why_not_carried
from windrow.syntax.sqltext import quoted

__all__ = ["EmittedFlow", "unbounded_by_tasks", "why_by_tasks"]

Ints = npt.NDArray[np.int64]

_DAY = 86_400_000_000_000  # nanoseconds


class EmittedFlow(EmitEvaluation):
    """The program of a query with EMIT, with its state.

    Parameters
    ----------
    gateway
        The gateway of the query's session, for the plan alone.
    plan
        The query.
    envelope
        The form of its changes.
    folder
        For temporary files.

    Attributes
    ----------
    why_not
        The part of the query that only tasks evaluate; None if there is none.
    """

    def __init__(self, gateway: Gateway, plan: EmittedPlan, envelope: str, folder: Path) -> None:
        query = replace(plan.query, gateway=gateway)
        self._plan, self._query, self._envelope = plan, query, envelope
        self.why_not = self._by_tasks() or self._planned(gateway, folder)

    def _by_tasks(self) -> str | None:
        """The part of a query that always needs tasks, regardless of the plan."""
        query = self._query
        if query.execution != "batch":
            return "the reference"
        if query.inside:
            return "a query with EMIT inside"
        if query.timed.calls_own:
            return "functions of your own"
        return None

    def _planned(self, gateway: Gateway, folder: Path) -> str | None:
        """The part of the plan that needs tasks; otherwise makes its operators."""
        query = self._query
        plan = query.timed.plan
        if (why := why_not_carried(gateway, plan)) is not None:
            return str(why)
        gateway.plan_only = True
        self._operators = IncrementalPlan(gateway, folder)
        self._leaves = {each.name: self._source(each) for each in query.timed.occurrences}
        frames = {name: frame for name, (_, frame) in self._leaves.items()}
        found = query.temporal_over(frames)
        self._found = found
        kinds = StructType([found.frame.schema[name] for name in found.columns])
        output = self._operators.output(found.frame)
        if self._operators.why_not is not None:
            return self._operators.why_not
        if collated(kinds) and not (query.how.delay is None and self._operators.appends(output)):
            return "changes of texts with a collation"  # in memory they would be compared by their bytes
        self.closing_columns = query.closing_columns(kinds, self._inside) if query.how.watermark else []
        return None

    def emptied(self) -> Self:
        """Itself, without state."""
        self._run.empty()
        return super().emptied()

    @property
    def retained(self) -> int:
        """How many rows are in the state of the operators."""
        return self._run.retained

    def due(self, until: int) -> int | None:
        """When the next changes are emitted after a processing time, if no entry arrives; None for never."""
        due = [self._run.due, *(rows.next(until) for rows in self._recorded.values())]
        return min((at for at in due if at is not None), default=None)

    @property
    def forgets(self) -> bool:
        """Whether all state is dropped by time alone."""
        return self.program.forgets

    def forget(self, marks: Mapping[str, Marks], until: int) -> None:
        """As :meth:`EmitRun.forget`, by how far the live streams were complete at a processing time."""
        self._run.forget(self._known(marks, until))

    @property
    def state(self) -> dict[str, Any]:
        """As :attr:`EmitRun.state`."""
        return self._run.state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self._run.restore(state)

    def read(self, name: str) -> list[str]:
        """The columns of a stream that are read."""
        leaves = [self._leaves[each.name][0] for each in self._query.timed.occurrences if each.stream == name]
        found = frozenset[str]().union(*map(self._operators.read, leaves))
        return [column for column in self._query.streams[name].columns if column in found]

    # -- the plan --------------------------------------------------------------------------------------

    def _source(self, each: Occurrence) -> tuple[int, DataFrame]:
        """The leaf of a stream at one place of the query, and its rows as the query reads them."""
        stream = self._query.streams[each.stream]
        kinds = StructType([stream.frame.schema[name] for name in stream.columns])
        if each.watermark_of:
            kinds = kinds.add(MARK, LongType())
        number, rows = self._operators.leaf(kinds.add(ENTER, LongType()).add(LEAVE, LongType()), appends=True)
        if each.is_numbered:
            rows = rows.withColumn(each.number, F.lit(0).cast("bigint"))
        if not each.watermark_of:
            return number, rows
        mark = F.expr(stream.scale.to_column(MARK))
        columns = [F.col(quoted(name)) for name in stream.columns]
        numbers = [each.number] if each.is_numbered else []
        return number, rows.select(*columns, *numbers, ENTER, mark.alias(each.watermark), LEAVE)

    @cached_property
    def program(self) -> EmitProgram:
        """The part of the query that is sent to tasks."""
        query, timed, found = self._query, self._query.timed, self._found
        groups = self._groups
        over = self._closings(timed.until)
        forgets = self._operators.run.forgets and (not groups or bool(over)) and self._has_one_scale
        complete = self._closings(timed.complete) if query.how.watermark else None
        every = [*(complete or ()), *((*over, *self._operators.program.endings) if forgets else ())]
        maps = tuple(dict.fromkeys((each.mapped, each.kind) for each in every))
        return EmitProgram(
            self._operators.program,
            tuple(map(self._emit_source, timed.occurrences)),
            {name: query.streams[name].scale for name in query.streams},
            timed.streams,
            tuple(found.names),
            tuple(found.columns),
            HIDDEN,
            None if groups is None else tuple(groups),
            complete,
            None if query.how.delay is None else (query.how.delay, tuple(query.keys(found))),
            over,
            maps,
            self._stay(maps),
            forgets,
            self._envelope,
        )

    @property
    def _has_one_scale(self) -> bool:
        """Whether all streams have event time of one type."""
        streams = [self._query.streams[name].timed for name in self._query.timed.streams]
        scales = {None if stream is None else stream.rowtime for stream in streams}
        return len(scales) == 1 and None not in scales

    def _emit_source(self, each: Occurrence) -> EmitSource:
        lateness = (self._query.how.lateness or {}).get(each.stream, 0)
        leaf, _ = self._leaves[each.name]
        read = self._operators.read(leaf)
        reads = tuple(column for column in self._query.streams[each.stream].columns if column in read)
        return EmitSource(each.stream, leaf, reads, each.watermark_of, lateness)

    def _stay(self, maps: Sequence[tuple[str, str]]) -> dict[str, int]:
        """How long keys stay after the watermark passes them: the allowed lateness. Dates stay a day longer,
        because a date begins twice if local time is set back over midnight.
        """
        allowed, has_dates = self._query.how.lateness or {}, any(kind == "date" for _, kind in maps)
        scales = {name: self._query.streams[name].scale for name in self._query.timed.streams}
        return {
            name: allowed.get(name, 0) + (scale.ticks(_DAY) if has_dates else 0)
            for name, scale in scales.items()
        }

    @cached_property
    def _run(self) -> EmitRun:
        return EmitRun(self.program, self._operators.run, self._mapped)

    @cached_property
    def mapping(self) -> IncrementalPlan:
        """A plan that maps the changes of a watermark, which arrive at its only leaf."""
        gateway = Gateway(self._query.gateway.spark, self._query.gateway.parameters)
        operators = IncrementalPlan(gateway, self._operators.folder.with_name(".mapping"))
        _, frame = operators.leaf(StructType().add("at", LongType()).add("mark", LongType()))
        operators.output(frame.selectExpr("at", "mark", *self._query.mapping(self.program.maps)))
        return operators

    def _mapped(self, marks: pa.Table) -> pa.Table:
        (found,) = self.mapping.advance({0: marks}, Times(None, 0))
        return found

    def _closings(self, by: Sequence[Completeness]) -> tuple[Ending, ...]:
        """Conditions on columns of the query, as conditions on columns of the program."""
        kinds, inside = self._found.frame.schema, self._inside
        columns = [(each, inside[each.column.lower()]) for each in by]
        return tuple(
            Ending(column, each.origin, each.mapped, kinds[column].dataType.simpleString())
            for each, column in columns
        )

    @property
    def _inside(self) -> dict[str, str]:
        found = self._found
        return {name.lower(): column for name, column in zip(found.names, found.columns, strict=True)}

    @cached_property
    def _groups(self) -> list[str] | None:
        """The columns by which changes are counted; None if they are not."""
        is_counted = self._envelope == "one-sql" and self._query.counts
        return self._query.keys(self._found) if is_counted else None

    # -- micro-batches ---------------------------------------------------------------------------------

    def advance(
        self,
        new_rows: Mapping[str, pa.Table],
        marks: Mapping[str, Marks],
        since: int | None,
        until: int,
        origin: int,
    ) -> pa.Table:
        """The changes after one processing time, up to another."""
        every = {**new_rows, **self.recorded(since, until)}
        rows = [every[source.stream] for source in self.program.sources]
        known = self._known(marks, until)
        return self._run.advance(
            rows, known, (since, until), self._first(origin) if since is None else None, self._promising
        )

    def _known(self, marks: Mapping[str, Marks], until: int) -> dict[str, Marks]:
        """Up to which rowtime each stream was complete, until a processing time."""
        recorded = {name: self._arrivals(name).watermark for name in self._recorded}
        return {
            name: [(at, mark) for at, mark in self._plan.known(name, steps) if at <= until]
            for name, steps in {**recorded, **marks}.items()
        }

    def _first(self, origin: int) -> int:
        """The first processing time of all logs."""
        ends = (self._arrivals(name).ends for name in self._recorded)
        return min([origin, *(own[0] for own in ends if own is not None)])

    @property
    def _promising(self) -> Promising | None:
        if not self.closing_columns:
            return None

        def since(rows: pa.Table) -> Ints:
            found = [self.punctuation.since(name, columns, rows) for _, name, columns in self.closing_columns]
            first: Ints = np.maximum.reduce(found)
            return first

        return Promising(since, self._punctuated_at)


def unbounded_by_tasks(plan: LivePlan) -> list[Unbounded]:
    """The unbounded state of a query that tasks evaluate: they retain rows only."""
    if not isinstance(plan, EmittedPlan) or not plan.needs_all or plan.unbounded():
        return []
    needs = "groups by windows of time would bound it"
    return [] if why_by_tasks(plan) is None else [Unbounded("the query", plan.retains_by_tasks, needs)]


def why_by_tasks(plan: EmittedPlan) -> str | None:
    """Why tasks evaluate a query; None if its operators are in memory."""
    gateway = Gateway(plan.gateway.spark, plan.gateway.parameters)
    return EmittedFlow(gateway, plan, plan.envelope, Path("of-a-plan-alone")).why_not
