"""The Parquet files of a micro-batch, read on the driver instead of by Spark.

That spares each row the way from Spark's rows into Python, and reads only columns that are wanted. It applies
where a stream is nothing but columns of files which say the same to Arrow as they do to Spark, as
:mod:`windrow.spark.scan.file_scan` has it. Spark says which files a micro-batch has. Their order is that of
:mod:`windrow.spark.live.input.file_order`: so the rows come in the same order from either.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windrow.errors import ExecutionError
from windrow.kernels.packing.parquet_files import FileScan
from windrow.spark.errors import local_path
from windrow.spark.jvm.bridge import BridgeError
from windrow.spark.jvm.streams import RunningScan, running_batch, streamed_files
from windrow.spark.logs.live_source import FileColumns
from windrow.spark.scan.file_scan import split_scan

__all__ = ["FileBatch", "file_batch", "is_of_files", "ticks_of"]

_MOST_FILES = 100
_FILES = "LogicalRelation"
_NOTHING = "LocalRelation"  # in place of a source of which there is nothing new
_OPTIONS = frozenset(
    {
        "path",
        "maxfilespertrigger",
        "maxbytespertrigger",
        "maxfileage",
        "maxcachedfiles",
        "latestfirst",
        "filenameonly",
        "pathglobfilter",
        "recursivefilelookup",
        "cleansource",
        "sourcearchivedir",
    }
)  # of a source: they say which files there are, and not how these are read


def is_of_files(frame: DataFrame) -> bool:
    """Whether a streaming DataFrame is what a source of Parquet files gives, and nothing is done with it."""
    source = streamed_files(frame)
    return (
        source is not None
        and source.format == "parquet"
        and source.options <= _OPTIONS
        and not source.has_directories
    )


def ticks_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Rowtimes as ticks: microseconds, days, or the numbers that they are."""
    kind = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    return column.cast(kind).cast(pa.int64())


@dataclass(frozen=True, eq=False)
class FileBatch:
    """A micro-batch of one or several sources of files.

    Attributes
    ----------
    now
        Its time, in microseconds.
    splits
        Of each source what Spark would read, in the order in which it came: path, first byte, number of
        bytes.
    scans
        Of each source Spark's operator, which counts what is read of it; None where there are no files.
    """

    now: int
    splits: tuple[tuple[tuple[str, int, int], ...], ...]
    scans: tuple[RunningScan | None, ...]
    _checked: dict[int, FileScan | None] = field(default_factory=dict)

    def rows(self, source: int, columns: FileColumns, wanted: Iterable[str]) -> pa.Table | None:
        """These columns of the rows of a source; None where Spark is to read them, or say what is wrong.

        Files in which any other column is not what the stream says are Spark's too.
        """
        names = list(wanted)
        if not all(map(columns.kind, names)):
            return None
        if source not in self._checked:
            known = {name: kind for name in columns.schema.names if (kind := columns.kind(name)) is not None}
            self._checked[source] = split_scan(self.splits[source], pa.schema(list(known.items())))
        scan = self._checked[source]
        if scan is None:
            return None
        chosen = scan.only(names)
        try:
            return pa.Table.from_batches(chosen.read(0), chosen.schema)
        except ExecutionError:
            return None

    def count(self, source: int, rows: int) -> None:
        """Let Spark's progress have rows that were not read by Spark."""
        if (scan := self.scans[source]) is not None:
            scan.count(rows)


def file_batch(spark: SparkSession, count: int) -> FileBatch | None:
    """The micro-batch that Spark calls for in this thread, of so many sources of files; None where it is not.

    What is asked of Spark is inside of it, and not there in all of its versions.
    """
    try:
        return _batch(spark, count)
    except BridgeError:
        return None


def _batch(spark: SparkSession, count: int) -> FileBatch | None:
    batch = running_batch(spark)
    if batch is None:
        return None
    sources, scans = batch.sources, batch.scans
    if len(sources) < count or sources.count(_FILES) != len(scans):
        return None
    if set(sources[count:]) - {_NOTHING}:  # ticks
        return None
    splits, found = [], []
    rest = iter(scans)
    for source in sources[:count]:
        if source not in (_FILES, _NOTHING):
            return None
        scan = next(rest) if source == _FILES else None
        files = [] if scan is None else _files(scan)
        if files is None:
            return None
        splits.append(tuple(files))
        found.append(scan)
    return FileBatch(batch.now, tuple(splits), tuple(found))


def _files(scan: RunningScan) -> list[tuple[str, int, int]] | None:
    found = list(itertools.islice(scan.files(), _MOST_FILES + 1))
    if len(found) > _MOST_FILES:
        return None
    return [(local_path(path), start, length) for _, path, start, length in sorted(found)]
