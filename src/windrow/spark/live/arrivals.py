"""What a micro-batch brings: its entries judged by the clocks of their streams, late rows told apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.errors import InputError
from windrow.spark.live.source import BOUND, NUMBER, PLACE, PRODUCER, PTIME, STEP, LiveSource
from windrow.spark.streams import ROWTIME, Stream
from windrow.streams import Decision, Kind, Position, State
from windrow.streams.advance import advance
from windrow.streams.entries import AT, CONTROL, KIND, SEQUENCE, Entries, Ints
from windrow.streams.position import judge
from windrow.syntax.sqltext import quoted

__all__ = ["VIOLATED", "Arrivals", "arrivals"]

VIOLATED = "__violated"
"""The bound that a late row is below."""

_COME = "__come"


@dataclass(frozen=True)
class Arrivals:
    """The rows of a micro-batch that are admitted, and the late ones, if there are any.

    `late` has the columns of the stream, `ROWTIME`, `PRODUCER` and `VIOLATED`. `position` is what the entries
    up to its end say of the later ones, `count` how many rows came, but for those that were in already.
    """

    rows: DataFrame
    late: DataFrame | None
    position: Position
    count: int


@dataclass(frozen=True, eq=False)
class _Judged:
    """What became of the rows, in their order, and when they came where that is not what they say."""

    place: Ints
    decision: npt.NDArray[np.int8]
    violated: Ints
    position: Position
    came: pa.Table | None = None


def arrivals(
    name: str,
    stream: Stream,
    batch: DataFrame,
    told: pa.Table,
    number: int,
    position: Position | None,
    now: int,
) -> Arrivals:
    """Judge a micro-batch.

    Parameters
    ----------
    name, stream
        The live stream.
    batch
        Its columns and `PLACE`, the order in which its entries came.
    told
        Of the same entries, in their order: `PLACE`, `ROWTIME`, `PRODUCER`, `PTIME`, `BOUND`; of a named
        stream those of `LOGGED` too.
    number
        Of the micro-batch.
    position
        What the entries before say of these; None before the first.
    now
        The time of the micro-batch, in microseconds.
    """
    source = stream.live
    assert source is not None
    before = position if position is not None else Position(source.identity)
    judged = _logged(source, told, before) if source.identity else _rows(name, source, told, before, now)
    rows = batch.where(F.col(ROWTIME).isNotNull())
    late = None
    is_late = np.isin(judged.decision, (Decision.LATE, Decision.REJECTED))
    is_out = judged.decision != Decision.ADMITTED
    if is_late.any():
        wrong = {PLACE: judged.place[is_late], VIOLATED: judged.violated[is_late]}
        kept = [*map(quoted, stream.columns), ROWTIME, PRODUCER, VIOLATED]
        late = rows.join(_beside(batch, pa.table(wrong)), PLACE).select(*kept)
    if is_out.any():
        rows = rows.join(_beside(batch, pa.table({PLACE: judged.place[is_out]})), PLACE, "left_anti")
    if judged.came is not None:
        rows = rows.join(_beside(batch, judged.came), PLACE, "left")
        rows = rows.withColumn(PTIME, F.coalesce(_COME, PTIME))
    says = (PTIME, PRODUCER, SEQUENCE) if source.identity else (STEP, PLACE)
    ties = [F.col(column).alias(tie) for column, tie in zip(says, stream.ties, strict=True)]
    numbered = rows.withColumn(STEP, F.lit(number).cast("bigint"))
    ours = numbered.select(*map(quoted, stream.columns), ROWTIME, *ties)
    count = ~np.isin(judged.decision, (Decision.DUPLICATE, Decision.FENCED))
    return Arrivals(ours, late, judged.position, int(count.sum()))


def _beside(batch: DataFrame, rows: pa.Table) -> DataFrame:
    return F.broadcast(batch.sparkSession.createDataFrame(rows))


def _logged(source: LiveSource, told: pa.Table, position: Position) -> _Judged:
    """The entries of a named stream's log, as all its readers judge them."""
    at = pc.coalesce(told.column(ROWTIME), told.column(BOUND))
    entries = told.append_column(AT, at).select(CONTROL.names)
    judged = judge(position, source.ordering, entries, told.column(NUMBER).to_numpy())
    is_row = told.column(KIND).to_numpy() == Kind.ROW
    place = told.column(PLACE).to_numpy()
    is_later = judged.ptime != told.column(PTIME).to_numpy()
    came = pa.table({PLACE: place[is_later], _COME: judged.ptime[is_later]}) if is_later.any() else None
    return _Judged(place[is_row], judged.decision[is_row], judged.violated[is_row], judged.position, came)


def _rows(name: str, source: LiveSource, told: pa.Table, position: Position, now: int) -> _Judged:
    """The rows of a streaming DataFrame; producers that have been silent for too long are idle after them."""
    entries, places = _entries(name, told)
    decided = advance(position.clock, source.ordering, entries)
    is_row = entries.kind == Kind.ROW
    after = replace(position, clock=_silent(decided.state, source, now))
    return _Judged(places[is_row], decided.decision[is_row], decided.violated[is_row], after)


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
