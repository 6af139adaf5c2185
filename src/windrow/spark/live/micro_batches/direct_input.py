"""Micro-batches of files, read on the driver without a Spark job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructType

from windrow.kernels.incremental import Times
from windrow.spark.gateway import Gateway
from windrow.spark.live.input.entry_columns import inside
from windrow.spark.live.input.file_batches import FileBatch, file_batch, may_read_texts, ticks_of
from windrow.spark.live.operators.incremental_plan import IncrementalPlan
from windrow.spark.logs.live_source import BOUND, PLACE, PRODUCER, PTIME, FileColumns
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.scan.file_scan import may_read
from windrow.syntax.sqltext import quoted

__all__ = ["DirectBatch", "DirectInput", "Reading"]

Reading = Callable[[DataFrame, int, str, Column], tuple[DataFrame, dict[str, str]]]
"""A function of entries with the columns of a stream, its number and name, and a condition for its rows. It
returns them with computed columns, and the columns to read, by their names in memory.
"""


@dataclass(frozen=True, eq=False)
class _Source:
    """A stream of files.

    Attributes
    ----------
    at, name, stream
        As for :meth:`windrow.spark.live.micro_batches.host.MicroBatches.streams`.
    files
        Its columns in the files.
    leaf
        The leaf of the program with the entries as they are read.
    columns
        The columns that are read: their names in memory, and in the output of the program.
    """

    at: int
    name: str
    stream: Stream
    files: FileColumns
    leaf: int
    columns: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class DirectBatch:
    """A micro-batch that has been read.

    Attributes
    ----------
    now
        Its time, in microseconds.
    entries
        The new entries of each stream, in order, with the columns that are read, `PLACE` from 0 on, and the
        columns with rowtimes, bounds and producers.
    """

    now: int
    entries: Mapping[str, pa.Table]
    _batch: FileBatch
    _sources: Sequence[_Source]

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """For each stream, the columns of its rows."""
        return {source.name: tuple(source.columns) for source in self._sources}

    def whole(self, name: str) -> pa.Table | None:
        """All columns of the entries of a stream; None if they cannot be read any more."""
        place = next(place for place, source in enumerate(self._sources) if source.name == name)
        source = self._sources[place]
        rows = self._batch.rows(place, source.files, source.stream.columns)
        if rows is None or rows.num_rows != self.entries[name].num_rows:
            return None
        return rows

    def count(self) -> None:
        """Report to Spark how many rows have been read."""
        for place, source in enumerate(self._sources):
            self._batch.count(place, self.entries[source.name].num_rows)


class DirectInput:
    """Reads the micro-batches of a query over streams of files; made by :meth:`of`."""

    def __init__(self, gateway: Gateway, operators: IncrementalPlan, sources: Sequence[_Source]) -> None:
        self._gateway, self._operators, self._sources = gateway, operators, sources

    @classmethod
    def of(
        cls, gateway: Gateway, folder: Path, streams: Sequence[tuple[int, str, Stream]], reading: Reading
    ) -> DirectInput | None:
        """The reader of these streams; None if Spark must read them.

        Parameters
        ----------
        gateway
            One of its own: its operators run in memory.
        folder
            For files of a micro-batch.
        """
        if gateway.is_connect or not may_read(gateway):
            return None
        operators, sources = IncrementalPlan(gateway, folder), []
        for at, name, stream in streams:
            files = None if stream.live is None else stream.live.files
            if files is None or not files.is_plain or stream.live is None or stream.live.idle is not None:
                return None
            if not _may_read(gateway, files):
                return None
            leaf, frame = operators.leaf(_schema(at, stream, files))
            # where all entries are rows there is none of which nothing may be computed
            is_row = F.lit(True) if files.bound is None else F.col(inside(at, ROWTIME)).isNotNull()
            chosen, columns = reading(frame, at, name, is_row)
            control = [inside(at, own) for own in _control_columns(files)]
            wanted = dict.fromkeys([*columns.values(), *control, PLACE])
            fragment = operators.output(chosen.select(*map(quoted, wanted)))
            if fragment.chosen is None and fragment.computed is None:
                return None
            sources.append(_Source(at, name, stream, files, leaf, columns))
        return cls(gateway, operators, sources)

    def take(self) -> DirectBatch | None:
        """The micro-batch for which Spark calls; None if Spark must read it."""
        if not all(_may_read(self._gateway, source.files) for source in self._sources):
            return None
        batch = file_batch(self._gateway.spark, len(self._sources))
        if batch is None:
            return None
        entries_of = {}
        for place, source in enumerate(self._sources):
            entries = self._entries(batch, place, source)
            if entries is None:
                return None
            entries_of[source.leaf] = entries
        made = self._operators.advance(entries_of, Times(None, 0))
        entries = {
            source.name: _named(source, rows, batch.now)
            for source, rows in zip(self._sources, made, strict=True)
        }
        return DirectBatch(batch.now, entries, batch, self._sources)

    def _entries(self, batch: FileBatch, place: int, source: _Source) -> pa.Table | None:
        """The entries of a stream as the program reads them."""
        at, files, read = source.at, source.files, self._operators.read(source.leaf)
        chosen = {inside(at, own): own for own in source.stream.columns if inside(at, own) in read}
        of_time = [name for name in (files.rowtime, files.bound, files.producer) if name is not None]
        rows = batch.rows(place, files, dict.fromkeys([*chosen.values(), *of_time]))
        if rows is None:
            return None
        columns = {name: rows.column(own) for name, own in chosen.items()}
        columns[inside(at, ROWTIME)] = ticks_of(rows.column(files.rowtime))
        if files.bound is not None:
            columns[inside(at, BOUND)] = ticks_of(rows.column(files.bound))
        if files.producer is not None:
            columns[inside(at, PRODUCER)] = rows.column(files.producer).fill_null("")
        columns[PLACE] = pa.array(np.arange(rows.num_rows))
        return pa.table(columns)


def _may_read(gateway: Gateway, files: FileColumns) -> bool:
    """Whether Spark reads these values, by the present settings: those may change while a query runs."""
    return files.format == "parquet" or may_read_texts(gateway, files.schema.names)


def _control_columns(files: FileColumns) -> list[str]:
    """The columns of entries with rowtimes, bounds and producers."""
    named = [(ROWTIME, files.rowtime), (PRODUCER, files.producer), (BOUND, files.bound)]
    return [name for name, column in named if column is not None]


def _schema(at: int, stream: Stream, files: FileColumns) -> StructType:
    schema = StructType()
    for own in stream.columns:
        schema = schema.add(inside(at, own), files.schema[own].dataType)
    for own in _control_columns(files):
        schema = schema.add(inside(at, own), StringType() if own == PRODUCER else LongType())
    return schema.add(PLACE, LongType())


def _named(source: _Source, rows: pa.Table, now: int) -> pa.Table:
    """The output of the program for a stream, in order of arrival, under the names in memory."""
    places = rows.column(PLACE).to_numpy()
    if (np.diff(places) < 0).any():
        rows = rows.sort_by(PLACE)
    count = rows.num_rows
    columns = {name: rows.column(own) for name, own in source.columns.items()}
    columns |= {own: rows.column(inside(source.at, own)) for own in _control_columns(source.files)}
    columns.setdefault(PRODUCER, pa.repeat("", count))
    columns.setdefault(BOUND, pa.nulls(count, pa.int64()))
    columns[PTIME] = pa.repeat(pa.scalar(now, pa.int64()), count)
    columns[PLACE] = pa.array(np.arange(count))
    return pa.table(columns)
