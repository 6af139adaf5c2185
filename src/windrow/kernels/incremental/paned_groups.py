"""GROUP BY over sliding windows: rows are aggregated by pane, and panes by window.

A pane is a part of time within which all rows are in the same windows. So a row is read once, however many
windows it is in: only the state of each pane and key is copied for each window (Li et al., "No pane, no
gain", 2005).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.aggregates import AggregateSpec, state
from windrow.kernels.incremental.grouping import RunningGroups
from windrow.kernels.incremental.operated import UnmatchedError
from windrow.kernels.incremental.running import Events, merged_so_far
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.zset.group_and_time import by_group_and_time
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER
from windrow.kernels.zset.time_windows import WindowingFunction, of_ticks, overflow, ticks_of, with_time

__all__ = ["PanedGroups", "Panes"]

Ints = npt.NDArray[np.int64]

_PANE = "__pane"


@dataclass(frozen=True, eq=False)
class Panes:
    """The windows over which an operator groups rows that come without them.

    Attributes
    ----------
    windows
        The windows, with the names that their columns have among the keys.
    columns
        The other columns of the groups' input, each with its name in the rows.
    schema
        The columns of the groups' input, with those of the windows.
    """

    windows: WindowingFunction
    columns: tuple[tuple[str, str], ...]
    schema: pa.Schema


@dataclass(frozen=True)
class _EventsOfPanes(Events):
    """Panes that enter: `panes` are the rows of each, `pane` is that of each of these events."""

    panes: Events
    pane: Ints

    def states(self, spec: AggregateSpec, which: Ints | None = None) -> pa.Table:  # noqa: ARG002 - none leave
        """As :meth:`Events.states`, from the states of the panes."""
        of_panes = self.panes.states(spec).take(pa.array(self.pane))
        first = np.searchsorted(self.piece, self.piece)
        so_far = merged_so_far(spec, of_panes, np.arange(len(self.piece)) - first)
        nothing = state(spec, self.panes.rows.slice(0, 0), *np.zeros((2, 1), np.int64))
        assert nothing is not None
        stop = np.searchsorted(self.piece, np.arange(len(self.group)), side="right")
        begin = np.searchsorted(self.piece, np.arange(len(self.group)))
        last = np.where(stop > begin, stop - 1, len(self.piece))
        return pa.concat_tables([so_far, nothing.cast(so_far.schema)]).take(pa.array(last))


@dataclass
class PanedGroups(RunningGroups):
    """Groups by windows of TUMBLE, HOP or CUMULATE and other keys, over rows without their windows."""

    panes: Panes | None = None

    def _of_rows(self, rows: pa.Table, times: Times) -> pa.Table:
        """The groups of these rows in each interval of the micro-batch."""
        assert self.panes is not None
        windows, keys = self.panes.windows, self.operator.keys
        rows = with_time(rows, windows.time).combine_chunks()
        enter, leave = (np.asarray(rows.column(name).to_numpy(), np.int64) for name in (ENTER, LEAVE))
        if (leave != NEVER).any() or (times.since is not None and (enter < times.since).any()):
            raise UnmatchedError
        if not rows.num_rows:
            return self.result.empty_table()
        ticks = ticks_of(rows.column(windows.time))
        if not windows.fits(ticks):
            raise UnmatchedError(overflow())  # Spark says whether they have windows
        pane = windows.pane(ticks)
        own = pa.table({name: rows.column(column) for name, column in self.panes.columns})
        others = [key for key in keys if key in own.column_names]
        number = numbered(own.select(others).append_column(_PANE, pa.array(pane)), [*others, _PANE])
        order = by_group_and_time(number, enter)
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(number[order]) != 0) | (np.diff(enter[order]) != 0)
        read = {spec.argument for _, spec in self.operator.aggregates if spec.argument is not None}
        arguments = own.select(sorted(read))
        of_panes = Events(
            arguments.take(pa.array(order)).combine_chunks() if read else arguments,
            np.cumsum(new) - 1,
            np.ones(len(order), np.int64),
            number[order[new]],
            np.zeros(0, np.int64),
        )
        head, count = order[new], np.diff(np.flatnonzero(new), append=len(order))
        of, begin, end = windows.fixed(pane[head])
        if not len(of):  # between hops that are longer than the windows
            return self.result.empty_table()
        kind = rows.schema.field(windows.time).type
        of_windows = {
            name: of_ticks(at, kind)
            for name, at in zip(windows.names, (begin, end, end - windows.last), strict=False)
        }
        known = own.select(others).take(pa.array(head[of]))
        table = pa.table({key: of_windows[key] if key in of_windows else known.column(key) for key in keys})
        group = numbered(table, keys)
        pieces = self._pieces(table.cast(self.groups.schema), group, group, enter[head[of]], times)
        which = pieces.which
        events = _EventsOfPanes(
            arguments, pieces.piece, count[of[which]], pieces.group, pieces.places, of_panes, of[which]
        )
        return self._output(events, pieces)
