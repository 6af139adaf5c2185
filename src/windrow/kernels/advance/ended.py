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
        Of the columns of the keys: what `closed` calls them.
    closed
        The keys of which no row will come in to where the rows come from.
    waiting
        Those of which rows are there that are not passed to this micro-batch; None if there are none.
    others
        The same of further sources of rows, where these come from several: all have to say so.
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
