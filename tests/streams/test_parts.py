"""Rows that tasks judge in parts are judged as one after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.streams.admission.batch_watermark import advance
from windrow.streams.admission.future import Future
from windrow.streams.admission.parts import Ahead, BatchPart, EntrySummary, judge_part
from windrow.streams.admission.watermark import Ordering, WatermarkState
from windrow.streams.entries import FOREVER, NO_BOUND, Decision, Entries, EntryKind

ORDERINGS = [Ordering.ordered(), Ordering.unordered(), Ordering.lagging(0), Ordering.lagging(3)]
TICK = 1_000_000  # microseconds
ANY = Future(2**40, 1000 * TICK)
FUTURES = [None, Future(0, 1000 * TICK), Future(4 * TICK, 1000 * TICK)]


def in_parts(ordering, parts):
    """The decisions and violated bounds of the rows of parts, and the clock after each part."""
    summary, found, clocks = EntrySummary(), [], []
    for part in parts:
        rowtimes = np.array([NO_BOUND if at is None else at for at, _ in part], np.int64)
        bounds = np.array([NO_BOUND if bound is None else bound for _, bound in part], np.int64)
        is_row, ptimes = rowtimes != NO_BOUND, np.arange(len(part)) * TICK
        ahead = Ahead.of(ordering.future or ANY, rowtimes, bounds, ptimes)
        times, rowtimes = rowtimes, np.where(ahead.rows, NO_BOUND, rowtimes)
        bounds = np.where(ahead.bounds, NO_BOUND, bounds)
        cut = len(part) // 2  # a task may read a part at several times
        first, *before = BatchPart().read(rowtimes[:cut], bounds[:cut])
        whole, *rest = first.read(rowtimes[cut:], bounds[cut:])
        seen, bounds = (np.concatenate(both) for both in zip(before, rest, strict=True))
        decision, violated = judge_part(ordering, summary, times, seen, bounds)
        decision[ahead.rows], violated[ahead.rows] = Decision.QUARANTINED, ahead.limits[ahead.rows]
        found += zip(decision[is_row].tolist(), violated[is_row].tolist(), strict=True)
        summary = summary.then(whole)
        clocks.append(summary.watermark(ordering))
    return found, clocks


def one_after_the_other(ordering, parts, idle=frozenset()):
    """The same by the clock that judges entries in their order; after some parts the producer is idle."""
    state, found, clocks = WatermarkState(), [], []
    for number, part in enumerate(parts):
        items = []
        for place, (at, bound) in enumerate(part):
            items += [] if at is None else [(EntryKind.ROW, "", at, place * TICK)]
            items += [] if bound is None else [(EntryKind.BOUND, "", bound, place * TICK)]
        items += [(EntryKind.IDLE, "", 0, len(part) * TICK)] if number in idle else []
        decided = advance(state, ordering, Entries.of(items))
        rows = [place for place, item in enumerate(items) if item[0] == EntryKind.ROW]
        found += [(int(decided.decision[place]), int(decided.violated[place])) for place in rows]
        state = decided.state
        clocks.append(state.value)
    return found, clocks


times = st.integers(-5, 12)
entries = st.one_of(
    st.tuples(times, st.none()),
    st.tuples(st.none(), st.one_of(times, st.just(FOREVER))),
    st.tuples(times, times),
)


@given(
    st.sampled_from(ORDERINGS),
    st.sampled_from(FUTURES),
    st.lists(st.lists(entries, max_size=6), max_size=5),
    st.sets(st.integers(0, 4)),
)
def test_parts_are_judged_as_one_after_the_other(ordering, future, parts, idle):
    ordering = replace(ordering, future=future)
    found = in_parts(ordering, parts)
    assert found == one_after_the_other(ordering, parts)
    assert found == one_after_the_other(ordering, parts, idle)


def test_what_a_part_does_not_know():
    first, second = [(10, None)], [(4, None), (8, None)]
    found, clocks = in_parts(Ordering.lagging(3), [first, second])
    assert found == [(Decision.ADMITTED, NO_BOUND), (Decision.LATE, 7), (Decision.ADMITTED, NO_BOUND)]
    assert clocks == [7, 7]


def test_a_bound_before_the_first_row_gives_no_clock():
    found, clocks = in_parts(Ordering.unordered(), [[(None, 5)], [(3, None)], [(6, None)]])
    assert found == [(Decision.REJECTED, 5), (Decision.ADMITTED, NO_BOUND)]
    assert clocks == [None, None, 5]


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_a_part_without_entries_says_nothing(ordering):
    assert EntrySummary(7, 5, started=True).then(BatchPart()) == EntrySummary(7, 5, started=True)
    assert EntrySummary().watermark(ordering) is None
