"""Aggregates over windows of rows with gaps: whole ranges of rows are missing.

The partial state of each missing range is known (:class:`~windrow.kernels.aggregates.spec.Partial`). A window
that covers some is its rows before the first, the range from the first to the last, and its rows after that:
three states to merge. The number of such ranges is small, and each is computed once; states are merged, never
subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.aggregates.spec import AggregateSpec, Evaluate, Ints, Partial, Result

__all__ = ["Gaps", "across", "combined"]


@dataclass(frozen=True)
class Gaps:
    """Missing ranges of rows, in order; a window covers each wholly or not at all.

    Attributes
    ----------
    low, stop
        int64: rows ``low[g] <= i < stop[g]`` of the table, at least one, stand for range g. Aggregates do not
        read them.
    states
        One row for each range.
    """

    low: Ints
    stop: Ints
    states: pa.Table


def across(
    evaluate: Evaluate,
    partial: Partial,
    spec: AggregateSpec,
    column: pa.ChunkedArray,
    lo: Ints,
    hi: Ints,
    gaps: Gaps,
) -> Result:
    """As `evaluate`, for windows some of which cover gaps."""
    first = np.searchsorted(gaps.low, lo)
    last = np.searchsorted(gaps.stop, hi, side="right") - 1
    broken = first <= last
    across_, whole = np.flatnonzero(broken), np.flatnonzero(~broken)
    if not len(across_):
        return evaluate(spec, column, lo, hi)
    first, last = first[across_], last[across_]
    before = partial.state(spec, column, lo[across_], gaps.low[first])
    after = partial.state(spec, column, gaps.stop[last], hi[across_])
    middle = _between(partial, spec, column, gaps, first, last)
    states = partial.merge(spec, partial.merge(spec, before, middle), after)
    found = partial.final(spec, column.type, states)
    if not len(whole):
        return found
    parts = [*_chunks(found), *_chunks(evaluate(spec, column, lo[whole], hi[whole]))]
    order = np.empty(len(lo), np.int64)
    order[across_], order[whole] = np.arange(len(across_)), len(across_) + np.arange(len(whole))
    return pa.chunked_array(parts).take(pa.array(order))


def combined(
    partial: Partial, spec: AggregateSpec, states: pa.Table, empty: pa.Table, lo: Ints, hi: Ints
) -> pa.Table:
    """The states of rows ``lo[k] <= i < hi[k]`` of `states`, merged in order, for every k.

    `empty` is the state of no rows. The states of 1, 2, 4, … neighbours are merged in turn, and each range is
    merged from those.
    """
    at, rest = lo.copy(), hi - lo
    result = _repeated(empty, len(lo))
    width = 1
    while (rest > 0).any():
        used = (rest & width) > 0
        choices = pa.concat_tables([states, empty])
        result = partial.merge(spec, result, choices.take(pa.array(np.where(used, at, len(states)))))
        at, rest = at + np.where(used, width, 0), rest & ~width
        if len(states) > width:
            states = partial.merge(spec, states.slice(0, len(states) - width), states.slice(width))
        else:
            states = states.slice(0, 0)
        width *= 2
    return result


def _between(
    partial: Partial, spec: AggregateSpec, column: pa.ChunkedArray, gaps: Gaps, first: Ints, last: Ints
) -> pa.Table:
    """The state from the beginning of one gap to the end of another."""
    inner = partial.state(spec, column, gaps.stop[:-1], gaps.low[1:])
    zero = np.zeros(1, np.int64)
    empty = partial.state(spec, column, zero, zero)
    count = len(gaps.low)
    alternating = np.empty(2 * count - 1, np.int64)
    alternating[::2], alternating[1::2] = np.arange(count), count + np.arange(count - 1)
    items = pa.concat_tables([gaps.states, inner]).take(pa.array(alternating))
    pairs, which = np.unique(first * count + last, return_inverse=True)
    made = combined(partial, spec, items, empty, 2 * (pairs // count), 2 * (pairs % count) + 1)
    return made.take(pa.array(which))


def _repeated(state: pa.Table, times: int) -> pa.Table:
    return state.take(pa.array(np.zeros(times, np.int64)))


def _chunks(result: Result) -> list[pa.Array]:
    return list(result.chunks) if isinstance(result, pa.ChunkedArray) else [result]
