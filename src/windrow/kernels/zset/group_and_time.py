"""Order by group and time: the sort with which operators over changes begin."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["by_group_and_time"]

Ints = npt.NDArray[np.int64]


def by_group_and_time(group: Ints, instant: Ints, then: Ints | None = None) -> Ints:
    """The stable order of rows by group, by instant, and by an optional third number.

    Parameters
    ----------
    group, instant, then
        int64, of each row; groups are not negative.

    Returns
    -------
    numpy.ndarray
        int64 indices of the rows in their order.
    """
    if then is None and (word := _few_runs(group, instant)) is not None:
        merged: Ints = np.argsort(word, kind="stable")
        return merged
    order = np.arange(len(group))
    for numbers in (instant, group) if then is None else (then, instant, group):  # the last one counts most
        order = _sorted(order, numbers[order])
    return order


def _few_runs(group: Ints, instant: Ints) -> Ints | None:
    """Group and instant in one word, if they fit, and the rows are a few sorted runs: these are merged."""
    if not len(group):
        return group
    low = int(instant.min())
    bits = (int(instant.max()) - low).bit_length()
    if bits + int(group.max()).bit_length() > _WORD:
        return None
    word = (group << np.int64(bits)) | (instant - np.int64(low))
    return word if np.count_nonzero(word[1:] < word[:-1]) < _FEW else None


def _sorted(order: Ints, numbers: Ints) -> Ints:
    """An order, sorted further by numbers, which are those of the rows in this order.

    A number and its place share one word if they fit: words are sorted several times as fast as places are
    by their numbers.
    """
    if not (numbers[1:] < numbers[:-1]).any():
        return order
    low = int(numbers.min())
    bits = (len(numbers) - 1).bit_length()
    if (int(numbers.max()) - low).bit_length() + bits > _WORD:
        places: Ints = np.argsort(numbers, kind="stable")
        return order[places]
    words = ((numbers - low) << np.int64(bits)) | np.arange(len(numbers))
    words.sort()
    places = words & np.int64((1 << bits) - 1)
    return order[places]


_WORD = 63
_FEW = 16
