"""Values as integers in the same order, so that one kernel over integers serves every orderable type.

Integers, dates, times and short decimals are themselves; floats are their bits, made monotone; anything
else that Arrow can sort (strings and binaries by bytes, long decimals) is its rank among the values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates import exact
from windrow.kernels.aggregates.spec import Bools, Result
from windrow.kernels.aggregates.windows import masked, take

__all__ = ["Codes", "encode", "is_orderable"]

Numbers = npt.NDArray[Any]

#: Digits of a decimal that fit one int64.
SHORT_DECIMAL = 18


@dataclass(frozen=True, slots=True)
class Codes:
    """A column's values as integers.

    Attributes
    ----------
    codes
        int8 to int64, one per value, in the order of the values and equal where they are equal.
    decode
        A function from codes (of any number, of that dtype), and which of them are NULL, to the values.
    """

    codes: Numbers
    decode: Callable[[Numbers, Bools], Result]


def encode(column: pa.ChunkedArray, *, merge_zeros: bool = False) -> Codes:
    """Codes for the values of a column without NULLs.

    Every NaN is one value, greater than all others, as in Spark. -0.0 comes before 0.0 unless
    `merge_zeros`, which makes both 0.0: Spark groups them together but distinguishes their signs in
    percentiles.
    """
    type_ = column.type
    if pa.types.is_float32(type_) or pa.types.is_float64(type_):
        return _encode_floats(column, merge_zeros)
    if pa.types.is_boolean(type_):
        return Codes(column.cast(pa.int8()).to_numpy(), lambda codes, null: masked(codes, null, type_))
    if pa.types.is_decimal128(type_) and type_.precision <= SHORT_DECIMAL:
        return Codes(
            np.ascontiguousarray(exact.decimal_words(column)[:, 0]),
            lambda codes, null: exact.decimals(codes, None, null, type_),
        )
    if _is_number(type_):
        integer = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[type_.bit_width]
        return Codes(column.cast(integer).to_numpy(), lambda codes, null: masked(codes, null, type_))
    return _encode_ranks(column)


def is_orderable(type_: pa.DataType) -> bool:
    """Whether :func:`encode` takes a column of this type."""
    return (
        pa.types.is_float32(type_)
        or pa.types.is_float64(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_decimal128(type_)
        or _is_number(type_)
        or _is_text(type_)
    )


def _is_number(type_: pa.DataType) -> bool:
    """Whether Arrow stores one signed integer per value."""
    return not pa.types.is_interval(type_) and bool(
        pa.types.is_signed_integer(type_) or pa.types.is_temporal(type_)
    )


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
    )


def _encode_floats(column: pa.ChunkedArray, merge_zeros: bool) -> Codes:
    values = column.to_numpy()
    integer = np.dtype(f"i{values.dtype.itemsize}")
    # The bits of positive floats are in their order; the bits of negative ones in the reverse order.
    flip = np.iinfo(integer).max
    canonical = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    if merge_zeros:
        canonical += 0.0
    bits = canonical.view(integer)

    def decode(codes: Numbers, null: Bools) -> pa.Array:
        return masked(np.where(codes < 0, codes ^ flip, codes).view(values.dtype), null, column.type)

    return Codes(np.where(bits < 0, bits ^ flip, bits), decode)


def _encode_ranks(column: pa.ChunkedArray) -> Codes:
    encoded = column.dictionary_encode()
    distinct = encoded.chunk(0).dictionary if encoded.num_chunks else pa.array([], column.type)
    order = pc.sort_indices(distinct).to_numpy()
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    positions = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    ascending = pa.chunked_array([distinct.take(pa.array(order))])
    return Codes(
        rank[np.concatenate(positions)] if positions else rank,
        lambda codes, null: take(ascending, codes.astype(np.int64), null),
    )
