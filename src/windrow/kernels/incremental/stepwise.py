"""Chooses the live operator for a node of a plan: by rows, by aggregates, first rows, or time windows."""

from __future__ import annotations

import pyarrow as pa

from windrow.kernels.incremental.first_of_keys import FirstRows, is_bounded
from windrow.kernels.incremental.grouping import RunningGroups, goes_on
from windrow.kernels.incremental.operated import Operated
from windrow.kernels.incremental.timed import FixedWindows, Sessions
from windrow.kernels.zset.keyed_operator import Keyed

__all__ = ["stepwise"]


def stepwise(
    operator: Keyed, schemas: tuple[pa.Schema, ...], result: pa.Schema, *, appends: bool = False
) -> Operated:
    """An operator without state; it has the interface of :class:`windrow.kernels.incremental.Operated`."""
    kind = Operated
    if operator.windows is not None:
        kind = Sessions if operator.windows.kind == "SESSION" else FixedWindows
    elif is_bounded(operator, appends=appends):
        kind = FirstRows
    elif goes_on(operator, schemas[0], appends=appends):
        kind = RunningGroups
    return kind(operator, schemas, result, appends)
