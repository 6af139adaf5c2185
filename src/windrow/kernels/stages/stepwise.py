"""Chooses the live operator for a node of a plan: by rows, by aggregates, first rows, or windows of time."""

from __future__ import annotations

import pyarrow as pa

from windrow.kernels.stages.first import FirstRows, is_bounded
from windrow.kernels.stages.grouping import RunningGroups, goes_on
from windrow.kernels.stages.operated import Operated
from windrow.kernels.stages.timed import FixedWindows, Sessions
from windrow.kernels.zset.stage import Keyed

__all__ = ["stepwise"]


def stepwise(
    stage: Keyed, schemas: tuple[pa.Schema, ...], result: pa.Schema, *, appends: bool = False
) -> Operated:
    """An operator that holds nothing yet; takes what :class:`windrow.kernels.stages.Operated` does."""
    kind = Operated
    if stage.windows is not None:
        kind = Sessions if stage.windows.kind == "SESSION" else FixedWindows
    elif is_bounded(stage, appends=appends):
        kind = FirstRows
    elif goes_on(stage, schemas[0], appends=appends):
        kind = RunningGroups
    return kind(stage, schemas, result, appends)
