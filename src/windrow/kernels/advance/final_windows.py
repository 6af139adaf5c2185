"""Which windows of growing partitions are final."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.advance.frontier import Frontier
from windrow.kernels.advance.starts import first_starts
from windrow.kernels.advance.suffix import DONE, TAKEN, CountedRows, Suffix
from windrow.kernels.advance.timeouts import timed_out
from windrow.kernels.pairs import PairRows
from windrow.kernels.slices.predicate_analysis import leaves, own_side, reads_positions
from windrow.kernels.window_by import (
    Windows,
    between_starts,
    label_rows,
    only,
    results,
    tumbled,
    windows_at,
)
from windrow.kernels.window_plan import (
    ColumnRef,
    PairExpression,
    PositionOutput,
    RowOutput,
    SameRow,
    WindowPlan,
)

__all__ = ["advance_windows"]

Array = np.ndarray


def advance_windows(
    plan: WindowPlan, suffix: Suffix, frontier: Frontier | None
) -> tuple[list[pa.RecordBatch], Array, Array]:
    """The results of final windows; the first row of each partition to retain; and which rows are decided."""
    rows = CountedRows(plan, suffix.table, suffix.bounds, suffix.at)
    if frontier is None:
        windows = _all_left(plan, rows, suffix)
        return list(results(plan, rows, windows)), suffix.bounds[1:], suffix.state
    beside = _Beside.of(plan)
    known = _known(suffix, beside.after[own_side(plan)])
    may_be = known & ~suffix.is_done
    windows = windows_at(plan, rows, _labels(plan, rows, suffix, may_be), _unsearched(beside))
    windows = timed_out(plan, rows, suffix.bounds, windows, frontier)
    covered = suffix.state & TAKEN
    if plan.tumbling and plan.has_label:
        found, decided = _tumbling_labels(plan, rows, suffix, may_be, windows, frontier)
        covered |= _covered(suffix, found) * TAKEN
    elif plan.tumbling:
        found, decided = _tumbling(plan, rows, suffix, may_be, windows)
    else:
        found, decided = _sliding(plan, may_be, windows)
    done = suffix.is_done | decided
    emitted = list(results(plan, rows, only(plan, found)))
    return emitted, _needed(plan, suffix, done, beside, frontier), done * DONE | covered


@dataclass(frozen=True)
class _Beside:
    """How many rows before and after a side's row a predicate or the result reads."""

    before: int
    after: dict[str, int]
    counts: bool

    @staticmethod
    def of(plan: WindowPlan) -> _Beside:
        """The value for a clause; `counts` says whether it reads positions."""
        read = [shift for expression in plan.expressions() for shift in _shifts(expression)]
        for output in plan.outputs:
            if isinstance(output, RowOutput | PositionOutput):
                read.append((output.side, output.shift))
        read += plan.elsewhere.neighbours
        after = {side: max([0, *(shift for of, shift in read if of == side)]) for side in _SIDES}
        counts = (
            plan.first_only
            or plan.elsewhere.positions
            or any(isinstance(output, PositionOutput) for output in plan.outputs)
            or any(map(reads_positions, plan.expressions()))
        )
        return _Beside(max([0, *(-shift for _, shift in read)]), after, counts)


_SIDES = ("label", "start", "end")


def _shifts(expression: PairExpression) -> list[tuple[str, int]]:
    found = []
    for leaf in leaves(expression):
        if isinstance(leaf, ColumnRef):
            found.append((leaf.side, leaf.shift))
        elif isinstance(leaf, SameRow):
            found += [leaf.left, leaf.right]
    return found


def _known(suffix: Suffix, after: int) -> Array:
    """Whether so many rows after each row are there: bool."""
    stop = np.repeat(suffix.bounds[1:], np.diff(suffix.bounds))
    known: Array = np.arange(suffix.table.num_rows) + after < stop
    return known


def _labels(plan: WindowPlan, rows: PairRows, suffix: Suffix, may_be: Array) -> Array:
    """The rows, among those that `may_be`, at which a window is made."""
    if plan.first_only:
        first = suffix.bounds[:-1]
        chosen: Array = first[(suffix.at[first] == 1) & may_be[first]]
        return chosen
    return label_rows(plan, rows, np.flatnonzero(may_be))


def _all_left(plan: WindowPlan, rows: PairRows, suffix: Suffix) -> Windows:
    """The windows that have not been emitted, when no more rows arrive."""
    windows = windows_at(plan, rows, _labels(plan, rows, suffix, ~suffix.is_done))
    if plan.tumbling:
        windows = windows.take(np.flatnonzero(~_is_before(windows, suffix, _reached(suffix))))
        windows = between_starts(windows) if plan.end is None else tumbled(windows)
    return only(plan, windows)


def _sliding(plan: WindowPlan, may_be: Array, windows: Windows) -> tuple[Windows, Array]:
    """The final windows, and the decided rows: those without a window, or with a final one."""
    final = _ended(plan, windows)
    decided = may_be.copy()
    decided[windows.label[~final]] = False
    return windows.take(np.flatnonzero(final)), decided


