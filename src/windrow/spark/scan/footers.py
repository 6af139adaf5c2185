"""The footers of Parquet files: their types, and the statistics of row groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.kernels.computed.computed_functions import INSTANT

__all__ = [
    "Footer",
    "coded",
    "footers_of",
    "is_full",
    "most",
    "ranges_of",
    "says_the_same",
    "size_of",
    "span_of",
]

_CODED_BYTES = 4  # a value, on average, below which a column of strings is dictionary-coded in its file
_NUMBERS = {"INT32", "INT64"}
_ORDERED_AS_STORED = {*_NUMBERS, "BYTE_ARRAY"}
_DELTA = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
_FIRST_DAY = -141_427  # 1582-10-15, in days of the epoch: before it calendars differ
_FIRST_TIME = -25_567 * 86_400_000_000  # 1900-01-01, in microseconds: before it zones differ too


@dataclass(frozen=True)
class Footer:
    """A file, its size and time when its footer was read, and the selected row groups."""

    path: str
    size: int
    changed_ns: int
    metadata: pq.FileMetaData
    schema: pa.Schema
    groups: Sequence[int]

    @property
    def rows(self) -> int:
        """The number of rows in the row groups."""
        return sum(self.metadata.row_group(number).num_rows for number in self.groups)

    @cached_property
    def paths(self) -> list[str]:
        """The path of each leaf: a column's name, or the names of a column and fields, joined by dots."""
        leaves = self.metadata.schema
        return [leaves.column(place).path for place in range(len(leaves))]

    def chunks(self, columns: Iterable[str]) -> list[pq.ColumnChunkMetaData]:
        """The column chunks of the row groups."""
        places = {path: place for place, path in enumerate(self.paths)}
        groups = [self.metadata.row_group(number) for number in self.groups]
        return [group.column(places[column]) for group in groups for column in columns]

    def is_of_96_bits(self, column: str) -> bool:
        """Whether its values are times of 96 bits."""
        leaves = self.metadata.schema
        return column in self.paths and leaves.column(self.paths.index(column)).physical_type == "INT96"

    def is_coded(self, column: str) -> bool:
        """Whether Arrow can read it as dictionary codes."""
        return bool(pa.types.is_dictionary(self.schema.field(column).type))

    def is_delta_coded(self, column: str) -> bool:
        """Whether values are delta-encoded strings, which Arrow cannot read as codes."""
        return any(_DELTA & set(chunk.encodings) for chunk in self.chunks([column]))


def footers_of(paths: Iterable[str]) -> list[Footer] | None:
    """The footers of files; None if Spark must report a problem with one."""
    found = []
    for path in paths:
        try:
            status = Path(path).stat()
            metadata = pq.read_metadata(path)
            schema = _schema_of(metadata)
        except (OSError, pa.ArrowException):
            return None
        groups = [at for at in range(metadata.num_row_groups) if metadata.row_group(at).num_rows]
        found.append(Footer(path, status.st_size, status.st_mtime_ns, metadata, schema, groups))
    return found


def _schema_of(metadata: pq.FileMetaData) -> pa.Schema:
    """The columns of a file. Times of 96 bits, as Spark writes them by default, are instants for Spark."""
    schema = metadata.schema.to_arrow_schema()
    leaves = [metadata.schema.column(place) for place in range(len(metadata.schema))]
    old = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"} & {*schema.names}
    for at, field in enumerate(schema):
        if field.name in old and field.type == pa.timestamp("ns"):
            schema = schema.set(at, field.with_type(INSTANT))
    return schema


