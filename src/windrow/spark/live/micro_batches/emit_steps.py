"""The micro-batches of a query with EMIT as Spark jobs, from one processing time to the next.

Processing times rise from micro-batch to micro-batch. The rows of a streaming DataFrame have that of their
micro-batch, which Spark logs before it runs; those of a named stream have that of their entries. A
micro-batch reaches the time up to which all streams are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.spark.arrow import pattern_schema
from windrow.spark.collected import few, frame_of_few
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.input.arrivals import Arrivals, ArrivalsInMemory, arrivals
from windrow.spark.live.input.entry_columns import STREAM, inside
from windrow.spark.live.input.ticks import TickFiles
from windrow.spark.live.micro_batches.in_memory import InMemorySteps
from windrow.spark.live.micro_batches.late_for_groups import JudgedEntries, judged
from windrow.spark.live.micro_batches.needed_rows import needed
from windrow.spark.live.micro_batches.steps import TICKS
from windrow.spark.live.operators.watermark_conditions import WatermarkConditions
from windrow.spark.live.plans.emit_queries import EmittedPlan, KnownWatermarks
from windrow.spark.live.reports.account import Account
from windrow.spark.live.reports.state_table import QueryState, retained_in, timed_state_of
from windrow.spark.live.reports.state_table import RetainedRowsOf as Counted
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Sink
from windrow.spark.logs.live_source import PLACE, PTIME
from windrow.spark.logs.micro_batch import RetainedRows
from windrow.spark.logs.session_streams import ARRIVED, ROWTIME, Stream
from windrow.spark.recorded.punctuation_times import LoggedPunctuation, folded, stream_kinds
from windrow.streams import Position
from windrow.streams.entries import BEFORE
from windrow.syntax.sqltext import quoted

__all__ = ["ROWS", "Done", "EmittedSteps", "is_log"]

ROWS = "rows-"
_BELOW = "below-"
_LATE = "late_for_groups"
_GRACE = 1_000_000
"""Microseconds: for so long a micro-batch waits for a named stream that is behind others, before it ticks."""


@dataclass(frozen=True)
class Done:
    """The account of a micro-batch: its rows that arrived, were used, were late for a group, were emitted and
    are buffered; and when the oldest retained row arrived.
    """

    number: int
    now: int
    entries: int
    came: int
    used: int
    late: int
    emitted: int
    buffered: int
    oldest: int | None
    due: int | None = None


class EmittedSteps(InMemorySteps):
    """Runs micro-batches of EMIT as Spark jobs; the parameters are those of :class:`~.steps.Steps`."""

    def __init__(
        self, plan: EmittedPlan, sink: Sink | IntoStream, folder: Path, envelope: str, on_late: str
    ) -> None:
        super().__init__(plan, sink, folder, envelope, on_late)
        self._query = plan
        self._judges = bool(plan.query.timed.judgings)
        self._named = {
            name: known.stream for name, known in plan.catalog.named.items() if name in plan.streams
        }
        self._files = TickFiles(folder / "ticks") if plan.is_endless else None

    # -- ticks -----------------------------------------------------------------------------------------

    def _ticks(self, frames: Mapping[str, DataFrame] | None) -> DataFrame | None:
        """Ticks, which stand under an empty name."""
        if frames is not None:
            return frames.get("")
        return None if self._files is None else self._files.arriving(self._spark)

    @property
    def wants(self) -> int | None:
        """When the query is to have a tick."""
        return self._checkpoint.last().counts.get("wanted")

    def tick(self, instant: int) -> None:
        """Put a tick for an instant into the input: where it has not been reached."""
        positions = self._checkpoint.last().positions
        for name, stream in self._named.items():
            if name not in positions or positions[name].ptime < instant:
                stream.tick()
        if self._files is not None:
            self._files.add(instant)

    # -- micro-batches -----------------------------------------------------------------------------------

    def _taken(self, batch: DataFrame, number: int, before: CommittedBatch) -> None:
        control = self._told(batch)
        now = self._now(_last(control, self._sources_of_time), before)
        came = self._judge(batch, control, number, before, now)
        positions = {name: found.position for name, found in came.items()}
        marks: dict[str, Marks] = {
            name: [*before.moves.get(name, []), *found.watermarks] for name, found in came.items()
        }
        punctuations = self._punctuations_since(before, came)
        origin = self._origin(self._firsts(control, now), before)
        until = None if origin is None else self._until(positions, now)
        below = {name: None if one.below is None else one.below.toArrow() for name, one in came.items()}
        apart = self._judged(before, below, marks, until)
        late = {name: self._all_late(name, one.late, apart) for name, one in came.items()}
        self._tell_late(late, number)
        rows = {}
        for name, found in came.items():
            retained = self._rows_before(before, name)
            rows[name] = found.rows if retained is None else retained.unionByName(found.rows)
        taken = self._entering(rows, before.frontier, until)
        due, emitted, frontier = before.counts.get("due"), 0, before.frontier
        if until is not None and origin is not None and (frontier is None or until > frontier):
            changes = any(found.count or found.watermarks or found.punctuations for found in came.values())
            waited = before.counts.get("rows_held", 0) or before.counts.get("marks_held", 0)
            if changes or waited or (due is not None and due <= until):
                known = {
                    name: _known_by(frame, marks[name], punctuations.get(name, []), until)
                    for name, frame in rows.items()
                }
                emitted, due = self._emit_changes(known, (frontier, until), origin, before, number)
            elif isinstance(self._sink, IntoStream):
                self._insert(None, marks, until, before)
            frontier = until
        keep, oldest, buffered = self._needed(rows, marks, punctuations, frontier)
        keep |= self._buffered_below(apart)
        came_in = sum(found.count for found in came.values())
        used = taken - apart.count
        done = Done(number, now, control.num_rows, came_in, used, apart.count, emitted, buffered, oldest, due)
        committed = self._after(before, done, positions, marks, punctuations, (origin, frontier))
        self._report(self._checkpoint.commit(committed, keep), came_in, emitted)

    # -- rows that are late for a group ----------------------------------------------------------------

    @cached_property
    def _conditions(self) -> WatermarkConditions:
        def gateway() -> Gateway:
            return Gateway(self._spark, self._plan.gateway.parameters)

        return WatermarkConditions(gateway, self._checkpoint.folder.resolve())

    def _judged(
        self,
        before: CommittedBatch,
        came: Mapping[str, pa.Table | None],
        marks: Mapping[str, Marks],
        until: int | None,
    ) -> JudgedEntries:
        """Judges the rows below their stream's watermark, those that waited among them."""
        below = {}
        for name, rows in came.items() if self._judges else ():
            key = f"{_BELOW}{name}"
            waited = self._checkpoint.table(before, key) if key in before.rows else None
            names = self._schema_apart(name, ARRIVED, BEFORE).names
            parts = [part.select(names) for part in (waited, rows) if part is not None]
            if parts:
                below[name] = pa.concat_tables([part.cast(parts[-1].schema) for part in parts])
        return judged(self._query, self._conditions, below, marks, until)

    def _all_late(self, name: str, refused: DataFrame | None, apart: JudgedEntries) -> DataFrame | None:
        """The late rows of a stream: below a bound or closed by punctuation, and late for a group."""
        late = self._late(name, apart.late.get(name))
        return refused if late is None else late if refused is None else refused.unionByName(late)

    def _buffered_below(self, apart: JudgedEntries) -> dict[str, RetainedRows]:
        """Those that wait still."""
        return {
            f"{_BELOW}{name}": RetainedRows.of(
                frame_of_few(self._spark, rows, self._schema_apart(name, ARRIVED, BEFORE)), are_few=True
            )
            for name, rows in apart.waiting.items()
        }

    @staticmethod
    def _entering(rows: Mapping[str, DataFrame], since: int | None, until: int | None) -> int:
        """How many rows come after a processing time, by another one."""
        if until is None:
            return 0
        arrived = reduce(DataFrame.unionAll, (frame.select(ARRIVED) for frame in rows.values()))
        return arrived.where(F.col(ARRIVED).between(-1 if since is None else since + 1, until)).count()

    # -- what a micro-batch leaves -----------------------------------------------------------------------

    def _after(
        self,
        before: CommittedBatch,
        done: Done,
        positions: Mapping[str, Position],
        marks: Mapping[str, Marks],
        punctuations: Mapping[str, LoggedPunctuation],
        reached: tuple[int | None, int | None],
    ) -> CommittedBatch:
        """What is known after a micro-batch; `reached` are the origin and the frontier."""
        origin, frontier = reached
        for_groups = before.counts.get(_LATE, 0) + done.late
        account = Account(
            arrived=before.counts.get("rows_in", 0) + done.came,
            used=before.counts.get("rows_used", 0) + done.used,
            buffered=done.buffered,
            late=sum(each.watermark.rejected + each.watermark.quarantined for each in positions.values())
            + for_groups,
        )
        counts = {
            "now": done.now,
            "entries": done.entries,
            _LATE: for_groups,
            **account.counts,
            "rows_given": before.counts.get("rows_given", 0) + done.emitted,
            "marks_held": sum(at > (frontier or 0) for at in _times(marks) + _times(punctuations)),
        }
        if done.due is not None:
            counts["due"] = done.due
        wanted = self._wanted(positions, frontier, done.now, done.due)
        if wanted is not None:
            counts["wanted"] = wanted
        if frontier is not None:
            back_to = self._back_to(done.oldest, frontier)
            marks = {name: _pruned(each, back_to) for name, each in marks.items()}
            schemas = {
                name: pattern_schema(stream_kinds(self._plan.catalog.streams[name])) for name in punctuations
            }
            punctuations = {
                name: folded(logged, back_to, schemas[name]) for name, logged in punctuations.items()
            }
        return CommittedBatch(
            done.number, positions, frontier, origin, {}, counts, moves=marks, punctuations=punctuations
        )

    def _punctuations_since(
        self, before: CommittedBatch, came: Mapping[str, Arrivals | ArrivalsInMemory]
    ) -> dict[str, LoggedPunctuation]:
        """The punctuations of the streams, with their processing times; none if nothing reads them."""
        if not self._query.reads_punctuations:
            return {}
        return {
            name: [*before.punctuations.get(name, []), *found.punctuations] for name, found in came.items()
        }

    @property
    def _sources_of_time(self) -> list[int]:
        """The numbers of what comes with Spark's time: streaming DataFrames, and ticks."""
        return [*(place for place, _, stream in self.streams() if not is_log(stream)), TICKS]

    def _now(self, last: int | None, before: CommittedBatch) -> int:
        """The processing time of what comes from streaming DataFrames: later than that of the last
        micro-batch.

        `last` is the greatest that such entries come with; None where there are none.
        """
        earlier = before.counts.get("now", 0)
        return earlier if last is None else max(last, earlier + 1)

    def _rows_before(self, before: CommittedBatch, name: str) -> DataFrame | None:
        """The rows of a stream that a micro-batch left behind."""
        return self._checkpoint.rows(before, f"{ROWS}{name}")

    def _judge(
        self, batch: DataFrame, control: pa.Table, number: int, before: CommittedBatch, now: int
    ) -> dict[str, Arrivals]:
        """What came of each stream, judged."""
        found = {}
        for place, name, stream in self.streams():
            assert stream.live is not None
            names = [F.col(quoted(inside(place, name))).alias(name) for name in stream.live.frame.columns]
            rows = batch.where(F.col(STREAM) == place).select(*names, PLACE)
            own = control.filter(pc.equal(control.column(STREAM), place))
            if not is_log(stream):
                when = pa.array([now] * own.num_rows, pa.int64())
                own = own.set_column(own.column_names.index(PTIME), PTIME, when)
            position = before.positions.get(name)
            found[name] = arrivals(name, stream, rows, own, number, position, now, timed=True)
        return found

    def _until(self, positions: Mapping[str, Position], now: int) -> int | None:
        """Up to which processing time all streams are known."""
        reached = [positions[name].ptime if is_log(stream) else now for _, name, stream in self.streams()]
        return min(reached) or None

    def _firsts(self, control: pa.Table, now: int) -> list[int]:
        """The first processing time of each stream of which there are entries."""
        firsts = []
        for place, _, stream in self.streams():
            own = control.filter(pc.equal(control.column(STREAM), place))
            if own.num_rows:
                firsts.append(pc.min(own.column(PTIME)).as_py() if is_log(stream) else now)
        return firsts

    def _origin(self, firsts: Sequence[int], before: CommittedBatch) -> int | None:
        """The first processing time of the logs; None before the first entry."""
        return min([*firsts, *([] if before.origin is None else [before.origin])], default=None)

    def _emit_changes(
        self,
        known: Mapping[str, KnownWatermarks],
        span: tuple[int | None, int],
        origin: int,
        before: CommittedBatch,
        number: int,
    ) -> tuple[int, int | None]:
        """Evaluate the micro-batch and write its changes: how many, and when the next one is due."""
        gateway = Gateway(self._spark, self._query.gateway.parameters)
        with gateway.translated():
            found = self._query.evaluate(gateway, known, span, origin, self._envelope)
            if isinstance(self._sink, IntoStream):
                marks = {name: one.marks for name, one in known.items()}
                return self._insert(found.changes, marks, span[1], before), found.due
            return self._sink.write(found.changes, number) or 0, found.due

    def _insert(
        self, changes: DataFrame | None, marks: Mapping[str, Marks], until: int, before: CommittedBatch
    ) -> int:
        """Insert complete rows into the target stream, with the bound of all others; returns how many."""
        assert isinstance(self._sink, IntoStream)
        gateway = Gateway(self._spark, self._query.gateway.parameters)
        bound = self._query.rowtime_until(gateway, marks, until)
        if changes is None:
            changes = self._query.query.emitted(self._envelope).limit(0)
        with gateway.translated():
            rows = self._query.as_stream(changes)
            return self._sink.insert(rows, bound, before.counts.get("rows_given", 0))

    # -- what is retained ------------------------------------------------------------------------------

    def _needed(
        self,
        rows: Mapping[str, DataFrame],
        marks: Mapping[str, Marks],
        punctuations: Mapping[str, LoggedPunctuation],
        frontier: int | None,
    ) -> tuple[dict[str, RetainedRows], int | None, int]:
        """The rows that are needed after a micro-batch; when the oldest came, and how many wait for a later
        one.
        """
        keep: dict[str, RetainedRows] = {}
        oldest: list[int] = []
        buffered = 0
        known = {
            name: KnownWatermarks(frame, marks[name], tuple(punctuations.get(name, ())))
            for name, frame in rows.items()
        }
        gateway = Gateway(self._spark, self._query.gateway.parameters)
        for name, frame in rows.items():
            left = frame if frontier is None else needed(self._query, gateway, name, known, frontier)
            table = few(left)
            if table is not None:
                frame = frame_of_few(self._spark, table, left.schema)
                keep[f"{ROWS}{name}"] = RetainedRows.of(frame, are_few=True)
                came = table.column(ARRIVED)
                first = pc.min(came).as_py()
                waiting = pc.sum(pc.greater(came, frontier or 0)).as_py() or 0
            else:
                keep[f"{ROWS}{name}"] = RetainedRows.of(left, are_few=False)
                is_buffered = F.sum((F.col(ARRIVED) > (frontier or 0)).cast("int"))
                first, waiting = left.agg(F.min(ARRIVED), is_buffered).collect()[0]
            buffered += waiting
            oldest += [] if first is None else [first]
        return keep, min(oldest, default=None), buffered

    def _back_to(self, oldest: int | None, frontier: int) -> int:
        """The processing time from which on the changes of watermarks are needed."""
        since = frontier - (self._query.query.how.delay or 0)
        return since + 1 if oldest is None else min(oldest, since + 1)

    def _wanted(
        self, positions: Mapping[str, Position], frontier: int | None, now: int, due: int | None
    ) -> int | None:
        """When there is to be a tick: where something is due, streams wait for each other, or fall idle."""
        wanted = [] if due is None else [due]
        for _, name, stream in self.streams():
            reached = positions[name].ptime if is_log(stream) else now
            if reached > (frontier or 0):
                wanted.append(reached + _GRACE)
            idle = stream.live.idle if stream.live is not None else None
            if idle is not None:
                producers = positions[name].watermark.producers.values()
                wanted += [known.heard + idle for known in producers if known.is_open]
        return min(wanted, default=None)

    def state(self) -> QueryState:
        """What is retained after the last micro-batch, and why."""
        committed = self._checkpoint.last()
        retained = {name: self._retained_of(committed, name) for _, name, _ in self.streams()}
        return timed_state_of(
            self._plan, committed, retained, self._query.keeps, self._operators_of(committed)
        )

    def _operators_of(self, committed: CommittedBatch) -> Counted | None:  # noqa: ARG002 - of those in memory
        """The state of operators in place of rows."""
        return None

    def _retained_of(self, committed: CommittedBatch, name: str) -> Counted:
        """What is retained of a stream after a micro-batch."""
        if f"{ROWS}{name}" not in committed.rows:
            return Counted()
        path = self._checkpoint.path(committed.number) / f"{ROWS}{name}"
        return retained_in(path, self._plan.catalog.streams[name].scale, [ROWTIME])

    def _report(self, committed: CommittedBatch, came: int, emitted: int) -> None:
        count = partial(self._checkpoint.count, committed)
        self.progress = {
            "batch": committed.number,
            "came": came,
            "given": emitted,
            "frontier": committed.frontier,
            **{name: count for name, count in committed.counts.items() if name.startswith("rows_")},
            "rows_in_windows": sum(count(name) for name in committed.rows if name.startswith(ROWS)),
            "state_bytes": self._checkpoint.size(committed),
        }


