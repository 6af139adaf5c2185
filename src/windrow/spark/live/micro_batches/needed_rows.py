"""The rows of a stream that a query with EMIT still needs after a processing time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.plan.event_time import Closed
from windrow.punctuations.since import Since
from windrow.spark.gateway import Gateway
from windrow.spark.live.micro_batches.session_rows import without_final
from windrow.spark.live.plans.emit_queries import EmittedPlan, KnownWatermarks
from windrow.spark.logs.session_streams import ARRIVED
from windrow.spark.recorded.punctuation_times import ColumnPairs, with_since
from windrow.syntax.sqltext import quoted

__all__ = ["needed"]


def needed(
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
    known_by = until - (plan.query.how.delay or 0)
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
