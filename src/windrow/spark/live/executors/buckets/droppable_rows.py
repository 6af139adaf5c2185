"""Which rows of a bucket can be dropped: no change depends on them any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from windrow.algebra.rewriting.time_windows_as_sql import TimeWindow
from windrow.kernels.incremental import Program, Run
from windrow.kernels.zset.time_windows import of_ticks
from windrow.plan.event_time import Closed, ClosedKeys
from windrow.spark.analysis.arrow_columns import in_memory
from windrow.spark.live.executors.bucket_state import not_here
from windrow.spark.live.executors.buckets.emit_punctuation import BucketPunctuation
from windrow.spark.live.micro_batches.session_rows import alike, ended, window_of
from windrow.spark.live.operators.watermark_conditions import WatermarkConditions, where_true
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.logs.session_streams import ROWTIME

__all__ = ["DroppableRows", "DroppableWhen", "droppable_rows_of"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class DroppableWhen:
    """A condition that makes rows droppable: one of their values is below the watermark.

    Attributes
    ----------
    program
        The program that returns the places of these values, as in
        :meth:`windrow.spark.live.operators.watermark_conditions.WatermarkConditions.planned`.
    value
        The value's name and type.
    window
        The sessions whose end is the value; None if it is the rowtime.
    """

    program: Program
    value: pa.Field
    window: TimeWindow | None

    @cached_property
    def _run(self) -> Run:
        return Run(self.program, not_here)

    def of(self, rows: pa.Table, mark: int) -> Bools:
        """Which rows are droppable at a watermark."""
        below = partial(where_true, self._run, self.value.name, mark=mark)
        if self.window is not None:
            return ended(self.window, rows, below)
        ticks = rows.column(ROWTIME).to_numpy()
        is_over = below(of_ticks(ticks, self.value.type))
        # up to the first that is not: local times fall when summer time ends
        found: Bools = is_over if is_over.all() else ticks < ticks[~is_over].min()
        return found


Grouping: TypeAlias = tuple[tuple[DroppableWhen, ...], tuple[Closed, ...]]
Groupings: TypeAlias = tuple[Grouping, ...]


@dataclass(frozen=True, eq=False)
class DroppableRows:
    """When rows of a stream are droppable: one condition of each group must be true.

    Attributes
    ----------
    groupings
        The groups of conditions: those on the watermark, and those on punctuation.
    lateness
        For how long after the watermark rows count, in ticks.
    """

    groupings: Groupings
    lateness: int

    @property
    def in_time(self) -> bool:
        """Whether the watermark alone makes all rows droppable."""
        return all(by_time for by_time, _ in self.groupings)

    def of(
        self, rows: pa.Table, mark: int | None, punctuation: BucketPunctuation | None, until: int
    ) -> Bools:
        """Which rows are droppable at a watermark, None without one, by the punctuation so far; `until` is
        the processing time.
        """
        over, below = np.ones(rows.num_rows, bool), None if mark is None else mark - self.lateness
        for by_time, by_punctuation in self.groupings:
            found = np.zeros(rows.num_rows, bool)
            if below is not None:
                found = np.logical_or.reduce([found, *(each.of(rows, below) for each in by_time)])
            if punctuation is not None:
                found |= punctuation.closed(by_punctuation, rows, until)
            over &= found
        return over


def droppable_rows_of(plan: EmittedPlan, conditions: WatermarkConditions, name: str) -> DroppableRows | None:
    """When rows of a stream are droppable; None if the watermark alone does not decide it."""
    scales = {None if (timed := one.timed) is None else timed.rowtime for one in plan.query.streams.values()}
    groupings_of = _of_sessions if plan.has_sessions else _of_rowtimes
    groupings = groupings_of(plan, conditions, name)
    is_timed = len(scales) == 1 and None not in scales
    if not is_timed or not groupings or not all(any(one) for one in groupings):
        return None
    return DroppableRows(groupings, (plan.query.how.lateness or {}).get(name, 0))


def _of_rowtimes(plan: EmittedPlan, conditions: WatermarkConditions, name: str) -> Groupings:
    """The conditions on the rowtime of each row, and those on punctuation."""
    stream = plan.catalog.streams[name]
    kind, found = stream.frame.schema[stream.rowtime or ""], list[Grouping]()
    for at, grouping in enumerate(plan.closings(name)):
        by_time: tuple[DroppableWhen, ...] = ()
        if any(isinstance(each, ClosedKeys) for each in grouping):
            planned = conditions.planned((name, "over", at), kind, partial(plan.over, [grouping], name))
            by_time = (DroppableWhen(planned.program, in_memory(StructType([kind])).field(0), None),)
        found.append((by_time, tuple(each for each in grouping if isinstance(each, Closed))))
    return tuple(found)


def _of_sessions(plan: EmittedPlan, conditions: WatermarkConditions, name: str) -> Groupings:
    """The conditions on the ends of the sessions that rows are in."""

    def of(grouping: Sequence[ClosedKeys]) -> tuple[DroppableWhen, ...]:
        each_once = dict.fromkeys(alike(each) for each in grouping if each.sessions is not None)
        return tuple(found for each in each_once if (found := of_session(each)) is not None)

    def of_session(each: ClosedKeys) -> DroppableWhen | None:
        window = window_of(plan, each)
        if window is None:
            return None
        kind = StructField("end", plan.catalog.streams[name].frame.schema[window.time].dataType)
        below = partial(plan.below, each.greatest, each.least, name, column="end")
        planned = conditions.planned((name, each), kind, below)
        return DroppableWhen(planned.program, in_memory(StructType([kind])).field(0), window)

    return tuple((of(grouping), ()) for grouping in plan.closes_in_time(name))
