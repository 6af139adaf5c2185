"""Order by group and time: the sort with which operators over changes begin."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["by_group_and_time"]

Ints = npt.NDArray[np.int64]


def by_group_and_time(group: Ints, instant: Ints, then: Ints | None = None) -> Ints:
    """The stable order of rows by group, by instant, and by an optional third number.

    Groups and instants share one word if their ranges allow it. Sorted runs, such as sorted entries followed
    by their sorted ends, then need a merge only.

    Parameters
    ----------
    group, instant, then
        int64, of each row; groups are not negative.

    Returns
    -------
    numpy.ndarray
        int64 indices of the rows in their order.
    """
    if not len(group):
        return np.zeros(0, np.int64)
    low, high = int(instant.min()), int(instant.max())
    bits = (high - low).bit_length()
    if bits + int(group.max()).bit_length() > _WORD:
        return np.lexsort((instant, group) if then is None else (then, instant, group))
    word = (group << np.int64(bits)) | (instant - np.int64(low))
    if then is None:
        return np.argsort(word, kind="stable")
    falls = word[1:] < word[:-1]
    same = word[1:] == word[:-1]
    if not (falls | (same & (then[1:] < then[:-1]))).any():
        return np.arange(len(word))
    return np.lexsort((then, word))


_WORD = 62
