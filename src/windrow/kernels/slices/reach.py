"""Which chunks the windows of each slice may begin and end in.

This uses the summaries only, so that every task computes the same result. A chunk that
:mod:`~windrow.kernels.slices.bounds` excludes has no boundary of the slice's windows: they cover it
completely or not at all, and its summary has the partial states of their aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windrow.kernels.aggregates import FUNCTIONS
from windrow.kernels.pairs import Array
from windrow.kernels.slices import bounds
from windrow.kernels.slices.bounds import Range
from windrow.kernels.slices.predicate_analysis import own_side
from windrow.kernels.slices.sequence import SliceSequence
from windrow.kernels.window_plan import ColumnRef, ConstantRef, RowsOutput, Search, WindowPlan

__all__ = ["Reach", "needs_rows", "reach"]


@dataclass(frozen=True)
class Reach:
    """Bool, shape (slices, chunks): where the first and last rows of a slice's windows may lie."""

    starts: Array
    ends: Array
    wanted: Array


def needs_rows(plan: WindowPlan) -> list[str]:
    """The outputs that need all rows of a window: names of functions, and ``w``."""
    outputs = [output.name for output in plan.outputs if isinstance(output, RowsOutput)]
    functions = [spec.function for _, spec, _ in plan.aggregates if FUNCTIONS[spec.function].partial is None]
    return list(dict.fromkeys(outputs + functions))


def reach(plan: WindowPlan, sequence: SliceSequence) -> Reach:
    """Compute the reach, and the chunks that each slice needs from others."""
    own, chunk = sequence.own, np.arange(sequence.chunks)
    if not sequence.chunks:
        return Reach(own, own, own)
    may, some = (chunk == 0, chunk == 0) if plan.first_only else _window_chunks(plan, sequence)
    windows = own & may
    edge = np.broadcast_to(chunk == 0, windows.shape) & windows.any(axis=1, keepdims=True)
    sides = {own_side(plan): _Side(sequence, windows)}
    starts = lows = needed_lows = windows
    last_low = sides[own_side(plan)].positions[1]
    if plan.start is not None:
        starts, open_ = _searched(plan.start, "start", sequence, sides, edge, np.ones_like(last_low))
        lows = starts | (edge & open_)
        needed_lows = starts if plan.only_start and plan.start.strategy != "unbounded" else lows
        sides["start"] = _Side(sequence, starts, open_)
        last_low = np.maximum(sides["start"].positions[1], 1)
    last = edge[:, ::-1]
    if plan.end is not None:
        ends, open_ = _searched(plan.end, "end", sequence, sides, lows, last_low)
        needed_ends = ends if plan.only_end and plan.end.strategy != "unbounded" else ends | (last & open_)
    elif plan.first_only:
        ends, needed_ends = np.zeros_like(own), last
    else:
        ends, open_ = _next_starts(sequence, may, some)
        needed_ends = ends | (last & open_)
    wanted = starts | ends
    if needs_rows(plan):
        wanted = wanted | _between(needed_lows, needed_ends)
    return Reach(starts, ends, wanted & ~own & windows.any(axis=1, keepdims=True))


def _window_chunks(plan: WindowPlan, sequence: SliceSequence) -> tuple[Array, Array]:
    """For each chunk, whether a window may be made in it, and whether one certainly is."""
    if plan.labels is None:
        return np.ones(sequence.chunks, bool), np.ones(sequence.chunks, bool)
    true = sequence.true("window")
    if true is not None:
        return true, true
    everywhere = np.ones((1, sequence.chunks), bool)
    scope = _Scope(sequence, own_side(plan), {own_side(plan): _Side(sequence, everywhere)}, plan.ansi)
    may, some, _ = bounds.hits(plan.labels, own_side(plan), scope)
    may, some = np.broadcast_to(may, everywhere.shape)[0], np.broadcast_to(some, everywhere.shape)[0]
    return may, some


def _next_starts(sequence: SliceSequence, may: Array, some: Array) -> tuple[Array, Array]:
    """Where the first start after each slice may be, which ends its last window if tumbling without END.

    Also, shape (slices, 1), whether there may be none.
    """
    later = np.arange(sequence.chunks) >= sequence.first_chunk[1:, None]
    passed = np.cumsum(later & some, axis=1)
    return later & may & (passed - (later & some) == 0), passed[:, -1:] == 0


def _between(lows: Array, ends: Array) -> Array:
    """The chunks from the first low to the last end."""
    from_first = np.logical_or.accumulate(lows | ends, axis=1)
    to_last = np.logical_or.accumulate((lows | ends)[:, ::-1], axis=1)[:, ::-1]
    between: Array = from_first & to_last
    return between


def _searched(
    search: Search,
    target: str,
    sequence: SliceSequence,
    sides: dict[str, _Side],
    lows: Array,
    last_low: Array,
) -> tuple[Array, Array]:
    """The chunks in which a boundary may be found by windows that search from rows in `lows` on.

    No such row has a position after `last_low`, shape (slices, 1).

    Also, shape (slices, 1), whether a window may find none: it then runs to the sequence's edge.
    """
    shape = lows.shape
    if search.strategy == "always":
        return lows, np.zeros((len(lows), 1), bool)
    if search.strategy == "unbounded":
        return np.zeros(shape, bool), np.ones((len(lows), 1), bool)
    may, some, every = (np.broadcast_to(hit, shape) for hit in _hits(search, target, sequence, sides))
    # a window from a row of chunk c on: the first chunk in which it is sure to find one
    later = _first_from(some)
    if target != "start":  # which is searched for from the sequence's first row on, not from within a chunk
        beyond = np.append(later[:, 1:], np.full((shape[0], 1), shape[1]), axis=1)
        later = np.minimum(beyond, _first_from(every))
    reached = np.zeros((shape[0], shape[1] + 1), np.int64)
    slices, chunks = np.nonzero(lows)
    np.add.at(reached, (slices, chunks), 1)
    np.add.at(reached, (slices, np.minimum(later[slices, chunks], shape[1] - 1) + 1), -1)
    open_ = (lows & (later == shape[1])).any(axis=1, keepdims=True)
    if search.strategy == "position":
        open_ = open_ & ~_is_there(search, sequence, sides, last_low)
    return may & (np.cumsum(reached, axis=1)[:, :-1] > 0), open_


