"""The files of a micro-batch, read on the driver instead of by Spark.

This avoids the conversion of each row from Spark to Python, and reads only the needed columns. It applies if
a stream is columns of files that Arrow reads with the same values as Spark: of Parquet
(:mod:`windrow.spark.scan.file_scan`) or of CSV (:mod:`windrow.kernels.packing.csv_files`). Spark chooses the
files of a micro-batch. Their order is that of :mod:`windrow.spark.live.input.file_order`, so that both ways
read rows in the same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windrow.errors import ExecutionError
from windrow.kernels.packing import csv_files
from windrow.kernels.packing.parquet_files import FileScan
from windrow.spark.errors import local_path
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.bridge import BridgeError
from windrow.spark.jvm.streams import RunningScan, running_batch, streamed_files
from windrow.spark.logs.live_source import FileColumns
from windrow.spark.scan.file_scan import split_scan

__all__ = ["FileBatch", "file_batch", "format_of", "may_read_texts", "ticks_of"]

_MOST_FILES = 100
_FILES = "LogicalRelation"
_NOTHING = "LocalRelation"  # in place of a source without new data
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
)  # options of a source that choose files, and do not change how files are read

_ZONE, _POLICY = "spark.sql.session.timeZone", "spark.sql.legacy.timeParserPolicy"
_REST = "spark.sql.columnNameOfCorruptRecord"
"""The setting with the name of a column that has no place in a text: Spark puts malformed lines there."""


def format_of(frame: DataFrame) -> str | None:
    """The format of a streaming DataFrame that is a source of files, without further operations, as in
    :class:`FileColumns`; None for other DataFrames, and for files that only Spark can read.
    """
    source = streamed_files(frame)
    if source is None:
        return None
    options = {name: value for name, value in source.options.items() if name not in _OPTIONS}
    has_header = source.format == "csv" and options.pop("header", "false").lower() == "true"
    if options or source.format not in ("parquet", "csv"):
        return None
    return "csv, header" if has_header else source.format


def may_read_texts(gateway: Gateway, columns: Iterable[str]) -> bool:
    """Whether Spark reads texts as timestamps in UTC and by ISO 8601, and these columns from the texts."""
    zone, policy, rest = (str(gateway.spark.conf.get(name)) for name in (_ZONE, _POLICY, _REST))
    is_plain = zone.upper() in ("UTC", "Z", "ETC/UTC", "GMT") and policy.upper() != "LEGACY"
    return is_plain and rest not in columns


def ticks_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Rowtimes as ticks: microseconds, days, or the integers themselves."""
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
        For each source the parts of files, in order of arrival: path, first byte, number of bytes.
    scans
        For each source Spark's operator, which counts its rows; None without files.
    """

    now: int
    splits: tuple[tuple[tuple[str, int, int], ...], ...]
    scans: tuple[RunningScan | None, ...]
    _checked: dict[int, FileScan | None] = field(default_factory=dict)

    def rows(self, source: int, columns: FileColumns, wanted: Iterable[str]) -> pa.Table | None:
        """These columns of the rows of a source; None if Spark must read them, or raise an error.

        Spark also reads files in which any other column differs from the stream's schema.
        """
        names = list(wanted)
        if not all(map(columns.kind, names)):
            return None
        if columns.format != "parquet":
            return self._rows_of_csv(source, columns, names)
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

    def _rows_of_csv(self, source: int, columns: FileColumns, names: list[str]) -> pa.Table | None:
        """The same of CSV files."""
        kinds = [(name, columns.kind(name)) for name in columns.schema.names]
        splits = self.splits[source]
        if any(kind is None for _, kind in kinds) or not _are_whole(splits):
            return None
        schema, has_header = pa.schema(kinds), columns.format == "csv, header"
        paths = dict.fromkeys(path for path, _, _ in splits)
        tables = [csv_files.plain_csv(path, schema, names, has_header=has_header) for path in paths]
        known = [table for table in tables if table is not None]
        if len(known) < len(tables):
            return None
        return pa.concat_tables([schema.empty_table().select(names), *known])

    def count(self, source: int, rows: int) -> None:
        """Add rows that Spark has not read to its progress."""
        if (scan := self.scans[source]) is not None:
            scan.count(rows)


def _are_whole(splits: Sequence[tuple[str, int, int]]) -> bool:
    """Whether the parts of each file are the whole file, which is local, and all are not too large."""
    sizes: dict[str, int] = {}
    for path, _, length in splits:
        sizes[path] = sizes.get(path, 0) + length
    if sum(sizes.values()) > csv_files.MOST_BYTES:
        return False
    return all(Path(path).is_file() and Path(path).stat().st_size == size for path, size in sizes.items())


def file_batch(spark: SparkSession, count: int) -> FileBatch | None:
    """The micro-batch that Spark runs in this thread, if it reads `count` sources of files; else None.

    It reads internals of Spark, which not all versions have.
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
    if len(found) > _MOST_FILES or scan.has_values:
        return None
    return [(local_path(path), start, length) for _, path, start, length in sorted(found)]
