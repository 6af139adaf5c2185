"""Numbers of the changes of each group, from the first on, a step at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.stages.held import Held
from windrow.kernels.stages.operated import places_of
from windrow.kernels.zset.relation import NEVER

__all__ = ["Versions"]


@dataclass
class Versions:
    """How many changes each group has had.

    Parameters
    ----------
    schema
        The columns by which rows are grouped; without, all are of one group.
    """

    schema: pa.Schema
    _groups: Held = field(init=False)
    _all: int = 0

    def __post_init__(self) -> None:
        none = np.zeros(0, np.int64)
        self._groups = Held.of(self.schema.empty_table(), none, none, none, (self._key,))

    @property
    def _key(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def numbered(self, told: pa.Table, order: tuple[SortKey, ...]) -> pa.Table:
        """The changes by group and in this order, with their numbers, `__version`, at the end."""
        places, bounds = sorted_partitions(told, self._key, order)
        if places is not None:
            told = told.take(pa.array(places))
        counts = np.diff(bounds)
        before = self._counted(told.take(pa.array(bounds[:-1])), counts)
        number = np.arange(told.num_rows) - np.repeat(bounds[:-1] - before, counts)
        return told.append_column("__version", pa.array(number.astype(np.int64)))

    def _counted(self, firsts: pa.Table, counts: np.ndarray) -> np.ndarray:
        """How many changes these groups had before; they are to have so many more."""
        if not self._key:
            before = np.full(len(counts), self._all)
            self._all += int(counts.sum())
            return before
        keys = firsts.select(self._key).cast(self.schema).combine_chunks()
        none = np.zeros(keys.num_rows, np.int64)
        own = Held.of(keys, counts.astype(np.int64), none + NEVER, none, (self._key,))
        places, found = places_of(self._groups, own, self._key)
        so_far = self._groups.enter.copy()
        before = np.zeros(len(counts), np.int64)
        before[found] = so_far[places]
        so_far[places] += counts[found]
        self._groups = replace(self._groups, enter=so_far).with_rows(own.where(~found))
        return before
