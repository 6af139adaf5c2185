"""Operators over relations that vary, held to what they mean at every instant."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.packing.shards import Layout
from windrow.kernels.sorting import SortKey
from windrow.kernels.zset import (
    COUNTS,
    ENTER,
    LEAVE,
    NEVER,
    counted,
    elementary,
    gaps,
    overlapping,
    partnered,
    timeline,
)
from windrow.kernels.zset.first import first_rows
from windrow.kernels.zset.group_and_time import by_group_and_time
from windrow.kernels.zset.grouped import grouped
from windrow.kernels.zset.keyed_operator import First, Keyed

INSTANTS = range(12)
interval = st.tuples(st.integers(0, 9), st.integers(1, 9) | st.none()).map(
    lambda pair: (pair[0], NEVER if pair[1] is None else pair[0] + pair[1])
)
rows = st.lists(st.tuples(st.integers(0, 2), interval), max_size=12)


def arrays(rows):
    group = np.array([group for group, _ in rows], np.int64)
    enter = np.array([enter for _, (enter, _) in rows], np.int64)
    leave = np.array([leave for _, (_, leave) in rows], np.int64)
    return group, enter, leave


def at(tick, group, enter, leave):
    """How often each group is there at an instant."""
    there = (enter <= tick) & (tick < leave)
    return Counter(group[there].tolist())


ticks = st.integers(0, 3) | st.integers(-(2**62), 2**62 - 1) | st.just(NEVER)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3) | st.just(2**40), ticks, ticks)), st.booleans())
def test_rows_are_in_order_of_group_and_time_and_else_in_their_own(rows, has_third):
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    read = 3 if has_third else 2
    order = by_group_and_time(*columns[:read])
    assert order.tolist() == sorted(range(len(rows)), key=lambda at: rows[at][:read])


@settings(deadline=None)
@given(rows)
def test_elementary_intervals_are_those_between_changes(rows):
    group, enter, leave = arrays(rows)
    pieces = elementary(group, enter, leave)
    for row in range(len(rows)):
        own = slice(pieces.first[row], pieces.stop[row])
        assert (pieces.group[own] == group[row]).all()
        assert pieces.enter[own][0] == enter[row]
        assert pieces.leave[own][-1] == leave[row]
        assert (pieces.enter[own][1:] == pieces.leave[own][:-1]).all()
    assert (pieces.enter < pieces.leave).all()
    for each in set(group.tolist()):
        own = pieces.group == each
        starts = {enter[row] for row in range(len(rows)) if group[row] == each}
        stops = {leave[row] for row in range(len(rows)) if group[row] == each}
        assert set(pieces.enter[own].tolist()) == {int(t) for t in (starts | stops) if t != max(stops)}


@settings(deadline=None)
@given(rows, st.integers(0, 3))
def test_gaps_are_where_no_row_is(rows, origin):
    _, enter, leave = arrays([row for row in rows if row[1][0] >= origin])
    begins, ends = gaps(enter, leave, origin)
    assert (begins < ends).all()
    for tick in [*INSTANTS, 100]:
        covered = ((enter <= tick) & (tick < leave)).any()
        in_gap = ((begins <= tick) & (tick < ends)).sum()
        assert in_gap == (tick >= origin and not covered)


@settings(deadline=None)
@given(rows)
def test_the_timeline_changes_where_any_row_does(rows):
    _, enter, leave = arrays(rows)
    begins, ends = timeline(enter, leave)
    assert begins.tolist() == sorted({*enter.tolist(), *leave.tolist()} - {NEVER})
    assert ends.tolist() == [*begins.tolist()[1:], NEVER][: len(begins)]


@settings(deadline=None)
@given(rows, st.integers(0, 2), st.none() | st.integers(0, 2))
def test_the_first_rows_of_a_key_are_those_of_its_rows_alone(rows, offset, limit):
    group, enter, leave = arrays(rows)
    taken = First(("g", "n"), (SortKey("n"),), offset, limit)
    operator = Keyed("first", ("g",), Layout(1), first=taken)
    columns = {"g": group, "n": np.arange(len(group)), ENTER: enter, LEAVE: leave}
    found = [row for batch in operator.rows(pa.table(columns)) for row in batch.to_pylist()]
    for tick in [*INSTANTS, 100]:
        given_then = {row["n"] for row in found if row[ENTER] <= tick < row[LEAVE]}
        wanted = set()
        for each in range(3):
            there = np.flatnonzero((group == each) & (enter <= tick) & (tick < leave))
            wanted |= set(there[offset : None if limit is None else offset + limit].tolist())
        assert given_then == wanted


@settings(deadline=None, max_examples=200)
@given(rows, rows, st.sampled_from(sorted(COUNTS)))
def test_counts_are_those_of_every_instant(left, right, operator):
    group, enter, leave = arrays(left + right)
    is_right = np.arange(len(left) + len(right)) >= len(left)
    result = counted(operator, group, enter, leave, is_right)
    assert (result[1] < result[2]).all()
    for tick in [*INSTANTS, 100]:
        one = at(tick, group[~is_right], enter[~is_right], leave[~is_right])
        other = at(tick, group[is_right], enter[is_right], leave[is_right])
        assert (
            at(tick, *result)
            == {
                "distinct": Counter(set(one)),
                "union": Counter(set(one) | set(other)),
                "intersect": Counter(set(one) & set(other)),
                "intersect all": one & other,
                "except": Counter(set(one) - set(other)),
                "except all": one - other,
            }[operator]
        )


@settings(deadline=None, max_examples=200)
@given(rows, rows)
def test_a_row_has_a_partner_at_every_instant_at_which_its_key_is_on_the_other_side(left, right):
    mine, theirs = arrays(left), arrays(right)
    row, has_partner, enter, leave = partnered(mine, theirs)
    assert (enter < leave).all()
    for tick in [*INSTANTS, 100]:
        there = {key for key, (since, until) in right if since <= tick < until}
        wanted = {at: key in there for at, (key, (since, until)) in enumerate(left) if since <= tick < until}
        now = (enter <= tick) & (tick < leave)
        assert now.sum() == len(wanted)
        assert dict(zip(row[now].tolist(), has_partner[now].tolist(), strict=True)) == wanted
    order = np.lexsort((enter, row))
    adjacent = (row[order][1:] == row[order][:-1]) & (has_partner[order][1:] == has_partner[order][:-1])
    assert not adjacent.any()


@settings(deadline=None, max_examples=200)
@given(rows, st.integers(0, 3), st.none() | st.integers(0, 3))
def test_first_rows_are_those_of_every_instant(in_order, offset, limit):
    _, enter, leave = arrays(in_order)
    row, begins, stops = first_rows(enter, leave, offset, limit)
    assert (begins < stops).all()
    for tick in [*INSTANTS, 100]:
        there = np.flatnonzero((enter <= tick) & (tick < leave))
        wanted = there[offset : None if limit is None else offset + limit]
        assert sorted(row[(begins <= tick) & (tick < stops)]) == wanted.tolist()


@settings(deadline=None)
@given(rows, rows)
def test_pairs_are_those_that_are_there_at_one_time(left, right):
    sides = [
        tuple(column[np.lexsort(arrays(side)[1::-1])] for column in arrays(side)) for side in (left, right)
    ]
    one, other = overlapping(*sides)
    found = Counter(zip(one.tolist(), other.tolist(), strict=True))
    wanted = Counter(
        (a, b)
        for a in range(len(left))
        for b in range(len(right))
        if sides[0][0][a] == sides[1][0][b]
        and max(sides[0][1][a], sides[1][1][b]) < min(sides[0][2][a], sides[1][2][b])
    )
    assert found == wanted


@pytest.mark.parametrize("length", [10, 10_000])
def test_a_join_makes_no_more_pairs_than_it_gives(length):
    """Rows that follow each other: each meets at most the two that it overlaps."""
    enter = np.arange(length, dtype=np.int64) * 2
    left = (np.zeros(length, np.int64), enter, enter + 2)
    right = (np.zeros(length, np.int64), enter + 1, enter + 3)
    one, _ = overlapping(left, right)
    assert len(one) == 2 * length - 1


@settings(deadline=None, max_examples=200)
@given(rows, st.data())
def test_aggregates_are_those_of_every_instant(rows, data):
    group, enter, leave = arrays(rows)
    numbers = [data.draw(st.none() | st.integers(0, 4)) for _ in rows]
    values = np.array([np.nan if value is None else value for value in numbers])
    table = pa.table({"x": pa.array(numbers, pa.int64())})
    specs = [
        AggregateSpec("sum", "x", pa.int64()),
        AggregateSpec("count_star", None, pa.int64()),
        AggregateSpec("max", "x", pa.int64()),
        AggregateSpec("count_distinct", "x", pa.int64()),
    ]
    found = list(grouped(table, group, enter, leave, specs))
    for tick in [*INSTANTS, 100]:
        wanted = {}
        for each in set(group.tolist()):
            there = (group == each) & (enter <= tick) & (tick < leave)
            present = values[there & ~np.isnan(values)]
            if there.any():
                total = (int(present.sum()), int(present.max())) if len(present) else (None, None)
                wanted[each] = (total[0], int(there.sum()), total[1], len(set(present.tolist())))
        given_ = {
            int(group[row]): tuple(column[at].as_py() for column in columns)
            for rows_, begins, ends, columns in found
            for at, (row, begin, end) in enumerate(zip(rows_, begins, ends, strict=True))
            if begin <= tick < end
        }
        assert given_ == wanted


@pytest.mark.parametrize("length", [20, 2_000])
def test_work_for_a_change_does_not_depend_on_the_size(length, monkeypatch):
    """Rows that leave in the order in which they came are never written out, however many are there."""
    monkeypatch.setattr("windrow.kernels.zset.grouped.expanded", None)
    count = 5_000
    enter = np.arange(count, dtype=np.int64)
    table = pa.table({"x": enter})
    (one,) = grouped(
        table, np.zeros(count, np.int64), enter, enter + length, [AggregateSpec("sum", "x", pa.int64())]
    )
    assert len(one[0]) == count + length - 1
