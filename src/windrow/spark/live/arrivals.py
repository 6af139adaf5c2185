"""What a micro-batch brings: its entries judged by the clocks of their streams, late rows told apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.errors import InputError
from windrow.spark.live.source import BOUND, PLACE, PRODUCER, PTIME, STEP, LiveSource
from windrow.spark.streams import ROWTIME, Stream
from windrow.streams import Decision, Kind, State
from windrow.streams.advance import advance
from windrow.streams.entries import Entries
from windrow.syntax.sqltext import quoted

__all__ = ["VIOLATED", "Arrivals", "arrivals"]

VIOLATED = "__violated"
"""The bound that a late row is below."""


@dataclass(frozen=True)
class Arrivals:
    """The rows of a micro-batch that are admitted, and the late ones, if there are any.

    `late` has the columns of the stream, `ROWTIME`, `PRODUCER` and `VIOLATED`. `state` is the clock's after
    it, `count` that of all rows.
    """

    rows: DataFrame
    late: DataFrame | None
    state: State
    count: int


def arrivals(
    name: str, stream: Stream, batch: DataFrame, told: pa.Table, number: int, state: State, now: int
) -> Arrivals:
    """Judge a micro-batch.

    Parameters
    ----------
    name, stream
        The live stream.
    batch
        Its columns and `PLACE`, the order in which its entries came.
    told
        Of the same entries, in their order: `PLACE`, `ROWTIME`, `PRODUCER`, `PTIME`, `BOUND`.
    number
        Of the micro-batch.
    state
        The clock's before.
    now
        The time of the micro-batch, in microseconds.
    """
    source = stream.live
    assert source is not None
    entries, places = _entries(name, told)
    decided = advance(state, source.ordering, entries)
    is_row = entries.kind == Kind.ROW
    is_late = is_row & np.isin(decided.decision, (Decision.LATE, Decision.REJECTED))
    after = _silent(decided.state, source, now)
    rows = batch.where(F.col(ROWTIME).isNotNull())
    late = None
    if is_late.any():
        wrong = pa.table({PLACE: pa.array(places[is_late]), VIOLATED: pa.array(decided.violated[is_late])})
        below = F.broadcast(batch.sparkSession.createDataFrame(wrong))
        kept = [*map(quoted, stream.columns), ROWTIME, PRODUCER, VIOLATED]
        late = rows.join(below, PLACE).select(*kept)
        rows = rows.join(below, PLACE, "left_anti")
    ours = rows.select(*map(quoted, stream.columns), ROWTIME, F.lit(number).cast("bigint").alias(STEP), PLACE)
    return Arrivals(ours, late, after, int(is_row.sum()))


def _entries(name: str, told: pa.Table) -> tuple[Entries, np.ndarray]:
    """The entries, a row before the bound that comes with it, and the place of each."""
    columns = {column: told.column(column) for column in told.column_names}
    has_rowtime, has_bound = (columns[column].is_valid().to_numpy() for column in (ROWTIME, BOUND))
    if not (has_rowtime | has_bound).all():
        raise InputError(
            f"a row of stream {name} has NULL as its rowtime",
            condition="NULL_ROWTIME",
            hint="leave such rows out with WHERE",
        )
    index = np.arange(told.num_rows)
    which = np.concatenate([index[has_rowtime], index[has_bound]])
    kind = np.repeat(
        np.array([Kind.ROW, Kind.BOUND], np.int8), [int(has_rowtime.sum()), int(has_bound.sum())]
    )
    order = np.lexsort((kind, which))
    which, kind = which[order], kind[order]
    rowtimes, bounds = (columns[column].fill_null(0).to_numpy() for column in (ROWTIME, BOUND))
    producers = columns[PRODUCER].combine_chunks().dictionary_encode()
    entries = Entries(
        kind,
        producers.indices.to_numpy(zero_copy_only=False).astype(np.int32)[which],
        np.where(kind == Kind.ROW, rowtimes[which], bounds[which]),
        columns[PTIME].to_numpy()[which],
        tuple(producers.dictionary.to_pylist()),
    )
    return entries, columns[PLACE].to_numpy()[which]


def _silent(state: State, source: LiveSource, now: int) -> State:
    """The state after producers that have been silent for too long are idle."""
    if source.idle is None:
        return state
    names = state.silent(now, source.idle)
    return advance(state, source.ordering, Entries.of([(Kind.IDLE, name, 0, now) for name in names])).state
