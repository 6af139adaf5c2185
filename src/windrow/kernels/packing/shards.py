"""Shards: the rows of one task. A shard is a hash bucket of whole partitions, or one slice of a long one.

A *sequence* is a partition with more rows than a task should have. It is cut by ranges of its first order key
into slices, and each slice is a shard.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.hashing import hashes
from windrow.kernels.sorting import SortKey, cut_codes, one_array

__all__ = ["Edges", "Layout", "SlicedPartition", "shards_of"]

Array = np.ndarray
Edges = tuple[int | None, int | None]
"""The first cut code of a slice, and that of the next; None at the edges of the partition."""


@dataclass(frozen=True)
class SlicedPartition:
    """A partition that is cut into slices.

    `key` is the hash of its keys (:mod:`windrow.kernels.hashing`), `cuts` the first cut code of every slice
    but the first.
    """

    key: int
    cuts: tuple[int, ...]

    @property
    def slices(self) -> int:
        """The number of slices."""
        return len(self.cuts) + 1

    @property
    def edges(self) -> list[Edges]:
        """Those of each slice."""
        return list(zip([None, *self.cuts], [*self.cuts, None], strict=True))


@dataclass(frozen=True)
class Layout:
    """The first `buckets` shards have whole partitions; after them come the slices of each sequence."""

    buckets: int
    sequences: tuple[SlicedPartition, ...] = ()

    @property
    def shards(self) -> int:
        """The number of shards."""
        return self.buckets + sum(sequence.slices for sequence in self.sequences)

    def slices_of(self, number: int) -> range:
        """The shards of a sequence, in its order."""
        first = self.buckets + sum(sequence.slices for sequence in self.sequences[:number])
        return range(first, first + self.sequences[number].slices)

    def slice_of(self, shard: int) -> tuple[int, Edges]:
        """The number of the sequence that a shard is a slice of, and the edges of the slice."""
        for number, sequence in enumerate(self.sequences):
            shards = self.slices_of(number)
            if shard in shards:
                return number, sequence.edges[shard - shards.start]
        raise AssertionError(f"shard {shard} is no slice")

    def sequence_of(self, shard: int) -> range | None:
        """The shards of the sequence that a shard is a slice of; None for a bucket."""
        for number in range(len(self.sequences)):
            if shard in self.slices_of(number):
                return self.slices_of(number)
        return None


def shards_of(layout: Layout, rows: pa.Table, partition: tuple[str, ...], order: SortKey) -> Array:
    """The shard of every row, integers.

    Parameters
    ----------
    layout
        The shards.
    rows
        With the columns of `partition` and of `order`, the first order key.
    """
    if layout.shards == 1:
        return np.zeros(rows.num_rows, np.int64)
    if not layout.sequences and len(partition) == 1 and pa.types.is_dictionary(rows.field(partition[0]).type):
        return _of_coded(layout, rows.column(partition[0]))
    keys = hashes(rows, partition)
    shards = (keys % np.uint64(max(layout.buckets, 1))).astype(np.int64)
    for number, sequence in enumerate(layout.sequences):
        members = np.flatnonzero(keys == np.uint64(sequence.key))
        if len(members):
            codes = cut_codes(rows.column(order.column).take(pa.array(members)), order)
            places = np.searchsorted(np.array(sequence.cuts, np.int64), codes, side="right")
            shards[members] = layout.slices_of(number).start + places
    return shards


def _of_coded(layout: Layout, column: pa.ChunkedArray) -> Array:
    """The bucket of every row by its key; each value of the dictionary is hashed once."""
    array = one_array(column)
    values = array.dictionary
    # the last is that of NULL
    keys = pa.concat_arrays([values, pa.nulls(1, values.type)])
    buckets = hashes(pa.table({"key": keys}), ("key",)) % np.uint64(layout.buckets)
    codes = array.indices.fill_null(len(values)) if array.null_count else array.indices
    small = np.uint16 if layout.buckets <= 1 << 16 else np.uint32
    shards: Array = buckets.astype(small)[np.asarray(codes)]
    return shards
