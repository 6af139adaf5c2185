"""The state of a live query as a table: retained rows, and which streams and producers delay it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from windrow.algebra.time_scale import TimeScale
from windrow.kernels.incremental import InputState
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.plans.live_plan import BUFFERED_ROWS, LivePlan
from windrow.spark.live.reports.progress_report import instant_text
from windrow.spark.live.sinks.into_stream import rescaled_tick
from windrow.spark.logs.session_streams import ROWTIME
from windrow.streams import NO_BOUND, Position

__all__ = [
    "QueryState",
    "RetainedRowsOf",
    "StateRow",
    "in_windows",
    "producers_of",
    "retained_of",
    "state_of",
    "timed_state_of",
]

_IN_PLACE = "what operators need, in place of the rows in windows"
_SCHEMA = (
    "kind STRING, name STRING, producer STRING, rows BIGINT, bytes BIGINT, oldest STRING, bound STRING,"
    " delays BOOLEAN, why STRING"
)


@dataclass(frozen=True)
class RetainedRowsOf:
    """The number of retained rows, their bytes, and the least of their rowtimes in ticks."""

    rows: int = 0
    bytes: int | None = 0
    oldest: int | None = None

    @staticmethod
    def of(rowtimes: pa.ChunkedArray, size: int | None) -> RetainedRowsOf:
        """The numbers of rows with these rowtimes."""
        return RetainedRowsOf(len(rowtimes), size, pc.min(rowtimes).as_py())


def in_windows(
    states: Mapping[str, InputState], size_of: Callable[[str], int | None]
) -> dict[str, RetainedRowsOf]:
    """The numbers of the rows in windows, by the names of their state."""
    found = {}
    for name, state in states.items():
        found[name] = RetainedRowsOf(state.count, size_of(name), state.oldest(ROWTIME))
    return found


def retained_of(
    tables: Iterable[pa.Table], size: int, scale: TimeScale, rowtimes: Collection[str]
) -> RetainedRowsOf:
    """The numbers of the rows in tables, which are stored in `size` bytes."""
    count, firsts = 0, list[int]()
    for table in tables:
        count += table.num_rows
        columns = [table.column(name) for name in rowtimes if name in table.column_names]
        firsts += [first for first in (_first(column, scale) for column in columns) if first is not None]
    return RetainedRowsOf(count, size, min(firsts, default=None))


def _first(rowtimes: pa.ChunkedArray, scale: TimeScale) -> int | None:
    """The least rowtime, in ticks."""
    first, factor = pc.min(rowtimes), 1
    if pa.types.is_timestamp(first.type):
        first = first.cast(pa.timestamp("us", first.type.tz)).cast(pa.int64())
        factor = scale.nanoseconds // 1000
    elif pa.types.is_date32(first.type):
        first = first.cast(pa.int32())
    found: int | None = first.as_py()
    return None if found is None else found // factor


@dataclass(frozen=True)
class StateRow:
    """A row of the table; :meth:`windrow.LiveQuery.state` documents its columns."""

    kind: str
    name: str
    producer: str | None = None
    rows: int | None = None
    bytes: int | None = None
    oldest: str | None = None
    bound: str | None = None
    delays: bool | None = None
    why: str | None = None

    def showing(self, retained: RetainedRowsOf, scale: TimeScale, zone: str) -> StateRow:
        """The row with the numbers of retained rows."""
        oldest = None if retained.oldest is None else instant_text(scale, retained.oldest, zone)
        return replace(self, rows=retained.rows, bytes=retained.bytes, oldest=oldest)


@dataclass(frozen=True)
class QueryState:
    """The table."""

    rows: tuple[StateRow, ...]

    def frame(self, spark: SparkSession) -> DataFrame:
        """As a DataFrame."""
        return spark.createDataFrame([astuple(row) for row in self.rows], _SCHEMA)


def state_of(
    plan: LivePlan,
    batch: CommittedBatch,
    waiting: Mapping[str, RetainedRowsOf],
    windows: Mapping[str, RetainedRowsOf],
    *,
    on_one_scale: bool = False,
    operators: RetainedRowsOf | None = None,
) -> QueryState:
    """The state after a micro-batch.

    Parameters
    ----------
    waiting
        The buffered rows, which wait for the watermark, by stream.
    windows
        The rows in windows, by the windows' names in the checkpoint.
    on_one_scale
        Whether rowtimes of buffered rows are in the query's ticks, and not in those of their stream.
    operators
        The state of operators in place of rows in windows; None without.
    """
    zone = str(plan.gateway.spark.conf.get("spark.sql.session.timeZone") or "UTC")
    streams = plan.catalog.streams
    reached: dict[str, int] = {}
    for name in plan.streams:
        at = batch.positions[name].watermark.value if name in batch.positions else None
        reached[name] = NO_BOUND if at is None else rescaled_tick(at, streams[name].scale, plan.scale)
    rows: list[StateRow] = []
    for name in sorted(plan.streams):
        scale, position = streams[name].scale, batch.positions.get(name)
        at = None if position is None else position.watermark.value
        bound = None if at is None else instant_text(scale, at, zone)
        is_least, several = reached[name] == min(reached.values()), len(reached) > 1
        why = BUFFERED_ROWS if name in waiting else None
        own = StateRow("stream", name, bound=bound, delays=is_least and several, why=why)
        rows.append(
            own.showing(waiting.get(name, RetainedRowsOf()), plan.scale if on_one_scale else scale, zone)
        )
        rows += producers_of(name, position, scale, zone, is_least=is_least, several=several)
    written, reasons = plan.windows(), plan.reasons()
    for name, retained in windows.items():
        own = StateRow("window", written.get(name, name), why=reasons.get(name))
        rows.append(own.showing(retained, plan.scale, zone))
    if operators is not None:
        rows.append(StateRow("operators", "", rows=operators.rows, bytes=operators.bytes, why=_IN_PLACE))
    return QueryState(tuple(rows))


def timed_state_of(
    plan: LivePlan,
    batch: CommittedBatch,
    retained: Mapping[str, RetainedRowsOf],
    why: str,
    operators: RetainedRowsOf | None,
) -> QueryState:
    """The state of a query with EMIT, after a micro-batch.

    Parameters
    ----------
    retained
        The retained rows of each stream.
    why
        Why they are retained.
    operators
        The state of operators; None without.
    """
    zone = str(plan.gateway.spark.conf.get("spark.sql.session.timeZone") or "UTC")
    bounds = {name: position.watermark.at for name, position in batch.positions.items()}
    rows: list[StateRow] = []
    for name in sorted(plan.streams):
        scale = plan.catalog.streams[name].scale
        bound = None if name not in bounds else instant_text(scale, bounds[name], zone)
        is_least, several = bool(bounds) and bounds.get(name) == min(bounds.values()), len(plan.streams) > 1
        rows.append(StateRow("stream", name, bound=bound, delays=is_least and several))
        position = batch.positions.get(name)
        rows += producers_of(name, position, scale, zone, is_least=is_least, several=several)
        made = StateRow("rows", name, why=why).showing(retained.get(name, RetainedRowsOf()), scale, zone)
        rows.append(made)
    if operators is not None:
        rows.append(StateRow("operators", "", rows=operators.rows, bytes=operators.bytes, why=why))
    return QueryState(tuple(rows))


def producers_of(
    name: str, position: Position | None, scale: TimeScale, zone: str, *, is_least: bool, several: bool
) -> Iterator[StateRow]:
    """The known producers of a stream, each with whether it delays the query.

    Parameters
    ----------
    is_least
        Whether no other stream of the query has a lower watermark.
    several
        Whether the query reads several streams. If not, a single open producer delays nothing.
    """
    if position is None:
        return
    standing = position.watermark.producers
    opened = [each.bound for each in standing.values() if each.is_open]
    delays, least = is_least and (several or len(opened) > 1), min(opened, default=None)
    for producer, each in sorted(standing.items()):
        yield StateRow(
            "producer",
            name,
            producer=producer,
            bound=instant_text(scale, each.bound, zone),
            delays=delays and each.is_open and each.bound == least,
        )
