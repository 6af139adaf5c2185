"""Send the rows of each shard to its task."""

from __future__ import annotations

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.kernels.packing.messages import CELL

__all__ = ["first_of_each", "to_shards"]

_SEED = 42
"""The seed of the hash by which Spark partitions."""


def to_shards(rows: DataFrame, shards: int, *, may_merge: bool = False) -> DataFrame:
    """Repartition rows so that shard i is in partition i.

    With `may_merge`, for as many shards as the session has shuffle partitions, Spark may give a task several
    whole shards, if they are small (``spark.sql.adaptive.coalescePartitions``).
    """
    if may_merge:
        return rows.repartition(_that_goes_to(F.col(CELL), shards))
    if hasattr(DataFrame, "repartitionById"):
        return rows.repartitionById(shards, F.col(CELL))
    # PySpark 4.0
    return rows.repartition(shards, _that_goes_to(F.col(CELL), shards))


def _that_goes_to(partition: Column, count: int) -> Column:
    """An int whose hash makes Spark put a row into a partition."""
    return F.element_at(F.lit(first_of_each(count).tolist()).cast("array<int>"), partition + 1)


def first_of_each(count: int) -> np.ndarray:
    """The first int from 0 on that Spark puts into each of so many partitions.

    >>> first_of_each(4)
    array([12,  6,  2,  0])
    """
    size = 16 * count
    while True:
        places = _murmur3(np.arange(size, dtype=np.uint32)).view(np.int32) % count
        found, firsts = np.unique(places, return_index=True)
        if len(found) == count:
            return firsts
        size *= 2


def _murmur3(values: np.ndarray) -> np.ndarray:
    """The hash of ints: MurmurHash3 x86_32 of four bytes (A. Appleby), uint32."""
    mixed = _rotated(values * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    hashed = _rotated(mixed ^ np.uint32(_SEED), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    hashed ^= np.uint32(4)
    hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    final: np.ndarray = hashed ^ (hashed >> np.uint32(16))
    return final


def _rotated(values: np.ndarray, bits: int) -> np.ndarray:
    turned: np.ndarray = (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
    return turned
