"""Bounds on the later output of sequences: no later window or match begins before some row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.advance.suffix import DONE, STATE

__all__ = ["least_open"]


def least_open(retained: pa.Table, column: str) -> pa.Scalar | None:
    """The least value of a column among the retained rows at which output may still begin.

    A window is at its label row, and a match at its first row. So later output is at one of these rows, or at
    a row that has not arrived yet. None if there are no such rows.

    Parameters
    ----------
    retained
        The rows that :func:`windrow.kernels.advance.advance` retains.
    column
        One of its columns that rises along the rows.
    """
    is_open = retained.column(STATE).to_numpy().astype(np.int64) & DONE == 0
    if not is_open.any():
        return None
    return pc.min(retained.column(column).filter(pa.array(is_open)))
