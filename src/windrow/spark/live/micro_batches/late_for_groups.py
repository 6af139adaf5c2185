"""Rows that are late for a group: one of their groups was complete when they arrived.

A row is judged where it enters the query, by its rowtime and the watermark before it, so the result does not
depend on where micro-batches are cut. Only rows below their stream's watermark can be late; they are retained
whole until they are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.kernels.zset.time_windows import of_ticks
from windrow.plan.event_time import Occurrence
from windrow.spark.analysis.arrow_columns import in_memory
from windrow.spark.live.input.arrivals import VIOLATED
from windrow.spark.live.operators.watermark_conditions import WatermarkConditions
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.logs.session_streams import ARRIVED, REASON, ROWTIME
from windrow.streams.entries import NO_BOUND, REASONS

__all__ = ["JudgedEntries", "Predicate", "judged", "judging", "late_by"]

Ints = npt.NDArray[np.int64]

Predicate = Callable[[pa.Array, Ints], npt.NDArray[np.bool_]]
"""For which rowtimes a condition is true, with the watermark of each."""


@dataclass(frozen=True, eq=False)
class JudgedEntries:
    """The decisions about rows below their stream's watermark.

    Attributes
    ----------
    late
        The rows of each stream that are late for a group, with `VIOLATED`: the watermark, minus the allowed
        lateness.
    waiting
        The rows whose processing time is after that up to which all streams are complete.
    """

    late: Mapping[str, pa.Table]
    waiting: Mapping[str, pa.Table]

    @property
    def count(self) -> int:
        """How many are late."""
        return sum(rows.num_rows for rows in self.late.values())


def judged(
    plan: EmittedPlan,
    conditions: WatermarkConditions,
    below: Mapping[str, pa.Table],
    marks: Mapping[str, Marks],
    until: int | None,
) -> JudgedEntries:
    """Judge the rows that have arrived by a processing time.

    Parameters
    ----------
    conditions
        The conditions so far.
    below
        The rows of each stream that were below its watermark when they arrived, with `ROWTIME`, `ARRIVED` and
        `BEFORE`.
    marks
        Up to which rowtime each live stream was complete, over time.
    until
        The processing time; None before the first entry.
    """
    late, waiting = {}, {}
    for name, rows in below.items():
        waits = np.ones(rows.num_rows, bool) if until is None else rows.column(ARRIVED).to_numpy() > until
        if waits.any():
            waiting[name] = rows.filter(pa.array(waits))
        arrived = rows.filter(pa.array(~waits)).combine_chunks()
        bounds = _violated(plan, conditions, name, arrived, marks)
        is_late = bounds != NO_BOUND
        if is_late.any():
            rows = arrived.append_column(VIOLATED, pa.array(bounds)).filter(pa.array(is_late))
            late[name] = rows.append_column(REASON, pa.repeat(REASONS[0], rows.num_rows))
    return JudgedEntries(late, waiting)


def _violated(
    plan: EmittedPlan, conditions: WatermarkConditions, name: str, rows: pa.Table, marks: Mapping[str, Marks]
) -> Ints:
    """The greatest watermark by which each row is late; `NO_BOUND` for rows on time."""
    stream, judges = plan.catalog.streams[name], list[tuple[pa.Array, list[Predicate]]]()
    kind = stream.frame.schema[stream.rowtime or ""]
    for part, each in [(one, found) for one in plan.parts for found in judging(one, name)]:
        is_true_at = [
            partial(conditions.is_true_at, (name, one), kind, partial(plan.below, one.row, one.least, name))
            for one in part.query.timed.judgings
            if one.origin == each.place
        ]
        judges.append((part.marks_before(each, rows, marks), list(is_true_at)))
    return late_by(rows, in_memory(StructType([kind])).field(0).type, judges)


def judging(plan: EmittedPlan, name: str) -> list[Occurrence]:
    """The places of a stream in a query at which its rows may be late for groups."""
    occurrences = plan.query.timed.occurrences
    return [each for each in occurrences if each.stream == name and each.watermark_of]


def late_by(
    rows: pa.Table, kind: pa.DataType, judges: Sequence[tuple[pa.Array, Sequence[Predicate]]]
) -> Ints:
    """The greatest watermark by which each row is late; `NO_BOUND` for rows on time.

    Parameters
    ----------
    rows
        With `ROWTIME`.
    kind
        The type of the column of rowtimes.
    judges
        For each place of the stream: the watermark before each row, NULL for rows not below it, and the
        conditions by which rows are late.
    """
    found, ticks = np.full(rows.num_rows, NO_BOUND), rows.column(ROWTIME).to_numpy()
    for before, conditions in judges:
        places = np.flatnonzero(np.asarray(pc.is_valid(before)))
        at = np.asarray(before.take(pa.array(places)))
        for is_true_at in conditions if len(places) else ():
            is_late = is_true_at(of_ticks(ticks[places], kind), at)
            found[places[is_late]] = np.maximum(found[places[is_late]], at[is_late])
    return found
