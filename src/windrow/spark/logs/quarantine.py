"""Entries of a recorded table that are too far ahead of their processing time."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.spark.logs.admitted_rows import VIOLATED_BOUND
from windrow.spark.logs.session_streams import REASON
from windrow.streams.entries import REASONS

__all__ = ["greatest_rowtime", "quarantined"]

_LIMIT = "__limit"


def greatest_rowtime(arrived: str, ptime: TimeScale, rowtime: TimeScale, future: int) -> Column:
    """The greatest rowtime, in ticks, that an entry may have, as of `streams.admission.future.Future`.

    Parameters
    ----------
    arrived
        The column of processing times.
    ptime, rowtime
        The time scales of processing times and of rowtimes.
    future
        How far an entry may be ahead, in microseconds.
    """
    ticks = ptime.of_column(arrived, ptime.kind, ptime.unit)
    micros = f"(({ticks}) * {ptime.nanoseconds // 1000}L + {future}L)"
    if rowtime.nanoseconds < 1000:
        return F.expr(f"{micros} * 1000L + 999L")
    tick = rowtime.nanoseconds // 1000
    return F.expr(f"({micros} - pmod({micros}, {tick}L)) div {tick}L")


def quarantined(
    entries: DataFrame, limit: Column, rowtime: str, bound: str, columns: Sequence[str]
) -> tuple[DataFrame, DataFrame]:
    """The entries without rowtimes and bounds beyond a limit; and the late rows: the rows and bounds that are
    beyond it, with `VIOLATED_BOUND`, the limit, and `REASON`.

    Parameters
    ----------
    rowtime, bound
        Columns of ticks, each NULL in entries without it.
    columns
        The columns of rows, NULL in a bound.
    """
    limited = entries.withColumn(_LIMIT, limit)
    found = []
    for name, reason in ((rowtime, REASONS[3]), (bound, REASONS[4])):
        ahead = limited.where(F.col(name) > F.col(_LIMIT))
        if name == bound:
            kinds = {one.name: one.dataType for one in entries.schema}
            no_row = {one: F.lit(None).cast(kinds[one]) for one in columns}
            ahead = ahead.withColumns({**no_row, rowtime: F.col(bound)})
        found.append(ahead.withColumnRenamed(_LIMIT, VIOLATED_BOUND).withColumn(REASON, F.lit(reason)))
    within = {name: F.when(F.col(name) <= F.col(_LIMIT), F.col(name)) for name in (rowtime, bound)}
    kept = limited.withColumns(within).where(F.col(rowtime).isNotNull() | F.col(bound).isNotNull())
    return kept.drop(_LIMIT), found[0].unionByName(found[1])
