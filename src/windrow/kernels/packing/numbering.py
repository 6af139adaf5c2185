"""Group numbers: rows with equal keys have the same number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.sorting import sorted_partitions

__all__ = ["numbered", "numbered_in_order"]

Ints = npt.NDArray[np.int64]


def numbered(rows: pa.Table, keys: Sequence[str]) -> Ints:
    """Group numbers from 0 on, in any order of the groups."""
    if not keys or not all(_is_equal_by_bits(rows.schema.field(key).type) for key in keys):
        return numbered_in_order(rows, keys)
    codes, _ = _codes(rows.column(keys[0]).combine_chunks())
    for key in keys[1:]:
        others, count = _codes(rows.column(key).combine_chunks())
        codes, _ = _codes(pa.array(codes * count + others))
    return codes


def numbered_in_order(rows: pa.Table, keys: Sequence[str]) -> Ints:
    """Group numbers in the order of the keys."""
    if not keys:
        return np.zeros(rows.num_rows, np.int64)
    order, bounds = sorted_partitions(rows, tuple(keys), ())
    numbers = np.repeat(np.arange(len(bounds) - 1, dtype=np.int64), np.diff(bounds))
    if order is None:
        return numbers
    group: Ints = np.empty(rows.num_rows, np.int64)
    group[order] = numbers
    return group


def _is_equal_by_bits(kind: pa.DataType) -> bool:
    """Whether values of a type are equal exactly if their bits are."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date32(kind)
    )


def _codes(values: pa.Array) -> tuple[Ints, int]:
    """Numbers from 0 on for distinct values, and how many there are."""
    found = pc.dictionary_encode(values, null_encoding="encode")
    return np.asarray(found.indices).astype(np.int64), len(found.dictionary)
