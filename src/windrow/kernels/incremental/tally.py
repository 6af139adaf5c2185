"""Numeric state by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.trace import Trace

__all__ = ["Counted", "Numbers", "Tally"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_PLACE = "place"


class Numbers:
    """A growing array of int64 rows: its capacity doubles when it is full.

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
        """The numbers, a view that is valid until the array grows."""
        return self._room[: self._count]

    def grow(self, count: int) -> None:
        """Grow to at least so many rows; new ones are 0."""
        if count > len(self._room):
            more = max(count, 2 * len(self._room)) - len(self._room)
            self._room = np.concatenate([self._room, np.zeros((more, self._room.shape[1]), np.int64)])
        self._count = max(self._count, count)

    def stored_attributes(self) -> dict[str, Any]:
        """The stored form for :mod:`windrow.kernels.stored`: without spare capacity."""
        return {"_room": self.values, "_count": self._count}

    def remake(self) -> None:
        """Nothing to recompute."""

    def clear(self, places: Ints) -> None:
        """Reset these to 0, as far as they exist."""
        self.values[places[places < self._count]] = 0


@dataclass(frozen=True, eq=False)
class Counted:
    """The places of requested keys.

    Attributes
    ----------
    places
        Where the numbers of each are.
    keys
        The keys, as they were first added: equal keys may be written differently, like zeros of either sign.
    is_new
        Which of them are new.
    """

    places: Ints
    keys: pa.Table
    is_new: Bools


@dataclass
class Tally:
    """Keys, and a row of numbers for each, which begin at 0.

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
    _free: Ints = field(init=False)

    def __post_init__(self) -> None:
        self._keys = Trace(self.schema, self.schema.names, notes=[_PLACE])
        self._numbers = Numbers(self.width)
        self._free = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def values(self) -> Ints:
        """The numbers: int64, a row of them for each place."""
        return self._numbers.values

    @property
    def looked_at(self) -> int:
        """How many keys it has read so far."""
        return self._keys.looked_at

    def find(self, keys: pa.Table) -> Counted:
        """The places of these distinct keys; new ones are added."""
        keys = keys.select(self.schema.names).cast(self.schema)
        found = self._keys.find(keys)
        places = np.full(keys.num_rows, -1)
        places[found.probed] = self._keys.note(_PLACE, found.places)
        which = np.arange(keys.num_rows)
        which[found.probed] = keys.num_rows + np.arange(len(found.probed))
        added = pa.concat_tables([keys, self._keys.rows(found.places)]).take(pa.array(which))
        is_new = places < 0
        new = np.flatnonzero(is_new)
        if len(new):
            places[new] = self._new_places(len(new))
            self._keys.add(keys.take(pa.array(new)), **{_PLACE: places[new]})
        return Counted(places, added, is_new)

    def _new_places(self, count: int) -> Ints:
        """So many places, released ones first."""
        size = len(self._numbers)
        back, self._free = self._free[:count], self._free[count:]
        self._numbers.grow(size + count - len(back))
        return np.concatenate([back, np.arange(size, size + count - len(back))])

    def everything(self) -> tuple[pa.Table, Ints]:
        """All keys, and the places of their numbers."""
        found = self._keys.everything()
        return self._keys.rows(found), self._keys.note(_PLACE, found)

    def forget(self, keys: pa.Table) -> Ints:
        """Drop keys that are there; others take their places, which are returned."""
        return self._without(np.unique(self._keys.find(keys).places))

    def forget_where(self, is_over: Callable[[pa.Table, Ints], Bools]) -> Ints:
        """The same for keys of which a test of all keys and the numbers' places is true."""
        found = self._keys.everything()
        gone = is_over(self._keys.rows(found), self._keys.note(_PLACE, found))
        return self._without(found[gone])

    def _without(self, found: Ints) -> Ints:
        places = self._keys.note(_PLACE, found)
        self._keys.remove(found)
        self._numbers.clear(places)
        self._free = np.concatenate([self._free, places])
        return places
