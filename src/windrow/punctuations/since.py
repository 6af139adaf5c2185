"""Since when keys are closed, as the punctuations of a stream arrive over time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.punctuations.closing import Closing
from windrow.punctuations.index import NEVER, Columns, Index
from windrow.punctuations.pattern import Pattern
from windrow.punctuations.regions import Lines, Region

__all__ = ["Since"]

Ints = npt.NDArray[np.int64]


class Since:
    """The closed keys of a stream, and since when each is closed. It is mutable.

    Parameters
    ----------
    lines
        Those of the stream's columns.
    columns
        The key's columns.
    """

    def __init__(self, lines: Lines, columns: Iterable[str]) -> None:
        self._closing = Closing(lines, columns)
        self._indices: list[Index] = []  # each with more regions than all after it
        self._new: list[tuple[Region, int]] = []

    @property
    def columns(self) -> tuple[str, ...]:
        """The key's columns."""
        return self._closing.columns

    @property
    def lines(self) -> Lines:
        """Their lines."""
        return self._closing.closed.lines

    @property
    def is_empty(self) -> bool:
        """Whether no key is closed."""
        return not self._new and not self._indices

    def add(self, at: int, patterns: Iterable[Pattern]) -> None:
        """Add the punctuations of an instant; instants must not decrease."""
        self._new += [(region, at) for region in self._closing.add(patterns)]

    def of(self, rows: pa.Table) -> Ints:
        """Since when the key of each row is closed; `NEVER` if it is open.

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
        """Indices of all closed keys: their number is logarithmic, and so is the cost of a key."""
        regions, since = [region for region, _ in self._new], [at for _, at in self._new]
        self._new = []
        while regions and self._indices and len(self._indices[-1]) <= 2 * len(regions):
            last = self._indices.pop()
            regions, since = [*last.boxes, *regions], [*last.since, *since]
        if regions:
            self._indices.append(Index(regions, self.lines, since))
        return self._indices
