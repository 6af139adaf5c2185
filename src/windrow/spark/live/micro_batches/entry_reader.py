"""Reads the entries of a micro-batch into the driver's memory, and judges them.

It reads the columns that a query needs, with the columns that Spark computes from each row, in one job; for
plain files without a job (:mod:`windrow.spark.live.micro_batches.direct_input`). Late rows are stored with
all columns, so they are read again; through Spark that means the whole micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.errors import ExecutionError, WindrowError
from windrow.spark.analysis.arrow_columns import travelling
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.input.arrivals import VIOLATED, Arrivals, arrivals
from windrow.spark.live.input.entry_columns import STREAM, TICKS, inside
from windrow.spark.live.input.file_order import ORIGIN, in_order, is_of_one_file
from windrow.spark.live.micro_batches.direct_input import DirectInput, Reading
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.logs.live_source import BOUND, LOGGED, PLACE, PRODUCER, PTIME, LiveSource
from windrow.spark.logs.session_streams import ARRIVED, REASON, ROWTIME, Stream
from windrow.streams import Position
from windrow.streams.entries import BEFORE
from windrow.streams.log_position import needs_rows
from windrow.syntax.sqltext import quoted

__all__ = ["TOO_LARGE", "CollectedBatch", "EntryReader", "Narrow", "numbered", "waiting_schema"]


@dataclass(frozen=True, eq=False)
class CollectedBatch:
    """The judged entries of a micro-batch.

    Attributes
    ----------
    found
        The entries that were read of each stream.
    entries
        How many there are.
    now
        Its time, in microseconds.
    firsts
        For each stream with entries, the time of the first.
    """

    found: Mapping[str, Arrivals]
    entries: int
    now: int
    firsts: Mapping[str, int]

    @property
    def count(self) -> int:
        """How many rows arrived, without duplicates."""
        return sum(one.count for one in self.found.values())

    @property
    def late(self) -> dict[str, pa.Table | None]:
        """The late rows of each stream; None without."""
        return {name: one.late for name, one in self.found.items()}

    @property
    def positions(self) -> dict[str, Position]:
        """How far each stream has been read."""
        return {name: one.position for name, one in self.found.items()}

    def counts(self, before: CommittedBatch, used: int) -> dict[str, int]:
        """The counts over all micro-batches, where this one used so many rows."""
        known = before.counts
        return {
            "now": self.now,
            "entries": self.entries,
            "rows_in": known.get("rows_in", 0) + self.count,
            "rows_late": sum(position.watermark.refused for position in self.positions.values()),
            "rows_used": known.get("rows_used", 0) + used,
        }


@dataclass(frozen=True, eq=False)
class Narrow:
    """The columns of a micro-batch that are read.

    Attributes
    ----------
    frame
        The micro-batch, with computed columns.
    columns
        For each stream, the columns of its rows: in memory, and in `frame`.
    """

    frame: DataFrame
    columns: Mapping[str, Mapping[str, str]]


class EntryReader:
    """Reads the entries of micro-batches.

    Parameters
    ----------
    context
        The query.
    reading
        The columns that it needs of each stream; without it, all are read.
    timed
        Whether rows have processing times, as with EMIT: those of streaming DataFrames increase from
        micro-batch to micro-batch, and ticks are entries too.
    judges
        Whether rows below their stream's watermark are judged, and so retained with all columns.
    """

    def __init__(
        self,
        context: LiveContext,
        reading: Reading | None = None,
        *,
        timed: bool = False,
        judges: bool = False,
    ) -> None:
        self._context, self._streams = context, context.streams()
        self._reads_all = reading is None
        self._reading = reading or self._all_columns
        self._timed, self._judges = timed, judges
        # micro-batches before this one are read with all columns: late rows seldom come alone
        self._wide_until = 0

    def _all_columns(
        self,
        frame: DataFrame,
        at: int,
        name: str,
        is_row: Column,  # noqa: ARG002 - others compute
    ) -> tuple[DataFrame, dict[str, str]]:
        """All columns of a stream, as for :data:`.direct_input.Reading`."""
        return frame, {own: inside(at, own) for own in self._context.plan.catalog.streams[name].columns}

    def _narrow(self, batch: DataFrame) -> Narrow | None:
        """The columns of a micro-batch to read; None for all of them."""
        if self._reads_all or self._context.retains_malformed:  # all columns show what is wrong
            return None
        frame, columns = self._context.own(batch), {}
        for at, name, _ in self._streams:
            is_row = (F.col(STREAM) == at) & F.col(inside(at, ROWTIME)).isNotNull()
            frame, columns[name] = self._reading(frame, at, name, is_row)
        return Narrow(frame, columns)

    @cached_property
    def _direct(self) -> DirectInput | None:
        """The reader of micro-batches without Spark."""
        if self._context.retains_malformed:
            return None
        folder = self._context.checkpoint.folder.resolve() / ".input"
        return DirectInput.of(self._context.new_gateway(), folder, self._streams, self._reading)

    def read(self, batch: DataFrame, before: CommittedBatch) -> CollectedBatch:
        """The entries of a micro-batch, judged."""
        collected = self._collected_directly(before)
        if collected is not None:
            return collected
        number = before.number + 1
        narrow = self._narrow(batch) if number >= self._wide_until else None
        collected = None if narrow is None else self._collected_narrowly(narrow, before)
        if collected is not None:
            return collected
        if narrow is not None:
            self._wide_until = number + _WIDE
        entries = self._in_order(batch)
        now = self._now_of(entries, before)
        found = {
            name: arrivals(
                name,
                stream,
                self._entries(entries, at, {name: inside(at, name) for name in _live(stream).frame.columns}),
                before.positions.get(name),
                now,
                timed=self._timed,
            )
            for at, name, stream in self._streams
        }
        return CollectedBatch(found, entries.num_rows, now, self._first_times(entries, now))

    def _collected_directly(self, before: CommittedBatch) -> CollectedBatch | None:
        """The same for files that are read here; None if Spark must read."""
        try:
            direct = None if self._direct is None else self._direct.take()
        except WindrowError:  # maybe of a row that is late
            return None
        if direct is None:
            return None
        count = sum(rows.num_rows for rows in direct.entries.values())
        now = self._now(direct.now if count else None, before)
        found, firsts = {}, {}
        for _, name, stream in self._streams:
            entries = direct.entries[name]
            one = arrivals(
                name,
                stream,
                entries,
                before.positions.get(name),
                now,
                timed=self._timed,
                columns=direct.columns[name],
            )
            if self._asks_whole(one):
                whole = direct.whole(name)
                if whole is None:
                    return None
                one = replace(
                    one,
                    late=_beside(whole, one.late, (ROWTIME, PRODUCER, PTIME, BOUND, PLACE, VIOLATED, REASON)),
                    below=_beside(whole, one.below, (ROWTIME, PRODUCER, ARRIVED, BEFORE)),
                )
            if entries.num_rows:
                firsts[name] = now
            found[name] = one
        direct.count()
        return CollectedBatch(found, count, now, firsts)

    def _collected_narrowly(self, narrow: Narrow, before: CommittedBatch) -> CollectedBatch | None:
        """The same for the selected columns; None if all columns are needed."""
        present = {*narrow.frame.columns} - {*self._constant()}
        by = {
            at: {name: inside(at, name) for name in (ROWTIME, PRODUCER, PTIME, BOUND, *LOGGED)}
            for at, _, _ in self._streams
        }
        ours = [
            STREAM,
            PLACE,
            *ORIGIN,
            inside(TICKS, PTIME),
            *(own for names in by.values() for own in names.values()),
        ]
        read = [own for names in narrow.columns.values() for own in names.values()]
        wanted = dict.fromkeys(name for name in (*ours, *read) if name in present)
        try:
            entries = self._in_order(narrow.frame.select(*map(quoted, wanted)))
        except WindrowError:  # maybe because of a late row; for others the error occurs again
            return None
        now = self._now_of(entries, before)
        found = {}
        for at, name, stream in self._streams:
            columns, position = narrow.columns[name], before.positions.get(name)
            table = self._entries(entries, at, {**columns, **by[at]})
            live = _live(stream)
            if live.has_patterns and needs_rows(position or live.start, table):
                return None
            one = arrivals(name, stream, table, position, now, timed=self._timed, columns=tuple(columns))
            if self._asks_whole(one):
                return None
            found[name] = one
        return CollectedBatch(found, entries.num_rows, now, self._first_times(entries, now))

    def _asks_whole(self, one: Arrivals) -> bool:
        """Whether all columns are needed: for rows that are late, or may be."""
        return one.late is not None or (self._judges and one.below is not None)

    def _first_times(self, entries: pa.Table, now: int) -> dict[str, int]:
        """The first processing time of each stream with entries."""
        shared = STREAM in entries.column_names
        numbers = {*pc.unique(entries.column(STREAM)).to_pylist()} if shared else {0}
        found = {}
        for at, name, stream in self._streams:
            if at in numbers and entries.num_rows:
                own = inside(at, PTIME)
                found[name] = pc.min(entries.column(own)).as_py() if _live(stream).identity else now
        return found

    @property
    def _sources_of_time(self) -> list[int]:
        """The numbers of the sources with Spark's processing time, including ticks."""
        return [*(at for at, _, stream in self._streams if not (self._timed and stream.is_log)), TICKS]

    def _now(self, last: int | None, before: CommittedBatch) -> int:
        """The time of a micro-batch whose entries arrived at `last`, if there are any; later than that of
        the one before, if rows have processing times.
        """
        earlier = before.counts.get("now", 0)
        return earlier if last is None else max(last, earlier + (1 if self._timed else 0))

    def _now_of(self, entries: pa.Table, before: CommittedBatch) -> int:
        """The time of a micro-batch."""
        names = [inside(place, PTIME) for place in self._sources_of_time]
        times = [pc.max(entries.column(name)).as_py() for name in names if name in entries.column_names]
        return self._now(max((int(time) for time in times if time is not None), default=None), before)

    def _in_order(self, batch: DataFrame) -> pa.Table:
        """The entries of a micro-batch, in order of arrival."""
        entries = self._collected(batch)
        if PLACE in entries.column_names:
            entries = entries.sort_by(PLACE).drop_columns([PLACE])
        return in_order(entries)

    def _collected(self, batch: DataFrame) -> pa.Table:
        """The entries in the order in which Spark reads them, with `ORIGIN` if that may not be the order of
        arrival.
        """
        left_out = [*self._constant(), *(ORIGIN if is_of_one_file(self._context.spark) else ())]
        try:
            with self._context.gateway.translated():
                return travelling(batch.drop(*left_out)).toArrow()
        except WindrowError as error:
            if _LARGEST not in error.message:
                raise
            raise ExecutionError(
                f"the rows of a micro-batch are larger than {_LARGEST} allows on the driver",
                condition=TOO_LARGE,
                hint=f"set {_LARGEST} higher and restart, and limit the rows of a micro-batch with"
                " maxFilesPerTrigger or maxOffsetsPerTrigger",
            ) from None

    def _constant(self) -> list[str]:
        """The columns that are the same in all rows."""
        streams = [(at, stream.live) for at, _, stream in self._streams if stream.live is not None]
        constant = [
            inside(at, name)
            for at, live in streams
            for name in (PRODUCER, BOUND)
            if name not in live.declared
        ]
        alone = len(streams) == 1 and streams[0][1].idle is None and not self._timed
        return [*constant, STREAM] if alone else constant

    def _entries(self, entries: pa.Table, at: int, columns: Mapping[str, str]) -> pa.Table:
        """The entries of a stream, with these columns, as far as they were read, and their places."""
        shared = STREAM in entries.column_names
        rows = entries.filter(pc.equal(entries.column(STREAM), at)) if shared else entries
        present = {name: own for name, own in columns.items() if own in rows.column_names}
        table = pa.table({name: rows.column(own) for name, own in present.items()}).combine_chunks()
        for name, constant in ((PRODUCER, pa.scalar("")), (BOUND, pa.scalar(None, pa.int64()))):
            if name not in present:
                table = table.append_column(name, pa.repeat(constant, table.num_rows))
        return table.append_column(PLACE, pa.array(np.arange(table.num_rows)))


