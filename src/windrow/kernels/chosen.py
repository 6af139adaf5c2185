"""The rows of a table for which a mask is true."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["chosen"]


def chosen(table: pa.Table, which: npt.NDArray[np.bool_]) -> pa.Table:
    """The chosen rows; they are not copied if they follow each other.

    >>> chosen(pa.table({"k": [1, 2, 3]}), np.array([False, True, True])).to_pydict()
    {'k': [2, 3]}
    """
    count = int(np.count_nonzero(which))
    first = int(which.argmax()) if count else 0
    if which[first : first + count].all():
        return table.slice(first, count)
    return table.filter(pa.array(which))
