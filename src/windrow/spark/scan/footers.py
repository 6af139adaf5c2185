"""What the footers of Parquet files say: their types, and the statistics of row groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Footer", "coded", "footers_of", "is_full", "most", "says_the_same", "size_of", "span_of"]

_CODED_BYTES = 4  # a value, on average, below which a column of strings is dictionary-coded in its file
_ORDERED_AS_STORED = {"INT32", "INT64", "BYTE_ARRAY"}
_DELTA = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
_FIRST_DAY = -141_427  # 1582-10-15, in days of the epoch: before it calendars differ
_FIRST_TIME = -25_567 * 86_400_000_000  # 1900-01-01, in microseconds: before it zones differ too


@dataclass(frozen=True)
class Footer:
    """A file, what it was like when its footer was read, and the row groups that matter."""

    path: str
    size: int
    changed_ns: int
    metadata: pq.FileMetaData
    schema: pa.Schema
    groups: Sequence[int]

    @property
    def rows(self) -> int:
        """How many there are in the row groups."""
        return sum(self.metadata.row_group(number).num_rows for number in self.groups)

    def chunks(self, columns: Iterable[str]) -> list[pq.ColumnChunkMetaData]:
        """The column chunks of the row groups."""
        leaves = self.metadata.schema
        places = {leaves.column(place).path: place for place in range(len(leaves))}
        groups = [self.metadata.row_group(number) for number in self.groups]
        return [group.column(places[column]) for group in groups for column in columns]

    def is_coded(self, column: str) -> bool:
        """Whether Arrow has codes in place of its values."""
        return bool(pa.types.is_dictionary(self.schema.field(column).type))

    def is_delta_coded(self, column: str) -> bool:
        """Whether values are written as differences of strings, which Arrow does not give as codes."""
        return any(_DELTA & set(chunk.encodings) for chunk in self.chunks([column]))


def footers_of(paths: Iterable[str]) -> list[Footer] | None:
    """Those of files; None where Spark has to say what is wrong with one."""
    found = []
    for path in paths:
        try:
            told = Path(path).stat()
            metadata = pq.read_metadata(path)
            schema = metadata.schema.to_arrow_schema()
        except (OSError, pa.ArrowException):
            return None
        groups = range(metadata.num_row_groups)
        found.append(Footer(path, told.st_size, told.st_mtime_ns, metadata, schema, groups))
    return found


def says_the_same(footer: Footer, types: Mapping[str, pa.DataType]) -> str | None:
    """The first column of these that a file has not, or not with values that Arrow gives as Spark does."""
    names = [name.lower() for name in footer.schema.names]
    for column, kind in types.items():
        is_same = (
            column in footer.schema.names
            and names.count(column.lower()) == 1
            and _plain(footer.schema.field(column).type) == kind
            and not (footer.is_coded(column) and footer.is_delta_coded(column))
            and (not pa.types.is_temporal(kind) or _is_of_this_calendar(footer, column))
        )
        if not is_same:
            return column
    return None


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without what Arrow may have noted of how it held the values when they were written."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def _is_of_this_calendar(footer: Footer, column: str) -> bool:
    """Whether Spark gives the dates or times as they are written, not shifted from an old calendar."""
    notes = footer.metadata.metadata or {}
    version = notes.get(b"org.apache.spark.version")
    if version is not None:
        return not version.startswith((b"1.", b"2.")) and b"org.apache.spark.legacyDateTime" not in notes
    # Other writers do not say which calendar they mean; Spark then asks a setting, or the reader's option.
    first = _FIRST_DAY if pa.types.is_date(footer.schema.field(column).type) else _FIRST_TIME
    for chunk in footer.chunks([column]):
        told = chunk.statistics
        if told is not None and told.has_null_count and told.null_count == chunk.num_values:
            continue
        if chunk.num_values and (told is None or not told.has_min_max or told.min_raw < first):
            return False
    return True


def most(footers: Sequence[Footer], column: str) -> float:
    """What the number of rows with one value of a column cannot exceed, by what footers tell of row groups.

    As many rows as the row groups have within whose least and greatest value one value lies.
    """
    edges: list[tuple[Any, bool, int]] = []
    nulls = 0
    for chunk in (chunk for footer in footers for chunk in footer.chunks([column])):
        told = chunk.statistics
        if told is None or not told.has_null_count:
            return math.inf
        nulls += told.null_count
        if told.null_count == chunk.num_values:
            continue
        if not told.has_min_max or chunk.physical_type not in _ORDERED_AS_STORED:
            return math.inf
        edges += [(told.min_raw, False, chunk.num_values), (told.max_raw, True, chunk.num_values)]
    largest = within = 0
    for _, is_end, rows in sorted(edges):
        within += -rows if is_end else rows
        largest = max(largest, within)
    return max(largest, nulls)


def is_full(footers: Sequence[Footer], column: str) -> bool:
    """Whether the footers tell that the column is nowhere NULL."""
    told = [chunk.statistics for footer in footers for chunk in footer.chunks([column])]
    return all(one is not None and one.has_null_count and one.null_count == 0 for one in told)


def span_of(footers: Sequence[Footer], column: str) -> tuple[int, int] | None:
    """The least and the greatest whole number, day or microsecond of a column, if the footers tell.

    Of a column without values it is any.
    """
    ends: list[int] = []
    for chunk in (chunk for footer in footers for chunk in footer.chunks([column])):
        told = chunk.statistics
        if told is not None and told.has_null_count and told.null_count == chunk.num_values:
            continue
        if told is None or not told.has_min_max or chunk.physical_type not in ("INT32", "INT64"):
            return None
        ends += [told.min_raw, told.max_raw]
    return (min(ends), max(ends)) if ends else (0, 0)


def size_of(footers: Sequence[Footer], columns: Iterable[str]) -> int:
    """The bytes of columns, as they are coded."""
    names = list(columns)
    return sum(chunk.total_uncompressed_size for footer in footers for chunk in footer.chunks(names))


def coded(footers: Sequence[Footer], types: Mapping[str, pa.DataType]) -> frozenset[str]:
    """The strings of which the files hold codes."""
    found = set()
    for column, kind in types.items():
        if not pa.types.is_string(kind):
            continue
        values = sum(chunk.num_values for footer in footers for chunk in footer.chunks([column]))
        short = size_of(footers, [column]) <= _CODED_BYTES * values
        if short and not any(footer.is_delta_coded(column) for footer in footers):
            found.add(column)
    return frozenset(found)
