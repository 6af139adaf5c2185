"""The state of clauses and their sources between micro-batches: in memory, and in chunks of the checkpoint.

rows of sources ─▶ buffered until the frontier ─▶ due ─▶ clauses ─▶ rows that they still need
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from windrow.algebra.time_scale import TimeScale
from windrow.kernels.advance import Ended
from windrow.kernels.advance.retained_rows import GONE, Bools, Places, RetainedRows
from windrow.spark.collected import frame_of_collected
from windrow.spark.live.checkpoints.checkpoint import Checkpoint, CommittedBatch
from windrow.spark.live.micro_batches.entry_reader import CollectedBatch, numbered, waiting_schema
from windrow.spark.live.micro_batches.stream_views import StreamViews
from windrow.spark.live.plans.live_plan import RowtimePlan
from windrow.spark.live.reports.state_table import RetainedRowsOf, retained_of
from windrow.spark.logs.micro_batch import InstantSpan, upwards
from windrow.spark.logs.session_streams import ROWTIME, Stream

__all__ = ["BUFFERED", "Buffered", "ClauseState", "first_before", "rows_before"]

BUFFERED = "held-"
"""The prefix of the names of buffered rows."""


@dataclass(frozen=True, eq=False)
class Buffered:
    """Rows of sources in a micro-batch.

    Attributes
    ----------
    sources, scale
        The streams, and the query's unit of rowtimes.
    number
        The number of the micro-batch.
    new_rows, waits
        The new rows, and those buffered until the frontier.
    """

    sources: Mapping[str, Stream]
    scale: TimeScale
    number: int
    new_rows: Mapping[str, pa.Table]
    waits: Mapping[str, RetainedRows]

    def rows(self) -> Iterator[tuple[pa.Table, TimeScale]]:
        """All rows, and the units of their rowtimes."""
        for name, stream in self.sources.items():
            for rows in (self.new_rows[name], *self.waits[name].tables(ROWTIME)):
                yield rows, stream.scale

    def due(
        self, until: int | None, closed: tuple[Bools, Places] | None = None
    ) -> tuple[dict[str, pa.Table], Buffered]:
        """The rows before an instant, none if it is None, and those that stay buffered.

        `closed` are rows of the only source that are due in any case, as in :meth:`RetainedRows.due`.
        """
        due, waits = {}, {}
        for name, stream in self.sources.items():
            before = None if until is None else rows_before(upwards(until, self.scale, stream.scale))
            due[name], waits[name] = self.waits[name].due(self.new_rows[name], before, self.number, closed)
        return due, replace(self, waits=waits)

    def waiting(self, name: str, columns: tuple[str, ...]) -> pa.Table:
        """These columns of the buffered rows of a source."""
        nothing = self.new_rows[name].slice(0, 0).select(columns)
        waits = self.waits[name].tables(*columns)
        return pa.concat_tables([nothing, *(rows.cast(nothing.schema) for rows in waits)])


def first_before(until: int, scale: TimeScale, rows: Iterable[tuple[pa.Table, TimeScale]]) -> int | None:
    """The first instant of rows, with their time scales, that is before another one, in ticks of a scale."""
    firsts = [
        pc.min(one.column(ROWTIME)).as_py() * own.nanoseconds // scale.nanoseconds
        for one, own in rows
        if one.num_rows
    ]
    return min((first for first in firsts if first < until), default=None)


def rows_before(until: int) -> Callable[[pa.Table], Bools]:
    """A function that says which rows have a rowtime before an instant."""

    def is_true_at(rows: pa.Table) -> Bools:
        is_before: Bools = rows.column(ROWTIME).to_numpy() < until
        return is_before

    return is_true_at


class ClauseState:
    """The retained rows.

    Parameters
    ----------
    plan, checkpoint
        The plan and checkpoint of the query.
    sources
        The streams that clauses read.
    retained
        The retained rows of clauses, by name.
    key
        Columns of the only source by which its buffered rows are found.

    Attributes
    ----------
    sources
        The same.
    """

    def __init__(
        self,
        plan: RowtimePlan,
        checkpoint: Checkpoint,
        sources: Mapping[str, Stream],
        retained: Mapping[str, tuple[str, ...]],
        key: tuple[str, ...] = (),
    ) -> None:
        self._plan, self._spark, self._checkpoint = plan, plan.gateway.spark, checkpoint
        self.sources = sources
        self._views = StreamViews(plan, checkpoint)
        self._keys = {**retained, **{f"{BUFFERED}{name}": key for name in sources}}
        self._known: tuple[int, dict[str, RetainedRows]] = (-1, {})

    # -- after a micro-batch -----------------------------------------------------------------------

    def names(self, committed: CommittedBatch) -> list[str]:
        """The names of the rows that a micro-batch retained."""
        return [name for name in self._keys if name in committed.chunks]

    def rows(self, committed: CommittedBatch, name: str) -> RetainedRows | None:
        """The rows that a micro-batch retained under a name; None without."""
        if self._known[0] != committed.number:
            self._known = committed.number, {}
        known = self._known[1]
        if name not in known and name in self._keys and name in committed.chunks:
            rows, gone = (self._read(committed, one) for one in (name, f"{name}{GONE}"))
            known[name] = RetainedRows.read(self._keys[name], rows, gone)
        return known.get(name)

    def _read(self, committed: CommittedBatch, name: str) -> dict[int, pa.Table]:
        chunks = map(int, committed.chunks.get(name, {}))
        return {chunk: self._checkpoint.read_chunk(name, chunk) for chunk in chunks}

    def retained(self, committed: CommittedBatch, name: str) -> RetainedRows:
        """The same, empty without."""
        rows = self.rows(committed, name)
        return RetainedRows(self._keys[name]) if rows is None else rows

    def counts(self, committed: CommittedBatch) -> dict[str, int]:
        """How many rows a micro-batch retained under each name."""
        counts = {name: len(self.retained(committed, name)) for name in self.names(committed)}
        return counts | {name: one.rows for name, one in self._views.reported(committed).items()}

    def reported(
        self, committed: CommittedBatch
    ) -> tuple[dict[str, RetainedRowsOf], dict[str, RetainedRowsOf]]:
        """The state after a micro-batch, in the form of
        :func:`windrow.spark.live.reports.state_table.state_of`.
        """
        waiting, windows = {}, {}
        for name in self.names(committed):
            if name.startswith(BUFFERED):
                stream = name.removeprefix(BUFFERED)
                scale = self._plan.catalog.streams[stream].scale
                waiting[stream] = self._counted(committed, name, scale, [ROWTIME])
            else:
                windows[name] = self._counted(committed, name, self._plan.scale, self._plan.rowtimes)
        return waiting, windows | self._views.reported(committed)

    def _counted(
        self, committed: CommittedBatch, name: str, scale: TimeScale, columns: Sequence[str]
    ) -> RetainedRowsOf:
        """The count of the rows retained under a name, with these columns of rowtimes."""
        size = sum(self._checkpoint.chunk_bytes(committed, kind) for kind in (name, f"{name}{GONE}"))
        return retained_of(self.retained(committed, name).tables(*columns), size, scale, columns)

    # -- a micro-batch -----------------------------------------------------------------------------

    def buffered(self, collected: CollectedBatch, committed: CommittedBatch) -> Buffered:
        """The rows of the sources: those that arrived after a micro-batch, and those that it buffered."""
        self._views.begin(committed)
        number = committed.number + 1
        new_rows = {
            name: numbered(one, collected.found[name].rows, number) for name, one in self.sources.items()
        }
        waits = {name: self.retained(committed, f"{BUFFERED}{name}") for name in self.sources}
        return Buffered(self.sources, self._plan.scale, number, new_rows, waits)

    def unchanged(self, committed: CommittedBatch) -> dict[str, RetainedRows]:
        """The retained rows of clauses that do not advance."""
        names = [name for name in self.names(committed) if not name.startswith(BUFFERED)]
        return {name: rows for name in names if (rows := self.rows(committed, name)) is not None}

    def span(
        self,
        due: Mapping[str, pa.Table],
        before: CommittedBatch,
        instants: tuple[int | None, int, int],
        marks: dict[str, int],
        cached: list[DataFrame],
        ended: Mapping[str, Ended | None],
    ) -> InstantSpan:
        """The micro-batch for clauses in which these rows are due.

        Parameters
        ----------
        instants
            The instant that the micro-batch before reached, that of this one, and the first of the logs.
        marks, cached
            The marks and caches, which the evaluation changes.
        ended
            As of :meth:`windrow.spark.live.operators.ended_partitions.ClosedPartitions.ended`.
        """
        over = {key: found for key, found in ended.items() if found is not None}
        arrived = {name: self._stream(name, rows) for name, rows in due.items()}
        known, number = partial(self.rows, before), before.number + 1
        return InstantSpan(
            *instants, arrived, known, {}, marks, cached, over, number, due, self._views.output
        )

    def _stream(self, name: str, rows: pa.Table) -> Stream:
        stream = self.sources[name]
        return replace(stream, frame=frame_of_collected(self._spark, rows, waiting_schema(stream)))

    def write(self, to_retain: Mapping[str, RetainedRows], buffered: Buffered) -> dict[str, dict[str, int]]:
        """Write the new chunks of the retained rows after a micro-batch; returns all chunks, by name."""
        number, known = buffered.number, dict[str, RetainedRows]()
        chunks: dict[str, dict[str, int]] = {}
        waits = {f"{BUFFERED}{name}": rows for name, rows in buffered.waits.items()}
        for name, rows in {**to_retain, **waits}.items():
            retained = known[name] = rows.merged(number)
            for kind, counts, new in retained.stored(name, number):
                chunks[kind] = self._checkpoint.write_chunks(kind, counts, new)
        self._known = number, known
        return chunks | self._views.write(number)
