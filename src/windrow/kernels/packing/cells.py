"""Cells: what one task is given. A cell holds whole partitions, or one slice of a long one.

A *sequence* is a partition with more rows than a task should hold. It is cut by ranges of its first order key
into slices, each a cell of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.hashing import hashes
from windrow.kernels.sorting import SortKey, cut_codes

__all__ = ["Layout", "Sequence", "cells_of"]

Array = np.ndarray


@dataclass(frozen=True)
class Sequence:
    """A partition that is cut.

    `key` is the hash of its keys (:mod:`windrow.kernels.hashing`), `cuts` the first cut code of every slice
    but the first.
    """

    key: int
    cuts: tuple[int, ...]

    @property
    def slices(self) -> int:
        """How many slices there are."""
        return len(self.cuts) + 1


@dataclass(frozen=True)
class Layout:
    """`buckets` cells hold whole partitions; after them come the slices of each sequence."""

    buckets: int
    sequences: tuple[Sequence, ...] = ()

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self.buckets + sum(sequence.slices for sequence in self.sequences)

    def slices_of(self, number: int) -> range:
        """The cells of a sequence, in its order."""
        first = self.buckets + sum(sequence.slices for sequence in self.sequences[:number])
        return range(first, first + self.sequences[number].slices)

    def sequence_of(self, cell: int) -> range | None:
        """The cells of the sequence that a cell is a slice of; None for a bucket."""
        for number in range(len(self.sequences)):
            if cell in self.slices_of(number):
                return self.slices_of(number)
        return None


def cells_of(layout: Layout, rows: pa.Table, partition: tuple[str, ...], order: SortKey) -> Array:
    """The cell of every row, int64.

    Parameters
    ----------
    layout
        The cells.
    rows
        With the columns of `partition` and of `order`, the first order key.
    """
    if layout.cells == 1:
        return np.zeros(rows.num_rows, np.int64)
    keys = hashes(rows, partition)
    cells = (keys % np.uint64(max(layout.buckets, 1))).astype(np.int64)
    for number, sequence in enumerate(layout.sequences):
        members = np.flatnonzero(keys == np.uint64(sequence.key))
        if len(members):
            codes = cut_codes(rows.column(order.column).take(pa.array(members)), order)
            places = np.searchsorted(np.array(sequence.cuts, np.int64), codes, side="right")
            cells[members] = layout.slices_of(number).start + places
    return cells
