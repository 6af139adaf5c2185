"""The clauses behind windows in brackets, in memory on the driver.

    sources ─ their frontier ─▶ clauses ─ least rowtime that may still be emitted ─▶ windows ─▶ changes

Rows of sources are buffered until their frontier, and rows of clauses until theirs. The buffered rows of
sources and the state of clauses are committed beside the chunks of the windows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import Checkpoint, CommittedBatch
from windrow.spark.live.input.entry_columns import inside
from windrow.spark.live.micro_batches.clause_state import BUFFERED, ClauseState, first_before
from windrow.spark.live.micro_batches.direct_input import Reading
from windrow.spark.live.micro_batches.entry_reader import CollectedBatch
from windrow.spark.live.operators.ended_partitions import ClosedPartitions
from windrow.spark.live.plans.live_plan import ContinuousPlan
from windrow.spark.live.plans.upstream import Upstream
from windrow.spark.logs.micro_batch import InstantSpan
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.syntax.sqltext import quoted

__all__ = ["Arrived", "ClausesBehind"]

_SOURCES = "sources"
"""The name of the mark with the sources' frontier, which may be ahead of that of the windows."""

_NOTHING = pa.table({ROWTIME: pa.array([], pa.int64())})


@dataclass(frozen=True, eq=False)
class Arrived:
    """The rows that arrive at the windows in a micro-batch.

    Attributes
    ----------
    rows
        The new rows of each stream that has windows.
    until
        No later micro-batch brings a row before this instant, in ticks of the query's time scale.
    origin
        The first instant of the streams, if it is known without `rows`.
    waiting
        How many rows wait for clauses.
    chunks, marks
        Chunks and marks to commit with those of the windows.
    """

    rows: Mapping[str, pa.Table]
    until: int | None
    origin: int | None = None
    waiting: int = 0
    chunks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)


class ClausesBehind:
    """The clauses that the windows of a query read: their output and state.

    Parameters
    ----------
    plan
        The query.
    read
        The streams that its windows read.
    streams
        All live streams behind it, by name.
    checkpoint, closed
        The checkpoint and closed partitions of the query.
    reading
        The columns of a stream's rows that the windows read.

    Attributes
    ----------
    names
        The clauses that the windows read.
    state
        The state of the clauses and their sources.
    cached
        The caches of the micro-batch.
    """

    def __init__(
        self,
        plan: ContinuousPlan,
        read: Collection[str],
        streams: Mapping[str, Stream],
        checkpoint: Checkpoint,
        closed: ClosedPartitions,
        reading: Reading,
    ) -> None:
        self._plan, self._closed, self._reading = plan, closed, reading
        sequences = plan.catalog.sequences
        self.names = sorted(sequences.keys() & read)
        behind = frozenset[str]().union(*(sequences[name].streams for name in self.names))
        sources = {name: stream for name, stream in streams.items() if name in behind}
        retained = {own: kind for name in self.names for own, kind in sequences[name].retained().items()}
        self.state = ClauseState(plan, checkpoint, sources, retained)
        self.cached: list[DataFrame] = []

    def drop_cached(self) -> None:
        """Release the caches of the clauses after a micro-batch, however it ended."""
        while self.cached:
            self.cached.pop().unpersist()

    def waiting(self, committed: CommittedBatch) -> int:
        """How many rows of sources are buffered after a micro-batch."""
        return sum(len(self.state.retained(committed, f"{BUFFERED}{name}")) for name in self.state.sources)

    def arrived(
        self,
        collected: CollectedBatch,
        waiting: Sequence[pa.Table],
        until: int | None,
        before: CommittedBatch,
        *,
        closes: bool,
    ) -> Arrived:
        """The rows that arrive at the windows: those of streams, and the clauses' output before their
        frontier.

        Parameters
        ----------
        waiting
            The rows that wait for the windows.
        until
            The frontier of the streams.
        closes
            Whether the micro-batch closes keys of clauses.
        """
        reached, origin, marks = before.marks.get(_SOURCES), before.origin, dict(before.marks)
        rows = {name: one.rows for name, one in collected.found.items() if name not in self.state.sources}
        buffered, to_retain = self.state.buffered(collected, before), self.state.unchanged(before)
        moved = until is not None and (reached is None or until > reached)
        if moved and until is not None and origin is None:
            scale, streams = self._plan.scale, self._plan.catalog.streams
            others = [(one, streams[name].scale) for name, one in rows.items()]
            others += [(one, scale) for one in waiting]
            origin = first_before(until, scale, [*buffered.rows(), *others])
        goes = (moved or closes) and until is not None and origin is not None
        due, buffered = buffered.due(until if goes else None)
        bound, arriving = before.frontier, dict.fromkeys(self.names, _NOTHING)
        if goes and until is not None and origin is not None:
            sequences = self._plan.catalog.sequences
            keys = [key for name in self.names for key in sequences[name].ends()]
            ended = {key: self._closed.ended(key, buffered.waiting) for key in keys}
            instants = reached, until, origin
            span = self.state.span(due, before, instants, marks, self.cached, ended)
            arriving, bound = self._arriving(span)
            to_retain |= span.to_retain
            marks[_SOURCES] = until
        chunks = self.state.write(to_retain, buffered)
        rows |= {name: collected.found[name].rows for name in self.state.sources}
        waits = sum(map(len, buffered.waits.values()))
        return Arrived({**rows, **arriving}, bound, origin, waits, chunks, marks)

    def _arriving(self, span: InstantSpan) -> tuple[dict[str, pa.Table], int]:
        """The output of the clauses in a micro-batch, as windows read it, and the bound of their later
        output.
        """
        plan, scale = self._plan, self._plan.scale
        gateway = Gateway(plan.gateway.spark, plan.gateway.parameters)
        upstream = Upstream(plan.catalog, span, scale)
        outputs = {name: upstream.output(name) for name in self.names}
        with gateway.translated():
            arriving = {name: self._read(name, one.rows).toArrow() for name, one in outputs.items()}
        return arriving, min(one.until(scale) for one in outputs.values())

    def _read(self, name: str, rows: DataFrame) -> DataFrame:
        """The columns of a clause's rows that the windows read."""
        stream = self._plan.catalog.streams[name]
        own = [F.col(quoted(one)).alias(inside(0, one)) for one in stream.columns]
        frame, columns = self._reading(rows.select(*own, ROWTIME, *stream.ties), 0, name, F.lit(True))
        renamed = (F.col(quoted(made)).alias(one) for one, made in columns.items())
        return frame.select(*renamed, ROWTIME, *stream.ties)
