"""Tumbling windows with END across slices: where each slice's chain of windows begins.

A window begins at the first start row after the last one has ended, so a slice's result depends on where the
windows before it end. Each slice computes, for every row at which its chain may be entered, the row after
which it is left. Composing the slices in order then costs one look-up each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.compiling.chains import last_reached
from windrow.kernels.pairs import Array
from windrow.kernels.slices.assembly import assemble
from windrow.kernels.slices.finishing import own_windows
from windrow.kernels.slices.reach import reach
from windrow.kernels.slices.sequence import SliceSequence
from windrow.kernels.slices.summary import Summary
from windrow.kernels.window_by import following_windows
from windrow.kernels.window_plan import WindowPlan

__all__ = ["Chain", "chain", "compose"]


@dataclass(frozen=True)
class Chain:
    """How a slice's chain continues; rows of the sequence, from 0.

    Attributes
    ----------
    starts
        int64, ascending: start rows. The first of them that is not before the entry begins the chain.
    exits
        int64: the row from which the next slices go on if the chain begins there.
    """

    starts: Array
    exits: Array


def chain(
    plan: WindowPlan,
    number: int,
    summaries: Sequence[Summary],
    own: pa.Table,
    chunks: Mapping[int, pa.Table],
) -> Chain:
    """The chain of slice `number`; arguments as :func:`~windrow.kernels.slices.finishing.finish` has them."""
    nothing = np.zeros(0, np.int64)
    if not own.num_rows:
        return Chain(nothing, nothing)
    sequence = SliceSequence(plan, summaries)
    assembly = assemble(plan, number, sequence, own, chunks)
    windows = own_windows(assembly)
    if not len(windows.low):
        return Chain(nothing, nothing)
    starts = assembly.rows.position(windows.low) - 1
    last = last_reached(following_windows(windows.low, windows.stop))
    entered = _entered(starts, _entries(plan, number, sequence))
    stop = windows.stop[last[entered]]
    return Chain(starts[entered], assembly.rows.position(stop - 1))


def compose(chains: Sequence[Chain]) -> list[int]:
    """For each slice, in order, the row of the sequence from which its first window is searched."""
    entries, entry = [], 0
    for link in chains:
        entries.append(entry)
        place = int(np.searchsorted(link.starts, entry))
        if place < len(link.starts):
            entry = int(link.exits[place])
    return entries


def _entries(plan: WindowPlan, number: int, sequence: SliceSequence) -> tuple[Array, Array]:
    """The first rows of the slice's chunks in which windows before it may end, and those after the last."""
    ends = np.logical_or.reduce(reach(plan, sequence).ends[:number], axis=0)
    low, stop = (
        rows[sequence.slice_of == number] for rows in (sequence.first_row[:-1], sequence.first_row[1:])
    )
    ended = ends[sequence.slice_of == number]
    return low[ended], stop[ended]


def _entered(starts: Array, entries: tuple[Array, Array]) -> Array:
    """Which of the starts can come first, for an entry before the slice or after a row of these ranges."""
    entered = np.zeros(len(starts) + 1, bool)
    entered[0] = True
    low = np.searchsorted(starts, entries[0], side="right")
    stop = np.searchsorted(starts, entries[1])
    marks = np.zeros(len(starts) + 2, np.int64)
    np.add.at(marks, low, 1)  # a window that ends in a chunk is followed by one from its second row on, …
    np.add.at(marks, stop + 1, -1)  # … at the latest the first one after it
    entered |= np.cumsum(marks)[:-1] > 0
    return np.flatnonzero(entered[:-1])
