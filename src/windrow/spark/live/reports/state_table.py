"""What a live query keeps, and what holds it back, as a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from windrow.algebra.clock import Clock
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.checkpoints.size import size_of
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.live.reports.progress_report import shown_instant
from windrow.spark.live.sinks.into_stream import rescaled_tick
from windrow.streams import NO_BOUND, Position

__all__ = [
    "QueryState",
    "RetainedRowsOf",
    "StateRow",
    "kept_in",
    "kept_of",
    "producers_of",
    "state_of",
    "timed_state_of",
]

_SCHEMA = (
    "kind STRING, name STRING, producer STRING, rows BIGINT, bytes BIGINT, oldest STRING, bound STRING,"
    " holds BOOLEAN, why STRING"
)


@dataclass(frozen=True)
class RetainedRowsOf:
    """How many rows are kept somewhere, in how many bytes, and the least of their rowtimes in ticks."""

    rows: int = 0
    bytes: int | None = 0
    oldest: int | None = None

    @staticmethod
    def of(rowtimes: pa.ChunkedArray, size: int | None) -> RetainedRowsOf:
        """Of rows with these rowtimes."""
        return RetainedRowsOf(len(rowtimes), size, pc.min(rowtimes).as_py())


def kept_in(path: Path, clock: Clock, rowtimes: Collection[str]) -> RetainedRowsOf:
    """What is in a file of a step, or in a folder of Parquet files.

    Parameters
    ----------
    clock
        What the rows' ticks are of.
    rowtimes
        The columns that may hold rowtimes: ticks, times or dates.
    """
    if path.is_dir():
        files = [pq.read_table(file) for file in sorted(path.glob("*.parquet"))]
        size = size_of(path)
    else:
        with pa.ipc.open_file(path) as file:
            files = [file.read_all()]
        size = path.stat().st_size
    return kept_of(files, size, clock, rowtimes)


def kept_of(tables: Iterable[pa.Table], size: int, clock: Clock, rowtimes: Collection[str]) -> RetainedRowsOf:
    """The same of rows in tables, which are kept in so many bytes."""
    count, firsts = 0, list[int]()
    for table in tables:
        count += table.num_rows
        columns = [table.column(name) for name in rowtimes if name in table.column_names]
        firsts += [first for first in (_first(column, clock) for column in columns) if first is not None]
    return RetainedRowsOf(count, size, min(firsts, default=None))


def _first(rowtimes: pa.ChunkedArray, clock: Clock) -> int | None:
    """The least rowtime, in ticks."""
    first, factor = pc.min(rowtimes), 1
    if pa.types.is_timestamp(first.type):
        first = first.cast(pa.timestamp("us", first.type.tz)).cast(pa.int64())
        factor = clock.nanoseconds // 1000
    elif pa.types.is_date32(first.type):
        first = first.cast(pa.int32())
    found: int | None = first.as_py()
    return None if found is None else found // factor


@dataclass(frozen=True)
class StateRow:
    """A row of the table; :meth:`windrow.LiveQuery.state` says what is in it."""

    kind: str
    name: str
    producer: str | None = None
    rows: int | None = None
    bytes: int | None = None
    oldest: str | None = None
    bound: str | None = None
    holds: bool | None = None
    why: str | None = None

    def showing(self, kept: RetainedRowsOf, clock: Clock, zone: str) -> StateRow:
        """The row with what is kept."""
        oldest = None if kept.oldest is None else shown_instant(clock, kept.oldest, zone)
        return replace(self, rows=kept.rows, bytes=kept.bytes, oldest=oldest)


@dataclass(frozen=True)
class QueryState:
    """The table."""

    rows: tuple[StateRow, ...]

    def frame(self, spark: SparkSession) -> DataFrame:
        """As a DataFrame."""
        return spark.createDataFrame([astuple(row) for row in self.rows], _SCHEMA)


def state_of(
    plan: LivePlan,
    step: CommittedBatch,
    waiting: Mapping[str, RetainedRowsOf],
    windows: Mapping[str, RetainedRowsOf],
    *,
    on_one_clock: bool = False,
) -> QueryState:
    """The state after a step.

    Parameters
    ----------
    waiting
        The rows that wait for the frontier, by stream.
    windows
        Those in windows, by the names under which they are kept.
    on_one_clock
        Whether rowtimes of those that wait are in ticks of the query's clock, not of their stream's.
    """
    zone = str(plan.gateway.spark.conf.get("spark.sql.session.timeZone") or "UTC")
    streams = plan.catalog.streams
    reached: dict[str, int] = {}
    for name in plan.streams:
        at = step.clocks[name].watermark.value if name in step.clocks else None
        reached[name] = NO_BOUND if at is None else rescaled_tick(at, streams[name].clock, plan.clock)
    rows: list[StateRow] = []
    for name in sorted(plan.streams):
        clock, position = streams[name].clock, step.clocks.get(name)
        at = None if position is None else position.watermark.value
        holds = reached[name] == min(reached.values())
        bound = None if at is None else shown_instant(clock, at, zone)
        own = StateRow("stream", name, bound=bound, holds=holds)
        rows.append(
            own.showing(waiting.get(name, RetainedRowsOf()), plan.clock if on_one_clock else clock, zone)
        )
        rows += producers_of(name, position, clock, zone, holds=holds)
    written = plan.windows()
    for name, kept in windows.items():
        rows.append(StateRow("window", written.get(name, name)).showing(kept, plan.clock, zone))
    return QueryState(tuple(rows))


def timed_state_of(
    plan: LivePlan,
    step: CommittedBatch,
    kept: Mapping[str, RetainedRowsOf],
    why: str,
    operators: RetainedRowsOf | None,
) -> QueryState:
    """The state of a query that is told by processing time, after a step.

    Parameters
    ----------
    kept
        The rows of each stream.
    why
        Why they are kept.
    operators
        What operators hold in place of rows; None for nothing.
    """
    zone = str(plan.gateway.spark.conf.get("spark.sql.session.timeZone") or "UTC")
    bounds = {name: position.watermark.at for name, position in step.clocks.items()}
    rows: list[StateRow] = []
    for name in sorted(plan.streams):
        clock = plan.catalog.streams[name].clock
        bound = None if name not in bounds else shown_instant(clock, bounds[name], zone)
        holds = bool(bounds) and bounds.get(name) == min(bounds.values())
        rows.append(StateRow("stream", name, bound=bound, holds=holds))
        rows += producers_of(name, step.clocks.get(name), clock, zone, holds=holds)
        rows.append(StateRow("rows", name, why=why).showing(kept.get(name, RetainedRowsOf()), clock, zone))
    if operators is not None:
        rows.append(StateRow("operators", "", rows=operators.rows, bytes=operators.bytes, why=why))
    return QueryState(tuple(rows))


def producers_of(
    name: str, position: Position | None, clock: Clock, zone: str, *, holds: bool
) -> Iterator[StateRow]:
    """The producers that are known; of those that hold the stream back it is told."""
    if position is None:
        return
    standing = position.watermark.producers
    least = min((each.bound for each in standing.values() if each.is_open), default=None)
    for producer, each in sorted(standing.items()):
        yield StateRow(
            "producer",
            name,
            producer=producer,
            bound=shown_instant(clock, each.bound, zone),
            holds=holds and each.is_open and each.bound == least,
        )
