"""Parquet files that tasks read themselves, instead of receiving the rows from Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windrow.errors import ExecutionError
from windrow.kernels.computed.computed_operations import Computed, only

__all__ = ["FilePart", "FileScan", "KeyRange", "RowGroup"]

_BATCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The rows whose value of a column is at least `first` and less than `stop`, as files have the values:
    integers, days, microseconds or bytes. None is no limit; NULL is in no range.
    """

    column: str
    first: int | bytes | None
    stop: int | bytes | None

    def of(self, values: pa.Array) -> pa.Array:
        """Whether each value of the column, plain or dictionary-coded, is within."""
        if pa.types.is_dictionary(values.type):
            return self.of(values.dictionary).take(values.indices)
        is_bytes = pa.types.is_string(values.type) or pa.types.is_binary(values.type)
        days = values.cast(pa.int32()) if pa.types.is_date32(values.type) else values
        stored = values.cast(pa.binary()) if is_bytes else days.cast(pa.int64())
        within = stored.is_valid()
        for limit, holds in ((self.first, pc.greater_equal), (self.stop, pc.less)):
            if limit is not None:
                within = pc.and_(within, holds(stored, pa.scalar(limit, stored.type)))
        return within


@dataclass(frozen=True, slots=True)
class FilePart:
    """Row groups of a file, and the file's size and time when they were chosen.

    `values` are the partition values of its directory, with dates as days and times as microseconds. With
    `within`, only rows in this range are read.
    """

    path: str
    row_groups: tuple[int, ...]
    size: int
    changed_ns: int
    values: tuple[int | str | None, ...] = ()
    within: KeyRange | None = None

    @classmethod
    def of(cls, path: str) -> FilePart:
        """A file in its present state, unread; an OSError if there is none."""
        found = Path(path).stat()
        return cls(path, (), found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Raise an OSError if the file has changed."""
        found = Path(self.path).stat()
        if (found.st_size, found.st_mtime_ns) != (self.size, self.changed_ns):
            raise OSError("it has changed since the query was planned")


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group, as a part of its file: the number of its rows before filters, and the range of a column's
    values in it, which are integers or bytes: the same in all row groups.
    """

    part: FilePart
    rows: int
    least: Any
    greatest: Any

    def may_hold(self, first: Any, stop: Any) -> bool:
        """Whether there may be values from `first` on and below `stop`; None is no limit."""
        return (first is None or self.greatest >= first) and (stop is None or self.least < stop)


@dataclass(frozen=True)
class FileScan:
    """Which rows each task reads, and the columns computed from them.

    Attributes
    ----------
    tasks
        The parts that each task reads.
    rows
        The number of all rows, before filters.
    longest
        An upper bound of the rows of a partition.
    columns
        The columns read from the files, with their types.
    directories
        The columns whose values are in the names of directories.
    made
        The output columns, computed from both.
    coded
        The columns that are dictionary-coded in the files.
    full
        The output columns without NULLs, according to the files.
    beside
        The files of the tables that the rows are joined with.
    whole
        The parts that each task reads if tasks read whole partitions: one for each bucket of the layout.
    long
        For each long partition of the layout, if tasks read its slices: the row groups that have rows of it,
        with ranges of the cut codes of the first order key (:mod:`windrow.kernels.packing.file_slices`).
    """

    tasks: tuple[tuple[FilePart, ...], ...]
    rows: int
    longest: float
    columns: pa.Schema
    directories: pa.Schema
    made: Computed
    coded: frozenset[str] = frozenset()
    full: frozenset[str] = frozenset()
    beside: tuple[FilePart, ...] = ()
    whole: tuple[tuple[FilePart, ...], ...] = ()
    long: tuple[tuple[RowGroup, ...], ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The output columns; strings may be dictionary-coded."""
        return self.made.schema

    def read(self, task: int) -> Iterator[pa.RecordBatch]:
        """The rows of a task, as :meth:`rows_of`."""
        return self.rows_of(self.tasks[task])

    def rows_of(self, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
        """The rows of parts of files.

        Raises
        ------
        ExecutionError
            ``UNREADABLE_FILE``, naming the file.
        """
        for part in (*self.beside, *parts):
            try:
                part.check()
                yield from self._rows(part) if part.row_groups else ()
            except (OSError, pa.ArrowException, IndexError) as error:
                raise ExecutionError(
                    f"cannot read {part.path}: {str(error).splitlines()[0]}",
                    condition="UNREADABLE_FILE",
                    hint="restore the file; or if it was rewritten, give the query to session.sql again",
                ) from error

    def is_full(self, name: str) -> bool:
        """Whether a column certainly has no NULL."""
        return name in self.full

    def only(self, names: Sequence[str]) -> FileScan:
        """The same rows with only these columns."""
        made = only(self.made, names)
        read = frozenset(made.columns.values())
        columns = pa.schema([field for field in self.columns if field.name in read])
        return replace(self, columns=columns, made=made, coded=self.coded & read)

    def sample(self, task: int, share: float) -> Iterator[pa.RecordBatch]:
        """About this share of a task's rows, always the same ones, as plain values."""
        chosen = np.random.default_rng(task)
        for batch in self.read(task):
            some = np.flatnonzero(chosen.random(batch.num_rows) < share)
            yield batch.take(pa.array(some)).cast(self.schema)

    def _rows(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        read = frozenset(self.made.columns.values())
        of_directory = [
            (field, value)
            for field, value in zip(self.directories, part.values, strict=True)
            if field.name in read
        ]
        with pq.ParquetFile(
            part.path,
            metadata=_footer(part),
            read_dictionary=sorted(self.coded),
            coerce_int96_timestamp_unit="us",
        ) as file:
            for batch in file.iter_batches(_BATCH_ROWS, list(part.row_groups), self.columns.names):
                if part.within is not None:
                    batch = batch.filter(part.within.of(self._column(batch, part.within.column)))
                columns_read = {name: self._column(batch, name) for name in self.columns.names}
                for field, value in of_directory:
                    columns_read[field.name] = _repeated(value, field.type, batch.num_rows)
                rows = self.made.rows(columns_read, batch.num_rows)
                if rows.count:
                    columns = [rows.columns[number] for number in self.made.result]
                    yield pa.RecordBatch.from_arrays(columns, names=self.schema.names)

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """A column that is read, in its type, or dictionary codes of such values."""
        array, kind = batch.column(name), self.columns.field(name).type
        if name in self.coded:
            kind = pa.dictionary(pa.int32(), kind)
        return array if array.type == kind else array.cast(kind)


def _footer(part: FilePart) -> pq.FileMetaData:
    """The footer of a file that has not changed, which tasks read once for several parts."""
    return _footer_of(part.path, part.size, part.changed_ns)


@lru_cache(maxsize=32)
def _footer_of(path: str, size: int, changed_ns: int) -> pq.FileMetaData:  # noqa: ARG001 - of this state
    return pq.read_metadata(path)


def _repeated(value: int | str | None, kind: pa.DataType, count: int) -> pa.Array:
    """The value of a directory for each row; strings as codes."""
    if pa.types.is_string(kind):
        codes = pa.nulls(count, pa.int32()) if value is None else pa.repeat(pa.scalar(0, pa.int32()), count)
        return pa.DictionaryArray.from_arrays(codes, pa.array([value or ""]))
    plain = pa.int32() if pa.types.is_date32(kind) else pa.int64() if pa.types.is_timestamp(kind) else kind
    return pa.repeat(pa.scalar(value, plain).cast(kind), count)
