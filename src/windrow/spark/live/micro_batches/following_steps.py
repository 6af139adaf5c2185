"""The micro-batches of CQL windows over windows or matches: both in memory, on the driver.

    sources ─ their frontier ─▶ clauses ─ least rowtime that may still be emitted ─▶ windows ─▶ changes

Rows of sources are buffered until their frontier, and rows of clauses until theirs. The buffered rows of
sources and the state of clauses are committed beside the chunks of the windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.kernels.incremental import InputState
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.input.entry_columns import inside
from windrow.spark.live.micro_batches.in_memory import Come
from windrow.spark.live.micro_batches.sources_of_clauses import SourcesOfClauses
from windrow.spark.live.micro_batches.steps import BUFFERED
from windrow.spark.live.micro_batches.windowed_steps import Arrived, WindowedSteps
from windrow.spark.live.plans.cascade import Cascade
from windrow.spark.live.plans.live_plan import ContinuousPlan
from windrow.spark.live.reading.windowed_queries import WindowedQuery
from windrow.spark.live.reports.state_table import QueryState, retained_in, state_of
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Sink
from windrow.spark.logs.micro_batch import InstantSpan
from windrow.spark.logs.session_streams import ROWTIME
from windrow.syntax.sqltext import quoted

__all__ = ["FollowingSteps"]

_SOURCES = "sources"
"""The mark of the sources' frontier, which may be ahead of that of the windows."""

_NOTHING = pa.table({ROWTIME: pa.array([], pa.int64())})


class FollowingSteps(SourcesOfClauses, WindowedSteps):
    """As :class:`windrow.spark.live.micro_batches.steps.Steps`, which says what it takes."""

    def __init__(
        self,
        plan: ContinuousPlan,
        stage: WindowedQuery,
        sink: Sink | IntoStream,
        folder: Path,
        envelope: str,
        on_late: str,
    ) -> None:
        super().__init__(plan, stage, sink, folder, envelope, on_late)
        self._following = plan
        sides = {side.stream for side in stage.sides}
        self._clauses = sorted(sides & plan.catalog.sequences.keys())
        behind = frozenset[str]().union(*(plan.catalog.sequences[name].streams for name in self._clauses))
        self._sources = {name: stream for _, name, stream in self.streams() if name in behind}
        self._cached = []

    def _step(self, batch: DataFrame, number: int, before: CommittedBatch) -> None:
        try:
            super()._step(batch, number, before)
        finally:
            self._drop_cached()

    # -- what comes in -------------------------------------------------------------------------------

    def _reading(
        self, frame: DataFrame, at: int, name: str, is_row: Column
    ) -> tuple[DataFrame, dict[str, str]]:
        """What the windows read, and of the sources of clauses all columns."""
        frame, columns = super()._reading(frame, at, name, is_row)
        whole = self._sources[name].columns if name in self._sources else ()
        return frame, {**columns, **{own: inside(at, own) for own in whole}}

    def _arrived(
        self,
        come: Come,
        states: Mapping[str, InputState],
        number: int,
        before: CommittedBatch,
        *,
        closes: bool,
    ) -> Arrived:
        """What comes to the windows: the rows of streams, and what the clauses give before their frontier."""
        until = self._frontier({name: one.position for name, one in come.found.items()})
        reached, known = before.marks.get(_SOURCES), self._retained_before(before)
        rows = {name: one.rows for name, one in come.found.items() if name not in self._sources}
        waits = self._waits(come, number, known)
        moved = until is not None and (reached is None or until > reached)
        origin = before.origin
        if moved and until is not None and origin is None:
            origin = self._first_of({**rows, **waits}, until, states)
        keep = {name: kept for name, kept in known.items() if not name.startswith(BUFFERED)}
        bound, given, marks = before.frontier, dict.fromkeys(self._clauses, _NOTHING), dict(before.marks)
        if (moved or closes) and until is not None and origin is not None:
            sequences = self._plan.catalog.sequences
            keys = [key for name in self._clauses for key in sequences[name].ends()]
            span = self._span(waits, known, (reached, until, origin), marks, keys)
            given, bound = self._given_by(span)
            keep |= span.keep
            marks[_SOURCES] = until
        keep = self._kept_with(waits, keep, number)
        rows |= {name: come.found[name].rows for name in self._sources}
        return Arrived({**rows, **given}, bound, origin, keep, marks)

    def _first_of(
        self, rows: Mapping[str, pa.Table], until: int, states: Mapping[str, InputState] | None = None
    ) -> int | None:
        """The first instant of rows before the frontier, those that wait for windows among them."""
        waiting = [one.waiting.column(ROWTIME) for one in (states or {}).values() if one.waiting.num_rows]
        firsts = [super()._first_of(rows, until), *(pc.min(ticks).as_py() for ticks in waiting)]
        return min((first for first in firsts if first is not None and first < until), default=None)

    def _given_by(self, span: InstantSpan) -> tuple[dict[str, pa.Table], int]:
        """What the clauses give in a step, as windows read it, and before which instant no later one does."""
        plan, gateway = self._following, Gateway(self._spark, self._plan.gateway.parameters)
        cascade = Cascade(gateway, plan.catalog, plan.execution, span, self._scale, plan.reader.tokens)
        coming = {name: cascade.coming(name) for name in self._clauses}
        with gateway.translated():
            given = {name: self._read_of(name, one.rows).toArrow() for name, one in coming.items()}
        return given, min(one.until(self._scale) for one in coming.values())

    def _read_of(self, name: str, rows: DataFrame) -> DataFrame:
        """What the windows read of the rows of a clause."""
        stream = self._plan.catalog.streams[name]
        own = [F.col(quoted(one)).alias(inside(0, one)) for one in stream.columns]
        frame, columns = super()._reading(rows.select(*own, ROWTIME, *stream.ties), 0, name, F.lit(True))
        shown = (F.col(quoted(made)).alias(one) for one, made in columns.items())
        return frame.select(*shown, ROWTIME, *stream.ties)

    # -- what is kept --------------------------------------------------------------------------------

    def _states(self, before: CommittedBatch) -> dict[str, InputState]:
        """What the last step left: in windows, and of sources and clauses."""
        self._retained = before.number, self._retained_before(before)
        return super()._states(before)

    def _waiting(self, states: Mapping[str, InputState]) -> int:
        """How many rows wait: of sources of clauses, and of streams that only windows read."""
        ours, (_, known) = {*self._sources, *self._clauses}, self._retained
        sides = {side.stream: side.name for side in self._stage.sides if side.stream not in ours}
        sources = [known[f"{BUFFERED}{name}"] for name in self._sources if f"{BUFFERED}{name}" in known]
        tables = [kept.collected() for kept in sources]
        tables += [states[name].waiting for name in sides.values()]
        waiting: int = sum(table.num_rows for table in tables)
        return waiting

    def state(self) -> QueryState:
        """What is kept after the last step."""
        step = self._checkpoint.last()
        folder, streams = self._checkpoint.path(step.number), self._plan.catalog.streams
        states, waiting, windows = super()._states(step), {}, {}
        for name in step.rows:
            if name.startswith(BUFFERED):
                stream = name.removeprefix(BUFFERED)
                waiting[stream] = retained_in(folder / name, streams[stream].scale, [ROWTIME])
            else:
                windows[name] = retained_in(folder / name, self._scale, self._plan.rowtimes)
        return state_of(self._plan, step, waiting, {**windows, **self._in_windows(step, states)})
