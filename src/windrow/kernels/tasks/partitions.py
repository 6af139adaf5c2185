"""The kernel over whole partitions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.patterns.pattern_plan import MatchPlan
from windrow.kernels.tasks.fragment import Fragment
from windrow.kernels.window_by import window_by

__all__ = ["by_partitions"]

_ROWS_AT_ONCE = 1 << 17


def by_partitions(fragment: Fragment, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Run the kernel over whole partitions, in batches that fit into the cache."""
    table, bounds = fragment.sorted(rows, fragment.coded)
    at = 0
    while at < len(bounds) - 1:
        to = int(np.searchsorted(bounds, bounds[at] + _ROWS_AT_ONCE, side="right")) - 1
        to = max(to, at + 1)
        part = table.slice(bounds[at], bounds[to] - bounds[at])
        if isinstance(fragment.plan, MatchPlan):
            yield from match_recognize(fragment.plan, part, bounds[at : to + 1] - bounds[at])
        else:
            yield from window_by(fragment.plan, part, bounds[at : to + 1] - bounds[at])
        at = to
