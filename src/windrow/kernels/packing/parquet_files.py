"""Parquet files that tasks read themselves, instead of being given their rows by Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import ExecutionError
from windrow.kernels.computed.computed_steps import Computed, only

__all__ = ["FilePart", "FileScan"]

_BATCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class FilePart:
    """Row groups of a file, and what the file was like when they were chosen: `os.stat`.

    `values` are what its directory says of columns; of dates and times days and microseconds.
    """

    path: str
    row_groups: tuple[int, ...]
    size: int
    changed_ns: int
    values: tuple[int | str | None, ...] = ()

    def check(self) -> None:
        """Raise an OSError if the file is another by now."""
        found = Path(self.path).stat()
        if (found.st_size, found.st_mtime_ns) != (self.size, self.changed_ns):
            raise OSError("it has changed since the query was given")


@dataclass(frozen=True)
class FileScan:
    """Which rows are read, by whom, and what is made of them.

    Attributes
    ----------
    tasks
        The parts that each task reads.
    rows
        How many rows there are in all, before any are left out.
    longest
        A number of rows that no partition exceeds.
    columns
        Those that are read of the files, and as what.
    directories
        The columns of which directories have the values.
    made
        What is given, made of both.
    coded
        Columns of the files that are dictionary-coded in them.
    full
        Columns of what is given that are nowhere NULL, as far as the files tell.
    """

    tasks: tuple[tuple[FilePart, ...], ...]
    rows: int
    longest: float
    columns: pa.Schema
    directories: pa.Schema
    made: Computed
    coded: frozenset[str] = frozenset()
    full: frozenset[str] = frozenset()

    @property
    def schema(self) -> pa.Schema:
        """The columns that are given; strings may come dictionary-coded."""
        return self.made.schema

    def read(self, task: int) -> Iterator[pa.RecordBatch]:
        """The rows of a task.

        Raises
        ------
        ExecutionError
            ``UNREADABLE_FILE``, naming the file.
        """
        for part in self.tasks[task]:
            try:
                yield from self._rows(part)
            except (OSError, pa.ArrowException, IndexError) as error:
                raise ExecutionError(
                    f"{part.path} cannot be read: {str(error).splitlines()[0]}",
                    condition="UNREADABLE_FILE",
                    hint="run the query again if the file was written anew, else mend or fetch the file",
                ) from error

    def is_full(self, name: str) -> bool:
        """Whether a column of the rows is nowhere NULL for certain."""
        return name in self.full

    def only(self, names: Sequence[str]) -> FileScan:
        """The same rows with these of their columns."""
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
        part.check()
        read = frozenset(self.made.columns.values())
        of_directory = [
            (field, value)
            for field, value in zip(self.directories, part.values, strict=True)
            if field.name in read
        ]
        with pq.ParquetFile(part.path, read_dictionary=sorted(self.coded)) as file:
            groups = list(part.row_groups)  # of none, PyArrow 18 fails
            for batch in file.iter_batches(_BATCH_ROWS, groups, self.columns.names) if groups else ():
                given = {
                    field.name: _given(batch.column(field.name), field.type, coded=field.name in self.coded)
                    for field in self.columns
                }
                for field, value in of_directory:
                    given[field.name] = _repeated(value, field.type, batch.num_rows)
                rows = self.made.rows(given, batch.num_rows)
                if rows.count:
                    columns = [rows.columns[number] for number in self.made.result]
                    yield pa.RecordBatch.from_arrays(columns, names=self.schema.names)


def _given(array: pa.Array, kind: pa.DataType, *, coded: bool) -> pa.Array:
    """The values in this type, or as codes of such values."""
    if coded:
        kind = pa.dictionary(pa.int32(), kind)
    return array if array.type == kind else array.cast(kind)


def _repeated(value: int | str | None, kind: pa.DataType, count: int) -> pa.Array:
    """The value of a directory for each row; of strings, codes."""
    if pa.types.is_string(kind):
        codes = pa.nulls(count, pa.int32()) if value is None else pa.repeat(pa.scalar(0, pa.int32()), count)
        return pa.DictionaryArray.from_arrays(codes, pa.array([value or ""]))
    plain = pa.int32() if pa.types.is_date32(kind) else pa.int64() if pa.types.is_timestamp(kind) else kind
    return pa.repeat(pa.scalar(value, plain).cast(kind), count)
