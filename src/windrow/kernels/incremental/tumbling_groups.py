"""GROUP BY over a tumbling window in brackets: rows are added to the groups of their window as they arrive.

Rows of such a window enter together and leave together. So the groups of a window are the same as long as it
stays, and when it enters they are there already: no row is retained, and none is read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.hashing import among, hashes
from windrow.kernels.incremental.grouping import RunningGroups
from windrow.kernels.incremental.operated import Operated, changed_in
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.trace import equal
from windrow.kernels.zset.grouped import is_compared
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

__all__ = ["TumblingGroups"]

Bools = npt.NDArray[np.bool_]

_ONCE = Times(None, 1)
"""The instants of groups that are not shown yet: only what they come to matters."""


@dataclass
class TumblingGroups(Operated):
    """Groups of the rows of a tumbling window, which come as they arrive, with the times of their window.

    Attributes
    ----------
    length
        How long a window stays.
    open
        The groups of windows that have not entered, by the instants at which they will.
    last
        The groups that are present, with the instants since when; None if there are none.
    leave
        When these leave.
    """

    length: int = 0
    open: dict[int, RunningGroups] = field(init=False)
    last: pa.Table | None = field(init=False)
    leave: int = field(init=False)

    def empty(self) -> None:
        """As :meth:`Operated.empty`."""
        self.sides, self.emitted = [], None
        self.open, self.last, self.leave = {}, None, NEVER

    @property
    def state(self) -> dict[str, Any]:
        """As :attr:`Operated.state`."""
        instants = sorted(self.open)
        groups = [self.open[at].state for at in instants]
        return {"instants": instants, "groups": groups, "last": self.last, "leave": self.leave}

    def restore(self, state: dict[str, Any]) -> None:
        """As :meth:`Operated.restore`."""
        self.last, self.leave, self.open = state["last"], state["leave"], {}
        for at, groups in zip(state["instants"], state["groups"], strict=True):
            self.open[at] = self._groups()
            self.open[at].restore(groups)

    @property
    def retained(self) -> int:
        """How many groups are retained, and values of these."""
        present = 0 if self.last is None else self.last.num_rows
        return present + sum(one.retained for one in self.open.values())

    @property
    def looked_at(self) -> int:
        """How many groups, and values of these, it has read so far."""
        return sum(one.looked_at for one in self.open.values())

    def is_due(self, times: Times) -> bool:
        """Whether a window enters or leaves."""
        return self.leave < times.until or any(at < times.until for at in self.open)

    def advance(self, changes: list[pa.Table | None], times: Times) -> pa.Table:
        """The groups of windows that enter or leave in the micro-batch, from rows that arrive in it."""
        (rows,) = changes
        if rows is not None and rows.num_rows:
            self._add(rows)
        if not self.is_due(times):
            return self.result.empty_table()
        made = [] if self.last is None else [(self.last, self.leave)]
        for at in sorted(at for at in self.open if at < times.until):
            groups = self.open.pop(at).everything(at)
            if made and made[-1][1] == at:
                before, groups = _without_unchanged(made[-1][0], groups)
                made[-1] = before, at
            made.append((groups, at + self.length))
        self.last, self.leave = made[-1]
        if self.leave < times.until:
            self.last, self.leave = None, NEVER
        parts = [changed_in(self._timed(groups, leave, times), times) for groups, leave in made]
        return pa.concat_tables(parts)

    def _add(self, rows: pa.Table) -> None:
        """Add rows to the groups of their windows."""
        enter = rows.column(ENTER).to_numpy()
        for at in np.unique(enter).tolist():
            is_own = enter == at
            own = rows if is_own.all() else rows.filter(pa.array(is_own))
            if at not in self.open:
                self.open[at] = self._groups()
            for name, instant in ((ENTER, _ONCE.until - 1), (LEAVE, NEVER)):
                times = pa.array(np.full(own.num_rows, instant))
                own = own.set_column(own.column_names.index(name), name, times)
            self.open[at].advance([own], _ONCE)

    def _groups(self) -> RunningGroups:
        return RunningGroups(self.operator, self.schemas, self.result, appends=True)

    def _timed(self, groups: pa.Table, leave: int, times: Times) -> pa.Table:
        """Groups with the instants of their changes in a micro-batch."""
        enter = groups.column(ENTER).to_numpy()
        instants = times.clipped(enter, np.full(len(enter), leave))
        for name, each in zip((ENTER, LEAVE), instants, strict=True):
            groups = groups.set_column(groups.column_names.index(name), name, pa.array(each))
        return groups.select(self.result.names).cast(self.result)


def _without_unchanged(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The groups of two windows, of which one leaves as the other enters: equal ones stay."""
    names = [name for name in after.column_names if name not in (ENTER, LEAVE)]
    if not all(is_compared(before.schema.field(name).type) for name in names):
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
    leaves = np.ones(before.num_rows, bool)
    leaves[place] = False
    after = after.set_column(after.column_names.index(ENTER), ENTER, pa.array(enter))
    return before.filter(pa.array(leaves)), after
