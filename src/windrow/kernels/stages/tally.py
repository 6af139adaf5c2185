"""Numbers kept by key, from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.trace import Trace

__all__ = ["Numbers", "Tally"]

Ints = npt.NDArray[np.int64]

_PLACE = "place"


class Numbers:
    """Rows of int64, of which there come to be more: each time twice as many as there is room for.

    Parameters
    ----------
    width
        How many numbers a row has.
    """

    def __init__(self, width: int) -> None:
        self._room = np.zeros((0, width), np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> Ints:
        """The numbers, which may be changed in it until there are more."""
        return self._room[: self._count]

    def grow(self, count: int) -> None:
        """Let there be so many rows at least; new ones are 0."""
        if count > len(self._room):
            more = max(count, 2 * len(self._room)) - len(self._room)
            self._room = np.concatenate([self._room, np.zeros((more, self._room.shape[1]), np.int64)])
        self._count = max(self._count, count)


@dataclass
class Tally:
    """Keys, numbered in the order in which they come, and a row of numbers for each, which begin at 0.

    Parameters
    ----------
    schema
        The columns of the key.
    width
        How many numbers a row has.
    """

    schema: pa.Schema
    width: int
    _numbers: Numbers = field(init=False)
    _keys: Trace = field(init=False)

    def __post_init__(self) -> None:
        self._keys = Trace(self.schema, self.schema.names, notes=[_PLACE])
        self._numbers = Numbers(self.width)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def values(self) -> Ints:
        """The numbers: int64, a row of them for each key."""
        return self._numbers.values

    @property
    def looked_at(self) -> int:
        """How many keys have been looked at so far."""
        return self._keys.looked_at

    def places(self, keys: pa.Table) -> Ints:
        """Where the numbers of these keys are, each of another; those that are new are added."""
        return self.find(keys)[0]

    def find(self, keys: pa.Table) -> tuple[Ints, pa.Table]:
        """As :meth:`places`, and the keys as first added: equal ones may differ to the eye, as zeros do."""
        keys = keys.select(self.schema.names).cast(self.schema)
        found = self._keys.find(keys)
        places = np.full(keys.num_rows, -1)
        places[found.asked] = self._keys.note(_PLACE, found.places)
        which = np.arange(keys.num_rows)
        which[found.asked] = keys.num_rows + np.arange(len(found.asked))
        added = pa.concat_tables([keys, self._keys.rows(found.places)]).take(pa.array(which))
        new = np.flatnonzero(places < 0)
        if len(new):
            places[new] = len(self) + np.arange(len(new))
            self._keys.add(keys.take(pa.array(new)), **{_PLACE: places[new]})
            self._numbers.grow(len(self) + len(new))
        return places, added