def says_the_same(footer: Footer, types: Mapping[str, pa.DataType]) -> str | None:
    """The first of these columns that a file lacks, or for which Arrow may read other values than Spark."""
    names = [name.lower() for name in footer.schema.names]
    for column, kind in types.items():
        is_same = (
            column in footer.schema.names
            and names.count(column.lower()) == 1
            and footer.paths.count(column) <= 1  # a field b of a struct a is a.b, too
            and _plain(footer.schema.field(column).type) == kind
            and not (footer.is_coded(column) and footer.is_delta_coded(column))
            and (not pa.types.is_temporal(kind) or _is_of_this_calendar(footer, column))
        )
        if not is_same:
            return column
    return None


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without Arrow's own metadata about the values' layout when they were written."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def _is_of_this_calendar(footer: Footer, column: str) -> bool:
    """Whether Spark reads the dates or times as written, without rebasing from an old calendar."""
    notes = footer.metadata.metadata or {}
    version = notes.get(b"org.apache.spark.version")
    if footer.is_of_96_bits(column):
        is_old = version is None or version.startswith((b"1.", b"2.", b"3.0."))
        return not is_old and b"org.apache.spark.legacyINT96" not in notes
    if version is not None:
        return not version.startswith((b"1.", b"2.")) and b"org.apache.spark.legacyDateTime" not in notes
    # Other writers do not record their calendar; Spark then uses a setting, or the reader's option.
    first = _FIRST_DAY if pa.types.is_date(footer.schema.field(column).type) else _FIRST_TIME
    for chunk in footer.chunks([column]):
        statistics = chunk.statistics
        if statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values:
            continue
        if chunk.num_values and (
            statistics is None or not statistics.has_min_max or statistics.min_raw < first
        ):
            return False
    return True


def most(footers: Sequence[Footer], column: str) -> float:
    """An upper bound of the number of rows with one value of a column, by the statistics of row groups.

    It is the greatest number of rows in row groups whose ranges have a value in common.
    """
    edges: list[tuple[Any, bool, int]] = []
    nulls = 0
    for chunk in (chunk for footer in footers for chunk in footer.chunks([column])):
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return math.inf
        nulls += statistics.null_count
        if statistics.null_count == chunk.num_values:
            continue
        if not statistics.has_min_max or chunk.physical_type not in _ORDERED_AS_STORED:
            return math.inf
        edges += [(statistics.min_raw, False, chunk.num_values), (statistics.max_raw, True, chunk.num_values)]
    largest = within = 0
    for _, is_end, rows in sorted(edges):
        within += -rows if is_end else rows
        largest = max(largest, within)
    return max(largest, nulls)


def is_full(footers: Sequence[Footer], column: str) -> bool:
    """Whether the column has no NULL, by the statistics."""
    statistics = [chunk.statistics for footer in footers for chunk in footer.chunks([column])]
    return all(one is not None and one.has_null_count and one.null_count == 0 for one in statistics)


def span_of(footers: Sequence[Footer], column: str) -> tuple[int, int] | None:
    """The least and the greatest whole number, day or microsecond of a column, by the statistics if any.

    For a column without values the result is arbitrary.
    """
    ends: list[int] = []
    for chunk in (chunk for footer in footers for chunk in footer.chunks([column])):
        statistics = chunk.statistics
        if statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values:
            continue
        if statistics is None or not statistics.has_min_max or chunk.physical_type not in _NUMBERS:
            return None
        ends += [statistics.min_raw, statistics.max_raw]
    return (min(ends), max(ends)) if ends else (0, 0)


def ranges_of(footers: Sequence[Footer], column: str) -> list[tuple[int, Any, Any]] | None:
    """For each row group, its number of rows and the range of a column; None if that is unknown, or if there
    are NULLs.

    Values are integers, days, microseconds or bytes.
    """
    if not is_full(footers, column):
        return None
    found = []
    for chunk in (chunk for footer in footers for chunk in footer.chunks([column])):
        statistics = chunk.statistics
        if not statistics.has_min_max or chunk.physical_type not in _ORDERED_AS_STORED:
            return None
        found.append((chunk.num_values, statistics.min_raw, statistics.max_raw))
    return found


def size_of(footers: Sequence[Footer], columns: Iterable[str]) -> int:
    """The encoded size of columns, in bytes."""
    names = list(columns)
    return sum(chunk.total_uncompressed_size for footer in footers for chunk in footer.chunks(names))


def coded(footers: Sequence[Footer], types: Mapping[str, pa.DataType]) -> frozenset[str]:
    """The string columns that are dictionary-coded in the files."""
    found = set()
    for column, kind in types.items():
        if not pa.types.is_string(kind):
            continue
        values = sum(chunk.num_values for footer in footers for chunk in footer.chunks([column]))
        short = size_of(footers, [column]) <= _CODED_BYTES * values
        if short and not any(footer.is_delta_coded(column) for footer in footers):
            found.add(column)
    return frozenset(found)
