"""How the rows of a window are dealt out to tasks: whole partitions by hash, long ones in slices.

Which partitions are long, and where to cut them, is estimated from a sample of the keys; a wrong estimate
costs time, never rows. The cells themselves are :mod:`windrow.kernels.cells`.
"""

from __future__ import annotations

import math
import re

import numpy as np
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

from windrow.errors import WindrowError
from windrow.kernels.cells import Layout, Sequence
from windrow.kernels.hashing import hashes
from windrow.kernels.sorting import SortKey, cut_codes
from windrow.spark.gateway import Gateway
from windrow.syntax.sqltext import quoted

__all__ = ["BYTES_SETTING", "ROWS_SETTING", "TASK_SETTING", "survey"]

ROWS_SETTING = "spark.windrow.slice.rows"
BYTES_SETTING = "spark.windrow.slice.bytes"
TASK_SETTING = "spark.windrow.task.rows"
_DEFAULTS = {ROWS_SETTING: 2_000_000, BYTES_SETTING: 256 << 20, TASK_SETTING: 100_000}
_SAMPLED = 0.01
_SMALL = 4 << 20  # bytes by Spark's estimate, below which the rows are few
_SIZE = re.compile(r"sizeInBytes=([0-9.]+(?:E[+-]?[0-9]+)?) ?([KMGTPE]?)i?B")
_UNITS = {unit: 1024**power for power, unit in enumerate(["", "K", "M", "G", "T", "P", "E"])}


def survey(
    gateway: Gateway,
    rows: DataFrame,
    partition: tuple[str, ...],
    order: SortKey,
    plan: str,
    *,
    sliceable: bool,
) -> Layout:
    """The layout for these rows, by a job over a sample of their keys where they may be many.

    `plan` is what Spark's EXPLAIN COST says of the rows.
    """
    shuffled = Layout(_tasks(gateway, math.inf) if partition else 1)
    if gateway.plan_only:
        return shuffled
    size = _bytes(plan)
    if size < _SMALL:
        return Layout(_tasks(gateway, size / _width(rows)) if partition else 1)
    try:
        read = rows.select(*map(quoted, dict.fromkeys((*partition, order.column))))
        with gateway.translated():
            sample = read.sample(_SAMPLED, 1).toArrow()
    except WindrowError:  # what fails here fails again, and is told, when the query is run
        return shuffled
    keys = hashes(sample, partition)
    budget = min(_setting(gateway, ROWS_SETTING), max(_setting(gateway, BYTES_SETTING) // _width(rows), 1))
    sequences: list[Sequence] = []
    rest = len(keys) / _SAMPLED
    nested = isinstance(rows.schema[order.column].dataType, ArrayType | StructType)
    if sliceable and not nested and len(keys):
        codes = cut_codes(sample.column(order.column), order)
        distinct, counts = np.unique(keys, return_counts=True)
        for key, count in zip(distinct.tolist(), (counts / _SAMPLED).tolist(), strict=True):
            if count > budget:
                slices = max(math.ceil(count / budget), _tasks(gateway, count))
                cuts = _cuts(codes[keys == np.uint64(key)], slices)
                if cuts:
                    sequences.append(Sequence(key, cuts))
                    rest -= count
    if not partition:
        return Layout(0 if sequences else 1, tuple(sequences))
    return Layout(max(math.ceil(rest / budget), _tasks(gateway, rest)), tuple(sequences))


def _cuts(codes: np.ndarray, slices: int) -> tuple[int, ...]:
    """Codes that divide the rows into about equal slices; fewer where many rows share one."""
    ordered = np.sort(codes)
    places = (np.arange(1, slices) * len(ordered)) // slices
    return tuple(int(code) for code in np.unique(ordered[places]) if code > ordered[0])


def _tasks(gateway: Gateway, rows: float) -> int:
    """How many tasks so many rows are worth: as many as a shuffle of the session has, if they suffice."""
    shuffled = int(gateway.spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return max(1, min(shuffled, math.ceil(min(rows / _setting(gateway, TASK_SETTING), shuffled))))


def _setting(gateway: Gateway, name: str) -> int:
    return int(gateway.spark.conf.get(name, str(_DEFAULTS[name])) or _DEFAULTS[name])


def _bytes(plan: str) -> float:
    """Spark's estimate of the size of the rows; infinite if it has none."""
    found = _SIZE.search(plan)
    return float(found[1]) * _UNITS[found[2]] if found else math.inf


def _width(rows: DataFrame) -> int:
    """About how many bytes a row takes."""
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
