"""Exact totals of integers and decimals per window, by differences of running totals.

A difference is exact only while nothing is rounded or lost, so numbers that could add up to more than
64 bits are cut into limbs of 32 bits, each with its own running total: 2**31 rows of any int64 or
decimal128 stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.aggregates.spec import Bools, Ints
from windrow.kernels.aggregates.windows import running_total

__all__ = [
    "Totals",
    "carried",
    "decimal_words",
    "decimals",
    "integer_limbs",
    "integer_totals",
    "word_limbs",
    "word_totals",
]

MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Totals:
    """One exact integer per window.

    Attributes
    ----------
    low
        int64, the totals modulo 2**64.
    high
        int64, the totals divided by 2**64, rounded down, and limited to the ends of int64 where that does
        not fit (no decimal is so large). None where every total fits `low` by itself.
    """

    low: Ints
    high: Ints | None

    def beyond(self, limit: int) -> Bools:
        """Which totals are not strictly between ``-limit`` and ``limit``; `limit` is at most 2**127."""
        if self.high is None:
            if limit > np.iinfo(np.int64).max:
                return np.zeros(len(self.low), np.bool_)
            return (self.low >= limit) | (self.low <= -limit)
        low = self.low.view(np.uint64)
        over_high, over_low = limit >> 64, np.uint64(limit & 0xFFFFFFFFFFFFFFFF)
        under_high, under_low = -limit >> 64, np.uint64(-limit & 0xFFFFFFFFFFFFFFFF)
        over = (self.high > over_high) | ((self.high == over_high) & (low >= over_low))
        under = (self.high < under_high) | ((self.high == under_high) & (low <= under_low))
        beyond: Bools = over | under
        return beyond

    def overflows(self) -> Bools:
        """Which totals do not fit int64."""
        if self.high is None:
            return np.zeros(len(self.low), np.bool_)
        overflowing: Bools = self.high != self.low >> 63
        return overflowing

    def floats(self) -> npt.NDArray[np.float64]:
        """The totals as float64, each within one rounding more than the nearest."""
        if self.high is None:
            return self.low.astype(np.float64)
        wide = self.high * 2.0**64 + self.low.view(np.uint64)
        return np.where(self.overflows(), wide, self.low.astype(np.float64))

    def integers(self) -> list[int]:
        """The totals as Python integers."""
        if self.high is None:
            return list(self.low.tolist())
        pairs = zip(self.high.tolist(), self.low.view(np.uint64).tolist(), strict=True)
        return [(high << 64) + low for high, low in pairs]


def integer_totals(values: Ints, lo: Ints, hi: Ints) -> Totals:
    """Add up int64 values ``lo[k] <= i < hi[k]`` for every window k; 0 for an empty window."""
    if not len(values):
        return Totals(np.zeros(len(lo), np.int64), None)
    longest = int((hi - lo).max())
    if max(int(values.max()), -int(values.min())) * longest <= np.iinfo(np.int64).max:
        return Totals(_difference(values, lo, hi), None)
    return carried(integer_limbs(values, lo, hi))


def integer_limbs(values: Ints, lo: Ints, hi: Ints) -> list[Ints]:
    """The totals of the two limbs of int64 values, for :func:`carried`."""
    return [_difference(values & MASK, lo, hi), _difference(values >> 32, lo, hi)]


def word_limbs(words: Ints, lo: Ints, hi: Ints) -> list[Ints]:
    """The totals of the four limbs of 128-bit values, for :func:`carried`."""
    limbs = [words[:, 0] & MASK, (words[:, 0] >> 32) & MASK, words[:, 1] & MASK, words[:, 1] >> 32]
    return [_difference(limb, lo, hi) for limb in limbs]


def word_totals(words: Ints, lo: Ints, hi: Ints) -> Totals:
    """Add up 128-bit values, which are rows of (low word, high word), shape ``(rows, 2)``."""
    if bool((words[:, 1] == words[:, 0] >> 63).all()):
        return integer_totals(words[:, 0], lo, hi)
    return carried(word_limbs(words, lo, hi))


def _difference(values: Ints, lo: Ints, hi: Ints) -> Ints:
    """Totals modulo 2**64: the running total may wrap round, its differences then wrap back."""
    before = running_total(values)
    return before[hi] - before[lo]


def carried(limbs: list[Ints]) -> Totals:
    """Totals from the limbs' own totals: two limbs make a 64-bit value, four a 128-bit one."""
    carry = np.zeros(len(limbs[0]), np.int64)
    digits = []
    for limb in limbs:
        total = limb + carry
        digits.append(total & MASK)
        carry = total >> 32
    # The last limb is signed: its total is its digit with what was carried out of it above.
    low = digits[0] | (digits[1] << 32)
    if len(limbs) == 2:
        return Totals(low, None if bool((carry == low >> 63).all()) else carry)
    high = digits[2] | (digits[3] << 32)
    # What is carried out of 128 bits is the sign alone, unless they do not have the total.
    lost = carry != high >> 63
    if not lost.any() and bool((high == low >> 63).all()):
        return Totals(low, None)
    ends = np.where(carry < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    return Totals(low, np.where(lost, ends, high))


def decimal_words(column: pa.ChunkedArray) -> Ints:
    """Unscaled values of a decimal128 column without NULLs: int64 (low, high word), shape (rows, 2)."""
    chunks = [
        np.frombuffer(chunk.buffers()[1], np.int64, 2 * len(chunk), 16 * chunk.offset).reshape(-1, 2)
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate(chunks) if chunks else np.empty((0, 2), np.int64)


def decimals(low: Ints, high: Ints | None, null: Bools, type_: pa.DataType) -> pa.Array:
    """A decimal128 array of unscaled values, from their low words and (None: sign only) high words."""
    words = np.stack([low, low >> 63 if high is None else high], axis=1)
    validity = pa.array(~null).buffers()[1] if null.any() else None
    return pa.Array.from_buffers(type_, len(low), [validity, pa.py_buffer(words)])
