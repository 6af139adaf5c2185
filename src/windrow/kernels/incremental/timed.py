"""Tumbling, sliding and session windows, by micro-batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.incremental.operated import Operated, UnmatchedError
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.time_windows import overflow, runs, ticks_of, with_time

__all__ = ["FixedWindows", "Sessions"]


@dataclass
class FixedWindows(Operated):
    """TUMBLE, HOP and CUMULATE: the windows of a row depend only on the row, so none is retained."""

    def advance(self, changes: list[pa.Table | None], times: Times) -> pa.Table:  # noqa: ARG002
        """As :meth:`Operated.advance`."""
        (rows,) = changes
        if rows is None or not rows.num_rows:
            return self.result.empty_table()
        windows = self.operator.windows
        assert windows is not None
        rows = with_time(rows, windows.time)
        ticks = ticks_of(rows.column(windows.time))
        if not windows.fits(ticks):
            raise UnmatchedError(overflow())  # Spark says whether they have windows
        row, begin, end = windows.fixed(ticks)
        if windows.kind != "TUMBLE":
            read = {*self.result.names, windows.time}
            rows = rows.select([name for name in rows.column_names if name in read])
            rows = rows.combine_chunks().take(pa.array(row))
        return windows.with_columns(rows, begin, end).select(self.result.names).cast(self.result)


@dataclass
class Sessions(Operated):
    """SESSION: all rows of a key are retained, and those within reach of a new one are recomputed."""

    def advance(self, changes: list[pa.Table | None], times: Times) -> pa.Table:
        """As :meth:`Operated.advance`."""
        assert self.operator.windows is not None
        (rows,) = changes
        timed = None if rows is None else with_time(rows, self.operator.windows.time)
        return super().advance([timed], times)

    def _near(self, rows: pa.Table, times: Times) -> pa.Table:
        windows = self.operator.windows
        assert windows is not None
        enter, leave = (rows.column(name).to_numpy() for name in (ENTER, LEAVE))
        changed = times.changed(enter, leave)
        ticks = ticks_of(rows.column(windows.time))
        order, run = runs(numbered(rows, self.operator.keys), ticks, windows.lengths["gap"])
        of_change = np.zeros(int(run.max(initial=-1)) + 1, bool)
        of_change[run[changed[order]]] = True
        near = np.zeros(rows.num_rows, bool)
        near[order] = of_change[run]
        return rows.filter(pa.array(near))
