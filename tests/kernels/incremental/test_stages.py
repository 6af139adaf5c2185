"""Steps of a live query in memory, held to what the query means at every instant."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.incremental import (
    BracketWindow,
    Standing,
    TimedRows,
    Times,
    WindowValueError,
    changes,
    instants_of,
    netted,
    stepwise,
)
from windrow.kernels.packing.shards import Layout
from windrow.kernels.reference.stream_window_definitions import WindowOfStream, validity
from windrow.kernels.zset import ENTER, LEAVE
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import AT, DIFF

LAST = 1 << 40
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64()), ("t", pa.int64())])

windows = st.one_of(
    st.builds(BracketWindow, st.just("t"), st.integers(1, 6), st.none() | st.integers(1, 4)),
    st.builds(
        BracketWindow,
        st.just("t"),
        st.none() | st.integers(1, 6),
        st.none() | st.integers(1, 4),
        st.integers(1, 3),
        st.sampled_from([(), ("k",), ("v",)]),
    ),
    st.just(BracketWindow("t")),
    st.builds(
        BracketWindow,
        st.just("t"),
        rows=st.integers(1, 4),
        partition=st.sampled_from([(), ("k",)]),
        row_slide=st.integers(2, 3),
    ),
)
rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 2), st.integers(0, 14)), max_size=14
).map(lambda found: sorted(found, key=lambda row: row[2]))
frontiers = st.lists(st.integers(0, 24), max_size=5, unique=True).map(lambda found: [*sorted(found), LAST])


def meant(window, rows):
    """When each row is there, by the definitions."""
    lengths = {"range_": window.length, "slide": window.slide}
    spec = WindowOfStream(**lengths, rows=window.rows, row_slide=window.row_slide)
    place = {"k": 0, "v": 1}
    keys = [tuple(row[place[name]] for name in window.partition) for row in rows]
    found = validity(spec, [row[2] for row in rows], keys)
    found = [(LAST, LAST) if one is None else one for one in found]
    return [(enter, LAST if leave is None else leave) for enter, leave in found]


def stepped(window, rows, cuts, marked, schema=SCHEMA):
    """What is held at each step, with its times, after the rows of the step are taken."""
    retained = TimedRows.of(schema.empty_table(), *(np.zeros(0, np.int64) for _ in range(3)), marked)
    since = None
    for until in cuts:
        times = Times(since, until)
        now = [row for row in rows if row[2] < until and (since is None or row[2] >= since)]
        table = pa.table([list(part) for part in zip(*now, strict=True)] or [[], [], []], schema=schema)
        retained = window.with_new(retained, table, np.zeros(len(now), np.int64), marked)
        yield retained, times
        retained = window.left(retained, times)
        since = until


TIMES = [pa.field(ENTER, pa.int64()), pa.field(LEAVE, pa.int64())]


def groups_of_windows():
    """SUM(v) and COUNT(v) by k, over what moves in a window."""
    specs = (("s", AggregateSpec("sum", "v", pa.int64())), ("n", AggregateSpec("count", "v", pa.int64())))
    keyed = Keyed("group", ("k",), Layout(1), aggregates=specs)
    kinds = [SCHEMA.field("k"), *((name, spec.result_type) for name, spec in specs)]
    return stepwise(keyed, (SCHEMA,), pa.schema([*kinds, *TIMES]))


def pairs_of_windows():
    """A join by k: k and both values, over what moves in two windows."""
    left, right = (
        pa.schema([("k", pa.string()), ("own", pa.string()), ("x", pa.int64())]),
        pa.schema([("k", pa.string()), ("y", pa.int64())]),
    )
    result = pa.schema([("own", pa.string()), ("x", pa.int64()), ("y", pa.int64()), *TIMES])
    return stepwise(Keyed("join", ("k",), Layout(1)), (left, right), result)


def as_left(moving):
    """Rows with k, v and their times, as the left side of the join."""
    columns = [moving.column(name) for name in ("k", "k", "v", ENTER, LEAVE)]
    return pa.table(columns, names=["k", "own", "x", ENTER, LEAVE])


def as_right(moving):
    """The same as the right side."""
    return moving.rename_columns(["k", "y", ENTER, LEAVE])


def told(table):
    """Changes, netted, as a counter of (row, instant)."""
    found = netted(table)
    columns = [found.column(name).to_pylist() for name in found.column_names if name not in (AT, DIFF)]
    keys = list(zip(*columns, found.column(AT).to_pylist(), strict=True))
    assert len(keys) == len(set(keys))
    return dict(zip(keys, found.column(DIFF).to_pylist(), strict=True))


def folded(relation_at, instants):
    """The changes of a relation, by what it is at each instant."""
    found, before = {}, Counter()
    for at in sorted(instants):
        now = Counter(relation_at(at))
        for row in now.keys() | before.keys():
            if now[row] != before[row]:
                found[(*row, at)] = now[row] - before[row]
        before = now
    return found


def instants(*times):
    return {at for found in times for pair in found for at in pair if at < LAST}


@settings(deadline=None)
@given(windows, rows, frontiers)
def test_rows_of_a_window_enter_and_leave(window, rows, cuts):
    there = meant(window, rows)
    marked = (window.partition,) if window.partition else ()
    found = {}
    for retained, times in stepped(window, rows, cuts, marked):
        found |= told(changes(retained.moving(times, ["k", "v"]), times))

    def relation(at):
        return [row[:2] for row, (enter, leave) in zip(rows, there, strict=True) if enter <= at < leave]

    assert found == folded(relation, instants(there))


@settings(deadline=None)
@given(windows, rows, frontiers)
def test_what_is_retained_is_enough_to_go_on(window, rows, cuts):
    marked = (window.partition,) if window.partition else ()
    for retained, times in stepped(window, rows, cuts, marked):
        after = window.left(retained, times)
        none = TimedRows.of(SCHEMA.empty_table(), *(np.zeros(0, np.int64) for _ in range(3)), marked)
        again = window.with_new(
            none, after.rows.filter(pa.array(after.alive)), after.chunk[after.alive], marked
        )
        there = again.enter < times.until
        assert again.enter[there].tolist() == after.enter[after.alive & (after.enter < times.until)].tolist()
        assert (again.enter[~there] >= times.until).all()
        leaves = [np.minimum(one.leave, times.until) for one in (again, after.where(after.alive))]
        assert leaves[0].tolist() == leaves[1].tolist()


@settings(deadline=None)
@given(windows, rows, frontiers)
def test_all_rows_at_each_instant(window, rows, cuts):
    there = meant(window, rows)
    standing, found = Standing(), Counter()
    for retained, times in stepped(window, rows, cuts, (window.partition,) if window.partition else ()):
        moves = changes(retained.moving(times, ["k", "v"]), times)
        told_now = standing.advance(moves, instants_of([retained], times))
        for *row, at, count in zip(*(column.to_pylist() for column in told_now.columns), strict=True):
            found[(*row, at)] += count
    wanted = Counter(
        (*row[:2], at)
        for at in instants(there)
        for row, (enter, leave) in zip(rows, there, strict=True)
        if enter <= at < leave
    )
    assert found == wanted


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 2)), max_size=12),
    st.integers(1, 4),
    frontiers,
)
def test_rows_leave_when_a_later_value_reaches_their_limit(moves, distance, cuts):
    rows, at, value = [], 0, 0
    for later, more in moves:
        at, value = at + later, value + (more or 0)
        shown = None if more is None else value
        rows.append((shown, None if shown is None else shown + distance, at))
    columns = ([row[place] for row in rows] for place in (0, 1))
    found = validity(WindowOfStream(by_value=True), [row[2] for row in rows], None, *columns)
    there = [(enter, LAST if leave is None else leave) for enter, leave in found]
    schema = pa.schema([("v", pa.int64()), ("l", pa.int64()), ("t", pa.int64())])
    window = BracketWindow("t", by_value=("v", "l"))
    known = {}
    for retained, times in stepped(window, rows, cuts, (), schema):
        known |= told(changes(retained.moving(times, ["v", "t"]), times))

    def relation(at):
        times = zip(rows, there, strict=True)
        return [(row[0], row[2]) for row, (enter, leave) in times if enter <= at < leave]

    assert known == folded(relation, instants(there))


@pytest.mark.parametrize(("values", "falls"), [([3, 2], True), ([3, 4], False)])
def test_values_by_which_no_row_can_leave(values, falls):
    table = pa.table({"v": values, "l": [9, 4], "t": [1, 2]})
    none = np.zeros(0, np.int64)
    retained = TimedRows.of(table.slice(0, 0), none, none, none)
    with pytest.raises(WindowValueError) as caught:
        BracketWindow("t", by_value=("v", "l")).with_new(retained, table, np.zeros(2, np.int64))
    assert caught.value.falls is falls


@settings(deadline=None)
@given(windows, rows, frontiers)
def test_groups_change_when_their_rows_do(window, rows, cuts):
    there = meant(window, rows)
    marked = (window.partition,) if window.partition else ()
    operator, found = groups_of_windows(), {}
    for retained, times in stepped(window, rows, cuts, marked):
        found |= told(changes(operator.advance([retained.moving(times, SCHEMA.names)], times), times))

    def relation(at):
        groups = {}
        for row, (enter, leave) in zip(rows, there, strict=True):
            if enter <= at < leave:
                groups.setdefault(row[0], []).append(row[1])
        return [(key, sum(values), len(values)) for key, values in groups.items()]

    assert found == folded(relation, instants(there))


@settings(deadline=None)
@given(windows, windows, rows, rows, frontiers)
def test_pairs_change_when_either_row_does(one, other, left, right, cuts):
    sides = [(one, left, meant(one, left)), (other, right, meant(other, right))]
    found = {}
    steps = [
        stepped(window, rows, cuts, (window.partition,) if window.partition else ())
        for window, rows, _ in sides
    ]
    operator = pairs_of_windows()
    for (first, times), (second, _) in zip(*steps, strict=True):
        moving = as_left(first.moving(times, ["k", "v"])), as_right(second.moving(times, ["k", "v"]))
        found |= told(changes(operator.advance([*moving], times), times))

    def relation(at):
        alive = [
            [row for row, (enter, leave) in zip(rows, there, strict=True) if enter <= at < leave]
            for _, rows, there in sides
        ]
        return [(a[0], a[1], b[1]) for a in alive[0] for b in alive[1] if a[0] is not None and a[0] == b[0]]

    assert found == folded(relation, instants(sides[0][2], sides[1][2]))


@settings(deadline=None)
@given(windows, rows, frontiers)
def test_nothing_is_held_that_has_left(window, rows, cuts):
    there = meant(window, rows)
    for retained, times in stepped(window, rows, cuts, (window.partition,) if window.partition else ()):
        left = window.left(retained, times)
        known = meant(window, [row for row in rows if row[2] < times.until])
        needed = sum(leave >= times.until for _, leave in known)
        groups = len({tuple(row[:2]) for row in rows}) if window.partition else 1
        whole = (window.row_slide - 1) * groups  # of each partition one group may have left in part
        assert needed <= left.alive.sum() <= needed + whole
        assert 7 * len(left) <= 8 * (needed + whole)
    assert len(there) == len(rows)


@pytest.mark.parametrize("count", [1, 3])
def test_rows_are_marked_by_key_without_losing_any(count):
    table = pa.table({"k": ["a", "b", "a"] * count, "v": list(range(3 * count)), "t": [0] * 3 * count})
    none = np.zeros(3 * count, np.int64)
    retained = TimedRows.of(table, none, none, none, (("k",),))
    some = np.zeros(3 * count, bool)
    some[0] = True
    assert retained.alike(("k",), some)[np.array(table.column("k")) == "a"].all()
