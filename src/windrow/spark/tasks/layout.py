"""The layout of rows over tasks: whole partitions by hash, long ones in slices.

Which partitions are long, and where to cut them, is estimated from a sample of the keys; a wrong estimate
costs time, never rows. Shards: :mod:`windrow.kernels.packing.shards`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from windrow.errors import UsageError, WindrowError
from windrow.kernels.hashing import hashes
from windrow.kernels.packing.file_slices import rows_of_slices
from windrow.kernels.packing.parquet_files import FileScan, RowGroup
from windrow.kernels.packing.shards import Layout, SlicedPartition
from windrow.kernels.sorting import SortKey, cut_codes
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.plans import bytes_of_sources, estimated_bytes
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.runtime.local import local_cores
from windrow.spark.scan.file_scan import MOST_ALONE, Scanned, tasks_of
from windrow.syntax.sqltext import quoted

__all__ = ["BYTES_SETTING", "ROWS_SETTING", "TASK_SETTING", "estimated_rows", "shuffled", "survey"]

ROWS_SETTING = "spark.windrow.slice.rows"
BYTES_SETTING = "spark.windrow.slice.bytes"
TASK_SETTING = "spark.windrow.task.rows"
_DEFAULTS = {ROWS_SETTING: 2_000_000, BYTES_SETTING: 256 << 20, TASK_SETTING: 100_000}
_SAMPLED = 0.01
_STEPS = 64  # values that represent those of a row group
_MOST_OF_SLICES = 3  # rows that tasks read for slices, of each of their rows, for which reading is cheaper
_SMALL = 4 << 20  # bytes by Spark's estimate, below which no partition is long


def survey(
    gateway: Gateway,
    rows: DataFrame,
    partition: tuple[str, ...],
    order: SortKey,
    scanned: Scanned,
    *,
    sliceable: bool,
    soon: bool = False,
) -> tuple[Layout, FileScan | None]:
    """Choose the layout for these rows, and how tasks read it; runs a job over a sample of their keys if they
    may be many.

    Long partitions of files are cut by the statistics of the files instead, if these are in their order. With
    `soon`, slices are faster than one task as soon as it would not be the fastest reader of all rows.
    """
    scan = scanned.scan
    if gateway.plan_only and scan is None:
        return Layout(shuffled(gateway) if partition else 1), None
    budget = min(_setting(gateway, ROWS_SETTING), max(_setting(gateway, BYTES_SETTING) // _width(rows), 1))
    most = min(budget, MOST_ALONE) if soon and not partition else budget
    in_slices = _in_slices(gateway, scanned, order, budget, most, is_one=not partition) if sliceable else None
    if in_slices is not None:
        return in_slices
    layout = _layout(gateway, rows, partition, order, scan, budget, sliceable=sliceable)
    whole = None if layout.sequences else scanned.whole(layout.buckets, (), math.inf)
    if scan is None or whole is None:
        return layout, scan
    return Layout(len(whole)), replace(scan, whole=whole)


def _in_slices(
    gateway: Gateway, scanned: Scanned, order: SortKey, budget: int, most: int, *, is_one: bool
) -> tuple[Layout, FileScan] | None:
    """The layout of files with partitions of more than `most` rows, by statistics; None if these are not
    in order.
    """
    scan = scanned.scan
    if scan is None:
        return None
    long = scanned.long(order, most)
    sizes = [sum(group.rows for group in one.groups) for one in long]
    cuts = [
        _cuts_between(one.groups, _tasks(gateway, size, budget))
        for one, size in zip(long, sizes, strict=True)
    ]
    if not all(cuts) or not long:
        return None
    sequences = tuple(SlicedPartition(one.hash, at) for one, at in zip(long, cuts, strict=True))
    rest = _tasks(gateway, scan.rows - sum(sizes), budget)
    whole = () if is_one else scanned.whole(rest, long, budget)
    if whole is None:
        return None
    read = sum(rows_of_slices(one.groups, at) for one, at in zip(long, sequences, strict=True))
    if read > _MOST_OF_SLICES * sum(sizes):
        return Layout(0 if is_one else rest, sequences), scan
    whole = whole if whole or is_one else ((),)
    return Layout(len(whole), sequences), replace(scan, whole=whole, long=tuple(one.groups for one in long))


def _layout(
    gateway: Gateway,
    rows: DataFrame,
    partition: tuple[str, ...],
    order: SortKey,
    scan: FileScan | None,
    budget: int,
    *,
    sliceable: bool,
) -> Layout:
    """The layout of rows that are exchanged, from their number, or from a sample."""
    unknown = Layout(shuffled(gateway) if partition else 1)
    small = _small(gateway, rows, scan, budget)
    if small is not None:
        return Layout(_tasks(gateway, small, budget) if partition else 1)
    if gateway.plan_only:  # as if a sample found no long partition
        return Layout(_tasks(gateway, scan.rows, budget)) if partition and scan is not None else unknown
    try:
        sample = _sample(gateway, rows, scan, list(dict.fromkeys((*partition, order.column))))
    except WindrowError:  # the same error is reported when the query runs
        return unknown
    keys = hashes(sample, partition)
    sequences: list[SlicedPartition] = []
    rest = len(keys) / _SAMPLED
    nested = isinstance(rows.schema[order.column].dataType, ArrayType | StructType)
    if sliceable and not nested and len(keys):
        codes = cut_codes(sample.column(order.column), order)
        distinct, counts = np.unique(keys, return_counts=True)
        for key, count in zip(distinct.tolist(), (counts / _SAMPLED).tolist(), strict=True):
            if count > budget:
                cuts = _cuts(codes[keys == np.uint64(key)], _tasks(gateway, count, budget))
                if cuts:
                    sequences.append(SlicedPartition(key, cuts))
                    rest -= count
    if not partition:
        return Layout(0 if sequences else 1, tuple(sequences))
    return Layout(_tasks(gateway, rest, budget), tuple(sequences))


def shuffled(gateway: Gateway) -> int:
    """The number of shards for rows of unknown size."""
    return _tasks(gateway, math.inf)


def estimated_rows(gateway: Gateway, rows: DataFrame) -> float | None:
    """About how many rows there are, by the sizes of what they are read from; None if these are unknown."""
    with suppress(WindrowError), gateway.translated():
        size = bytes_of_sources(rows)
        return min(estimated_bytes(rows), size) / _width(rows) if size < math.inf else None
    return None  # the same error is reported when the query runs


def _small(gateway: Gateway, rows: DataFrame, scan: FileScan | None, budget: int) -> float | None:
    """The approximate number of rows, if certainly no partition is long."""
    if scan is not None:
        return scan.rows if scan.longest <= budget else None
    size = _bytes(gateway, rows)
    return size / _width(rows) if size < _SMALL else None


def _sample(gateway: Gateway, rows: DataFrame, scan: FileScan | None, columns: list[str]) -> pa.Table:
    """These columns of some of the rows."""
    read = rows.select(*map(quoted, columns))
    if scan is None:
        some = read.sample(_SAMPLED, 1)
    else:
        some = map_in_arrow(
            tasks_of(gateway.spark, len(scan.tasks)), _sampler(scan.only(columns), _SAMPLED), read.schema
        )
    with gateway.translated():
        return some.toArrow()


def _sampler(scan: FileScan, share: float) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def sample(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield from scan.sample(task, share)

    return sample


def _cuts(codes: np.ndarray, slices: int) -> tuple[int, ...]:
    """Codes that divide the rows into about equal slices; fewer where many rows share one."""
    ordered = np.sort(codes)
    places = (np.arange(1, slices) * len(ordered)) // slices
    return tuple(int(code) for code in np.unique(ordered[places]) if code > ordered[0])


def _cuts_between(groups: Sequence[RowGroup], slices: int) -> tuple[int, ...]:
    """The same from row groups with ranges of codes; empty if too many lie in the same range."""
    if slices < 2 or not groups:
        return ()
    rows, *ends = np.array([(one.rows, one.least, one.greatest) for one in groups], np.int64).T
    least, greatest = (end.astype(float) for end in ends)  # their distance may be greater than an integer
    if (greatest - least).sum() > 2 * (greatest.max() - least.min()):
        return ()
    values = least[:, None] + (greatest - least)[:, None] * np.linspace(0, 1, _STEPS)
    values = np.clip(values, -(2.0**63), 2.0**63 - 2**10).astype(np.int64)
    values = np.sort(np.repeat(values.ravel(), np.maximum(np.repeat(rows * _STEPS // rows.sum(), _STEPS), 1)))
    return _cuts(values, slices)


def _tasks(gateway: Gateway, rows: float, budget: int | None = None) -> int:
    """The number of tasks for so many rows: at most the session's shuffle partitions.

    Beyond two tasks a core, each has ten times as many rows as are worth a task: the start of a task in
    Python costs about as much as a hundred thousand rows. With a `budget` of rows for each task, there may be
    several times as many.
    """
    shuffled = int(gateway.spark.conf.get("spark.sql.shuffle.partitions") or 1)
    shuffled = shuffled if gateway.operators is None else min(shuffled, gateway.operators.tasks)
    if rows == math.inf:
        return shuffled
    worth = rows / _setting(gateway, TASK_SETTING)
    busy = min(worth, 2 * _cores(gateway)) if worth > 1 else 1
    tasks = math.ceil(min(max(busy, worth / 10), shuffled))
    needed = 0 if budget is None else math.ceil(rows / budget)
    return max(tasks, needed) if needed <= shuffled else shuffled * math.ceil(needed / shuffled)


def _cores(gateway: Gateway) -> float:
    """How many tasks run at the same time; infinite if that is unknown."""
    if not gateway.is_connect:
        return int(gateway.spark.sparkContext.defaultParallelism)
    return local_cores(str(gateway.spark.conf.get("spark.master", ""))) or math.inf


def _setting(gateway: Gateway, name: str) -> int:
    value = gateway.spark.conf.get(name, None) or str(_DEFAULTS[name])
    if not re.fullmatch(r"\s*0*[1-9][0-9]*\s*", value):
        raise UsageError(
            f"{name} is {value!r}, not a whole number above zero",
            condition="INVALID_SETTING",
            hint=f"SET {name} = {_DEFAULTS[name]}, the default",
        )
    return int(value)


def _bytes(gateway: Gateway, rows: DataFrame) -> float:
    """Spark's estimate of the size of the rows; infinite if it has none."""
    with suppress(WindrowError), gateway.translated():
        return estimated_bytes(rows)
    return math.inf  # the same error is reported when the query runs


def _width(rows: DataFrame) -> int:
    """The approximate size of a row in bytes."""
    return sum(_bytes_of(field.dataType) for field in rows.schema.fields)


def _bytes_of(kind: DataType) -> int:
    match kind:
        case StructType():
            return sum(_bytes_of(field.dataType) for field in kind.fields)
        case StringType() | BinaryType():
            return 32
        case ArrayType() | MapType() | VariantType():
            return 128
        case _:
            return 8
