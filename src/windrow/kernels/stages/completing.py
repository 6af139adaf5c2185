"""Rows that are shown when they are complete, a step at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.stages.held import Held, Times
from windrow.kernels.stages.operated import with_changes
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

__all__ = ["Completing", "first_above"]

Ints = npt.NDArray[np.int64]


@dataclass
class Completing:
    """The rows of a relation that are there and not complete.

    Parameters
    ----------
    schema
        The columns, without `ENTER` and `LEAVE`.
    """

    schema: pa.Schema
    held: Held = field(init=False)

    def __post_init__(self) -> None:
        none = np.zeros(0, np.int64)
        self.held = Held.of(self.schema.empty_table(), none, none, none, (self._key,))

    @property
    def _key(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def step(
        self, changes: pa.Table | None, since_when: Callable[[pa.Table], Ints], times: Times
    ) -> pa.Table:
        """The rows that are shown or leave, with `ENTER` and `LEAVE`.

        Parameters
        ----------
        changes
            The rows that enter or leave.
        since_when
            From when on rows are complete, as is known by the end of the step; else `NEVER`.
        """
        gone = None
        if changes is not None and changes.num_rows:
            # those that leave and are not held were complete
            self.held, gone = with_changes(self.held, changes, self._key, times)
        held = self.held
        shown = np.maximum(held.enter, since_when(held.rows))
        places = np.flatnonzero(times.changed(shown, held.leave))
        enter, leave = times.clipped(shown[places], held.leave[places])
        rows = held.rows.take(pa.array(places))
        told = rows.append_column(ENTER, pa.array(enter)).append_column(LEAVE, pa.array(leave))
        self.held = held.where((shown >= times.until) & (held.leave >= times.until))
        return told if gone is None else pa.concat_tables([told, gone.select(told.column_names)])


def first_above(values: Ints, whens: Ints, ticks: Ints) -> Ints:
    """When the first of the values is above each tick, never if none is; they may fall, as local times do."""
    place = np.searchsorted(np.maximum.accumulate(values), ticks, "right")
    return np.append(whens, NEVER)[place]