def waiting_schema(stream: Stream) -> StructType:
    """The schema of the buffered rows of a live stream: its columns, `ROWTIME` and tie-breakers."""
    return StructType([stream.frame.schema[name] for name in (*stream.columns, ROWTIME, *stream.ties)])


def numbered(stream: Stream, rows: pa.Table, number: int) -> pa.Table:
    """The new rows of a stream in a micro-batch, with tie-breakers for equal rowtimes."""
    if not _live(stream).identity:
        micro_batch, place = stream.ties
        rows = rows.append_column(micro_batch, pa.array(np.full(rows.num_rows, number, np.int64)))
        rows = rows.append_column(place, pa.array(np.arange(rows.num_rows, dtype=np.int64)))
    return rows.select([*stream.columns, ROWTIME, *stream.ties])


def _beside(whole: pa.Table, rows: pa.Table | None, columns: Sequence[str]) -> pa.Table | None:
    """The rows with all columns, and with these of the columns read before."""
    if rows is None:
        return None
    found = whole.take(rows.column(PLACE))
    for column in columns:
        found = found.append_column(column, rows.column(column))
    return found


def _live(stream: Stream) -> LiveSource:
    assert stream.live is not None
    return stream.live


_WIDE = 16
TOO_LARGE = "MICRO_BATCH_TOO_LARGE"
"""The condition of an error."""
_LARGEST = "spark.driver.maxResultSize"
