"""Retained rows, and the punctuations that wait until no retained row matches them.

A waiting punctuation has a witness: a retained row that matches it. It is checked again when that row is
removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.trace import Trace
from windrow.punctuations.regions import Lines, Region

__all__ = ["Watched"]

Ints = npt.NDArray[np.int64]

_NUMBER = "number"


class Watched:
    """A store of rows with waiting punctuations.

    Parameters
    ----------
    schema, key, lines, notes
        As those of :class:`~windrow.kernels.trace.Trace`.
    """

    def __init__(
        self, schema: pa.Schema, key: Sequence[str], lines: Lines, notes: Sequence[str] = ()
    ) -> None:
        self.store = Trace(schema, key, lines, (*notes, _NUMBER))
        self._row_count = 0
        self._waiting: dict[int, list[Region]] = {}
        self._loose: list[Region] = []

    def __len__(self) -> int:
        return len(self.store)

    def add(self, rows: pa.Table, **notes: Ints) -> None:
        """Add rows."""
        numbers = np.arange(self._row_count, self._row_count + rows.num_rows)
        self.store.add(rows, **notes, **{_NUMBER: numbers})
        self._row_count += rows.num_rows

    def remove(self, places: Ints) -> None:
        """Remove rows."""
        numbers = self.store.note(_NUMBER, places)
        self.store.remove(places)
        if self._waiting:
            for number in numbers.tolist():
                self._loose += self._waiting.pop(number, ())

    def free(self, fresh: Iterable[Region]) -> list[Region]:
        """The punctuations that no retained row matches, among new ones and those without a witness."""
        candidates, self._loose = [*self._loose, *fresh], []
        found = []
        for region in candidates:
            place = self.store.witness(region)
            if len(place):
                witness = int(self.store.note(_NUMBER, place)[0])
                self._waiting.setdefault(witness, []).append(region)
            else:
                found.append(region)
        return found
