"""Ranks of rows within partitions, without a Spark job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.computed.computed_values import ComputedRows, whole
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.spark.analysis.typed_values import Typed, Unread

__all__ = ["RANKS", "Ordered", "Ranked"]

RANKS = ("RowNumber", "Rank", "DenseRank")
"""Spark's names of the functions."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ordered:
    """A key of ORDER BY."""

    value: Typed
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Ranked:
    """Rows with their ranks.

    Attributes
    ----------
    ranks
        By their numbers in plans: which.
    partition, order
        The keys of the window.
    """

    ranks: Mapping[int, str]
    partition: Sequence[Typed]
    order: Sequence[Ordered]

    def __post_init__(self) -> None:
        values = [*self.partition, *(key.value for key in self.order)]
        if any(pa.types.is_nested(value.kind) for value in values):
            raise Unread

    def of(self, rows: ComputedRows) -> ComputedRows:
        """The result for these rows, in their order."""
        groups = {f"group {at}": value for at, value in enumerate(self.partition)}
        keys = {f"key {at}": key.value for at, key in enumerate(self.order)}
        table = pa.table(
            {name: whole(value.value(rows), rows.count) for name, value in {**groups, **keys}.items()}
        )
        order = tuple(
            SortKey(name, key.descending, key.nulls_first) for name, key in zip(keys, self.order, strict=True)
        )
        alike = _numbers(*sorted_partitions(table, (*groups, *keys), ()))
        if "RowNumber" in self.ranks.values() and len(np.unique(alike)) < rows.count:
            # among ties, the same row is always first, whatever the order of arrival
            rest = {f"rest {at}": column for at, column in enumerate(rows.columns.values())
                    if not pa.types.is_nested(column.type)}  # fmt: skip
            table = pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **rest})
            order = (*order, *map(SortKey, rest))
        permutation, bounds = sorted_partitions(table, tuple(groups), order)
        sequence = np.arange(rows.count) if permutation is None else permutation
        found = {number: _ranks(name, bounds, alike[sequence]) for number, name in self.ranks.items()}
        columns = dict(rows.columns)
        for number, ranks in found.items():
            placed = np.empty(rows.count, np.int64)
            placed[sequence] = ranks
            columns[number] = pa.array(placed).cast(pa.int32())
        return ComputedRows(columns, rows.count, rows.known)


def _numbers(permutation: Ints | None, bounds: Ints) -> Ints:
    """The number of the partition of each row."""
    numbers = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    if permutation is None:
        return numbers
    placed = np.empty_like(numbers)
    placed[permutation] = numbers
    return placed


def _ranks(name: str, bounds: Ints, alike: Ints) -> Ints:
    """The ranks of ordered rows; rows with the same number are ties."""
    count = len(alike)
    starts = np.repeat(bounds[:-1], np.diff(bounds))
    if name == "RowNumber":
        return np.arange(count) - starts + 1
    is_new = np.ones(count, bool)
    is_new[1:] = alike[1:] != alike[:-1]
    if name == "DenseRank":
        dense: Ints = np.cumsum(is_new)
        return dense - dense[starts] + 1
    first: Ints = np.maximum.accumulate(np.where(is_new, np.arange(count), 0))
    return first - starts + 1
