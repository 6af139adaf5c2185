"""Chooses the live operator for a node of a plan: by rows, by aggregates, first rows, or time windows."""

from __future__ import annotations

import pyarrow as pa

from windrow.kernels.incremental.first_of_keys import FirstRows, is_bounded
from windrow.kernels.incremental.grouping import RunningGroups, goes_on
from windrow.kernels.incremental.operated import Operated
from windrow.kernels.incremental.paned_groups import PanedGroups, Panes
from windrow.kernels.incremental.timed import FixedWindows, Sessions
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE

__all__ = ["stepwise"]


def stepwise(
    operator: Keyed,
    schemas: tuple[pa.Schema, ...],
    result: pa.Schema,
    *,
    appends: bool = False,
    panes: Panes | None = None,
) -> Operated:
    """An operator without state; it has the interface of :class:`windrow.kernels.incremental.Operated`."""
    if panes is not None:
        names = [name for name in panes.side.schema.names if name not in (ENTER, LEAVE)]
        grouped = pa.schema([panes.side.schema.field(name) for name in names])
        return PanedGroups(operator, (grouped,), result, appends, panes)
    kind = Operated
    if operator.windows is not None:
        kind = Sessions if operator.windows.kind == "SESSION" else FixedWindows
    elif is_bounded(operator, appends=appends):
        kind = FirstRows
    elif goes_on(operator, schemas[0], appends=appends):
        kind = RunningGroups
    return kind(operator, schemas, result, appends)
