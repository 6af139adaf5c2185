"""The first rows of each key, over rows that never leave: its state is only the requested number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.hashing import hashes
from windrow.kernels.incremental.operated import Operated
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.sorting import sorted_partitions
from windrow.kernels.zset.keyed_operator import Keyed

__all__ = ["FirstRows", "is_bounded"]


def is_bounded(operator: Keyed, *, appends: bool) -> bool:
    """Whether rows after the first ones can never become first."""
    return operator.first is not None and operator.first.limit is not None and appends


@dataclass
class FirstRows(Operated):
    """Retains only the requested number of rows for each key: rows after them never become first."""

    def advance(self, changes: list[pa.Table | None], times: Times) -> pa.Table:
        """As :meth:`Operated.advance`."""
        output = super().advance(changes, times)
        first, (trace,), (new_rows,) = self.operator.first, self.sides, changes
        assert first is not None
        assert first.limit is not None
        if new_rows is None or not new_rows.num_rows:
            return output
        places = trace.having(hashes(new_rows, self.operator.keys))
        order, bounds = sorted_partitions(trace.rows(places), self.operator.keys, first.order)
        rank = np.arange(len(places)) - np.repeat(bounds[:-1], np.diff(bounds))
        behind = np.flatnonzero(rank >= first.offset + first.limit)
        trace.remove(places[behind if order is None else order[behind]])
        return output
