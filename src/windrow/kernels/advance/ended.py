"""Partitions that have ended: they receive no more rows, although others may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.punctuations import Cover

__all__ = ["Ended"]


@dataclass(frozen=True, eq=False)
class Ended:
    """The partitions whose keys are closed.

    Attributes
    ----------
    names
        The names of the key columns in `closed`.
    closed
        The keys for which the source receives no more rows.
    waiting
        The keys with buffered rows that are not in this micro-batch; None if there are none.
    others
        The same for further sources of rows, if there are several: a partition must have ended in all.
    """

    names: Mapping[str, str]
    closed: Cover
    waiting: Cover | None = None
    others: tuple[Ended, ...] = ()

    def rows(self, table: pa.Table) -> np.ndarray:
        """For each row, whether its partition has ended: bool."""
        keys = pa.table({own: table.column(column) for column, own in self.names.items()})
        found = self.closed.matches(keys)
        if self.waiting is not None and found.any():
            found &= ~self.waiting.matches(keys)
        for other in self.others:
            if found.any():
                found &= other.rows(table)
        return found
