"""Combine the rows of every window, without subtraction: the heart of sum, avg, min, max and variance.

A difference of running totals would let a value of 1e18 spoil every later window, so each result is
made of the window's own rows only. Two windows that cross the same boundary between chunks share work:
a window is the end of the chunk before the boundary (its *suffix*) and the start of the chunk after
it (its *prefix*), both read from running combinations inside the chunks.

The boundaries are the multiples of a power of two no shorter than the longest window; windows that
cross none of them lie inside a chunk, and are looked for at the multiples of half that power, and so
on. This is the van Herk / Gil-Werman scheme for windows of one length (M. van Herk, "A fast algorithm
for local minimum and maximum filters on rectangular and octagonal kernels", 1992), carried over to
windows of any lengths by the disjoint sparse table, one level of it in memory at a time. Windows of
about one length are all found on two levels, so the cost per row and window does not depend on their
length; it is O(log longest) for any mixture.

A running combination is made in runs of `FAN`, then of runs of runs, so that a result is at most
``2 * FAN * ceil(log(length, FAN))`` combinations deep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.aggregates.spec import Ints
from windrow.kernels.aggregates.windows import by_range

__all__ = ["Combine", "fold"]

States = npt.NDArray[Any]

#: Combines two arrays of states of one shape, element by element; associative and commutative.
Combine = Callable[[States, States], States]

_IDEMPOTENT = (np.minimum, np.maximum)

#: Rows that are combined one after the other before runs are combined with each other.
FAN = 16


def fold(states: States, lo: Ints, hi: Ints, combine: Combine) -> States:
    """Combine the states of rows ``lo[k] <= i < hi[k]``, for all windows k.

    Parameters
    ----------
    states
        The state of each row, shape ``(…, rows)``, any dtype; at least one row. Leading axes have the
        parts of a state and are seen by `combine` alone.
    lo, hi
        int64, shape ``(windows,)``.
    combine
        The operation; it is called on arrays of the shape ``(…, any, …)``.

    Returns
    -------
    numpy.ndarray
        Shape ``(…, windows)``, dtype of `states`. The result of an empty window is meaningless.
    """
    left = np.minimum(lo, states.shape[-1] - 1)
    right = np.maximum(hi - 1, left)
    out = np.empty((*states.shape[:-1], len(lo)), states.dtype)
    with np.errstate(all="ignore"):
        for piece, first, _ in by_range(left, right + 1):
            ends = left[piece] - first, right[piece] - first
            _fold_piece(states[..., first:], *ends, combine, out[..., piece])
    return out


def _fold_piece(states: States, left: Ints, right: Ints, combine: Combine, out: States) -> None:
    """Fold rows `left` to `right`, both included, into `out`."""
    span = int((right - left).max(initial=0))
    if combine in _IDEMPOTENT and span >= FAN:
        found = _fold_equal_lengths(states, left, right, span, combine)
        if found is not None:
            out[...] = found
            return
    out[...] = states[..., left]
    top = max(span - 1, 0).bit_length()
    # Chunks of 2**top rows: boundaries at their even multiples first, then at the odd ones, so that the
    # chunks on both sides of a boundary never overlap those of another boundary of the same round.
    rounds = [(top + 1, 1 << top), *((shift, 1 << shift) for shift in range(top, -1, -1))]
    pending = np.flatnonzero(left < right)
    for shift, chunk in rounds:
        if not len(pending):
            return
        boundary = right[pending] >> shift
        crossing = boundary != left[pending] >> shift
        found = pending[crossing]
        if len(found):
            out[..., found] = _fold_crossing(
                states, left[found], right[found], boundary[crossing] << shift, chunk, combine
            )
            pending = pending[~crossing]


def _fold_equal_lengths(
    states: States, left: Ints, right: Ints, span: int, combine: np.ufunc
) -> States | None:
    """Fold windows of ``span + 1`` rows, and shorter ones that no other window continues past; None for
    others.

    The operation must not mind a row that it sees twice. Chunks are as long as windows, and begin anew where
    shorter windows end: a window is the end of one chunk and the start of the next, a chunk, or the end of
    one. Shorter windows that begin where no window comes from are the same from behind.
    """
    short = np.flatnonzero(right - left < span)
    ends = _run_values(right[short])
    if len(_run_values(left[short])) < len(ends):
        last = states.shape[-1] - 1
        return _fold_equal_lengths(states[..., ::-1], last - right, last - left, span, combine)
    first, length = int(left.min()), span + 1
    rows = int(right.max()) + 1 - first
    edges = np.unique(np.append(ends + 1 - first, rows))
    starts = np.append(0, edges[:-1])
    blocks = -(-(edges - starts) // length)
    if int(blocks.sum()) * length > 2 * rows + length:
        return None
    of_row = np.repeat(np.arange(len(starts)), edges - starts)
    segment = of_row[left - first]
    if (segment != of_row[right - first]).any():
        return None
    places = length * (np.cumsum(blocks) - blocks)
    # a segment's last row fills up its last chunk
    source = np.repeat(edges - 1, blocks * length)
    source[np.arange(rows) + (places - starts)[of_row]] = np.arange(rows)
    table = states[..., first + source].reshape(*states.shape[:-1], -1, length)
    prefix = combine.accumulate(table, axis=-1).reshape(*states.shape[:-1], -1)
    suffix = combine.accumulate(table[..., ::-1], axis=-1)[..., ::-1].reshape(*states.shape[:-1], -1)
    moved = (places - starts - first)[segment]
    from_left = suffix[..., left + moved]
    both = combine(from_left, prefix[..., right + moved])
    within = (left + moved) // length == (right + moved) // length
    return np.where(within, from_left, both)


def _run_values(values: Ints) -> Ints:
    """The value of each run of equal ones."""
    begins: npt.NDArray[np.bool_] = np.append(True, values[1:] != values[:-1])[: len(values)]
    return values[begins]


def _fold_crossing(
    states: States, left: Ints, right: Ints, boundary: Ints, block: int, combine: Combine
) -> States:
    """Fold windows that have ``left < boundary <= right``, neither end further than `block` from it."""
    width = 2 * block
    first = int(boundary.min())
    used = np.zeros((int(boundary.max()) - first) // width + 1, np.bool_)
    used[(boundary - first) // width] = True
    table = _around(states, first + width * np.flatnonzero(used) - block, width)
    _run(table[..., block - 1 :: -1], combine)
    _run(table[..., block:], combine)
    flat = table.reshape(*states.shape[:-1], -1)
    origin = (width * (np.cumsum(used) - 1) + block)[(boundary - first) // width] - boundary
    return combine(flat[..., origin + left], flat[..., origin + right])


def _around(states: States, starts: Ints, width: int) -> States:
    """A copy of the `width` rows from each start, shape ``(…, starts, width)``.

    Past the table's end the last row is repeated: a prefix reads no row after the window's last.
    """
    stop = int(starts[-1]) + width
    if stop <= states.shape[-1] and stop - int(starts[0]) == width * len(starts):
        rows = states[..., int(starts[0]) : stop]
        return rows.reshape(*states.shape[:-1], len(starts), width).copy()
    return states[..., np.minimum(starts[:, None] + np.arange(width), states.shape[-1] - 1)]


def _run(chunks: States, combine: Combine) -> None:
    """Replace each element by the combination of all up to it along the last axis, in place."""
    width = chunks.shape[-1]
    if width <= FAN:
        for column in range(1, width):
            chunks[..., column] = combine(chunks[..., column - 1], chunks[..., column])
        return
    runs = chunks.reshape(*chunks.shape[:-1], width // FAN, FAN)
    _run(runs, combine)
    totals = runs[..., -1].copy()
    _run(totals, combine)
    runs[..., 1:, :] = combine(totals[..., :-1, None], runs[..., 1:, :])
