"""GROUP BY over a tumbling window in brackets: rows are added to the groups of their window as they arrive.

Rows of such a window enter together and leave together. So the groups of a window are the same as long as it
stays, and when it enters they are there already: no row is retained, and none is read again. Windows that
begin and end within a micro-batch are grouped at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.chosen import chosen
from windrow.kernels.hashing import among, hashes
from windrow.kernels.incremental.grouping import RunningGroups
from windrow.kernels.incremental.operated import Operated, changed_in
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.trace import equal
from windrow.kernels.zset.grouped import is_compared
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

__all__ = ["TumblingGroups"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass
class TumblingGroups(Operated):
    """Groups of the rows of a tumbling window, which come as they arrive, with the times of their window.

    Attributes
    ----------
    length
        How long a window stays.
    open, at
        The groups of the window that is next to enter, and when it does; None if no row of it has arrived.
    last
        The groups that are present, with the times of theirs; None if there are none.
    """

    length: int = 0
    open: RunningGroups | None = field(init=False)
    at: int = field(init=False)
    last: pa.Table | None = field(init=False)

    def empty(self) -> None:
        """As :meth:`Operated.empty`."""
        self.sides, self.emitted = [], None
        self.open, self.at, self.last = None, NEVER, None

    @property
    def state(self) -> dict[str, Any]:
        """As :attr:`Operated.state`."""
        return {"open": None if self.open is None else self.open.state, "at": self.at, "last": self.last}

    def restore(self, state: dict[str, Any]) -> None:
        """As :meth:`Operated.restore`."""
        self.at, self.last, self.open = state["at"], state["last"], None
        if state["open"] is not None:
            self.open = self._groups()
            self.open.restore(state["open"])

    @property
    def retained(self) -> int:
        """How many groups are retained, and values of these."""
        present = 0 if self.last is None else self.last.num_rows
        return present + (0 if self.open is None else self.open.retained)

    @property
    def looked_at(self) -> int:
        """How many groups, and values of these, it has read so far."""
        return 0 if self.open is None else self.open.looked_at

    @property
    def _leave(self) -> int:
        """When the groups that are present leave."""
        return NEVER if self.last is None else int(self.last.column(LEAVE)[0].as_py())

    def is_due(self, times: Times) -> bool:
        """Whether a window enters or leaves."""
        return min(self.at, self._leave) < times.until

    def advance(self, changes: list[pa.Table | None], times: Times) -> pa.Table:
        """The groups of windows that enter or leave in the micro-batch, from rows that arrive in it."""
        (rows,) = changes
        rows = pa.schema([*self.schemas[0], *_TIMES]).empty_table() if rows is None else rows
        enter = rows.column(ENTER).to_numpy()
        self._add(chosen(rows, enter == self.at))
        made = [] if self.last is None else [self.last]
        begun = self.at
        if self.open is not None and self.at < times.until:
            made.append(self._closed(self.open, self.at))
            self.open, self.at = None, NEVER
        # rows of the next window, which is one: no instant at which windows enter is between them
        is_later = (enter >= times.until) & (enter != begun)
        if is_later.any():
            self.open, self.at = self._groups(), int(enter[is_later][0])
            self._add(chosen(rows, is_later))
        made += self._at_once(chosen(rows, (enter < times.until) & (enter != begun)))
        if len(made) == 1 and made[0] is self.last and self._leave >= times.until:
            return self.result.empty_table()
        groups = _joined(made, self.operator.keys, self.result)
        enter, leave = (groups.column(name).to_numpy() for name in (ENTER, LEAVE))
        stays = leave >= times.until
        self.last = chosen(groups, stays) if stays.any() else None
        return changed_in(_with_times(groups, *times.clipped(enter, leave)), times)

    def _add(self, rows: pa.Table) -> None:
        """Add rows to the groups of the next window."""
        if self.open is not None and rows.num_rows:
            self.open.add(rows)

    def _closed(self, groups: RunningGroups, at: int) -> pa.Table:
        """The groups of a window that enters."""
        found = groups.everything(at)
        return _with_times(
            found, np.full(found.num_rows, at), np.full(found.num_rows, at + self.length)
        ).select(self.result.names)

    def _at_once(self, rows: pa.Table) -> list[pa.Table]:
        """The groups of whole windows; those that stay the same over several windows once."""
        if not rows.num_rows:
            return []
        batches = list(self.operator.rows(rows))
        return [pa.Table.from_batches(batches).select(self.result.names).cast(self.result)] if batches else []

    def _groups(self) -> RunningGroups:
        return RunningGroups(self.operator, self.schemas, self.result, appends=True)


_TIMES = (pa.field(ENTER, pa.int64()), pa.field(LEAVE, pa.int64()))


def _with_times(rows: pa.Table, enter: Ints, leave: Ints) -> pa.Table:
    for name, instants in ((ENTER, enter), (LEAVE, leave)):
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(instants))
    return rows


def _joined(made: list[pa.Table], keys: tuple[str, ...], result: pa.Schema) -> pa.Table:
    """Groups of windows, in which those that stay the same as a window follows another are one.

    Each table has the groups of one window, but for the last ones.
    """
    parts: list[pa.Table] = [result.empty_table()]
    for rows in made:
        before, leave = parts[-1], parts[-1].column(LEAVE).to_numpy()
        is_next = rows.column(ENTER).to_numpy() == (leave[0] if len(leave) else NEVER)
        if is_next.any():
            parts[-1], after = _without_unchanged(before, chosen(rows, is_next), keys)
            rows = pa.concat_tables([after, chosen(rows, ~is_next)])
        parts.append(rows)
    return pa.concat_tables(parts)


def _without_unchanged(before: pa.Table, after: pa.Table, keys: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
    """The groups of two windows, of which one leaves as the other enters: equal ones stay.

    They enter with the first window; in the first, they leave as they enter.
    """
    names = [name for name in after.column_names if name not in (ENTER, LEAVE)]
    if not all(is_compared(before.schema.field(name).type) for name in names if name not in keys):
        return before, after
    known, new = hashes(before, names), hashes(after, names)
    both = np.sort(np.concatenate([known, new]))
    repeated = both[1:][both[1:] == both[:-1]]
    if not len(repeated):
        return before, after
    found, place = (np.flatnonzero(among(marks, repeated)) for marks in (new, known))
    if not len(found) or not len(place):
        return before, after
    place = place[np.argsort(known[place])]
    at = np.minimum(np.searchsorted(known[place], new[found]), len(place) - 1)
    place = place[at]
    one, other = after.take(pa.array(found)), before.take(pa.array(place))
    same = np.ones(len(found), bool)
    for name in names:
        same &= equal(one.column(name), other.column(name))
    found, place = found[same], place[same]
    if not len(found):
        return before, after
    enter = after.column(ENTER).to_numpy().copy()
    enter[found] = before.column(ENTER).to_numpy()[place]
    entered, leave = before.column(ENTER).to_numpy(), before.column(LEAVE).to_numpy().copy()
    leave[place] = entered[place]
    return _with_times(before, entered, leave), _with_times(after, enter, after.column(LEAVE).to_numpy())
