"""Queries with EMIT, a step at a time in memory: what comes goes in, and what is told comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, LongType, StructType

from windrow.algebra.watermarks import Steps as Marks
from windrow.algebra.watermarks import held_back
from windrow.kernels.sorting import SortKey
from windrow.kernels.stages import Completing, Times, Versions, changes, first_above, netted
from windrow.kernels.zset.relation import AT, DIFF, ENTER, LEAVE, NEVER
from windrow.kernels.zset.time_windows import ticks_of
from windrow.plan.event_time import HIDDEN, Completeness, Occurrence
from windrow.plan.reader import NotPlannedError
from windrow.punctuations.boxes import Box
from windrow.punctuations.lines import line_of
from windrow.spark.arrived import PTIMES
from windrow.spark.collected import is_plain
from windrow.spark.gateway import Gateway
from windrow.spark.live.emitted import EmittedPlan
from windrow.spark.live.envelopes import copies_of, enveloped, shown
from windrow.spark.live.flow import Ending, Flow
from windrow.spark.relation_of_plan import why_not_in_steps
from windrow.spark.streams import ARRIVED
from windrow.spark.varying import columns_of
from windrow.syntax.sqltext import quoted

__all__ = ["EmittedFlow", "why_by_tasks"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_Map = tuple[str, str]
"""How a watermark is mapped, and to which type."""

_DAY = 86_400_000_000_000  # nanoseconds
_MARK = "__mark"
_VERSION = "__version"
_IN_ORDER = [(AT, "ascending"), (DIFF, "ascending")]


class EmittedFlow:
    """The state of a query that is evaluated so.

    Parameters
    ----------
    gateway
        Of the query's session, for the plan alone.
    plan
        The query.
    envelope
        The form of what it tells.
    folder
        For files of a step.

    Attributes
    ----------
    promised
        What the streams have promised by patterns so far.

    why_not
        What of the query is evaluated in another way, by tasks; None for nothing. Then the flow has no steps.
    """

    def __init__(self, gateway: Gateway, plan: EmittedPlan, envelope: str, folder: Path) -> None:
        query = replace(plan.query, gateway=gateway)
        self._plan, self._query, self._envelope = plan, query, envelope
        self.why_not = self._by_tasks() or self._planned(gateway, folder)
        if self.why_not is None:
            self.emptied()

    def _by_tasks(self) -> str | None:
        """What needs tasks whatever the plan is."""
        query = self._query
        if query.execution != "batch":
            return "the reference"
        if query.how.delay is not None:
            return "AFTER DELAY"
        if query.timed.calls_own:
            return "functions of your own"
        if query.gateway.is_connect:
            return "Spark Connect"
        live = {name for name, stream in self._plan.catalog.streams.items() if stream.live is not None}
        return None if live.issuperset(query.timed.streams) else "recorded streams"

    def _planned(self, gateway: Gateway, folder: Path) -> str | None:
        """What of the plan needs tasks; otherwise make its operators."""
        query = self._query
        if (why := why_not_in_steps(query.timed.plan)) is not None:
            return str(why)
        gateway.plan_only = True
        self._flow = Flow(gateway, folder)
        self._leaves = {each.name: self._source(each) for each in query.timed.occurrences}
        frames = {name: frame for name, (_, frame) in self._leaves.items()}
        try:
            found = query.varying_over(frames)
        except NotPlannedError as reason:
            return str(reason)
        self._found = found
        kinds = StructType([found.frame.schema[name] for name in found.columns])
        if not is_plain(kinds):
            return "columns of types that are not plain"
        self._told = self._flow.output(found.frame)
        if self._flow.why_not is not None:
            return self._flow.why_not
        self._asked = query.asked(kinds, self._inside) if query.how.watermark else []
        self._complete = self._endings(query.timed.complete if query.how.watermark else ())
        self._over = self._endings(query.timed.until)
        self._known_steps: dict[tuple[int, int], tuple[int, ...]] = {}
        self._mapping: tuple[Flow, int] | None = None
        return None

    def emptied(self) -> EmittedFlow:
        """Itself, with nothing in it."""
        schema = self._told.schema
        self._flow.empty()
        self.promised = self._plan.promised(dict.fromkeys(self._query.streams, ()))
        lines = {each.column: line_of(schema.field(each.column).type) for each, _ in self._complete}
        self._completing = Completing(_rows_of(schema), lines) if self._query.how.watermark else None
        self._promised_at = -1  # when what is promised last is
        self._versions = Versions(pa.schema([schema.field(name) for name in self._groups or ()]))
        return self

    def promise(self, told: Mapping[str, Iterable[tuple[int, str]]]) -> None:
        """Take in what streams promise by patterns, and when."""
        for name, one in told.items():
            news = list(one)
            self.promised.take(name, news)
            self._promised_at = max([self._promised_at, *(at for at, _ in news)])

    @property
    def held(self) -> int:
        """How many rows the operators hold."""
        return self._flow.held

    @cached_property
    def forgets(self) -> bool:
        """Whether all that is held goes when time has passed."""
        forgets = self._flow.forgets and (not self._groups or bool(self._over))
        streams = [self._query.streams[name].timed for name in self._query.timed.streams]
        clocks = {None if stream is None else stream.rowtime for stream in streams}
        return forgets and len(clocks) == 1 and None not in clocks

    def forget(self, marks: Mapping[str, Marks]) -> None:
        """Let go of groups that change no more, as far as the clocks of the streams have got.

        Where it :attr:`forgets`; rows that are late may come for as long as is allowed, and a date begins
        twice where clocks are set back over midnight, so that one is kept for a day more.
        """
        allowed = self._query.how.lateness or {}
        has_dates = any(isinstance(kind, DateType) for _, kind in self._maps.values())
        steps = {}
        for name in self._query.timed.streams:
            clock = self._query.streams[name].clock
            longer = allowed.get(name, 0) + (clock.ticks(_DAY) if has_dates else 0)
            steps[name] = [(at, mark - longer) for at, mark in marks[name]]
        mapped = self._mapped(held_back([*steps.values()])[-1:])

        def is_over(endings: Sequence[Ending]) -> Callable[[pa.Table], Bools]:
            return lambda rows: self._since(endings, mapped, rows) < NEVER

        self._flow.forget(is_over)
        if self._over:
            self._versions.forget(is_over(self._over))
        if self._completing is None:  # which asks for them again
            self._known_steps.clear()

    @property
    def state(self) -> dict[str, Any]:
        """What is held, as :mod:`windrow.kernels.stored` has it."""
        return {"operators": self._flow.state, "completing": self._completing, "versions": self._versions}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Hold what was held."""
        self._flow.restore(state["operators"])
        self._completing, self._versions = state["completing"], state["versions"]

    def read(self, name: str) -> list[str]:
        """The columns of a stream that are read."""
        leaves = [self._leaves[each.name][0] for each in self._query.timed.occurrences if each.stream == name]
        found = frozenset[str]().union(*map(self._flow.read, leaves))
        return [column for column in self._query.streams[name].columns if column in found]

    # -- the plan --------------------------------------------------------------------------------------

    def _source(self, each: Occurrence) -> tuple[int, DataFrame]:
        """The leaf of a stream where it stands in the query, and its rows as the query reads them."""
        stream = self._query.streams[each.stream]
        kinds = StructType([stream.frame.schema[name] for name in stream.columns])
        if each.watermark_of:
            kinds = kinds.add(_MARK, LongType())
        number, rows = self._flow.leaf(kinds.add(ENTER, LongType()).add(LEAVE, LongType()), appends=True)
        if each.is_numbered:
            rows = rows.withColumn(each.number, F.lit(0).cast("bigint"))
        if not each.watermark_of:
            return number, rows
        shown_mark = F.expr(stream.clock.to_column(_MARK))
        columns = [F.col(quoted(name)) for name in stream.columns]
        numbers = [each.number] if each.is_numbered else []
        return number, rows.select(*columns, *numbers, ENTER, shown_mark.alias(each.watermark), LEAVE)

    def _endings(self, told: Sequence[Completeness]) -> list[Ending]:
        """What is told by columns of the query, by what these are called inside."""
        kinds = self._found.frame.schema
        inside = [replace(each, column=self._inside[each.column.lower()]) for each in told]
        return [(each, kinds[each.column].dataType) for each in inside]

    @property
    def _inside(self) -> dict[str, str]:
        found = self._found
        return {name.lower(): column for name, column in zip(found.names, found.columns, strict=True)}

    @cached_property
    def _groups(self) -> list[str] | None:
        """The columns by which changes are counted; None where they are not."""
        is_counted = self._envelope == "one-sql" and self._query.timed.counts
        return self._query.keys(self._found) if is_counted else None

    # -- steps -----------------------------------------------------------------------------------------

    def step(
        self,
        came: Mapping[str, pa.Table],
        marks: Mapping[str, Marks],
        since: int | None,
        until: int,
        origin: int,
    ) -> pa.Table:
        """What is told of a step from one processing time, which is left out, to another.

        Parameters
        ----------
        came
            The rows of each stream that came in the step, with `ARRIVED`; from the first on without `since`.
        marks
            Up to which rowtime each stream was known, in time.
        origin
            The first processing time of the logs.
        """
        times = Times(None if since is None else since + 1, until + 1)
        given = {
            self._leaves[each.name][0]: self._given(each, came[each.stream], marks)
            for each in self._query.timed.occurrences
        }
        (rows,) = self._flow.step(given, times, origin if since is None else None)
        if self._completing is not None:
            rows = self._completing.step(rows, *self._completed(marks, times))
        rows = rows.select([*self._found.columns, ENTER, LEAVE])
        return self._shown(changes(rows, times))

    def _given(self, each: Occurrence, rows: pa.Table, marks: Mapping[str, Marks]) -> pa.Table:
        enter = rows.column(ARRIVED)
        table = rows.select(self.read(each.stream))
        if each.watermark_of:
            table = table.append_column(_MARK, self._plan.marks_before(each, rows, marks))
        never = pa.array(np.full(rows.num_rows, NEVER))
        return table.append_column(ENTER, enter).append_column(LEAVE, never)

    def _completed(
        self, marks: Mapping[str, Marks], times: Times
    ) -> tuple[Callable[[pa.Table], Ints], Times, list[Box] | None]:
        """What says from when on rows are complete, as far as the clocks of the streams have got; the times;
        and in which boxes the rows are that may be complete now.
        """
        watermark = held_back([marks[name] for name in self._query.timed.streams])
        mapped = self._mapped(watermark)
        for step in self._known_steps.keys() - set(watermark):
            del self._known_steps[step]

        def since_when(rows: pa.Table) -> Ints:
            in_time = self._since(self._complete, mapped, rows)
            if not self._asked:
                return in_time
            promised = [self.promised.since(name, asked, rows) for _, name, asked in self._asked]
            return np.minimum(in_time, np.maximum.reduce(promised))

        has_news = times.since is None or self._promised_at >= times.since
        return since_when, times, None if self._asked and has_news else self._passed(mapped)

    def _passed(self, mapped: Mapping[_Map, tuple[Ints, Ints]]) -> list[Box]:
        """The boxes with all rows that the watermark has passed, as far as one of the streams tells."""
        assert self._completing is not None
        first = min((each.origin for each, _ in self._complete), default=None)
        found: list[Box] = []
        for each, kind in self._complete:
            values, _ = mapped[each.mapped, kind.simpleString()]
            if each.origin == first and len(values):
                found.append({each.column: (self._completing.lines[each.column].first, int(values.max()))})
        return found

    @staticmethod
    def _since(endings: Sequence[Ending], mapped: Mapping[_Map, tuple[Ints, Ints]], rows: pa.Table) -> Ints:
        """From when on rows are over: any column of a stream tells, and all streams must."""
        by_origin: dict[int, Ints] = {}
        for each, kind in endings:
            column = rows.column(each.column)
            ticks = np.full(rows.num_rows, NEVER)
            valid = np.asarray(column.is_valid())
            ticks[valid] = ticks_of(column.drop_null())
            found = first_above(*mapped[each.mapped, kind.simpleString()], ticks)
            before = by_origin.get(each.origin)
            by_origin[each.origin] = found if before is None else np.minimum(before, found)
        return np.maximum.reduce([*by_origin.values()]) if by_origin else np.full(rows.num_rows, NEVER)

    @cached_property
    def _maps(self) -> dict[_Map, Ending]:
        """What a watermark is mapped to, once each."""
        every = [*self._complete, *(self._over + self._flow.endings if self.forgets else [])]
        return {(each.mapped, kind.simpleString()): (each, kind) for each, kind in every}

    def _mapped(self, watermark: Marks) -> dict[_Map, tuple[Ints, Ints]]:
        """What the watermark was in columns of event time, in ticks, and from when on."""
        new = [step for step in watermark if step not in self._known_steps]
        if new and self._maps:
            self._known_steps |= self._newly_mapped(new)
        since = np.asarray([at for at, _ in watermark], np.int64)
        return {
            name: (np.asarray([self._known_steps[step][number] for step in watermark], np.int64), since)
            for number, name in enumerate(self._maps)
        }

    def _newly_mapped(self, watermark: Marks) -> dict[tuple[int, int], tuple[int, ...]]:
        """What steps of the watermark are mapped to in each column."""
        if self._mapping is None:
            gateway = Gateway(self._query.gateway.spark, self._query.gateway.parameters)
            flow = Flow(gateway, self._flow.folder.with_name(".mapping"))
            leaf, frame = flow.leaf(StructType().add("at", LongType()).add("mark", LongType()))
            flow.output(frame.selectExpr("at", "mark", *self._query.mapping([*self._maps.values()])))
            self._mapping = flow, leaf
        flow, leaf = self._mapping
        at, marks = zip(*watermark, strict=True)
        (found,) = flow.step({leaf: pa.table({"at": at, "mark": marks})}, Times(None, 0))
        values = [column.to_pylist() for column in found.columns]
        return {(row[0], row[1]): row[2:] for row in zip(*values, strict=True)}

    def _shown(self, told: pa.Table) -> pa.Table:
        """Changes in the envelope."""
        found = self._found
        kept = [
            (name, column)
            for name, column in zip(found.names, found.columns, strict=True)
            if not name.startswith(HIDDEN)
        ]
        names = [name for name, _ in kept]
        if self._envelope != "one-sql":
            own = told.select([*(column for _, column in kept), AT, DIFF])
            inner = own.rename_columns([*columns_of(names), AT, DIFF])
            inner = netted(inner) if self._envelope == "diff" or _leaves(inner) else inner
            return enveloped(
                inner.sort_by([(AT, "ascending"), (DIFF, "ascending")]), names, PTIMES, self._envelope
            )
        told = copies_of(netted(told)) if _leaves(told) else told
        order = tuple(map(SortKey, (AT, DIFF, *found.columns)))
        if self._groups is None:
            told = told.sort_by(_IN_ORDER)
            told = told.append_column(_VERSION, pa.array(np.zeros(told.num_rows, np.int64)))
        elif told.num_rows:
            told = self._versions.numbered(told, order)
            told = told.take(pa.array(np.argsort(told.column(AT).to_numpy(), kind="stable")))
        else:
            told = told.append_column(_VERSION, pa.array([], pa.int64()))
        undo = pc.less(told.column(DIFF), 0)
        columns = [*(told.column(column) for _, column in kept), undo, shown(told.column(AT), PTIMES)]
        return pa.Table.from_arrays([*columns, told.column(_VERSION)], names=[*names, "undo", "ptime", "ver"])


def why_by_tasks(plan: EmittedPlan) -> str | None:
    """What of a query is evaluated by tasks; None for one whose operators are in memory."""
    gateway = Gateway(plan.gateway.spark, plan.gateway.parameters)
    return EmittedFlow(gateway, plan, plan.envelope, Path("of-a-plan-alone")).why_not


def _leaves(told: pa.Table) -> bool:
    """Whether rows leave: where none do, no change takes another one back."""
    return bool((told.column(DIFF).to_numpy() < 0).any())


def _rows_of(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column for column in schema if column.name not in (ENTER, LEAVE)])
