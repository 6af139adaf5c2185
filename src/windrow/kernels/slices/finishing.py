"""The windows of one slice, once it has the chunks that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from windrow.kernels.compiling.chains import walk
from windrow.kernels.pairs import Array
from windrow.kernels.slices.assembly import Assembly, assemble
from windrow.kernels.slices.reach import reach
from windrow.kernels.slices.sequence import SliceSequence
from windrow.kernels.slices.summary import Summary
from windrow.kernels.slices.support import needs_chain
from windrow.kernels.window_by import (
    Windows,
    between_starts,
    following_windows,
    label_rows,
    only,
    results,
    windows_at,
)
from windrow.kernels.window_plan import WindowPlan

__all__ = ["finish", "own_windows", "wanted"]


def wanted(plan: WindowPlan, summaries: Sequence[Summary]) -> list[frozenset[int]]:
    """For each slice the chunks, numbered through the sequence, whose rows it needs from others.

    Every task computes the same result from the same summaries, which are those of all slices in order.
    """
    found = reach(plan, SliceSequence(plan, summaries)).wanted
    return [frozenset(np.flatnonzero(row).tolist()) for row in found]


def finish(
    plan: WindowPlan,
    number: int,
    summaries: Sequence[Summary],
    own: pa.Table,
    chunks: Mapping[int, pa.Table],
    entry: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The results of the windows whose label row (without LABEL: first row) is in slice `number`.

    Parameters
    ----------
    plan, summaries
        The clause, and the results of :func:`~windrow.kernels.slices.summary.summarise` for all slices, in
        order. Slices without rows may be left out; the others are then numbered without them.
    number, own
        The slice and its rows.
    chunks
        The rows of the chunks that the slice needs, by their number.
    entry
        If ``needs_chain(plan)``: the row of the sequence, from 0, from which the slice's first window is
        looked for (:func:`~windrow.kernels.slices.tumbling.compose`).

    Yields
    ------
    pyarrow.RecordBatch
        As :func:`windrow.kernels.window_by.window_by` does. All slices' batches one after the other are those
        of the whole sequence.
    """
    if not own.num_rows:
        return
    assembly = assemble(plan, number, SliceSequence(plan, summaries), own, chunks)
    if plan.tumbling and plan.end is None and not plan.first_only:
        windows = _between_starts(assembly)
    else:
        windows = own_windows(assembly)
        if needs_chain(plan):
            assert entry is not None
            windows = _tumble(assembly, windows, entry)
    yield from results(assembly.plan, assembly.rows, only(plan, windows), assembly.gaps)


def own_windows(assembly: Assembly) -> Windows:
    """A window for each label row of the slice, before tumbling."""
    return windows_at(assembly.plan, assembly.rows, _labels(assembly, assembly.own))


def _labels(assembly: Assembly, candidates: Array) -> Array:
    if assembly.plan.first_only:
        first: Array = candidates[candidates == 0]
        return first
    return label_rows(assembly.plan, assembly.rows, candidates)


def _between_starts(assembly: Assembly) -> Windows:
    """The next slice that has starts ends the last window."""
    candidates = np.concatenate([assembly.own, assembly.later])
    windows = between_starts(windows_at(assembly.plan, assembly.rows, _labels(assembly, candidates)))
    return windows.take(np.flatnonzero(windows.label <= assembly.own[-1]))


def _tumble(assembly: Assembly, windows: Windows, entry: int) -> Windows:
    first = int(np.searchsorted(assembly.rows.position(windows.low), entry + 1))
    if first == len(windows.low):
        return windows.take(np.zeros(0, np.int64))
    return windows.take(walk(following_windows(windows.low, windows.stop), first))
