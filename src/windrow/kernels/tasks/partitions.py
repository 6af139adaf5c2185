"""The kernel over whole partitions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.patterns.pattern_plan import MatchPlan
from windrow.kernels.tasks.task_stage import TaskStage
from windrow.kernels.window_by import window_by

__all__ = ["by_partitions"]

_ROWS_AT_ONCE = 1 << 17


def by_partitions(stage: TaskStage, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The kernel over whole partitions, so many at once that what it makes of them stays in the cache."""
    table, bounds = stage.sorted(rows, stage.coded)
    at = 0
    while at < len(bounds) - 1:
        to = int(np.searchsorted(bounds, bounds[at] + _ROWS_AT_ONCE, side="right")) - 1
        to = max(to, at + 1)
        part = table.slice(bounds[at], bounds[to] - bounds[at])
        if isinstance(stage.plan, MatchPlan):
            yield from match_recognize(stage.plan, part, bounds[at : to + 1] - bounds[at])
        else:
            yield from window_by(stage.plan, part, bounds[at : to + 1] - bounds[at])
        at = to
