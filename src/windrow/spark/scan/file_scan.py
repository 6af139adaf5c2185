"""Rule: tasks read rows that come from Parquet files only.

This avoids the transfer of each row from Spark to Python. The plan may filter rows, compute columns, and join
with small tables, if Arrow computes the same as Spark (:mod:`windrow.spark.analysis.expressions`). The rule
applies only if Arrow and Spark read the same values from the files: columns of simple types, with the same
name and type in every file, and no old calendars.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from windrow.kernels.computed.computed_operations import Computed, of_codes, only
from windrow.kernels.computed.lookups import LookUp
from windrow.kernels.hashing import hashes
from windrow.kernels.packing.parquet_files import FilePart, FileScan, RowGroup
from windrow.kernels.sorting import SortKey, array_of_codes, cut_codes, has_values_of_codes
from windrow.plan.arrow_types import arrow_type
from windrow.spark.analysis.computed_columns import ComputedReading, Tables, condition_of, not_in_arrow
from windrow.spark.analysis.plan_tree import SparkNode
from windrow.spark.analysis.typed_values import Unread
from windrow.spark.gateway import Gateway
from windrow.spark.scan.footers import (
    Footer,
    coded,
    footers_of,
    is_full,
    most,
    ranges_of,
    says_the_same,
    size_of,
    span_of,
)
from windrow.spark.scan.joined_tables import JoinedTables
from windrow.spark.scan.key_ranges import LongKey, divided, long_keys
from windrow.spark.scan.planned_files import Constants, PlannedFiles, planned_files
from windrow.spark.scan.row_groups import may_hold, of_directory, of_row_group

__all__ = [
    "MOST_ALONE",
    "READ_SETTING",
    "LongPartition",
    "Parts",
    "Scanned",
    "file_scan",
    "is_simple",
    "may_read",
    "split_scan",
    "tasks_of",
]

READ_SETTING = "spark.windrow.read.files"
MOST_ALONE = 1 << 20
"""Rows that one task reads faster than several share them."""
Parts = tuple[tuple[FilePart, ...], ...]
"""The parts of files that each task reads."""

_MOST_FILES = 10_000
_TASK_BYTES = 128 << 20
_MOST_PAIRS = 16  # of a row of the files with rows of tables: a task has the pairs of many rows in memory
_MOST_BYTES = 512 << 20  # for one reader, as they are coded
_MOST_ROWS = 4 << 20  # for one reader: repeated values are small in files, and large in memory
# Spark's settings that make it read a file in another way than Arrow
_AS_WRITTEN = {
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


@dataclass(frozen=True)
class LongPartition:
    """A partition of files that is to be cut into slices.

    Attributes
    ----------
    hash
        Of its keys (:mod:`windrow.kernels.hashing`).
    groups
        The row groups that have its rows, with ranges of the cut codes of the first order key.
    key
        Its key in the files; None if it has all rows.
    """

    hash: int
    groups: tuple[RowGroup, ...]
    key: LongKey | None = None


@dataclass(frozen=True)
class Scanned:
    """How tasks read rows themselves, None if Spark must read them; and the lines of EXPLAIN about it.

    There is no line for rows that come from no files. `long` has the partitions with more rows than a number,
    by the statistics of files in the order of a key; there may be others. `whole` has the parts that each of
    so many tasks, or somewhat fewer, reads of whole partitions, beside such long ones and with at most so
    many rows; None if the files cannot be divided so.
    """

    scan: FileScan | None = None
    lines: tuple[str, ...] = ()
    long: Callable[[SortKey, int], list[LongPartition]] = lambda *_: []
    whole: Callable[[int, Sequence[LongPartition], float], Parts | None] = lambda *_: None


@dataclass(frozen=True)
class _File:
    footer: Footer
    values: Constants


def file_scan(gateway: Gateway, rows: DataFrame, partition: Sequence[str]) -> Scanned:
    """Plan how tasks read these rows themselves; the columns are the partition keys."""
    if gateway.is_connect or not may_read(gateway):
        return Scanned()
    try:
        planned = planned_files(gateway, rows)
        if planned is None:
            return Scanned()
        return _scanned(gateway, planned, JoinedTables(gateway, rows), _schema(rows), partition)
    except Unread as unread:
        return Scanned(None, (f"no files: the rows come from Spark, as {unread}",))


def _scanned(
    gateway: Gateway, planned: PlannedFiles, joined: JoinedTables, schema: pa.Schema, partition: Sequence[str]
) -> Scanned:
    plan, tables = (planned.operators, planned.names, planned.kinds), Tables(planned.sides, joined.found)
    read = only(ComputedReading(*plan, full=planned.names, tables=tables).of(schema), schema.names).columns
    conditions = [condition_of(node) for node in planned.operators if node.name == "Filter"]
    types = {name: planned.kinds[n] for n, name in read.items() if n not in planned.directories}
    files, groups = _files(planned, types, conditions)
    footers = [file.footer for file in files]
    spans = _spans(planned, files, read)
    filled = [number for number, name in planned.names.items() if name in types and is_full(footers, name)]
    made = only(
        ComputedReading(*plan, spans, full=filled, certain=True, tables=tables).of(schema), schema.names
    )
    pairs = math.prod(one.most for one in made.operations if isinstance(one, LookUp))
    if pairs > _MOST_PAIRS:
        raise Unread(f"one of them is joined with {pairs:,} rows, and the most is {_MOST_PAIRS}")
    kinds = pa.schema([(planned.names[number], kind) for number, kind in planned.kinds.items()])
    other = not_in_arrow(made, kinds)
    if other is not None:
        raise Unread(f"Arrow says: {other}")
    tasks = _tasks(files, types, gateway.spark.sparkContext.defaultParallelism)
    if not tasks:
        raise Unread("there are none")
    directories = pa.schema([(planned.names[n], planned.kinds[n]) for n in planned.directories])
    codes = coded(footers, types)
    of_directories = {field.name for field in directories if pa.types.is_string(field.type)}
    origins = {name: made.origin(name) for name in schema.names}
    keys = [origins[name] for name in partition]
    count = pairs * sum(footer.rows for footer in footers)
    known = [key for key in keys if key in types and not _is_decimal(types[key])]
    longest = min([count, *(pairs * most(footers, key) for key in known)])
    full = frozenset(name for name, own in origins.items() if own in types and is_full(footers, own))
    scan = FileScan(
        tasks, count, longest, pa.schema(list(types.items())), directories,
        of_codes(made, codes | of_directories), codes, full, tuple(joined.files),
    )  # fmt: skip
    chosen = sum(len(footer.groups) for footer in footers)
    lines = ["the Parquet files, in the tasks themselves"]
    lines += [
        f"joined there with {rows:,} rows, which were read when the query was planned" for rows in joined.rows
    ]
    if chosen < groups:
        lines.append(f"{chosen} of their {groups} row groups, by statistics")

    def in_order(order: SortKey) -> tuple[RowGroup, ...] | None:
        own = origins[order.column]
        if own not in types or not has_values_of_codes(types[own]):
            return None
        groups = _row_groups(files, own, pairs)
        if groups is None or not order.descending:
            return groups
        return tuple(replace(one, least=~one.greatest, greatest=~one.least) for one in groups)

    def narrowed(group: RowGroup, order: SortKey) -> RowGroup | None:
        """A row group with the range of its rows in question, which are read; None if it has none of them.

        With the range of all its rows, each slice would read it. A plan alone is made as if it had none.
        """
        if group.part.within is None or gateway.plan_only:
            return group if group.part.within is None else None
        columns = list(dict.fromkeys((*partition, order.column)))
        rows = list(scan.only(columns).rows_of((group.part,)))
        if not rows:
            return None
        codes = cut_codes(pa.Table.from_batches(rows).column(order.column), order)
        return replace(group, rows=len(codes), least=int(codes.min()), greatest=int(codes.max()))

    def long(order: SortKey, most: int) -> list[LongPartition]:
        groups = in_order(order)
        if groups is None or scan.rows <= most:
            return []
        if not keys:
            return [LongPartition(0, groups)]
        if len(keys) > 1 or not known:
            return []
        (column,) = known
        found = []
        for one in long_keys(_row_groups(files, column, pairs) or (), column, most):
            own = (replace(groups[place], part=part) for place, part in one.parts.items())
            parts = tuple(group for each in own if (group := narrowed(each, order)) is not None)
            (number,) = hashes(pa.table({column: _value(one.value, types[column])}), (column,)).tolist()
            found.append(LongPartition(number, parts, one))
        return found

    def whole(count: int, apart: Sequence[LongPartition] = (), most: float = math.inf) -> Parts | None:
        if count > 1 or apart:
            long = [one.key for one in apart if one.key is not None]
            all_groups = ((key, _row_groups(files, key, pairs)) for key in known)
            tasks_of_keys = (
                divided(groups, key, count, long, most) for key, groups in all_groups if groups is not None
            )
            return next((one for one in tasks_of_keys if one is not None), None)
        return (tuple(chain(*tasks)),) if scan.rows <= MOST_ALONE else None

    return Scanned(scan, tuple(lines), long, whole)


def _value(value: int | bytes, kind: pa.DataType) -> pa.Array:
    """A value of files, of this type."""
    if isinstance(value, bytes):
        return pa.array([value], pa.binary()).view(kind)
    return array_of_codes([value], kind)


def _row_groups(files: Sequence[_File], column: str, pairs: int) -> tuple[RowGroup, ...] | None:
    """The row groups with the ranges of a column; None if these are unknown, or if there are NULLs.

    Joins make so many `pairs` of each row, at most.
    """
    ranges = ranges_of([file.footer for file in files], column)
    if ranges is None:
        return None
    parts = [_part(file, number) for file in files for number in file.footer.groups]
    return tuple(
        RowGroup(part, pairs * rows, least, greatest)
        for part, (rows, least, greatest) in zip(parts, ranges, strict=True)
    )


def _part(file: _File, group: int) -> FilePart:
    """A row group as a part of its file."""
    return FilePart(file.footer.path, (group,), file.footer.size, file.footer.changed_ns, file.values)


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind))


def _files(
    planned: PlannedFiles, types: Mapping[str, pa.DataType], conditions: Sequence[SparkNode]
) -> tuple[list[_File], int]:
    """The files with the row groups that may have matching rows, and the number of all row groups.

    The number excludes files that are pruned because of their directories.
    """
    places = {number: place for place, number in enumerate(planned.directories)}
    names = {number: name for number, name in planned.names.items() if name in types}
    chosen = [
        (path, of_directory(places, values), values)
        for path, values in planned.files
        if all(may_hold(condition, of_directory(places, values)) for condition in conditions)
    ]
    if len(chosen) > _MOST_FILES:
        raise Unread(f"there are {len(chosen):,} of them, and the most is {_MOST_FILES:,}")
    if not all(_is_plain_path(path) for path, _, _ in chosen):
        raise Unread("they are not on a file system of this machine")
    footers = footers_of(path for path, _, _ in chosen)
    if footers is None:
        raise Unread("a footer cannot be read")
    files, count = [], 0
    for footer, (path, known, values) in zip(footers, chosen, strict=True):
        other = says_the_same(footer, types)
        if other is not None:
            raise Unread(f"{path} has {other} in another form")
        count += len(footer.groups)
        groups = [
            number
            for number in footer.groups
            if all(may_hold(one, of_row_group(footer, number, names, known)) for one in conditions)
        ]
        files.append(_File(replace(footer, groups=groups), values))
    return files, count


def _spans(planned: PlannedFiles, files: Sequence[_File], read: Iterable[int]) -> dict[int, tuple[int, int]]:
    """The ranges of the columns' values."""
    found = {}
    for number in read:
        if number in planned.directories:
            place = planned.directories.index(number)
            values = [file.values[place] for file in files]
            numbers = [value for value in values if isinstance(value, int)]
            found[number] = (min(numbers), max(numbers)) if numbers else (0, 0)
        else:
            span = span_of([file.footer for file in files], planned.names[number])
            if span is not None:
                found[number] = span
    return found


