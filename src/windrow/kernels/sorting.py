"""Sorts rows by partition and order with Spark's order of every type, by integers packed into one word.

A key column becomes integers that compare as its values do: numbers and times by their bits, strings,
binaries and long decimals by their rank among the rows. The integers of all keys share one word where their
ranges allow, so most sorts are one sort of int64, or none where the rows are in order already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "SortKey",
    "array_of_codes",
    "codes_of",
    "comparable",
    "cut_codes",
    "has_values_of_codes",
    "one_array",
    "ordered_integers",
    "sorted_partitions",
]

Array = np.ndarray
_WORD = 63


@dataclass(frozen=True, slots=True)
class SortKey:
    """An ORDER BY key: a column and its direction."""

    column: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class _Codes:
    """Integers from 0 to `top` that compare as the values do."""

    values: Array
    top: int


def sorted_partitions(
    table: pa.Table, partition: tuple[str, ...], order: tuple[SortKey, ...]
) -> tuple[Array | None, Array]:
    """The order of the rows, and where the partitions begin in it.

    The sort is stable.

    Returns
    -------
    order
        int64 indices of the rows in their order; None if they are in order already.
    bounds
        int64, (partitions + 1,): offsets of the partitions' first rows and, last, the number of rows.
    """
    count = table.num_rows
    groups = [_codes(table.column(name), descending=False, nulls_first=True) for name in partition]
    ranked = [_is_ranked(table.schema.field(key.column).type) for key in order]
    cheap = ranked.index(True) if True in ranked else len(order)
    words = _words([*groups, *_keys(table, order[:cheap])], count)
    permutation = _order(words)
    if cheap < len(order):
        permutation = _ties_ordered(table, words, permutation, order[cheap:])
    changed = np.zeros(max(count - 1, 0), bool)
    for word in _words(groups, count):
        placed = word if permutation is None else word[permutation]
        changed |= placed[1:] != placed[:-1]
    bounds = np.concatenate([[0], np.flatnonzero(changed) + 1, [count]]).astype(np.int64)
    return permutation, bounds


def _keys(table: pa.Table, order: tuple[SortKey, ...]) -> list[_Codes]:
    return [_codes(table.column(key.column), key.descending, key.nulls_first) for key in order]


def _is_ranked(kind: pa.DataType) -> bool:
    """Whether values of a type become integers by being sorted themselves."""
    is_short_decimal = pa.types.is_decimal128(kind) and kind.precision <= 18
    return not (
        pa.types.is_null(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_temporal(kind)
        or is_short_decimal
    )


def _ties_ordered(
    table: pa.Table, words: list[Array], permutation: Array | None, order: tuple[SortKey, ...]
) -> Array | None:
    """The order of rows; those with equal words are compared by more keys, which are read for them only."""
    count = table.num_rows
    equal = np.ones(max(count - 1, 0), bool)
    for word in words:
        placed = word if permutation is None else word[permutation]
        equal &= placed[1:] == placed[:-1]
    if not equal.any():
        return permutation
    tied = np.zeros(count, bool)
    tied[1:] = equal
    tied[:-1] |= equal
    places = np.flatnonzero(tied)
    rows = places if permutation is None else permutation[places]
    run = np.cumsum(np.append(True, ~equal))[places]
    read = table.select([*dict.fromkeys(key.column for key in order)]).take(pa.array(rows))
    again = _order(_words([_Codes(run, int(run[-1])), *_keys(read, order)], len(rows)))
    if again is None:
        return permutation
    found = np.arange(count) if permutation is None else permutation
    found[places] = rows[again]
    return found


def cut_codes(column: pa.ChunkedArray, key: SortKey) -> Array:
    """Integers that never decrease where the key increases, the same for a value in any table: int64.

    Different values may share one: strings and binaries are compared by their first seven bytes only, long
    decimals as doubles.

    Raises
    ------
    TypeError
        For nested types, which have none.
    """
    array = one_array(column)
    if pa.types.is_nested(array.type):
        raise TypeError(f"values of type {array.type} cannot be encoded as integers")
    valid = np.asarray(pc.is_valid(array))
    if pa.types.is_dictionary(array.type):
        codes = _absolute_integers(array.dictionary)
        codes = codes[codes_of(array)] if len(codes) else np.zeros(len(array), np.int64)
    else:
        codes = _absolute_integers(array)
    codes = ~codes if key.descending else codes
    edge = np.iinfo(np.int64).min if key.nulls_first else np.iinfo(np.int64).max
    return np.where(valid, codes, edge)


def has_values_of_codes(kind: pa.DataType) -> bool:
    """Whether the cut codes of ascending keys of a type are its values: of integers, dates and timestamps."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def array_of_codes(codes: list[int], kind: pa.DataType) -> pa.Array:
    """The values of such a type that have these cut codes."""
    stored = pa.int32() if pa.types.is_date32(kind) else pa.int64() if pa.types.is_timestamp(kind) else kind
    return pa.array(codes, stored).view(kind)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array; dictionary-coded columns then have one dictionary."""
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def codes_of(array: pa.DictionaryArray) -> Array:
    """The codes of a dictionary-coded array; 0 where it is NULL."""
    return np.asarray(array.indices.fill_null(0) if array.null_count else array.indices)


def _absolute_integers(array: pa.Array) -> Array:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        array = array.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        first = pc.binary_slice(pc.fill_null(array, b""), 0, 7)
        padded = b"".join(value.ljust(8, b"\0") for value in first.to_pylist())
        return (np.frombuffer(padded, ">u8") >> 8).astype(np.int64)
    if pa.types.is_decimal(kind) and kind.precision > 18:
        array = array.cast(pa.float64())
    return ordered_integers(array)


def _order(words: list[Array]) -> Array | None:
    """The stable order by several words, the first the most significant."""
    if not words:
        return None
    if len(words) == 1:
        word = words[0]
        return None if bool((word[1:] >= word[:-1]).all()) else np.argsort(word, kind="stable")
    return np.lexsort(words[::-1])


def _words(codes: list[_Codes], count: int) -> list[Array]:
    """Pack the codes side by side into the least number of int64 words."""
    words: list[Array] = []
    used = _WORD + 1
    for code in codes:
        bits = int(code.top).bit_length()
        if bits == 0:
            continue
        if used + bits <= _WORD:
            words[-1] = (words[-1] << np.int64(bits)) | code.values
            used += bits
        else:
            words.append(code.values)
            used = bits
    return words or ([np.zeros(count, np.int64)] if codes else [])


def _codes(column: pa.ChunkedArray, descending: bool, nulls_first: bool) -> _Codes:
    array = one_array(column)
    valid = None if array.null_count == 0 else np.asarray(pc.is_valid(array))
    values = ordered_integers(array)
    present = values if valid is None else values[valid]
    if not len(present):
        return _Codes(np.zeros(len(array), np.int64), 0)
    least, most = int(present.min()), int(present.max())
    if most - least >= 2**62:  # too wide to shift: ranks among the rows are as good
        distinct, values = np.unique(values, return_inverse=True)
        least, most = 0, len(distinct) - 1
    codes = (most - values if descending else values - least).astype(np.int64, copy=False)
    top = most - least
    if valid is None:
        return _Codes(codes, top)
    codes = np.where(valid, codes + 1, 0) if nulls_first else np.where(valid, codes, top + 1)
    return _Codes(codes, top + 1)


def ordered_integers(array: pa.Array) -> Array:
    """int64 that compare as the values do; anything where the value is NULL."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        ranks = _ranks(array.dictionary)
        return ranks[codes_of(array)] if len(ranks) else np.zeros(len(array), np.int64)
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.int64)
    if pa.types.is_boolean(kind):
        return np.asarray(pc.fill_null(array, False)).astype(np.int64)
    if pa.types.is_floating(kind):
        return _float_integers(np.asarray(array.fill_null(0.0), np.float64))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(kind):
        array = array.view(pa.int64())
    if pa.types.is_integer(array.type):
        filled = array.fill_null(0) if array.null_count else array
        return np.asarray(filled).astype(np.int64, copy=False)
    if pa.types.is_decimal128(kind) and kind.precision <= 18:
        words = np.frombuffer(array.buffers()[1], np.int64, 2 * len(array), array.offset * 16)
        return words[::2]
    return _ranked(array)


