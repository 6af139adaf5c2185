"""Rows that are kept, and the punctuations that wait until none of these rows matches.

A punctuation that waits has a witness, one kept row that matches it, and is looked at again when that row
goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.trace import Trace
from windrow.punctuations.boxes import Box, Lines

__all__ = ["Watched"]

Ints = npt.NDArray[np.int64]

_NUMBER = "number"


class Watched:
    """A store with punctuations that wait for its rows to go.

    Parameters
    ----------
    schema, key, lines, notes
        As those of :class:`~windrow.kernels.trace.Trace`.
    """

    def __init__(
        self, schema: pa.Schema, key: Sequence[str], lines: Lines, notes: Sequence[str] = ()
    ) -> None:
        self.store = Trace(schema, key, lines, (*notes, _NUMBER))
        self._came = 0
        self._waiting: dict[int, list[Box]] = {}
        self._loose: list[Box] = []

    def __len__(self) -> int:
        return len(self.store)

    def add(self, rows: pa.Table, **notes: Ints) -> None:
        """Keep rows."""
        numbers = np.arange(self._came, self._came + rows.num_rows)
        self.store.add(rows, **notes, **{_NUMBER: numbers})
        self._came += rows.num_rows

    def remove(self, places: Ints) -> None:
        """Forget rows."""
        numbers = self.store.note(_NUMBER, places)
        self.store.remove(places)
        if self._waiting:
            for number in numbers.tolist():
                self._loose += self._waiting.pop(number, ())

    def free(self, fresh: Iterable[Box]) -> list[Box]:
        """The punctuations that no kept row matches: of new ones and of those whose witness has gone."""
        asked, self._loose = [*self._loose, *fresh], []
        found = []
        for box in asked:
            places = self.store.matching([box])
            if len(places):
                witness = int(self.store.note(_NUMBER, places[-1:])[0])
                self._waiting.setdefault(witness, []).append(box)
            else:
                found.append(box)
        return found