def split_scan(splits: Sequence[tuple[str, int, int]], schema: pa.Schema) -> FileScan | None:
    """Plan how one reader reads Spark's splits of files, in Spark's order; None if results could differ.

    Parameters
    ----------
    splits
        The path, the first byte and the number of bytes of each: a split has the row groups whose middle is
        in it.
    schema
        The columns to read.
    """
    if not all(_is_plain_path(path) for path, _, _ in splits):
        return None
    footers = footers_of(dict.fromkeys(path for path, _, _ in splits))
    types = dict(zip(schema.names, schema.types, strict=True))
    if footers is None or not all(says_the_same(footer, types) is None for footer in footers):
        return None
    count = sum(footer.rows for footer in footers)
    if size_of(footers, types) > _MOST_BYTES or count > _MOST_ROWS:
        return None
    by_path = {footer.path: footer for footer in footers}
    parts, rows = [], 0
    for path, start, length in splits:
        footer = by_path[path]
        groups = [number for number, at in enumerate(_middles(footer)) if start <= at < start + length]
        parts.append(FilePart(path, tuple(groups), footer.size, footer.changed_ns))
        rows += sum(footer.metadata.row_group(number).num_rows for number in groups)
    if rows != count:  # part of a file is in no split
        return None
    numbers = dict(enumerate(schema.names))
    return FileScan(
        (tuple(parts),), rows, rows, schema, pa.schema([]), Computed(numbers, [], [*numbers], schema)
    )