def _float_integers(values: Array) -> Array:
    """The bits of doubles as integers in the order of the numbers; −0.0 is 0.0, NaN is the greatest."""
    plain = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = plain.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


def _ranked(array: pa.Array) -> Array:
    """The rank of every value among the values of the column."""
    if pa.types.is_nested(array.type):
        keys = [comparable(value) for value in array.to_pylist()]
        rank_of = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        return np.array([rank_of[key] for key in keys], np.int64)
    encoded = array.dictionary_encode()
    ranks = _ranks(encoded.dictionary)
    return ranks[np.asarray(encoded.indices.fill_null(0))] if len(ranks) else np.zeros(len(array), np.int64)


def _ranks(dictionary: pa.Array) -> Array:
    """The rank of each value of a dictionary, which may have duplicates."""
    order = np.asarray(pc.sort_indices(dictionary)).astype(np.int64)
    placed = dictionary.take(pa.array(order))
    rises = np.asarray(pc.fill_null(pc.not_equal(placed[1:], placed[:-1]), True))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(rises)]) if len(order) else 0
    return ranks


def comparable(value: Any) -> tuple[Any, ...]:
    """A nested value as tuples that Python orders as Spark does: NULL first, part by part, then by length."""
    match value:
        case None:
            return (0,)
        case dict():
            return (1, *(comparable(part) for part in value.values()))
        case list() | tuple():
            return (1, *(comparable(part) for part in value))
        case float() if value != value:
            return (2,)
        case float():
            return (1, value + 0.0)
        case str():
            return (1, value.encode())
        case _:
            return (1, value)
