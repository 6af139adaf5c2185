"""Parquet files that tasks read themselves, instead of being given their rows by Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import ExecutionError

__all__ = ["FileScan", "Part"]

_BATCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class Part:
    """Row groups of a file, and what the file was like when they were chosen: `os.stat`."""

    path: str
    row_groups: tuple[int, ...]
    size: int
    changed_ns: int

    def check(self) -> None:
        """Raise an OSError if the file is another by now."""
        found = Path(self.path).stat()
        if (found.st_size, found.st_mtime_ns) != (self.size, self.changed_ns):
            raise OSError("it has changed since the query was given")


@dataclass(frozen=True)
class FileScan:
    """Which rows are read, by whom, and as what.

    Attributes
    ----------
    tasks
        The parts that each task reads.
    rows
        How many rows there are in all.
    longest
        A number of rows that no partition exceeds.
    columns
        The columns of the files, in the order of `schema`.
    schema
        What their values are given as.
    coded
        Columns of the files that are dictionary-coded in them.
    full
        Columns of the files that are nowhere NULL, as far as the files tell.
    """

    tasks: tuple[tuple[Part, ...], ...]
    rows: int
    longest: float
    columns: tuple[str, ...]
    schema: pa.Schema
    coded: frozenset[str]
    full: frozenset[str] = frozenset()

    def is_full(self, name: str) -> bool:
        """Whether a column of the rows is nowhere NULL for certain."""
        return self.columns[self.schema.names.index(name)] in self.full

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

    def only(self, names: Sequence[str]) -> FileScan:
        """The same rows with these of their columns."""
        places = [self.schema.names.index(name) for name in names]
        columns = tuple(self.columns[place] for place in places)
        schema = pa.schema([self.schema.field(place) for place in places])
        return replace(self, columns=columns, schema=schema, coded=self.coded & set(columns))

    def sample(self, task: int, share: float) -> Iterator[pa.RecordBatch]:
        """About this share of a task's rows, always the same ones, as plain values."""
        chosen = np.random.default_rng(task)
        for batch in self.read(task):
            some = np.flatnonzero(chosen.random(batch.num_rows) < share)
            yield batch.take(pa.array(some)).cast(self.schema)

    def _rows(self, part: Part) -> Iterator[pa.RecordBatch]:
        wanted = list(dict.fromkeys(self.columns))
        part.check()
        with pq.ParquetFile(part.path, read_dictionary=sorted(self.coded)) as file:
            groups = list(part.row_groups)  # of none, PyArrow 18 fails
            for batch in file.iter_batches(_BATCH_ROWS, groups, wanted) if groups else ():
                columns = [
                    _given(batch.column(name), field.type, coded=name in self.coded)
                    for name, field in zip(self.columns, self.schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, names=self.schema.names)


def _given(array: pa.Array, kind: pa.DataType, *, coded: bool) -> pa.Array:
    """The values in this type, or as codes of such values."""
    if coded:
        kind = pa.dictionary(pa.int32(), kind)
    return array if array.type == kind else array.cast(kind)