def _last(control: pa.Table, places: Sequence[int]) -> int | None:
    """The greatest processing time of entries of these numbers."""
    number = control.column(STREAM)
    times = control.filter(pc.is_in(number, pa.array(places, number.type)))
    last: int | None = pc.max(times.column(PTIME)).as_py() or 0 if times.num_rows else None
    return last


def is_log(stream: Stream) -> bool:
    """Whether a live stream is a named one, whose entries say when they came."""
    return stream.live is not None and bool(stream.live.identity)


def _known_by(rows: DataFrame, marks: Marks, punctuations: LoggedPunctuation, until: int) -> KnownWatermarks:
    """What was known of a stream by a processing time."""
    moved = [(at, mark) for at, mark in marks if at <= until]
    return KnownWatermarks(
        rows.where(F.col(ARRIVED) <= until), moved, tuple(one for one in punctuations if one[0] <= until)
    )


def _times(logged: Mapping[str, Sequence[tuple[int, object]]]) -> list[int]:
    return [at for one in logged.values() for at, _ in one]


def _pruned(marks: Marks, since: int) -> Marks:
    """The changes of a watermark from an instant on, and the last before it."""
    before = [mark for mark in marks if mark[0] < since]
    return [*before[-1:], *(mark for mark in marks if mark[0] >= since)]
