"""Rule: rows that are plain columns of local Parquet files are read by the tasks themselves.

That spares each row the way from Spark's rows into Python. It applies only where the files say the same to
Arrow as they do to Spark: a scan and a choice of columns and nothing else, columns of simple types that every
file has under the same name and in the same type, no partition columns, no old calendars.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from windrow.kernels.files import FileScan, Part
from windrow.spark.arrow import arrow_type
from windrow.spark.errors import local_path
from windrow.spark.gateway import Gateway
from windrow.spark.plan_text import optimized, physical, plain_choice

__all__ = ["READ_SETTING", "file_scan", "is_simple", "may_read", "split_scan", "tasks_of"]

READ_SETTING = "spark.windrow.read.files"

_MOST_FILES = 1_000
_TASK_BYTES = 128 << 20
_MOST_BYTES = 512 << 20  # for one reader, as they are coded
_MOST_ROWS = 4 << 20  # for one reader: values that repeat take few bytes in files, and many in memory
_CODED_BYTES = 4  # a value, on average, below which a column of strings is dictionary-coded in its file
_SCAN = re.compile(
    r"FileScan parquet .*, Format: Parquet, "
    r"Location: InMemoryFileIndex\((?P<count>\d+) paths\)\[(?P<paths>.*?)\]?, PartitionFilters: .*"
)
_ORDERED_AS_STORED = {"INT32", "INT64", "BYTE_ARRAY"}
_DELTA = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
# Spark's settings that make it read a file in another way than Arrow
_AS_WRITTEN = {
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_FIRST_DAY = -141_427  # 1582-10-15, in days of the epoch: before it calendars differ
_FIRST_TIME = -25_567 * 86_400_000_000  # 1900-01-01, in microseconds: before it zones differ too


@dataclass(frozen=True)
class _Footer:
    path: str
    size: int
    changed_ns: int
    metadata: pq.FileMetaData
    schema: pa.Schema


def file_scan(gateway: Gateway, rows: DataFrame, partition: Sequence[str], plan: str) -> FileScan | None:
    """How tasks read these rows themselves, None where Spark must read them.

    Parameters
    ----------
    partition
        The columns of the rows that are partition keys.
    plan
        What Spark's EXPLAIN COST says of the rows.
    """
    if gateway.is_connect or not may_read(gateway):
        return None
    columns = _plain_columns(plan, rows.columns)
    if columns is None:
        return None
    with gateway.translated():
        paths = [local_path(uri) for uri in rows.inputFiles()]
    if not 0 < len(paths) <= _MOST_FILES or not all(map(_is_plain_path, paths)):
        return None
    schema = _schema(rows)
    footers = _footers(paths)
    if schema is None or footers is None:
        return None
    types = dict(zip(columns, schema.types, strict=True))
    if not all(_says_the_same(footer, types) for footer in footers):
        return None
    tasks = _tasks(footers, types, gateway.spark.sparkContext.defaultParallelism)
    keys = [columns[schema.names.index(name)] for name in partition]
    count = sum(footer.metadata.num_rows for footer in footers)
    longest = min([count, *(_most(footers, key) for key in keys if not pa.types.is_decimal(types[key]))])
    if not tasks:
        return None
    full = frozenset(column for column in types if _is_full(footers, column))
    return FileScan(tasks, count, longest, columns, schema, _coded(footers, types), full)


def split_scan(splits: Sequence[tuple[str, int, int]], schema: pa.Schema) -> FileScan | None:
    """How the splits of files that Spark would read, in its order, are read by one reader; None if not alike.

    Parameters
    ----------
    splits
        Of each the path, and the first byte and the number of bytes: a split has the row groups whose middle
        is in it.
    schema
        The columns of the files that are wanted.
    """
    if not all(_is_plain_path(path) for path, _, _ in splits):
        return None
    footers = _footers(dict.fromkeys(path for path, _, _ in splits))
    types = dict(zip(schema.names, schema.types, strict=True))
    if footers is None or not all(_says_the_same(footer, types) for footer in footers):
        return None
    size = sum(chunk.total_uncompressed_size for footer in footers for chunk in _chunks(footer, types))
    count = sum(footer.metadata.num_rows for footer in footers)
    if size > _MOST_BYTES or count > _MOST_ROWS:
        return None
    by_path = {footer.path: footer for footer in footers}
    parts, rows = [], 0
    for path, start, length in splits:
        footer = by_path[path]
        groups = [number for number, at in enumerate(_middles(footer)) if start <= at < start + length]
        parts.append(Part(path, tuple(groups), footer.size, footer.changed_ns))
        rows += sum(footer.metadata.row_group(number).num_rows for number in groups)
    if rows != count:  # part of a file is nobody's
        return None
    return FileScan((tuple(parts),), rows, rows, tuple(schema.names), schema, frozenset())


def _middles(footer: _Footer) -> Iterator[int]:
    """Of each row group the byte by which Spark knows whose it is."""
    for number in range(footer.metadata.num_row_groups):
        group = footer.metadata.row_group(number)
        chunks = [group.column(place) for place in range(group.num_columns)]
        first = chunks[0].dictionary_page_offset
        start = chunks[0].data_page_offset if first is None else min(first, chunks[0].data_page_offset)
        yield start + sum(chunk.total_compressed_size for chunk in chunks) // 2


def tasks_of(spark: SparkSession, scan: FileScan) -> DataFrame:
    """The numbers of the scan's tasks, each in a Spark task of its own."""
    count = len(scan.tasks)
    return spark.range(0, count, 1, count)


