"""A clause in a micro-batch, over the affected partitions: those with new rows, and those that end.

The state of all others is unchanged, unless time alone can change them: then all partitions run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.advance.advancing import Growing, requested_of
from windrow.kernels.advance.affected_alone import changed
from windrow.kernels.advance.ended import Ended
from windrow.kernels.advance.frontier import Frontier
from windrow.kernels.advance.output_bounds import least_open
from windrow.kernels.advance.retained_rows import Marks, Places, RetainedRows, union
from windrow.kernels.advance.suffix import STATE
from windrow.kernels.hashing import hashes

__all__ = ["first_open", "requested_in", "step_of"]


def step_of(
    growing: Growing,
    retained: RetainedRows,
    new_rows: pa.Table,
    frontier: Frontier | None,
    ended: Ended | None,
    over: Marks | None,
    number: int,
    *,
    moves: bool,
) -> tuple[pa.Table, RetainedRows]:
    """The output of a micro-batch, and the rows to retain.

    Parameters
    ----------
    growing, new_rows, frontier, ended
        As of :func:`windrow.kernels.advance.advance`.
    retained
        The rows that the last micro-batch retained, by the columns of the partitions' keys.
    over
        Hashes of the keys that have ended since the last micro-batch. None: unknown, so search all retained
        rows.
    number
        The number of the micro-batch.
    moves
        Whether the frontier has moved, and that may change any partition.
    """
    places = retained.all() if moves else _affected(growing, retained, new_rows, ended, over)
    found = changed(growing, retained.rows(places), new_rows, frontier, ended)
    left = retained.without(_chosen(places, ~found.stays)).with_rows(found.rows, number)
    return pa.Table.from_batches(found.emitted, growing.plan.result), left


def requested_in(
    growing: Growing,
    retained: RetainedRows,
    new_rows: pa.Table,
    frontier: Frontier | None,
    ended: Ended | None,
    *,
    moves: bool,
) -> pa.Table:
    """The conditions that :func:`step_of`, with these arguments, needs Spark to evaluate."""
    places = retained.all() if moves else _affected(growing, retained, new_rows, ended, None)
    found = requested_of(growing, retained.rows(places), new_rows, frontier, ended)
    return pa.Table.from_batches(found, growing.plan.result)


def first_open(retained: RetainedRows, rowtime: str) -> pa.Scalar | None:
    """The least rowtime of the rows at which output may still begin; None if there are none."""
    firsts = (least_open(rows, rowtime) for rows in retained.tables(STATE, rowtime))
    found = [first for first in firsts if first is not None]
    return pc.min(pa.array(found)) if found else None


def _affected(
    growing: Growing, retained: RetainedRows, new_rows: pa.Table, ended: Ended | None, over: Marks | None
) -> Places:
    marks = hashes(new_rows, growing.partition)
    if ended is None or over is not None:
        return retained.having(marks if over is None else np.concatenate([marks, over]))
    # of a partition that has ended all rows are found
    return union(retained.having(marks), retained.where(ended.rows))


def _chosen(places: Places, which: np.ndarray) -> Places:
    """The chosen rows among these places, in their order."""
    edges: Sequence[int] = np.cumsum([0, *(len(at) for at in places.values())]).tolist()
    return {
        number: at[which[first:stop]]
        for (number, at), first, stop in zip(places.items(), edges, edges[1:], strict=False)
    }
