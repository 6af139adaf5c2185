"""Matches in slices of a long partition: every slice receives the rows around it that its matches can reach.

This applies if a match is searched for from every row, independent of earlier matches, and has a bounded
number of rows. Otherwise a slice would need to know where the last match before it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from windrow.kernels.patterns.execution import Matches, find_matches
from windrow.kernels.patterns.match_recognize import rows_of_matches
from windrow.kernels.patterns.measures import MatchRows
from windrow.kernels.patterns.pattern_plan import CLASSIFIER, MatchNumber, MatchPlan, Navigation, asks_spark
from windrow.kernels.patterns.tree import longest
from windrow.kernels.slices.halo import MOST, Halo
from windrow.kernels.slices.predicate_analysis import columns

__all__ = ["matches_alone", "matches_halo"]

Array = np.ndarray


def matches_halo(plan: MatchPlan) -> Halo | None:
    """The rows around a slice that its matches can reach; None if whole partitions are needed."""
    length = None if plan.tree is None else longest(plan.tree)
    independent = plan.every or plan.skip == "next"
    counted = any(isinstance(measure, MatchNumber) for measure in plan.measures) or any(
        register.kind == "number" for register in plan.registers
    )
    if length is None or not independent or counted or plan.frame is not None or plan.duration is not None:
        return None
    if asks_spark(plan):
        return None
    shifts = {ref.shift for one in plan.conditions for ref in columns(one.expression)}
    shifts |= {
        measure.shift
        for measure in plan.measures
        if isinstance(measure, Navigation) and measure.column != CLASSIFIER
    }
    # one row more on either side distinguishes the edge of a slice from that of the partition
    before = length + max(1, *(-shift for shift in shifts), 1)
    after = length + max(0, *shifts, 0)
    return Halo(before, after + 1) if before + after < MOST else None


def matches_alone(plan: MatchPlan, table: pa.Table, first: int, count: int) -> Iterator[pa.RecordBatch]:
    """The output of a slice, from its rows and those around it: `count` are its own, from `first` on."""
    matches = find_matches(plan, table, np.array([0, table.num_rows], np.int64))
    row = np.arange(table.num_rows)
    is_own = (row >= first) & (row < first + count)
    free = is_own.copy()
    earlier = MatchRows(_chosen(matches, matches.start < first), table)
    free[earlier.row] = False
    own = _chosen(matches, (matches.start >= first) & (matches.start < first + count))
    yield from rows_of_matches(plan, MatchRows(own, table), free)


def _chosen(matches: Matches, which: Array) -> Matches:
    """Some of the matches."""
    rows = np.repeat(which, matches.length)
    return replace(
        matches,
        **{name: getattr(matches, name)[which] for name in _OF_MATCHES},
        labels=matches.labels[rows],
        excluded=matches.excluded[rows],
    )


_OF_MATCHES = ("partition", "start", "length", "origin", "low", "high")