def may_read(gateway: Gateway) -> bool:
    """Whether files may be read in another way than through Spark, and Spark would read them alike."""
    conf = gateway.spark.conf
    if str(conf.get(READ_SETTING, "true")).lower() != "true":
        return False
    try:
        return all(str(conf.get(name)).lower() == value for name, value in _AS_WRITTEN.items())
    except PySparkException:  # a Spark without one of these settings
        return False


def _plain_columns(plan: str, names: Sequence[str]) -> tuple[str, ...] | None:
    """The files' column behind each of the rows' columns, if there is nothing between them but a scan."""
    logical = optimized(plan)
    if len(logical) != 2 or not logical[1].startswith("Relation "):
        return None
    scans = [line for line in physical(plan) if line != "ColumnarToRow" and not line.startswith("Project [")]
    scan = _SCAN.fullmatch(scans[0]) if len(scans) == 1 else None
    if scan is None or not _are_apart(scan["paths"].split(", "), int(scan["count"])):
        return None
    return plain_choice(logical[0], names)


def _are_apart(roots: Sequence[str], count: int) -> bool:
    """Whether these are all the paths given, and no file is under two of them: Spark reads it twice then.

    Plans do not show long lists whole.
    """
    if count == 1:
        return True
    nested = any(one == other or one.startswith(f"{other}/") for one, other in permutations(roots, 2))
    return len(roots) == count and not nested and not roots[-1].endswith("...")


def _is_plain_path(path: str) -> bool:
    """Whether the path is of a file here, in no directory whose name holds the value of a column."""
    return path.startswith("/") and "=" not in str(Path(path).parent) and Path(path).is_file()