def _first_from(true: Array) -> Array:
    """For each place, the first true place from there on; the number of places if there is none."""
    places = np.where(true, np.arange(true.shape[1]), true.shape[1])
    return np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]


def _hits(
    search: Search, target: str, sequence: SliceSequence, sides: dict[str, _Side]
) -> tuple[Array, Array, Array]:
    if search.strategy == "first true":
        true = sequence.true(target)
        if true is not None:
            return true, true, np.zeros(1, bool)
    assert search.predicate is not None
    return bounds.hits(search.predicate, target, _Scope(sequence, target, sides, sequence.plan.ansi))


def _is_there(search: Search, sequence: SliceSequence, sides: dict[str, _Side], last_low: Array) -> Array:
    """Whether the row at a distance from the base row certainly exists for all windows."""
    base = sides[search.base]
    lowest, highest = base.positions
    strict = search.comparison in ("<", ">")
    offset = search.offset + (-strict if search.comparison in ("<", "<=") else strict)
    before_end = (highest + offset <= sequence.rows) | (search.comparison in ("<", "<="))
    if search.base == "start":  # the search begins at the base row
        after_low = np.full(before_end.shape, offset >= 0)
    else:
        after_low = last_low <= lowest + offset
    there: Array = before_end & (after_low | (search.comparison in (">", ">="))) & ~base.missing
    return there


class _Side:
    """The rows of a boundary: for each slice those of some chunks, or no row at all."""

    def __init__(self, sequence: SliceSequence, chunks: Array, missing: Array | None = None) -> None:
        self._sequence = sequence
        self._chunks = chunks
        self.missing = np.zeros((len(chunks), 1), bool) if missing is None else missing

    @cached_property
    def positions(self) -> tuple[Array, Array]:
        """The lowest and the highest position, from 1."""
        low = np.where(self._chunks, self._sequence.first_row[:-1] + 1, np.inf).min(axis=1, initial=np.inf)
        high = np.where(self._chunks, self._sequence.first_row[1:], -np.inf).max(axis=1, initial=-np.inf)
        return low[:, None], high[:, None]

    def column(self, ref: ColumnRef) -> Range:
        found = self._sequence.bounds(ref)
        low = np.where(self._chunks, found.low, np.inf).min(axis=1, initial=np.inf)
        high = np.where(self._chunks, found.high, -np.inf).max(axis=1, initial=-np.inf)
        null, wild = ((self._chunks & flags).any(axis=1) for flags in (found.null, found.wild))
        no = np.zeros_like(self.missing)
        value = Range(low[:, None], high[:, None], null[:, None], wild[:, None], no)
        if not self.missing.any():
            return value
        either = value.or_else(self._sequence.missing(ref))
        return Range(
            *(
                np.where(self.missing, getattr(either, name), getattr(value, name))
                for name in ("low", "high", "null", "wild", "fails")
            )
        )


class _Scope:
    """What a predicate's leaves may be: the target's for each chunk, the other sides' for each slice."""

    def __init__(
        self, sequence: SliceSequence, target: str, sides: dict[str, _Side], ansi: bool, end: int = 0
    ) -> None:
        self.ansi = ansi
        self._sequence, self._target, self._sides, self._end = sequence, target, sides, end

    def at_end(self, side: str, end: int) -> _Scope:
        assert side == self._target
        return _Scope(self._sequence, side, self._sides, self.ansi, end)

    def column(self, ref: ColumnRef) -> Range:
        if ref.side != self._target:
            return self._sides[ref.side].column(ref)
        found = self._sequence.bounds(ref)
        low, high, null, wild = (part[None] for part in (found.low, found.high, found.null, found.wild))
        return self._ended(Range(low, high, null, wild, np.zeros_like(null)))

    def constant(self, ref: ConstantRef) -> Range:
        return self._sequence.constant(ref)

    def position(self, side: str, shift: int) -> Range:
        if side == self._target:
            low, high = self._sequence.first_row[None, :-1] + 1.0, self._sequence.first_row[None, 1:] + 0.0
            missing = np.zeros(low.shape, bool)
        else:
            low, high = self._sides[side].positions
            missing = self._sides[side].missing
        beyond = (low + shift < 1) | (high + shift > self._sequence.rows)
        low, high = np.maximum(low + shift, 1), np.minimum(high + shift, self._sequence.rows)
        nowhere = low > high
        low, high = np.where(nowhere, np.inf, low), np.where(nowhere, -np.inf, high)
        no = np.zeros(np.shape(missing), bool)
        value = Range(low, high, missing | (beyond if shift else no), no, no)
        return self._ended(value) if side == self._target else value

    def _ended(self, value: Range) -> Range:
        """At the row with the least or the greatest value: it has one, if any row of the chunk has."""
        if not self._end:
            return value
        at = value.high if self._end > 0 else value.low
        return Range(at, at, value.empty, value.wild, value.fails)
