"""Micro-batches of EMIT as Spark jobs over all retained rows: what is judged, evaluated and retained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.plan.event_time import Closed
from windrow.punctuations.since import Since
from windrow.spark.collected import few, frame_of_few
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.input.arrivals import Arrivals, arrivals
from windrow.spark.live.input.entry_columns import STREAM, inside
from windrow.spark.live.micro_batches.session_rows import without_final
from windrow.spark.live.plans.emit_queries import EmittedPlan, KnownWatermarks
from windrow.spark.logs.live_source import PLACE, PTIME
from windrow.spark.logs.micro_batch import RetainedRows
from windrow.spark.logs.session_streams import ARRIVED, Stream
from windrow.spark.recorded.punctuation_times import ColumnPairs, LoggedPunctuation, with_since
from windrow.syntax.sqltext import quoted

__all__ = ["ROWS", "count_entering", "first_times", "judged_arrivals", "known_by", "last_time", "rows_left"]

ROWS = "rows-"
"""The rows of a stream are retained under this name, and the stream's."""


def judged_arrivals(
    streams: Sequence[tuple[int, str, Stream]],
    batch: DataFrame,
    control: pa.Table,
    before: CommittedBatch,
    now: int,
) -> dict[str, Arrivals]:
    """What came of each stream, judged."""
    found = {}
    for place, name, stream in streams:
        assert stream.live is not None
        names = [F.col(quoted(inside(place, name))).alias(name) for name in stream.live.frame.columns]
        rows = batch.where(F.col(STREAM) == place).select(*names, PLACE)
        own = control.filter(pc.equal(control.column(STREAM), place))
        if not stream.is_log:
            when = pa.array([now] * own.num_rows, pa.int64())
            own = own.set_column(own.column_names.index(PTIME), PTIME, when)
        position = before.positions.get(name)
        found[name] = arrivals(name, stream, rows, own, before.number + 1, position, now, timed=True)
    return found


def first_times(streams: Sequence[tuple[int, str, Stream]], control: pa.Table, now: int) -> list[int]:
    """The first processing time of each stream of which there are entries."""
    firsts = []
    for place, _, stream in streams:
        own = control.filter(pc.equal(control.column(STREAM), place))
        if own.num_rows:
            firsts.append(pc.min(own.column(PTIME)).as_py() if stream.is_log else now)
    return firsts


def last_time(control: pa.Table, places: Sequence[int]) -> int | None:
    """The greatest processing time of entries of these numbers."""
    number = control.column(STREAM)
    times = control.filter(pc.is_in(number, pa.array(places, number.type)))
    last: int | None = pc.max(times.column(PTIME)).as_py() or 0 if times.num_rows else None
    return last


def count_entering(rows: Mapping[str, DataFrame], since: int | None, until: int | None) -> int:
    """How many rows come after a processing time, by another one."""
    if until is None:
        return 0
    arrived = reduce(DataFrame.unionAll, (frame.select(ARRIVED) for frame in rows.values()))
    return arrived.where(F.col(ARRIVED).between(-1 if since is None else since + 1, until)).count()


def known_by(rows: DataFrame, marks: Marks, punctuations: LoggedPunctuation, until: int) -> KnownWatermarks:
    """What was known of a stream by a processing time."""
    moved = [(at, mark) for at, mark in marks if at <= until]
    return KnownWatermarks(
        rows.where(F.col(ARRIVED) <= until), moved, tuple(one for one in punctuations if one[0] <= until)
    )


def rows_left(
    plan: EmittedPlan,
    gateway: Gateway,
    rows: Mapping[str, DataFrame],
    marks: Mapping[str, Marks],
    punctuations: Mapping[str, LoggedPunctuation],
    frontier: int | None,
) -> tuple[dict[str, RetainedRows], int | None, int]:
    """The rows that are needed after a micro-batch; when the oldest came, and how many wait for a later
    one.
    """
    keep: dict[str, RetainedRows] = {}
    oldest: list[int] = []
    buffered = 0
    known = {
        name: KnownWatermarks(frame, marks[name], tuple(punctuations.get(name, ())))
        for name, frame in rows.items()
    }
    for name, frame in rows.items():
        left = frame if frontier is None else _needed(plan, gateway, name, known, frontier)
        table = few(left)
        if table is not None:
            frame = frame_of_few(gateway.spark, table, left.schema)
            keep[f"{ROWS}{name}"] = RetainedRows.of(frame, are_few=True)
            came = table.column(ARRIVED)
            first = pc.min(came).as_py()
            waiting = pc.sum(pc.greater(came, frontier or 0)).as_py() or 0
        else:
            keep[f"{ROWS}{name}"] = RetainedRows.of(left, are_few=False)
            is_buffered = F.sum((F.col(ARRIVED) > (frontier or 0)).cast("int"))
            first, waiting = left.agg(F.min(ARRIVED), is_buffered).collect()[0]
        buffered += waiting
        oldest += [] if first is None else [first]
    return keep, min(oldest, default=None), buffered


def _needed(
    plan: EmittedPlan, gateway: Gateway, name: str, known: Mapping[str, KnownWatermarks], until: int
) -> DataFrame:
    """The rows of a stream that changes after a processing time may still be made of."""
    rows = known[name].rows
    if plan.query.timed.unbounded is not None:
        return rows
    has_come = F.col(ARRIVED) <= until
    if plan.emits_at_once:
        return rows.where(~has_come)
    marks = {each: known[each].marks for each in known}
    if plan.has_sessions:
        return without_final(plan, gateway, name, known[name], marks, until)
    mark = plan.mark_of(name, marks, until)
    known_by = until - (plan.delay)
    punctuation = plan.punctuation({each: known[each].punctuations for each in known})
    over, asked = F.lit(True), list[tuple[str, Since | None, ColumnPairs]]()
    for grouping in plan.endings(name):
        closed = F.lit(False) if mark is None else plan.over([grouping], name, f"{mark}L")
        for each in (each for each in grouping if isinstance(each, Closed)):
            if punctuation.may_close(each, plan.places):
                parts = punctuation.closing_columns(each, plan.places)
                names = [f"__since{len(asked) + number}" for number in range(len(parts))]
                asked += [
                    (since, punctuation.of(*part), part[1]) for since, part in zip(names, parts, strict=True)
                ]
                closed |= reduce(and_, (F.col(since) <= known_by for since in names))
        over &= closed
    return with_since(rows, asked).where(~(has_come & over)).select(*map(quoted, rows.columns))
