"""Order statistics of every window at once: the k-th smallest value, and how many are below a bound.

A wavelet matrix (F. Claude, G. Navarro, A. Ordóñez, "The wavelet matrix: an efficient wavelet tree for
large alphabets", 2015): the values are partitioned by their bits, highest first, and each query follows
its own bits down. All queries go down together, so one level is in memory at a time, and a level costs
one partition of the rows and two look-ups per window, whatever the windows' lengths.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from windrow.kernels.aggregates.spec import Bools, Ints
from windrow.kernels.aggregates.windows import running_total

__all__ = ["count_below", "kth_smallest"]


def kth_smallest(codes: Ints, lo: Ints, hi: Ints, k: Ints) -> Ints:
    """The k-th smallest (from 0) of ``codes[lo:hi]`` for every window; codes are not negative.

    Meaningless where not ``0 <= k < hi - lo``.
    """
    found = np.zeros(len(lo), np.int64)
    for bit, zeros, total in _levels(codes, int(codes.max(initial=0))):
        zeros_lo, zeros_hi = zeros[lo], zeros[hi]
        small = zeros_hi - zeros_lo
        up = k >= small
        found |= up.astype(np.int64) << bit
        k = np.where(up, k - small, k)
        lo, hi = _descend(lo, hi, zeros_lo, zeros_hi, total, up)
    return found


def count_below(codes: Ints, lo: Ints, hi: Ints, bound: Ints) -> Ints:
    """How many of ``codes[lo:hi]`` are below the window's bound; neither is negative."""
    below = np.zeros(len(lo), np.int64)
    most = max(int(codes.max(initial=0)), int(bound.max(initial=0)))
    for bit, zeros, total in _levels(codes, most):
        zeros_lo, zeros_hi = zeros[lo], zeros[hi]
        up = (bound >> bit & 1).astype(np.bool_)
        below += np.where(up, zeros_hi - zeros_lo, 0)
        lo, hi = _descend(lo, hi, zeros_lo, zeros_hi, total, up)
    return below


def _levels(codes: Ints, most: int) -> Iterator[tuple[int, Ints, int]]:
    """Per bit, highest first: the bit, the zeros before each position, and all the zeros."""
    for bit in range(most.bit_length() - 1, -1, -1):
        clear = (codes >> bit & 1) == 0
        zeros = running_total(clear)
        yield bit, zeros, int(zeros[-1])
        codes = np.concatenate([codes[clear], codes[~clear]])


def _descend(lo: Ints, hi: Ints, zeros_lo: Ints, zeros_hi: Ints, total: int, up: Bools) -> tuple[Ints, Ints]:
    """The windows' bounds on the next level, where the zeros come first and the ones after them."""
    return np.where(up, total + lo - zeros_lo, zeros_lo), np.where(up, total + hi - zeros_hi, zeros_hi)
