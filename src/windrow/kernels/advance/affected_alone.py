"""A micro-batch for some partitions only: whether time changes the others, and which rows stay retained."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.advance.advancing import Growing, advance
from windrow.kernels.advance.ended import Ended
from windrow.kernels.advance.final_matches import limits_of
from windrow.kernels.advance.frontier import Frontier
from windrow.kernels.advance.starts import bounding, rows_before
from windrow.kernels.advance.suffix import CARRIED
from windrow.kernels.advance.timeouts import may_time_out
from windrow.kernels.patterns.pattern_plan import MatchPlan
from windrow.kernels.window_plan import WindowPlan

__all__ = ["Changed", "changed", "moves_by_time"]

_RETAINED = "__retained"


def moves_by_time(plan: WindowPlan | MatchPlan, frontier: Frontier | None) -> bool:
    """Whether a partition without new rows may emit output or need fewer rows when the frontier moves.

    Otherwise a partition does not change until its next row arrives or it ends.

    Parameters
    ----------
    frontier
        The new frontier; None if no more rows arrive.
    """
    if frontier is None:
        return True
    known = frozenset(frontier.values.column_names)
    if isinstance(plan, MatchPlan):
        is_timed = plan.duration is not None and plan.duration.key in known
        return is_timed or bool(limits_of(plan, known))
    if may_time_out(plan, frontier):
        return True
    return plan.has_label and rows_before(plan) is None and bool(bounding(plan, known))


@dataclass(frozen=True)
class Changed:
    """The result of a micro-batch for some partitions.

    Attributes
    ----------
    emitted
        As of :func:`windrow.kernels.advance.advance`.
    stays
        bool: the rows retained before that are to be retained unchanged.
    rows
        Additional rows to retain, in the same form.
    """

    emitted: list[pa.RecordBatch]
    stays: npt.NDArray[np.bool_]
    rows: pa.Table


def changed(
    growing: Growing,
    retained: pa.Table | None,
    new_rows: pa.Table,
    frontier: Frontier | None,
    ended: Ended | None = None,
) -> Changed:
    """As :func:`windrow.kernels.advance.advance`, computed from the changes of the retained rows.

    `retained` has all rows of each partition that occurs in it.
    """
    if retained is None:
        emitted, left = advance(growing, None, new_rows, frontier, ended)
        return Changed(emitted, np.zeros(0, bool), left)
    places = pa.array(np.arange(retained.num_rows))
    growing = replace(growing, columns=(*growing.columns, _RETAINED))
    emitted, left = advance(
        growing,
        retained.append_column(_RETAINED, places),
        new_rows.append_column(_RETAINED, pa.nulls(new_rows.num_rows, places.type)),
        frontier,
        ended,
    )
    was_retained = left.column(_RETAINED).is_valid().to_numpy()
    place = left.column(_RETAINED).fill_null(0).to_numpy()
    for name in CARRIED.names if retained.num_rows else ():
        was_retained &= left.column(name).to_numpy() == retained.column(name).to_numpy()[place]
    stays = np.zeros(retained.num_rows, bool)
    stays[place[was_retained]] = True
    return Changed(emitted, stays, left.drop_columns(_RETAINED).filter(pa.array(~was_retained)))
