"""Chains of indices, each pointing to a later one: the tumbling windows among overlapping ones."""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt

__all__ = ["last_reached", "walk"]

Ints = npt.NDArray[np.int64]


def walk(following: Ints, entry: int = 0) -> Ints:
    """The indices reached from `entry`: itself, then ``following[index]`` repeatedly, to the end.

    This takes one iteration in Python for each index reached.

    Parameters
    ----------
    following
        int64; ``following[i] > i``, and at least its length if the chain ends at i.
    """
    next_index = np.ascontiguousarray(following, np.int64).data
    count, index = len(next_index), entry
    found = array("q")
    append = found.append
    while index < count:
        append(index)
        index = next_index[index]
    return np.array(found, np.int64)


def last_reached(following: Ints) -> Ints:
    """For each index the last one that :func:`walk` would return from there.

    The indices are cut into about as many ranges as each range has indices. All ranges are processed in
    parallel, so the number of Python iterations is the square root of the number of indices.
    """
    count = len(following)
    width = 1 << ((count.bit_length() + 1) // 2)
    chunks = max(1, -(-count // width))
    beyond = np.iinfo(np.int64).max
    padded = np.full(chunks * width, beyond)
    padded[:count] = np.where(following < count, following, beyond)
    # by place in the range, then by range, so that an iteration reads neighbours
    start = width * np.arange(chunks)
    target = np.ascontiguousarray(padded.reshape(chunks, width).T) - start
    last = np.empty((width, chunks), np.int64)
    for place in range(width - 1, -1, -1):
        last[place] = place + start
        inside = np.flatnonzero(target[place] < width)
        last[place, inside] = last[target[place, inside], inside]
    reached = last.T.reshape(-1)
    for first in start[::-1].tolist():
        chunk = reached[first : first + width]
        following_chunk = padded[chunk]
        chunk[:] = np.where(following_chunk < count, reached[np.minimum(following_chunk, count - 1)], chunk)
    return reached[:count]