def _schema(rows: DataFrame) -> pa.Schema | None:
    fields = []
    for field in rows.schema.fields:
        kind = arrow_type(field.dataType)
        if kind is None or field.dataType.typeName() in ("void", "variant") or not is_simple(kind):
            return None
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def is_simple(kind: pa.DataType) -> bool:
    """Whether values of a type are the same to Arrow, in a file, as to Spark."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_duration(kind))


def _footers(paths: Iterable[str]) -> list[_Footer] | None:
    found = []
    for path in paths:
        try:
            told = Path(path).stat()
            metadata = pq.read_metadata(path)
            schema = metadata.schema.to_arrow_schema()
            found.append(_Footer(path, told.st_size, told.st_mtime_ns, metadata, schema))
        except (OSError, pa.ArrowException):  # Spark will say what is wrong with it
            return None
    return found


def _says_the_same(footer: _Footer, types: Mapping[str, pa.DataType]) -> bool:
    names = [name.lower() for name in footer.schema.names]
    return all(
        column in footer.schema.names
        and names.count(column.lower()) == 1
        and _plain(footer.schema.field(column).type) == kind
        and not (_is_coded(footer, column) and _is_delta_coded(footer, column))
        and (not pa.types.is_temporal(kind) or _is_of_this_calendar(footer, column))
        for column, kind in types.items()
    )


def _is_coded(footer: _Footer, column: str) -> bool:
    return bool(pa.types.is_dictionary(footer.schema.field(column).type))


def _is_delta_coded(footer: _Footer, column: str) -> bool:
    """Whether values are written as differences of strings, which Arrow does not give as codes."""
    return any(_DELTA & set(chunk.encodings) for chunk in _chunks(footer, [column]))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without what Arrow may have noted of how it held the values when they were written."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def _is_of_this_calendar(footer: _Footer, column: str) -> bool:
    """Whether Spark gives the dates or times as they are written, not shifted from an old calendar."""
    notes = footer.metadata.metadata or {}
    version = notes.get(b"org.apache.spark.version")
    if version is not None:
        return not version.startswith((b"1.", b"2.")) and b"org.apache.spark.legacyDateTime" not in notes
    # Other writers do not say which calendar they mean; Spark then asks a setting, or the reader's option.
    first = _FIRST_DAY if pa.types.is_date(footer.schema.field(column).type) else _FIRST_TIME
    for chunk in _chunks(footer, [column]):
        told = chunk.statistics
        if told is not None and told.has_null_count and told.null_count == chunk.num_values:
            continue
        if chunk.num_values and (told is None or not told.has_min_max or told.min_raw < first):
            return False
    return True


def _chunks(footer: _Footer, columns: Iterable[str]) -> list[pq.ColumnChunkMetaData]:
    """The column chunks of all row groups."""
    leaves = footer.metadata.schema
    places = {leaves.column(place).path: place for place in range(len(leaves))}
    groups = [footer.metadata.row_group(number) for number in range(footer.metadata.num_row_groups)]
    return [group.column(places[column]) for group in groups for column in columns]


def _most(footers: Sequence[_Footer], column: str) -> float:
    """What the number of rows with one value of a column cannot exceed, by what footers tell of row groups.

    As many rows as the row groups have within whose least and greatest value one value lies.
    """
    edges: list[tuple[Any, bool, int]] = []
    nulls = 0
    for chunk in (chunk for footer in footers for chunk in _chunks(footer, [column])):
        told = chunk.statistics
        if told is None or not told.has_null_count:
            return math.inf
        nulls += told.null_count
        if told.null_count == chunk.num_values:
            continue
        if not told.has_min_max or chunk.physical_type not in _ORDERED_AS_STORED:
            return math.inf
        edges += [(told.min_raw, False, chunk.num_values), (told.max_raw, True, chunk.num_values)]
    most = within = 0
    for _, is_end, rows in sorted(edges):
        within += -rows if is_end else rows
        most = max(most, within)
    return max(most, nulls)


def _is_full(footers: Sequence[_Footer], column: str) -> bool:
    """Whether the footers tell that the column is nowhere NULL."""
    told = [chunk.statistics for footer in footers for chunk in _chunks(footer, [column])]
    return all(one is not None and one.has_null_count and one.null_count == 0 for one in told)


def _coded(footers: Sequence[_Footer], types: Mapping[str, pa.DataType]) -> frozenset[str]:
    """The strings of which the files hold codes."""
    found = set()
    for column, kind in types.items():
        chunks = [chunk for footer in footers for chunk in _chunks(footer, [column])]
        values = sum(chunk.num_values for chunk in chunks)
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        short = pa.types.is_string(kind) and size <= _CODED_BYTES * values
        if short and not any(_is_delta_coded(footer, column) for footer in footers):
            found.add(column)
    return frozenset(found)


def _tasks(
    footers: Sequence[_Footer], types: Mapping[str, pa.DataType], parallelism: int
) -> tuple[tuple[Part, ...], ...]:
    """The row groups in turn, divided by rows."""
    groups = [
        (footer, number, footer.metadata.row_group(number).num_rows)
        for footer in footers
        for number in range(footer.metadata.num_row_groups)
    ]
    total = sum(rows for _, _, rows in groups)
    size = sum(chunk.total_uncompressed_size for footer in footers for chunk in _chunks(footer, types))
    count = min(max(parallelism, math.ceil(size / _TASK_BYTES)), len(groups))
    tasks: list[list[Part]] = [[] for _ in range(count)]
    before = 0
    for footer, number, rows in groups:
        task = tasks[min((before + rows // 2) * count // max(total, 1), count - 1)]
        if task and task[-1].path == footer.path:
            task[-1] = replace(task[-1], row_groups=(*task[-1].row_groups, number))
        else:
            task.append(Part(footer.path, (number,), footer.size, footer.changed_ns))
        before += rows
    return tuple(tuple(task) for task in tasks if task)