def _middles(footer: Footer) -> Iterator[int]:
    """The byte of each row group by which Spark assigns it to a split."""
    for number in range(footer.metadata.num_row_groups):
        group = footer.metadata.row_group(number)
        chunks = [group.column(place) for place in range(group.num_columns)]
        first = chunks[0].dictionary_page_offset
        start = chunks[0].data_page_offset if first is None else min(first, chunks[0].data_page_offset)
        yield start + sum(chunk.total_compressed_size for chunk in chunks) // 2


def tasks_of(spark: SparkSession, count: int) -> DataFrame:
    """The numbers of so many tasks, each in a separate Spark task."""
    return spark.range(0, count, 1, count)


def may_read(gateway: Gateway) -> bool:
    """Whether tasks may read files themselves, with the same result as Spark."""
    conf = gateway.spark.conf
    if str(conf.get(READ_SETTING, "true")).lower() != "true":
        return False
    try:
        return all(str(conf.get(name)).lower() == value for name, value in _AS_WRITTEN.items())
    except PySparkException:  # a Spark without one of these settings
        return False


def _is_plain_path(path: str) -> bool:
    """Whether the path is a local file."""
    return path.startswith("/") and Path(path).is_file()


def _schema(rows: DataFrame) -> pa.Schema:
    fields = []
    for field in rows.schema.fields:
        kind = arrow_type(field.dataType)
        if kind is None or field.dataType.typeName() in ("void", "variant") or not is_simple(kind):
            raise Unread(f"a column is of type {field.dataType.simpleString()}")
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def is_simple(kind: pa.DataType) -> bool:
    """Whether Arrow and Spark read the same values of a type from a file."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_duration(kind))


def _tasks(
    files: Sequence[_File], types: Mapping[str, pa.DataType], parallelism: int
) -> tuple[tuple[FilePart, ...], ...]:
    """The row groups in turn, divided by rows."""
    groups = [
        (file, number, file.footer.metadata.row_group(number).num_rows)
        for file in files
        for number in file.footer.groups
    ]
    total = sum(rows for _, _, rows in groups)
    size = size_of([file.footer for file in files], types)
    count = min(max(parallelism, math.ceil(size / _TASK_BYTES)), len(groups))
    tasks: list[list[FilePart]] = [[] for _ in range(count)]
    last = None
    before = 0
    for file, number, rows in groups:
        task = tasks[min((before + rows // 2) * count // max(total, 1), count - 1)]
        if task and last is file:
            task[-1] = replace(task[-1], row_groups=(*task[-1].row_groups, number))
        else:
            task.append(_part(file, number))
        last = file
        before += rows
    return tuple(tuple(task) for task in tasks if task)
