"""64-bit hashes of the keys of rows: equal keys have the same hash in any task or process.

Equality is that of PARTITION BY: −0.0 equals 0.0, NaN equals NaN, NULL equals NULL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.sorting import codes_of, comparable, one_array, ordered_integers

__all__ = ["among", "hashes"]

Array = np.ndarray
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_WORD = 8  # bytes
_SLOTS = np.uint64((1 << 20) - 1)


def hashes(table: pa.Table, columns: Iterable[str]) -> Array:
    """The hash of these columns in every row: uint64; 0 for no columns."""
    found = np.zeros(table.num_rows, np.uint64)
    for name in columns:
        found = _mixed(found ^ _hashes(one_array(table.column(name))))
    return found


def among(found: Array, wanted: Array) -> Array:
    """Which hashes are among the wanted ones, with possible false positives: bool."""
    is_wanted = np.zeros(int(_SLOTS) + 1, bool)
    is_wanted[(wanted & _SLOTS).astype(np.int64)] = True
    alike: Array = is_wanted[(found & _SLOTS).astype(np.int64)]
    return alike


def _mixed(values: Array) -> Array:
    """Mixed bits: each depends on all bits of the values (the finaliser of SplitMix64)."""
    values = values + _GOLDEN
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    mixed: Array = values ^ (values >> np.uint64(31))
    return mixed


def _hashes(array: pa.Array) -> Array:
    kind = array.type
    if pa.types.is_dictionary(kind):
        of_values = _hashes(array.dictionary)
        found = of_values[codes_of(array)] if len(of_values) else np.zeros(len(array), np.uint64)
    elif pa.types.is_struct(kind):
        found = np.zeros(len(array), np.uint64)
        for field in array.flatten():
            found = _mixed(found ^ _hashes(field))
    elif pa.types.is_nested(kind) or (pa.types.is_decimal(kind) and kind.precision > 18):
        found = np.array([_of_value(value) for value in array.to_pylist()], np.uint64)
    elif _is_bytes(kind):
        found = _of_bytes(array)
    else:
        found = _mixed(ordered_integers(array).view(np.uint64))
    if array.null_count:
        found = np.where(np.asarray(pc.is_valid(array)), found, np.uint64(0))
    return found


def _is_bytes(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def _of_bytes(array: pa.Array) -> Array:
    """The hash of bytes, eight at a time, for all values at once."""
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    width = np.int64 if large else np.int32
    edges = np.frombuffer(offsets, width, len(array) + 1, array.offset * np.dtype(width).itemsize)
    edges = edges.astype(np.int64)
    first, last = int(edges[0]), int(edges[-1])
    padded = (data[first:last].to_pybytes() if data is not None else b"") + bytes(_WORD)
    words = np.ndarray(len(padded) - _WORD + 1, "<u8", padded, strides=(1,))
    starts, lengths = edges[:-1] - first, np.diff(edges)
    found = _mixed(lengths.view(np.uint64))
    for done in range(0, int(lengths.max(initial=0)), _WORD):
        longer = np.flatnonzero(lengths > done)
        rest = np.minimum(lengths[longer] - done, _WORD).astype(np.uint64)
        # what follows a value is not part of it
        rest_of_word = words[starts[longer] + done] & (
            ~np.uint64(0) >> (np.uint64(8) * (np.uint64(_WORD) - rest))
        )
        found[longer] = _mixed(found[longer] ^ rest_of_word)
    return found


def _of_value(value: object) -> int:
    digest = hashlib.blake2b(repr(comparable(value)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
