"""Which rows of sessions are needed: later rows may join or split their sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from windrow.algebra.rewriting.time_windows_as_sql import TimeWindow
from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.kernels.packing.numbering import numbered as numbered_by
from windrow.kernels.zset.time_windows import of_ticks, runs, ticks_of
from windrow.plan.arrow_types import contains
from windrow.plan.event_time import ClosedKeys
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.watermark_conditions import WatermarkConditions
from windrow.spark.live.plans.emit_queries import EmittedPlan, KnownWatermarks
from windrow.spark.logs.session_streams import ARRIVED, NUMBER

Bools = npt.NDArray[np.bool_]

__all__ = [
    "alike",
    "ended",
    "final_at_once",
    "final_rows",
    "may_be_final",
    "numbered",
    "window_of",
]


def numbered(gateway: Gateway, rows: pa.Table, schema: StructType) -> DataFrame:
    """Rows with `NUMBER`, their place."""
    table = rows.append_column(NUMBER, pa.array(range(rows.num_rows), pa.int64()))
    kinds = StructType([*schema.fields, StructField(NUMBER, LongType())])
    return frame_of_collected(gateway.spark, table, kinds)


def may_be_final(
    plan: EmittedPlan, name: str, rows: DataFrame, marks: Mapping[str, Marks], until: int
) -> bool:
    """Whether sessions of some rows may be final, by rowtimes alone: a session ends after its rows.

    The oldest row is enough.
    """
    mark = plan.mark_of(name, marks, until)
    if mark is None:
        return False
    begun = F.lit(False)
    for each in _of_sessions(plan, name):
        first = each.greatest.replace("{t}", plan.query.timed.sessions[each.sessions or 0].begins)
        begun = begun | plan.below(first, each.least, name, f"{mark}L")
    return not rows.where(begun).isEmpty()


def final_rows(
    plan: EmittedPlan,
    gateway: Gateway,
    name: str,
    known: KnownWatermarks,
    marks: Mapping[str, Marks],
    until: int,
) -> DataFrame | None:
    """The numbers of rows on which no change depends any more; None if those of sessions may all change.

    Parameters
    ----------
    plan
        A plan with `has_sessions`.
    known
        The known entries of the stream, with rows that have `NUMBER`.
    marks
        The watermarks of the live streams.
    """
    mark = plan.mark_of(name, marks, until)
    if mark is None or not may_be_final(plan, name, known.rows, marks, until):
        return None
    sessions = plan.query.timed.sessions
    within = _of_sessions(plan, name)
    has_arrived = F.col(ARRIVED) <= until
    query = plan.query_over(gateway, {name: replace(known, rows=known.rows.where(has_arrived))}, (0, until))
    ended_by: dict[ClosedKeys, str] = {}
    every = known.rows
    for number, each in enumerate(within):
        found = query.sessions_of(sessions[each.sessions or 0])
        below = plan.below(each.greatest, each.least, name, f"{mark}L", "end")
        ended_by[each] = f"__over{number}"
        over = found.groupBy(F.col("number").alias(NUMBER)).agg(F.every(below).alias(ended_by[each]))
        every = every.join(over, NUMBER, "left")
    return every.where(has_arrived & _over(plan, name, mark, ended_by)).select(NUMBER)


def final_at_once(
    plan: EmittedPlan,
    conditions: WatermarkConditions,
    name: str,
    rows: pa.Table,
    marks: Mapping[str, Marks],
    until: int,
) -> Bools | None:
    """Rows of final sessions, possibly not all of them; None if only a query can find them.

    Rows that are late, or have not arrived yet, count as rows of sessions here, so these end no earlier than
    those of the query.
    """
    mark = plan.mark_of(name, marks, until)
    if mark is None:
        return np.zeros(rows.num_rows, bool)
    groupings = [
        [each for each in grouping if each.sessions is not None] for grouping in plan.closes_in_time(name)
    ]
    if not groupings or not all(groupings):
        return None
    different = dict.fromkeys(alike(each) for grouping in groupings for each in grouping)
    ended_by: dict[ClosedKeys, Bools] = {}
    for each in different:
        window = window_of(plan, each)
        if window is None or not _is_timed(rows.schema.field(window.time).type):
            return None
        kinds = plan.catalog.streams[name].frame.schema
        if any(contains(kinds[key].dataType, "collated") for key in window.keys):
            return None  # here they would be compared by their bytes
        kind = StructField("end", kinds[window.time].dataType)
        below = partial(plan.below, each.greatest, each.least, name, column="end")
        ask = partial(conditions.is_true_at, (name, each), kind, below, mark=mark)
        ended_by[each] = ended(window, rows, ask)
    of_each = [np.logical_or.reduce([ended_by[alike(each)] for each in grouping]) for grouping in groupings]
    over: Bools = np.logical_and.reduce(of_each)
    return over


def alike(each: ClosedKeys) -> ClosedKeys:
    """A condition without the place of the stream in the query."""
    return replace(each, origin=0)


def window_of(plan: EmittedPlan, each: ClosedKeys) -> TimeWindow | None:
    """The windows of these sessions; None if only a query can find them."""
    return plan.query.timed.sessions[each.sessions or 0].window


def _is_timed(kind: pa.DataType) -> bool:
    return bool(kind == pa.int64() or pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def ended(window: TimeWindow, rows: pa.Table, below: Callable[[pa.Array], Bools]) -> Bools:
    """The rows in sessions whose end is below the watermark, and rows without a session."""
    ended = np.ones(rows.num_rows, bool)
    places = np.flatnonzero(np.asarray(rows.column(window.time).is_valid()))
    timed = rows.select([*window.keys, window.time]).take(pa.array(places)).combine_chunks()
    ticks, gap = ticks_of(timed.column(window.time)), window.lengths["gap"]
    order, run = runs(numbered_by(timed, window.keys), ticks, gap)
    last = np.flatnonzero(np.diff(run, append=-1))
    end = ticks[order][last] + gap
    ended[places[order]] = below(of_ticks(end, timed.schema.field(window.time).type))[run]
    return ended


def _of_sessions(plan: EmittedPlan, name: str) -> list[ClosedKeys]:
    """The conditions by which sessions make rows of a stream unneeded."""
    every = (each for grouping in plan.closes_in_time(name) for each in grouping)
    return list(dict.fromkeys(each for each in every if each.sessions is not None))


def _over(plan: EmittedPlan, name: str, mark: int, ended_by: Mapping[ClosedKeys, str]) -> Column:
    """Whether all groups of a row are complete, and the sessions that it is in."""
    over = F.lit(True)
    for grouping in plan.closes_in_time(name):
        closed = F.lit(False)
        for each in grouping:
            by_session = (
                F.coalesce(F.col(ended_by[each]), F.lit(True)) if each in ended_by else None
            )  # in none
            below = by_session
            if below is None:
                below = plan.below(each.greatest, each.least, name, f"{mark}L")
            closed = closed | below
        over = over & closed
    return over
