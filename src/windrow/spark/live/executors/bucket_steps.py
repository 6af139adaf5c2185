"""The micro-batches of a live query on executors: the output of its buckets goes to the sink."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.spark.live.checkpoints.checkpoint import BUCKETS, CommittedBatch
from windrow.spark.live.executors.as_bytes import from_bytes
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.spark.live.executors.input.marked_files import MarkedSources
from windrow.spark.live.executors.input.packing import DATA, NOTE
from windrow.spark.live.executors.judging import mark_of
from windrow.spark.live.executors.packets import Graph
from windrow.spark.live.executors.unpacking import is_of_rows
from windrow.spark.live.input.ticks import TickFiles
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.live.micro_batches.output import RowsForSink
from windrow.spark.live.micro_batches.query_steps import Advanced, Retained, Steps
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.live.reports.state_table import QueryState, RetainedRowsOf, state_of, timed_state_of
from windrow.spark.live.sinks.sink import Files, TableSink
from windrow.spark.runtime.settings import STATE_STORE
from windrow.streams import Position
from windrow.streams.admission.parts import Refused
from windrow.streams.admission.several_producers import SharedWatermark

__all__ = ["ExecutorSteps"]

_SMALL = 1 << 16
"""The most bytes of a packet that is sent to the driver with its note."""

_STATE = "kept."
"""The prefix of counts of retained rows."""
_OF_EACH = ("rows", "bytes", "oldest")
_OPERATORS = "operators"
_EXCHANGES = "exchanges"
"""How often rows are divided."""


@dataclass(frozen=True)
class _InAll:
    """The state of all buckets: buffered rows of streams, retained rows of sides, and of operators."""

    waiting: Mapping[str, RetainedRowsOf]
    windows: Mapping[str, RetainedRowsOf]
    operators: RetainedRowsOf


@dataclass(frozen=True, eq=False)
class _Packets:
    """The output of the buckets.

    Attributes
    ----------
    late
        The late rows of each stream.
    count
        How many rows arrived.
    batch
        All packets.
    accounts
        What each bucket did.
    rows
        The packets with changes; None for large ones, which are not on the driver.
    """

    late: Mapping[str, DataFrame | None]
    count: int
    batch: DataFrame
    accounts: Sequence[BucketAccount]
    rows: Sequence[bytes | None]


class ExecutorSteps(Steps[_Packets]):
    """Runs a query on executors.

    A micro-batch is the output of the buckets. Their state is in Spark's state store, which retains the
    version that belongs to the micro-batch. The checkpoint here contains the account, and the places of late
    rows.

    Parameters
    ----------
    graph
        The query for executors; a checkpoint that has begun keeps its number of buckets.
    context
        The query, as it runs.
    """

    settings = MappingProxyType(STATE_STORE)

    def __init__(self, graph: Graph, context: LiveContext) -> None:
        self._context = context
        last, folder = context.checkpoint.last(), context.checkpoint.folder.resolve()
        graph, counts = graph.begun(folder, has_begun=last.number >= 0), last.counts
        if BUCKETS in counts:  # of an earlier version, rows were divided once
            graph = replace(graph, buckets=counts[BUCKETS], exchanges=counts.get(_EXCHANGES, 1))
        self._graph = graph
        self._marked_sources = MarkedSources(graph.streams, context.folder / "copies")
        self._tick_files = TickFiles(context.folder / "ticks") if self._graph.waits else None

    @property
    def wants(self) -> int | None:
        """When changes are due."""
        return self._context.checkpoint.last().counts.get("due")

    def tick(self, instant: int) -> None:
        """Put a tick into the input, which goes to all buckets."""
        assert self._tick_files is not None
        self._tick_files.add(instant)

    def input(self, context: LiveContext, frames: Mapping[str, DataFrame] | None) -> DataFrame:
        """The output of the buckets."""
        assert frames is None
        ticks = None if self._tick_files is None else self._tick_files.arriving(context.spark)
        return self._graph.packets(
            ticks, retains_malformed=context.retains_malformed, sources=self._marked_sources
        )

    @contextmanager
    def cached(self, batch: DataFrame) -> Iterator[DataFrame]:
        """The output of the buckets, which is computed once."""
        self._marked_sources.copy_others(self._context.spark)
        own = self._context.own(batch).persist()
        try:
            yield own
        finally:
            own.unpersist()

    def malformed(self, batch: DataFrame) -> DataFrame:
        """The malformed entries, which the tasks that read them have found."""
        return self._graph.malformed(batch)

    def count(self, batch: DataFrame) -> int:
        """How many rows arrived: the number of packets depends on the number of tasks that read them."""
        return _rows_in(_accounts(batch.select(NOTE).toArrow().column(0).to_pylist()))

    def judge(
        self,
        batch: DataFrame,
        before: CommittedBatch,  # noqa: ARG002 - buckets have what was before
    ) -> _Packets:
        """Collect the buckets' decisions."""
        small = F.when(F.length(DATA) <= _SMALL, F.col(DATA)).alias(DATA)
        packets = batch.select(NOTE, small).toArrow()
        notes, data = (packets.column(name).to_pylist() for name in (NOTE, DATA))
        accounts = _accounts(notes)
        rows = [one for note, one in zip(notes, data, strict=True) if is_of_rows(note)]
        return _Packets(self._late_rows(batch, accounts), _rows_in(accounts), batch, accounts, rows)

    def advance(self, packets: _Packets, number: int, before: CommittedBatch) -> Advanced:
        """Collect the buckets' results, as they have advanced."""
        accounts, rows_in = packets.accounts, packets.count
        positions = dict(before.positions)
        for place, name, _ in self._graph.streams:
            positions[name] = self._position(place, accounts, before.positions.get(name))
        known = before.counts
        counts_before = {name: count for name, count in known.items() if name.startswith(_STATE)}
        now = max((one.now for one in accounts), default=known.get("now", 0))
        counts = {
            "now": now,
            "entries": rows_in,
            "rows_in": known.get("rows_in", 0) + rows_in,
            "rows_late": self._late_in_all(positions, accounts) if accounts else known.get("rows_late", 0),
            "rows_used": known.get("rows_used", 0) + sum(one.used for one in accounts),
            BUCKETS: self._graph.buckets,
            _EXCHANGES: 1 if self._graph.onward is None else 2,
            **(self._state_counts(accounts) if accounts else counts_before),
        }
        due = [one.due for one in accounts] if accounts else [known.get("due")]
        if any(due):
            counts["due"] = min(one for one in due if one is not None)
        frontier = now if self._graph.is_timed else self._context.frontier(positions)
        manifest = CommittedBatch(number, positions, frontier, None, counts)
        return Advanced(self._output(packets), lambda: manifest)

    def retained(self, committed: CommittedBatch) -> Retained:
        """The buffered and retained rows of all buckets."""
        state = self._state(committed)
        all_of = (*state.windows.values(), state.operators)
        size = sum(one.bytes or 0 for one in all_of)
        waiting = sum(one.rows for one in state.waiting.values())
        besides = {"state_bytes": size, "buckets": committed.counts.get(BUCKETS, 0)}
        return Retained(waiting, sum(one.rows for one in all_of), besides)

    def _output(self, packets: _Packets) -> RowsForSink:
        """The changes; in memory, if all packets with rows are on the driver, or as a file of a task."""
        graph = self._graph
        if self._sink is not None:
            tables = [from_bytes(data) for data in packets.rows if data is not None]
            if len(tables) == len(packets.rows):
                return RowsForSink(graph.changes_of(tables), graph.result)
            if isinstance(self._sink, Files):
                return RowsForSink(partial(graph.written, packets.batch), graph.result)
        return RowsForSink(graph.changes(packets.batch), graph.result)

    @cached_property
    def _sink(self) -> TableSink | None:
        """The sink, if it accepts the output in memory, and Spark is not needed for that."""
        graph = self._graph
        if graph.form is None:
            return None
        return self._context.table_sink(graph.result, graph.nothing.column_names)

    def state(self, committed: CommittedBatch) -> QueryState:
        """The state after a micro-batch."""
        state = self._state(committed)
        if isinstance(self._context.plan, EmittedPlan):
            windows = {side.stream: state.windows[side.name] for side in self._graph.sides}
            return timed_state_of(
                self._context.plan, committed, windows, self._context.plan.retains, state.operators
            )
        operators = state.operators if state.operators.rows else None
        return state_of(
            self._context.plan,
            committed,
            state.waiting,
            state.windows,
            on_one_scale=True,
            operators=operators,
        )

    def _state(self, committed: CommittedBatch) -> _InAll:
        def retained(name: str) -> RetainedRowsOf:
            rows, size, oldest = (committed.counts.get(f"{_STATE}{what}.{name}") for what in _OF_EACH)
            return RetainedRowsOf(rows or 0, size, oldest)

        waiting = {name: retained(f"stream.{name}") for _, name, _ in self._graph.streams}
        windows = {side.name: retained(side.name) for side in self._graph.sides}
        return _InAll(waiting, windows, retained(_OPERATORS))

    def _position(self, place: int, known: Sequence[BucketAccount], before: Position | None) -> Position:
        """The position and watermark that the entries of a stream imply."""
        known = [one for one in known if one.marks]  # of buckets that judge entries
        if not known:
            return before or Position("")
        stream = self._graph.streams[place][2]
        assert stream.live is not None
        mark = mark_of(known[0].marks[place])  # all buckets know the same
        if isinstance(mark, SharedWatermark):
            return Position("", watermark=mark.state)
        late, rejected, quarantined = (
            sum(getattr(one, name).get(place, 0) for one in known)
            for name in ("late", "rejected", "quarantined")
        )
        refused = Refused(late, rejected, quarantined, known[0].quarantined_bounds.get(place, 0))
        rows_in = sum(one.arrived.get(place, 0) for one in known)
        in_all = rows_in if before is None else rows_in + before.watermark.admitted + before.watermark.refused
        return Position("", watermark=mark.state(stream.live.ordering, in_all, refused))

    def _late_in_all(self, positions: Mapping[str, Position], accounts: Sequence[BucketAccount]) -> int:
        """How many of the rows so far are late: with EMIT, rows below an estimated watermark alone
        are not.
        """
        if not self._graph.is_timed:
            return sum(position.watermark.refused for position in positions.values())
        marks = [position.watermark for position in positions.values()]
        never = sum(one.rejected + one.quarantined for one in marks)
        return never + sum(one.for_groups for one in accounts)

    def _late_rows(self, batch: DataFrame, accounts: Sequence[BucketAccount]) -> dict[str, DataFrame | None]:
        """The late rows of each stream, if there are any."""
        found: dict[str, DataFrame | None] = {}
        for place, name, _ in self._graph.streams:
            has_some = any(one.apart.get(place) for one in accounts)
            found[name] = self._graph.late(batch, place) if has_some else None
        return found

    def _state_counts(self, accounts: Sequence[BucketAccount]) -> dict[str, int]:
        """The counts of state in all buckets, by name."""
        found: dict[str, int] = {}

        def note(name: str, rows: Iterable[int], size: int | None, oldest: Iterable[int | None]) -> None:
            firsts = [one for one in oldest if one is not None]
            values = (sum(rows), size, min(firsts, default=None))
            own = zip(_OF_EACH, values, strict=True)
            found.update({f"{_STATE}{what}.{name}": value for what, value in own if value is not None})

        for place, name, _ in self._graph.streams:
            waiting = (one.waiting.get(place, 0) for one in accounts)
            note(f"stream.{name}", waiting, None, (one.oldest_waiting.get(place) for one in accounts))
        note(_OPERATORS, (one.groups for one in accounts), sum(one.stored for one in accounts), ())
        for at, side in enumerate(self._graph.sides):
            size = sum(one.size.get(at, 0) for one in accounts)
            note(
                side.name,
                (one.retained.get(at, 0) for one in accounts),
                size,
                (one.oldest.get(at) for one in accounts),
            )
        return found


def _accounts(notes: Iterable[str]) -> list[BucketAccount]:
    return [one for one in map(BucketAccount.read, notes) if one is not None]


def _rows_in(accounts: Iterable[BucketAccount]) -> int:
    return sum(sum(one.arrived.values()) for one in accounts)
