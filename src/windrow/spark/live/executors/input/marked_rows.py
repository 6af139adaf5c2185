"""Rows of Parquet files that tasks read themselves: of these, Spark sends only some as markers.

Each row whose number in its file is a multiple of `EVERY` is a marker. A task reads a row group if it gets
the first marker from the first row of the group on; without a later one in the file, if it gets the last. So
one task reads a row group, whatever parts of files Spark gives to its tasks, and only markers cross from Java
to Python.

A file that Arrow may read differently than Spark has a copy that Spark has written
(:mod:`.marked_files`). The task that gets the first marker reads all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.computed.computed_operations import Computed
from windrow.kernels.packing.parquet_files import FilePart, FileScan
from windrow.spark.errors import local_path
from windrow.spark.live.input.file_batches import ticks_of
from windrow.spark.scan.footers import Footer, footers_of, says_the_same

__all__ = ["EVERY", "ROW", "MarkedFiles", "in_tables"]

EVERY = 1 << 13
"""A marker is a row whose number in its file is a multiple of this."""

ROW = "__row"
"""The column of markers with the number of the row in its file."""

_ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class MarkedFiles:
    """The files of a stream.

    Attributes
    ----------
    kinds
        The columns of the files whose types must be these.
    columns
        The columns of entries, and their names in the files.
    ticks
        The columns of entries with instants in ticks, in the same way.
    producer
        The column of entries with the producer, and its name in the files; None without.
    copies
        The folder with the copies.
    stream
        The number of the stream.
    root
        The folder of the stream; directories below it may have values. Empty if it is unknown.
    """

    kinds: pa.Schema
    columns: Mapping[str, str]
    ticks: Mapping[str, str]
    producer: tuple[str, str] | None
    copies: Path
    stream: int
    root: str = ""

    def footer(self, path: str) -> Footer | None:
        """The footer of a file, if Arrow reads the same from it as Spark, which may take values from the
        names of directories.
        """
        has_values = "=" in str(Path(path).parent).removeprefix(self.root)
        found = None if has_values else footers_of([path])
        if found is None or says_the_same(
            found[0], dict(zip(self.kinds.names, self.kinds.types, strict=True))
        ):
            return None
        return found[0]

    def copy_of(self, path: str) -> Path:
        """The path of the copy of a file."""
        return self.copies / f"{hashlib.sha256(f'{self.stream} {path}'.encode()).hexdigest()}.parquet"

    def rows(self, uri: str, markers: Collection[int]) -> Iterator[tuple[int, pa.Table]]:
        """The entries for which a task has markers, with the number of their row group; in order.

        Raises
        ------
        ExecutionError
            ``UNREADABLE_FILE``.
        """
        path = local_path(uri)
        footer = self.footer(path)
        groups = [] if footer is None else _marked(footer, markers)
        if footer is None:
            footer = self._copied(path)
            groups = list(footer.groups) if 0 in markers else []
        for group in groups:
            part = FilePart(footer.path, (group,), footer.size, footer.changed_ns)
            for table in in_tables(self._scan.rows_of([part])):
                yield group, self._entries(table)

    def _copied(self, path: str) -> Footer:
        """The footer of the copy of a file."""
        found = footers_of([str(self.copy_of(path))])
        if found is not None:
            return found[0]
        exists = Path(path).exists()
        why = "it is torn, or its columns differ from those of the stream" if exists else "it is missing"
        raise ExecutionError(
            f"cannot read {path}: {why}",
            condition="UNREADABLE_FILE",
            hint="SET spark.windrow.read.files = false, and start the query with its checkpoint",
        )

    @property
    def _scan(self) -> FileScan:
        producer = [] if self.producer is None else [self.producer[1]]
        names = dict.fromkeys([*self.columns.values(), *self.ticks.values(), *producer])
        numbers, schema = dict(enumerate(names)), pa.schema([self.kinds.field(name) for name in names])
        return FileScan((), 0, 0, schema, pa.schema([]), Computed(numbers, [], [*numbers], schema))

    def _entries(self, rows: pa.Table) -> pa.Table:
        entries = {name: rows.column(own) for name, own in self.columns.items()}
        entries |= {name: ticks_of(rows.column(own)) for name, own in self.ticks.items()}
        if self.producer is not None:
            name, own = self.producer
            entries[name] = rows.column(own).fill_null("")
        return pa.table(entries)


def _marked(footer: Footer, markers: Collection[int]) -> list[int]:
    """The row groups that a task with these markers reads."""
    found, first, rows = [], 0, footer.rows
    for group in footer.groups:
        marker = -(-first // EVERY) * EVERY
        if min(marker, (rows - 1) // EVERY * EVERY) in markers:
            found.append(group)
        first += footer.metadata.row_group(group).num_rows
    return found


def in_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches, with small ones combined."""
    waiting, rows = list[pa.RecordBatch](), 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting)
