"""An index of rows by the hashes of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["HashIndex", "distinct"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Marks = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class HashIndex:
    """The places of rows in the order of their hashes, those of equal ones in order; and the hashes."""

    places: Ints
    hashes: Marks

    @staticmethod
    def of(hashes: Marks) -> HashIndex:
        """The index of rows with these hashes."""
        order = np.argsort(hashes, kind="stable")
        return HashIndex(order, hashes[order])

    @staticmethod
    def joined(parts: Sequence[HashIndex]) -> HashIndex:
        """The index of rows that follow each other."""
        edges = np.cumsum([0, *(len(part.places) for part in parts[:-1])])
        places = np.concatenate([part.places + edge for part, edge in zip(parts, edges, strict=True)])
        merged = HashIndex.of(np.concatenate([part.hashes for part in parts]))  # merges, as parts are sorted
        return HashIndex(places[merged.places], merged.hashes)

    def where(self, there: Bools) -> HashIndex:
        """The index of some rows, renumbered."""
        is_there = there[self.places]
        return HashIndex((np.cumsum(there) - 1)[self.places[is_there]], self.hashes[is_there])

    def pairs(self, wanted: Marks) -> tuple[Ints, Ints]:
        """The pairs of equal hashes: the number of the wanted one, and the place of a row.

        Hashes are looked up in order, so that one search begins where the last has ended. Most occur at most
        once, so that only the others need a search for their end.
        """
        hashes, first = self.hashes, np.empty(len(wanted), np.int64)
        order = np.argsort(wanted)
        first[order] = np.searchsorted(hashes, wanted[order])
        counts = np.zeros(len(wanted), np.int64)
        found = np.flatnonzero(first < len(hashes))
        found = found[hashes[first[found]] == wanted[found]]
        counts[found] = 1
        several = found[first[found] + 1 < len(hashes)]
        several = several[hashes[first[several] + 1] == wanted[several]]
        counts[several] = np.searchsorted(hashes, wanted[several], side="right") - first[several]
        numbers = np.repeat(np.arange(len(wanted)), counts)
        begins = np.cumsum(counts) - counts
        return numbers, self.places[np.arange(len(numbers)) - np.repeat(begins - first, counts)]

    def having(self, wanted: Marks, there: Bools) -> Ints:
        """The places of some rows that have one of these distinct hashes, in order."""
        _, places = self.pairs(wanted)
        return np.sort(places[there[places]])


def distinct(hashes: Marks) -> Marks:
    """Each of the hashes once, in order."""
    ordered: Marks = np.sort(hashes)  # several times as fast as np.unique, which hashes the hashes
    is_first = np.diff(ordered, prepend=~ordered[:1]) != 0
    found: Marks = ordered[is_first]
    return found
