"""Since when values of some columns are closed, as a stream's promises are told in the course of time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.punctuations.boxes import Box, Lines
from windrow.punctuations.closing import Closing
from windrow.punctuations.index import NEVER, Columns, Index
from windrow.punctuations.pattern import Pattern

__all__ = ["Since"]

Ints = npt.NDArray[np.int64]


class Since:
    """What is closed of some columns, and since when. It changes as promises are added.

    Parameters
    ----------
    lines
        Those of the stream's columns.
    columns
        The columns whose values are to be closed, whatever the others hold.
    """

    def __init__(self, lines: Lines, columns: Iterable[str]) -> None:
        self._closing = Closing(lines, columns)
        self._indices: list[Index] = []  # each of more boxes than all after it
        self._new: list[tuple[Box, int]] = []

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns."""
        return self._closing.columns

    @property
    def lines(self) -> Lines:
        """Their lines."""
        return self._closing.closed.lines

    @property
    def is_empty(self) -> bool:
        """Whether nothing is closed."""
        return not self._new and not self._indices

    def add(self, at: int, patterns: Iterable[Pattern]) -> None:
        """Take in promises that are told at an instant, which is not before those of others."""
        self._new += [(box, at) for box in self._closing.add(patterns)]

    def of(self, rows: pa.Table) -> Ints:
        """Since when the values of each row are closed; `NEVER` if they are open.

        Parameters
        ----------
        rows
            The columns, under their names.
        """
        found = np.full(rows.num_rows, NEVER, np.int64)
        if not rows.num_rows:
            return found
        columns = Columns(rows, self.lines)
        for index in self._all():
            np.minimum(found, index.earliest(columns), out=found)
        return found

    def _all(self) -> list[Index]:
        """Indices of all that is closed: few, and each box is put into few of them."""
        boxes, since = [box for box, _ in self._new], [at for _, at in self._new]
        self._new = []
        while boxes and self._indices and len(self._indices[-1]) <= 2 * len(boxes):
            last = self._indices.pop()
            boxes, since = [*last.boxes, *boxes], [*last.since, *since]
        if boxes:
            self._indices.append(Index(boxes, self.lines, since))
        return self._indices
