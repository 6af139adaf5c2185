"""Which rows of a log are admitted: those that no promise of their producer rules out.

A bound at t is a producer's promise that no row of it with a rowtime below t follows, a punctuation that none
does which matches its pattern. Each row is admitted or rejected once, by the entries logged before it. One
that is rejected is late: it is kept apart, with the bound that it violates.
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

__all__ = ["PROMISED", "admitted", "kept_to"]

PROMISED = "__promised"
"""Of a row, the greatest bound that its producer promised before."""

_IS_BOUND = "__is_bound"
_IS_BROKEN = "__is_broken"


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


def kept_to(
    log: DataFrame,
    columns: Sequence[str],
    rowtime: str,
    bound: str,
    pattern: str,
    ptime: str,
    producer: str | None,
) -> tuple[DataFrame, DataFrame]:
    """As :func:`admitted`, of a log with punctuations; `PROMISED` is NULL of rows that match one.

    Parameters
    ----------
    columns
        Those of the rows, of which patterns tell.
    pattern
        The column of patterns, as JSON.
    """
    schema = log.select(*log.columns).schema.add(_IS_BROKEN, BooleanType())

    def told(parts: Iterable[pa.Table], _: int) -> Iterator[pa.Table]:
        """The entries of producers, with whether they match a pattern of an earlier time."""
        yield from map(judged_by, parts)

    def judged_by(entries: pa.Table) -> pa.Table:
        came = pc.rank(entries.column(ptime), tiebreaker="min").to_numpy()
        texts = entries.column(pattern)
        rows = entries.select(columns)
        lines = lines_of(rows.schema)
        at = np.flatnonzero(texts.is_valid().to_numpy())
        boxes, since = [], []
        for place, text in zip(at.tolist(), texts.take(pa.array(at)).to_pylist(), strict=True):
            for box in pattern_of(text, rows.schema).regions():
                boxes.append(box)
                since.append(int(came[place]))
        broken = np.zeros(entries.num_rows, bool)
        if boxes:
            broken = Index(boxes, lines, since).earliest(Columns(rows, lines)) < came
        return entries.append_column(_IS_BROKEN, pa.array(broken))

    keys = [producer] if producer is not None else []
    checked = in_worker(told, None)

    def of_producer(entries: pa.Table) -> pa.Table:
        (made,) = checked([entries])
        return made

    judged = apply_in_arrow(log, keys, of_producer, schema)
    rows, late = admitted(judged, rowtime, bound, ptime, producer)
    broken = rows.where(_IS_BROKEN).withColumn(PROMISED, F.lit(None).cast("bigint"))
    return rows.where(f"NOT {_IS_BROKEN}").drop(_IS_BROKEN), late.unionByName(broken).drop(_IS_BROKEN)
