"""The admitted rows of a log: those that violate no bound and no punctuation of their producer.

A producer's bound at t states that no later row of it has a rowtime below t. A punctuation states that no
later row of it matches a pattern. Each row is admitted or rejected once, by the entries before it in the log.
A rejected row is late, and has the bound that it violates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from windrow.punctuations import lines_of
from windrow.punctuations.index import Columns, Index
from windrow.spark.runtime.interpreter import apply_in_arrow
from windrow.spark.tasks.exchange import in_worker
from windrow.streams.punctuation_json import pattern_of

__all__ = ["VIOLATED_BOUND", "admitted", "admitted_by_patterns"]

VIOLATED_BOUND = "__promised"
"""The column with the greatest bound of a row's producer before the row."""

_IS_BOUND = "__is_bound"
_IS_BROKEN = "__is_broken"


def admitted(
    log: DataFrame, rowtime: str, bound: str, ptime: str, producer: str | None
) -> tuple[DataFrame, DataFrame]:
    """The admitted rows of a log, and the rejected ones; both with `VIOLATED_BOUND`.

    Parameters
    ----------
    log
        The entries; entries without a `rowtime` are not rows.
    rowtime, bound
        Columns of ticks; a bound is NULL in entries without one. A row's own bound concerns later rows.
    ptime
        The column that orders the entries of a producer. A bound concerns entries with a later `ptime`.
    producer
        The column of producers; without it, all entries have the same producer.
    """
    is_row = F.when(F.col(rowtime).isNotNull(), F.lit(0))
    is_bound = F.when(F.col(bound).isNotNull(), F.lit(1))
    parts = log.withColumn(_IS_BOUND, F.explode(F.array_compact(F.array(is_row, is_bound))))
    before = Window.partitionBy(*([producer] if producer is not None else [])).orderBy(ptime, _IS_BOUND)
    declared = F.max(F.when(F.col(_IS_BOUND) == 1, F.col(bound))).over(
        before.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    rows = parts.withColumn(VIOLATED_BOUND, declared).where(F.col(_IS_BOUND) == 0).drop(_IS_BOUND)
    is_late = F.coalesce(F.col(rowtime) < F.col(VIOLATED_BOUND), F.lit(False))
    return rows.where(~is_late), rows.where(is_late)


def admitted_by_patterns(
    log: DataFrame,
    columns: Sequence[str],
    rowtime: str,
    bound: str,
    pattern: str,
    ptime: str,
    producer: str | None,
) -> tuple[DataFrame, DataFrame]:
    """As :func:`admitted`, for a log with punctuations; `VIOLATED_BOUND` is NULL in rows that match one.

    Parameters
    ----------
    columns
        The columns of the rows, over which patterns are.
    pattern
        The column of patterns, as JSON.
    """
    schema = log.select(*log.columns).schema.add(_IS_BROKEN, BooleanType())

    def judged_all(parts: Iterable[pa.Table], _: int) -> Iterator[pa.Table]:
        """The entries of producers, with whether they match a pattern of an earlier time."""
        yield from map(judged_by, parts)

    def judged_by(entries: pa.Table) -> pa.Table:
        arrived = pc.rank(entries.column(ptime), tiebreaker="min").to_numpy()
        texts = entries.column(pattern)
        rows = entries.select(columns)
        lines = lines_of(rows.schema)
        at = np.flatnonzero(texts.is_valid().to_numpy())
        regions, since = [], []
        for place, text in zip(at.tolist(), texts.take(pa.array(at)).to_pylist(), strict=True):
            for region in pattern_of(text, rows.schema).regions():
                regions.append(region)
                since.append(int(arrived[place]))
        broken = np.zeros(entries.num_rows, bool)
        if regions:
            broken = Index(regions, lines, since).earliest(Columns(rows, lines)) < arrived
        return entries.append_column(_IS_BROKEN, pa.array(broken))

    keys = [producer] if producer is not None else []
    checked = in_worker(judged_all, None)

    def of_producer(entries: pa.Table) -> pa.Table:
        (made,) = checked([entries])
        return made

    judged = apply_in_arrow(log, keys, of_producer, schema)
    rows, late = admitted(judged, rowtime, bound, ptime, producer)
    broken = rows.where(_IS_BROKEN).withColumn(VIOLATED_BOUND, F.lit(None).cast("bigint"))
    return rows.where(f"NOT {_IS_BROKEN}").drop(_IS_BROKEN), late.unionByName(broken).drop(_IS_BROKEN)
