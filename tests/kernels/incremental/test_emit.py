"""The forms of EMIT: the kernel and the reference agree, and what is told adds up to what is."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windrow.algebra.watermarks import least_watermark, of_producers, value_at
from windrow.kernels.reference.emit import State, emitted, versions
from windrow.kernels.zset import NEVER
from windrow.kernels.zset.delayed import delayed
from windrow.streams import EntryKind, Ordering, WatermarkState
from windrow.streams.admission.watermark import decide
from windrow.streams.entries import FOREVER, Entries

times = st.tuples(st.integers(0, 20), st.integers(1, 12) | st.none()).map(
    lambda pair: (pair[0], NEVER if pair[1] is None else pair[0] + pair[1])
)
rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), times), max_size=12)
replaced = [(0, 1, (0, 5)), (0, 1, (5, 9)), (0, 2, (2, 5)), (0, 2, (5, NEVER)), (0, 3, (6, NEVER))]
completed = st.tuples(*[st.integers(0, 30) | st.just(NEVER)] * 3)


def states(rows, complete=(NEVER, NEVER, NEVER)):
    """What is there at every instant at which something changes."""
    instants = {at for _, _, span in rows for at in span if at != NEVER} | set(complete) - {NEVER}
    found = []
    for at in sorted(instants):
        there = Counter((group, row) for group, row, (enter, leave) in rows if enter <= at < leave)
        found.append(State(at, there, frozenset(group for group in range(3) if complete[group] <= at)))
    return found


def folded(changes, at):
    total = Counter()
    for change in changes:
        if change.at <= at:
            total[change.group, change.row] += change.diff
    return {key: count for key, count in total.items() if count}


@given(rows)
def test_a_stream_adds_up_to_the_table_at_every_instant(rows):
    told = emitted(states(rows))
    for state in states(rows):
        assert folded(told, state.at) == dict(state.rows)


@given(rows, completed)
def test_after_watermark_it_adds_up_to_the_complete_rows(rows, complete):
    told = emitted(states(rows, complete), watermark=True)
    for state in states(rows, complete):
        expected = {key: count for key, count in state.rows.items() if key[0] in state.complete}
        assert folded(told, state.at) == expected


@given(rows, completed, st.integers(1, 9), st.booleans())
def test_after_a_delay_nothing_is_old(rows, complete, delay, watermark):
    """At every instant what has been told is what was there at one not longer ago than the delay."""
    known = states(rows, complete)
    told = emitted(known, delay=delay, watermark=watermark)
    for group in range(3):
        for at in range(50):
            shown = {key: count for key, count in folded(told, at).items() if key[0] == group}
            recent = [{}] if all(state.at > at - delay for state in known) else []
            last = [state for state in known if state.at <= at - delay][-1:]
            for state in [*last, *(each for each in known if at - delay < each.at <= at)]:
                recent.append({key: count for key, count in state.rows.items() if key[0] == group})
            assert shown in recent
    assert folded(told, 99) == dict(known[-1].rows if known else {})


@settings(max_examples=300)
@given(rows, completed, st.integers(1, 9), st.booleans())
@example(replaced, (7, NEVER, NEVER), 3, True).via("an equal row leaves and enters")
def test_the_kernel_tells_what_the_reference_does(rows, complete, delay, watermark):
    group = np.array([group for group, _, _ in rows], np.int64)
    enter = np.array([enter for _, _, (enter, _) in rows], np.int64)
    leave = np.array([leave for _, _, (_, leave) in rows], np.int64)
    done = np.array([complete[each] if watermark else NEVER for each in group], np.int64)
    same = np.array([4 * group + row for group, row, _ in rows], np.int64)
    found, begins, ends = delayed(group, same, enter, leave, done, delay)
    net = Counter()
    for row, begin, end in zip(found.tolist(), begins.tolist(), ends.tolist(), strict=True):
        net[begin, rows[row][0], rows[row][1]] += 1
        if end != NEVER:
            net[end, rows[row][0], rows[row][1]] -= 1
    told = emitted(states(rows, complete), delay=delay, watermark=watermark)
    expected = {(change.at, change.group, change.row): change.diff for change in told}
    assert {key: count for key, count in net.items() if count} == expected


@given(rows)
def test_versions_count_the_changes_of_each_group(rows):
    told = emitted(states(rows))
    for group in range(3):
        own = [number for number, change in zip(versions(told), told, strict=True) if change.group == group]
        assert own == list(range(len(own)))


entries = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.integers(0, 30) | st.none(), st.integers(0, 30)),
    max_size=12,
)


@given(st.lists(entries, min_size=1, max_size=3))
def test_several_logs_hold_each_other_back(logs):
    watermarks = [of_producers(log) for log in logs]
    found = least_watermark(watermarks)
    for at in range(10):
        values = [value_at(each, at) for each in watermarks]
        assert value_at(found, at) == (None if None in values else min(values))


def by_definition(logged, idle):
    """The watermark by the definition of admission, which is told when a producer has become idle."""
    state, history = WatermarkState(), []

    def told(ptime, items):
        nonlocal state
        ordering = Ordering.unordered()
        state = decide(state, ordering, Entries.of([(*one, ptime) for one in items])).state
        if state.value is not None and (not history or state.value > history[-1][1]):
            del history[len(history) - bool(history and history[-1][0] == ptime) :]
            history.append((ptime, state.value))

    def expired(until):
        while idle is not None and (
            found := [
                (known.heard + idle, name)
                for name, known in state.producers.items()
                if known.is_open and (until is None or known.heard + idle < until)
            ]
        ):
            at, name = min(found)
            told(at, [(EntryKind.IDLE, name, 0)])

    for ptime, producer, bound, rowtime in logged:
        expired(ptime)
        items = [] if rowtime is None else [(EntryKind.ROW, producer, rowtime)]
        told(ptime, items if bound is None else [*items, (EntryKind.BOUND, producer, bound)])
    expired(None)
    return history


bound = st.none() | st.integers(0, 30) | st.just(FOREVER)
one_entry = st.tuples(st.integers(1, 3), st.sampled_from("abc"), bound, st.none() | st.integers(0, 30))


@given(st.lists(one_entry, max_size=14), st.none() | st.integers(1, 6))
@example([(1, "a", 5, None), (1, "b", None, 3), (1, "b", 9, None)], 6)
@example([(1, "a", 5, None), (1, "b", None, 3), (1, "b", 9, None)], None)
@example([(1, "a", 5, 5), (1, "b", None, 3), (1, "a", 9, None)], None)
def test_a_watermark_is_that_of_admission(entries, idle):
    logged, now = [], 0
    for later, producer, promised, rowtime in entries:
        now += later
        logged.append((now, producer, 0 if promised is rowtime is None else promised, rowtime))
    found, expected = of_producers(logged, idle), by_definition(logged, idle)
    for at in range(now + (idle or 0) + 2):
        assert value_at(found, at) == value_at(expected, at)
