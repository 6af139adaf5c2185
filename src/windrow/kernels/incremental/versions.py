"""Numbers the changes of each group, from its first on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.trace import Trace

__all__ = ["Versions"]

_COUNT = "count"


@dataclass
class Versions:
    """How many changes each group has had.

    Parameters
    ----------
    schema
        The columns by which rows are grouped; without columns, there is one group.
    """

    schema: pa.Schema
    _groups: Trace = field(init=False)
    _all: int = 0

    def __post_init__(self) -> None:
        self._groups = Trace(self.schema, self._key, notes=[_COUNT])

    @property
    def _key(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def numbered(self, changes: pa.Table, order: tuple[SortKey, ...]) -> pa.Table:
        """The changes by group and in this order, with their numbers, `__version`, at the end."""
        places, bounds = sorted_partitions(changes, self._key, order)
        if places is not None:
            changes = changes.take(pa.array(places))
        counts = np.diff(bounds)
        before = self._counted(changes.take(pa.array(bounds[:-1])), counts)
        number = np.arange(changes.num_rows) - np.repeat(bounds[:-1] - before, counts)
        return changes.append_column("__version", pa.array(number.astype(np.int64)))

    def forget(self, is_over: Callable[[pa.Table], npt.NDArray[np.bool_]]) -> None:
        """Drop groups that no longer change, as their keys show."""
        self._groups.remove(self._groups.where(is_over))

    def __len__(self) -> int:
        return len(self._groups)

    def _counted(self, firsts: pa.Table, counts: np.ndarray) -> np.ndarray:
        """The number of earlier changes of these groups, which then grows by these counts."""
        if not self._key:
            before = np.full(len(counts), self._all)
            self._all += int(counts.sum())
            return before
        keys = firsts.select(self._key).cast(self.schema)
        found = self._groups.find(keys)
        before = np.zeros(len(counts), np.int64)
        before[found.probed] = self._groups.note(_COUNT, found.places)
        self._groups.set_note(_COUNT, found.places, (before + counts)[found.probed])
        is_new = np.ones(len(counts), bool)
        is_new[found.probed] = False
        self._groups.add(keys.filter(pa.array(is_new)), **{_COUNT: counts[is_new]})
        return before
