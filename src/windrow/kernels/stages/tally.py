"""Numbers kept by key, from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.stages.held import Held
from windrow.kernels.stages.operators import numbered

__all__ = ["Tally"]

Ints = npt.NDArray[np.int64]


@dataclass
class Tally:
    """Rows of a key each, with numbers that begin at 0.

    Parameters
    ----------
    schema
        The columns of the key.
    width
        How many numbers a row has.

    Attributes
    ----------
    values
        The numbers: int64, a row of them for each of these.
    """

    schema: pa.Schema
    width: int
    values: Ints = field(init=False)
    _held: Held = field(init=False)

    def __post_init__(self) -> None:
        none = np.zeros(0, np.int64)
        self._held = Held.of(self.schema.empty_table(), none, none, none, (self._key,))
        self.values = np.zeros((0, self.width), np.int64)

    @property
    def _key(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def rows(self) -> pa.Table:
        """The keys."""
        return self._held.rows

    def places(self, rows: pa.Table) -> Ints:
        """Where the numbers of these rows are, each of another key; those that are new are added."""
        key, held = self._key, self._held
        none = np.zeros(rows.num_rows, np.int64)
        new = Held.of(rows.select(key), none, none, none, (key,))
        candidates = np.flatnonzero(held.having(key, new.marks[key]))
        if not len(candidates):  # of steps that bring nothing but new keys
            first = len(held)
            self._add(new)
            return first + np.arange(rows.num_rows)
        both = pa.concat_tables([new.rows, held.rows.take(pa.array(candidates))]).combine_chunks()
        number = numbered(both, key)
        place = np.full(int(number.max(initial=-1)) + 1, -1)
        place[number[rows.num_rows :]] = candidates
        found = place[number[: rows.num_rows]]
        is_new = found < 0
        if is_new.any():
            found[is_new] = len(held) + np.arange(int(is_new.sum()))
            self._add(new.where(is_new))
        return found

    def _add(self, new: Held) -> None:
        self._held = self._held.with_rows(new)
        self.values = np.concatenate([self.values, np.zeros((len(new), self.width), np.int64)])
