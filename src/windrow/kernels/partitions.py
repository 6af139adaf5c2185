"""Where one partition ends and the next begins in sorted rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["partition_bounds"]


def partition_bounds(table: pa.Table, keys: tuple[str, ...]) -> np.ndarray:
    """Offsets of the partitions' first rows and, last, the number of rows: int64, (partitions + 1,).

    Rows of one partition stand together. Keys are equal as GROUP BY has it: NULL = NULL, NaN = NaN,
    −0.0 = 0.0, in nested values too.
    """
    count = table.num_rows
    changed = np.zeros(max(count - 1, 0), bool)
    for key in keys:
        column = table.column(key)
        changed |= _changes(column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
    return np.concatenate([[0], np.flatnonzero(changed) + 1, [count]]).astype(np.int64)


def _changes(array: pa.Array) -> np.ndarray:
    """For each row but the first, whether its value differs from the one before."""
    before, after = array.slice(0, len(array) - 1), array.slice(1)
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(after), bool)
    if pa.types.is_nested(kind):
        values = [_comparable(value) for value in array.to_pylist()]
        return np.array([left != right for left, right in pairwise(values)], bool)
    differs = pc.fill_null(pc.not_equal(before, after), False)
    if pa.types.is_floating(kind):
        both_nan = pc.fill_null(pc.and_(pc.is_nan(before), pc.is_nan(after)), False)
        differs = pc.and_not(differs, both_nan)
    null_changes = pc.xor(pc.is_null(before), pc.is_null(after))
    return np.asarray(pc.or_(differs, null_changes))


def _comparable(value: Any) -> Any:
    """A nested Python value in which NaN equals itself."""
    match value:
        case dict():
            return {name: _comparable(part) for name, part in value.items()}
        case list() | tuple():
            return [_comparable(part) for part in value]
        case float() if value != value:
            return "NaN"
        case _:
            return value
