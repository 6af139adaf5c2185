"""Which rows of a log are admitted: those that no promise of their producer rules out.

A bound at t is a producer's promise that no row of it with a rowtime below t follows. Each row is admitted
or rejected once, by the entries logged before it. One that is rejected is late: it is kept apart, with the
bound that it violates.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

__all__ = ["PROMISED", "admitted"]

PROMISED = "__promised"
"""Of a row, the greatest bound that its producer promised before."""

_IS_BOUND = "__is_bound"


def admitted(
    log: DataFrame, rowtime: str, bound: str, ptime: str, producer: str | None
) -> tuple[DataFrame, DataFrame]:
    """The rows of a log that are admitted, and the others; both with `PROMISED`.

    Parameters
    ----------
    log
        Entries, of which those without a `rowtime` are no rows.
    rowtime, bound
        Ticks of a clock; a bound is NULL where an entry promises nothing. A row may carry one, which is about
        the rows after it.
    ptime
        Orders the entries of a producer. Bounds are about the entries of later ones: what one `ptime` brings
        comes at once.
    producer
        Whose entry it is; without, all are of one producer.
    """
    is_row = F.when(F.col(rowtime).isNotNull(), F.lit(0))
    is_bound = F.when(F.col(bound).isNotNull(), F.lit(1))
    parts = log.withColumn(_IS_BOUND, F.explode(F.array_compact(F.array(is_row, is_bound))))
    before = Window.partitionBy(*([producer] if producer is not None else [])).orderBy(ptime, _IS_BOUND)
    promised = F.max(F.when(F.col(_IS_BOUND) == 1, F.col(bound))).over(
        before.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    rows = parts.withColumn(PROMISED, promised).where(F.col(_IS_BOUND) == 0).drop(_IS_BOUND)
    is_late = F.coalesce(F.col(rowtime) < F.col(PROMISED), F.lit(False))
    return rows.where(~is_late), rows.where(is_late)
