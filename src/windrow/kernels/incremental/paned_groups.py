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
from windrow.kernels.computed.computed_operations import carrying, only
from windrow.kernels.incremental.grouping import RunningGroups
from windrow.kernels.incremental.operated import UnmatchedError
from windrow.kernels.incremental.programs.program_fragment import Otherwise, ProgramFragment
from windrow.kernels.incremental.running import Events, merged_so_far
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.zset.group_and_time import by_group_and_time
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER
from windrow.kernels.zset.time_windows import WindowingFunction, of_ticks, overflow, ticks_of, with_time

__all__ = ["PanedGroups", "Panes"]

Ints = npt.NDArray[np.int64]

_PANE, CELL = "__pane", "__cell"


@dataclass(frozen=True, eq=False)
class Panes:
    """The windows over which an operator groups rows that come without them.

    Attributes
    ----------
    windows
        The windows.
    side
        The computation on rows with their windows whose result is grouped.
    cells
        The columns of rows that the keys and conditions of `side` read, without those of the windows.
    arguments
        The arguments of the aggregates, each with the column of rows that it is.
    """

    windows: WindowingFunction
    side: ProgramFragment
    cells: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...]

    def keys(self, rows: pa.Table, keys: tuple[str, ...]) -> pa.Table | None:
        """These keys of rows with their windows and `CELL`, without those that `side` drops; None if only
        Spark computes them.
        """
        if self.side.chosen is not None:
            columns = dict(zip(self.side.schema.names, self.side.chosen, strict=True))
            return pa.table({key: rows.column(columns[key]) for key in keys}).append_column(
                CELL, rows.column(CELL)
            )
        assert self.side.computed is not None
        made = carrying(only(self.side.computed, keys), CELL)
        return made.of(rows.select([*made.columns.values()]))


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
    """Groups by windows of HOP or CUMULATE and other keys, over rows without their windows.

    Attributes
    ----------
    panes
        The windows.
    by_spark
        Computes keys that are not computed in memory.
    """

    panes: Panes | None = None
    by_spark: Otherwise | None = None

    @classmethod
    def over(cls, panes: Panes, operator: Keyed, result: pa.Schema, by_spark: Otherwise) -> PanedGroups:
        """The operator, without state."""
        grouped = [field for field in panes.side.schema if field.name not in (ENTER, LEAVE)]
        return cls(operator, (pa.schema(grouped),), result, True, panes, by_spark)

    def _of_rows(self, rows: pa.Table, times: Times) -> pa.Table:
        """The groups of these rows in each interval of the micro-batch."""
        assert self.panes is not None
        windows, keys, cells = self.panes.windows, self.operator.keys, self.panes.cells
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
        known = {name: rows.column(name) for name in cells}
        number = numbered(pa.table({_PANE: pane, **known}), [_PANE, *cells])
        order = by_group_and_time(number, enter)
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(number[order]) != 0) | (np.diff(enter[order]) != 0)
        head, count = order[new], np.diff(np.flatnonzero(new), append=len(order))
        of, *edges = windows.fixed(pane[head])
        at = pa.array(head[of])
        table = pa.table({CELL: of, **{name: column.take(at) for name, column in known.items()}})
        found = self.panes.keys(self._with_windows(table, rows, *edges), keys)
        if found is None:
            return self._of_each_row(rows, ticks, times)
        if not found.num_rows:
            return self.result.empty_table()
        of = found.column(CELL).to_numpy()
        table = found.select(keys).cast(self.groups.schema).combine_chunks()
        group = numbered(table, keys)
        pieces = self._pieces(table, group, group, enter[head[of]], times)
        arguments = pa.table({name: rows.column(column) for name, column in self.panes.arguments})
        of_panes = Events(
            arguments.take(pa.array(order)).combine_chunks() if arguments.num_columns else arguments,
            np.cumsum(new) - 1,
            np.ones(len(order), np.int64),
            number[order[new]],
            np.zeros(0, np.int64),
        )
        which = pieces.which
        events = _EventsOfPanes(
            arguments, pieces.piece, count[of[which]], pieces.group, pieces.places, of_panes, of[which]
        )
        return self._output(events, pieces)

    def _with_windows(self, table: pa.Table, rows: pa.Table, begin: Ints, end: Ints) -> pa.Table:
        """A table with the columns of windows, of the type of the rows' times."""
        assert self.panes is not None
        windows = self.panes.windows
        kind = rows.schema.field(windows.time).type
        for name, at in zip(windows.names, (begin, end, end - windows.last), strict=False):
            table = table.append_column(name, of_ticks(at, kind))
        return table

    def _of_each_row(self, rows: pa.Table, ticks: Ints, times: Times) -> pa.Table:
        """The same from each row in each of its windows."""
        assert self.panes is not None
        assert self.by_spark is not None
        row, *edges = self.panes.windows.fixed(ticks)
        whole = self._with_windows(rows.take(pa.array(row)), rows, *edges)
        (leaf,) = self.panes.side.leaves
        grouped = self.panes.side.rows({leaf: whole}, self.by_spark)
        return super()._of_rows(grouped, times) if grouped.num_rows else self.result.empty_table()
