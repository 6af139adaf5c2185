"""Which operator takes the steps of a stage."""

from __future__ import annotations

import pyarrow as pa

from windrow.kernels.stages.grouping import RunningGroups, goes_on
from windrow.kernels.stages.operated import Operated
from windrow.kernels.stages.timed import FixedWindows, Sessions
from windrow.kernels.zset.stage import Keyed

__all__ = ["stepwise"]


def stepwise(stage: Keyed, schemas: tuple[pa.Schema, ...], result: pa.Schema) -> Operated:
    """An operator that holds nothing yet; takes what :class:`windrow.kernels.stages.Operated` does."""
    if stage.windows is not None:
        kind = Sessions if stage.windows.kind == "SESSION" else FixedWindows
        return kind(stage, schemas, result)
    if goes_on(stage, schemas[0]):
        return RunningGroups(stage, schemas, result)
    return Operated(stage, schemas, result)