def _tumbling(
    plan: WindowPlan, rows: PairRows, suffix: Suffix, may_be: Array, windows: Windows
) -> tuple[Windows, Array]:
    """The same for tumbling windows; a window that is not final delays those after it."""
    if plan.end is None:
        windows = between_starts(windows)
        final = windows.stop < rows.stop[windows.label]
    else:
        windows = tumbled(windows)
        final = _ended(plan, windows)
    decided = may_be | _covered(suffix, windows.take(np.flatnonzero(final)))
    blocked = np.zeros(len(may_be), bool)
    blocked[windows.label[~final]] = True
    counts = np.diff(suffix.bounds)
    before = np.concatenate([[0], np.cumsum(blocked)])
    is_behind = before[1:] > np.repeat(before[suffix.bounds[:-1]], counts)
    return windows.take(np.flatnonzero(final)), decided & ~is_behind


def _tumbling_labels(
    plan: WindowPlan,
    rows: PairRows,
    suffix: Suffix,
    may_be: Array,
    windows: Windows,
    frontier: Frontier,
) -> tuple[Windows, Array]:
    """The same if a later label row's window may begin before those of others, at a known distance.

    Windows are chosen in order of their starts, up to where later windows may begin. A window that is not
    final, or whose start is unknown, delays those after it.
    """
    first, counts = suffix.bounds[:-1], np.diff(suffix.bounds)
    unknown = first + suffix.counts(may_be | suffix.is_done)
    begins = first_starts(plan, suffix, unknown, frontier)
    if begins is None:
        return windows.take(np.zeros(0, np.int64)), np.zeros(len(may_be), bool)
    of = np.repeat(np.arange(len(first)), counts)
    blocks_later = np.zeros(len(first), bool)
    blocks_later[of[windows.label[windows.open_start]]] = True
    is_open = ~_is_before(windows, suffix, _reached(suffix)) & ~blocks_later[of[windows.label]]
    chosen = windows.take(np.flatnonzero(is_open))
    if plan.end is None:
        chosen = between_starts(chosen)
        final = (chosen.stop < rows.stop[chosen.label]) & (chosen.stop <= begins[of[chosen.label]])
    else:
        chosen = tumbled(chosen)
        final = _ended(plan, chosen)
    final &= chosen.low <= begins[of[chosen.label]]
    blocked = np.append(0, np.cumsum(~final))
    before = blocked[np.searchsorted(of[chosen.label], of[chosen.label])]
    emitted = chosen.take(np.flatnonzero(final & (blocked[1:] == before)))
    reached = _reached(suffix, emitted)
    decided = may_be.copy()
    decided[windows.label[windows.open_start | ~_is_before(windows, suffix, reached)]] = False
    return emitted, decided


def _reached(suffix: Suffix, emitted: Windows | None = None) -> Array:
    """The row of each partition after its emitted windows, earlier and new."""
    covered = suffix.state & TAKEN > 0
    if emitted is not None:
        covered = covered | _covered(suffix, emitted)
    row = np.where(covered, np.arange(len(covered)) + 1, 0)
    reached: Array = suffix.bounds[:-1].copy()
    np.maximum.at(reached, np.repeat(np.arange(len(reached)), np.diff(suffix.bounds)), row)
    return reached


def _is_before(windows: Windows, suffix: Suffix, reached: Array) -> Array:
    """Whether windows begin before these rows of their partitions."""
    before: Array = windows.low < np.repeat(reached, np.diff(suffix.bounds))[windows.label]
    return before


def _covered(suffix: Suffix, windows: Windows) -> Array:
    """The rows covered by windows that do not overlap."""
    change = np.zeros(suffix.table.num_rows + 1, np.int64)
    np.add.at(change, windows.low, 1)
    np.add.at(change, windows.stop, -1)
    covered: Array = np.cumsum(change)[:-1] > 0
    return covered


def _unsearched(beside: _Beside) -> tuple[int, int]:
    return beside.after["start"], beside.after["end"]


def _ended(plan: WindowPlan, windows: Windows) -> Array:
    """Whether both boundaries are found, and not at an edge that may move."""
    ended = ~windows.open_end
    if plan.end is None or plan.end.strategy == "unbounded":
        ended = np.zeros(len(windows.label), bool)
    if plan.start is not None and plan.start.strategy != "unbounded":
        ended &= ~windows.open_start
    return ended


def _needed(plan: WindowPlan, suffix: Suffix, done: Array, beside: _Beside, frontier: Frontier) -> Array:
    """The first row of each partition that is still needed."""
    first, end = suffix.bounds[:-1], suffix.bounds[1:]
    places = np.flatnonzero(~done)
    found = np.append(places, np.iinfo(np.int64).max)[np.searchsorted(places, first)]
    undone: Array = np.minimum(found, end)
    starts: Array | None = undone
    if plan.has_label:
        starts = first_starts(plan, suffix, undone, frontier)
    if starts is None:
        return first
    needed: Array = np.maximum(starts - max(beside.before, beside.counts), first)
    return needed
