"""Rows of recorded logs that are late for a group: one of their groups was complete when they arrived."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.kernels.zset.relation import ENTER
from windrow.plan.event_time import Judging, Occurrence, Timed
from windrow.spark.errors import raising
from windrow.spark.logs.admitted_rows import VIOLATED_BOUND
from windrow.spark.logs.session_streams import REASON, ROWTIME, SENDER, Stream, StreamArrivals
from windrow.streams.entries import REASONS
from windrow.syntax.sqltext import quoted

__all__ = ["LATE_FOR_GROUP", "LateForGroups"]

LATE_FOR_GROUP = "a row is late for a group: the watermark passed the group's end before the row arrived"
_KEEP = "set on_late='keep', in SQL ON LATE KEEP, which puts late rows into a side output"


@dataclass(frozen=True)
class LateForGroups:
    """Which rows of the streams of a query are late for a group.

    Attributes
    ----------
    streams, arrivals, timed
        The streams, arrivals and facts of the query.
    until
        The last processing time that counts; None for all.
    mark
        The watermark before each row of a stream at one place of the query; NULL in rows not below it.
    log
        The admitted rows of a stream, with `ROWTIME` and `ENTER`.
    """

    streams: Mapping[str, Stream]
    arrivals: Mapping[str, StreamArrivals]
    timed: Timed
    until: int | None
    mark: Callable[[Occurrence], Column]
    log: Callable[[str], DataFrame]

    def failing(self, occurrence: Occurrence, frame: DataFrame, mark: str) -> DataFrame:
        """The rows of a stream, where a row that is late for a group raises an error; `mark` is its watermark
        column.
        """
        judgings = self._judgings(occurrence)
        if not judgings:
            return frame
        is_late = _is_late(judgings, self.arrivals[occurrence.stream].rowtime, mark)
        if self.until is not None:
            is_late &= F.col(ENTER) <= self.until
        failed = raising("LATE_ROW", LATE_FOR_GROUP, _KEEP)
        # the mark is needed to close groups, and so is computed for each row
        return frame.withColumn(mark, F.when(is_late, failed).otherwise(F.col(mark)))

    def streams_late(self) -> list[Stream]:
        """The streams whose rows can be late for groups, with these as their late rows."""
        found = []
        for name, stream in self.streams.items():
            late = self.rows(name)
            if late is not None:
                sender = [SENDER] if SENDER in late.columns else []
                columns = [*stream.columns, ROWTIME, *sender, VIOLATED_BOUND]
                late = late.select(*map(quoted, columns), F.lit(REASONS[0]).alias(REASON))
                found.append(replace(stream, late=late))
        return found

    def streams_with_late(self) -> list[Stream]:
        """The streams, whose late rows include those that are late for groups."""
        for_groups = {stream.name: stream.late for stream in self.streams_late()}
        found = []
        for stream in self.streams.values():
            late, own = for_groups.get(stream.name), stream.late
            if late is not None and own is not None:
                own = own.withColumn(REASON, stream.why_late(own))
                late = own.unionByName(late, allowMissingColumns=True)
            found.append(stream if late is None else replace(stream, late=late))
        return found

    def rows(self, name: str) -> DataFrame | None:
        """The rows of a stream that are late for a group, with `VIOLATED_BOUND`; None if no row can be."""
        judged = [
            (each, found)
            for each in self.timed.occurrences
            if each.stream == name and (found := self._judgings(each))
        ]
        if not judged:
            return None
        frame = self.log(name)
        if self.until is not None:
            frame = frame.where(F.col(ENTER) <= self.until)
        bounds = []
        for number, (each, judgings) in enumerate(judged):
            mark = f"__mark{number}"
            frame = frame.withColumn(mark, self.mark(each))
            bounds.append(F.when(_is_late(judgings, self.arrivals[name].rowtime, mark), F.col(mark)))
        violated = bounds[0] if len(bounds) == 1 else F.greatest(*bounds)
        return frame.withColumn(VIOLATED_BOUND, violated).where(F.col(VIOLATED_BOUND).isNotNull())

    def _judgings(self, occurrence: Occurrence) -> list[Judging]:
        """The conditions by which rows of a stream are late for a group."""
        return [by for by in self.timed.judgings if by.origin == occurrence.place]


def _is_late(judgings: Iterable[Judging], scale: TimeScale, mark: str) -> Column:
    """Whether rows are late for a group, by `ROWTIME` and a column of marks, in ticks of a time scale."""
    at, known = scale.to_column(ROWTIME), scale.to_column(mark)
    found = [f"{by.row.replace('{t}', at)} < {by.least.replace('{t}', known)}" for by in judgings]
    return reduce(or_, (F.coalesce(F.expr(one), F.lit(False)) for one in found))
