"""Operators that are given what changes, a step at a time, tell the changes that the whole would have."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.incremental import (
    Completing,
    Operated,
    Times,
    UnmatchedError,
    Versions,
    changes,
    first_above,
    netted,
    stepwise,
)
from windrow.kernels.packing.shards import Layout
from windrow.kernels.sorting import SortKey
from windrow.kernels.stored import from_stored, stored
from windrow.kernels.zset.keyed_operator import OF_PARTNERS, First, Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER, PARTNER
from windrow.kernels.zset.time_windows import WindowingFunction
from windrow.punctuations.lines import line_of

SIDE = pa.schema([("k", pa.int64()), ("v", pa.string())])
OTHER = pa.schema([("k", pa.int64()), ("w", pa.string())])
KEY = pa.schema([("k", pa.int64())])
TIMES = [pa.field(ENTER, pa.int64()), pa.field(LEAVE, pa.int64())]
ALL = ("k", "v")

COUNT = AggregateSpec("count", None, pa.int64())
LARGEST = AggregateSpec("max", "v", pa.string())
FIRST = First(ALL, (SortKey("v"), SortKey("k")), 1, 2)


def keyed(operator, keys, **more):
    return Keyed(operator, keys, Layout(1), **more)


OPERATORS = {
    "join": (keyed("join", ("k",)), (SIDE, OTHER), pa.schema([("v", pa.string()), ("w", pa.string())])),
    "group": (
        keyed("group", ("k",), aggregates=(("n", COUNT), ("m", LARGEST))),
        (SIDE,),
        pa.schema([("k", pa.int64()), ("n", pa.int64()), ("m", pa.string())]),
    ),
    "expand": (keyed("expand", ("k",)), (SIDE,), SIDE),
    "first": (keyed("first", (), first=FIRST), (SIDE,), SIDE),
    "distinct": (keyed("distinct", ALL), (SIDE,), SIDE),
    "union": (keyed("union", ALL), (SIDE, SIDE), SIDE),
    "intersect all": (keyed("intersect all", ALL), (SIDE, SIDE), SIDE),
    "except": (keyed("except", ALL), (SIDE, SIDE), SIDE),
    "except all": (keyed("except all", ALL), (SIDE, SIDE), SIDE),
    "semi": (keyed("semi", ("k",)), (SIDE, KEY), pa.schema([("v", pa.string())])),
    "anti": (keyed("anti", ALL), (SIDE, SIDE), pa.schema([])),
    "mark": (
        keyed("mark", ("k",)),
        (SIDE, KEY),
        pa.schema([("v", pa.string()), (PARTNER, pa.bool_())]),
    ),
    "mark all": (keyed("mark", ()), (SIDE, SIDE), pa.schema([*SIDE, (PARTNER, pa.bool_())])),
}

END = 12
rows = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1, 2]),
        st.sampled_from([None, "a", "b"]),
        st.integers(0, END - 2),
        st.integers(1, 6),
        st.booleans(),
    ).map(lambda row: (*row[:3], NEVER if row[4] else row[2] + row[3])),
    max_size=12,
)
cuts = st.sets(st.integers(1, END - 1), max_size=4).map(sorted)


def table(schema, given):
    names = [*schema.names, ENTER, LEAVE]
    columns = [[row[at] for row in given] for at in (*range(len(schema)), -2, -1)]
    return pa.table(dict(zip(names, columns, strict=True)), pa.schema([*schema, *TIMES]))


def steps(cuts):
    """The steps between the cuts: from one instant, up to another."""
    edges = [None, *cuts, END]
    return [Times(since, until) for since, until in pairwise(edges)]


def in_step(given, times):
    """What a step is told of rows: those that enter, and those that leave, which enter just before it."""
    found = []
    for *row, enter, leave in given:
        enters = enter < times.until and (times.since is None or enter >= times.since)
        leaves = leave < times.until and (times.since is None or leave >= times.since)
        if enters or leaves:
            before = enter if enters else times.since - 1
            found.append((*row, before, leave if leaves else NEVER))
    return found


def counted(told):
    """The changes of each instant, net, as a multiset."""
    return sorted(map(repr, (tuple(row.values()) for row in netted(told).to_pylist())))


def changes_of(batches, schema):
    """What an operator's rows are as changes, up to the end."""
    parts = [pa.Table.from_batches([batch]).select(schema.names) for batch in batches]
    whole = pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])
    known = [row for row in whole.to_pylist() if row[ENTER] < END]
    for row in known:
        row[LEAVE] = NEVER if row[LEAVE] >= END else row[LEAVE]
    return changes(pa.Table.from_pylist(known, schema), Times(None, END))


@pytest.mark.parametrize("make", [Operated, stepwise])
@pytest.mark.parametrize("name", OPERATORS)
@given(left=rows, right=rows, cuts=cuts)
@example(left=[(0, "a", 0, NEVER), (0, "a", 3, 5)], right=[(0, "a", 4, NEVER)], cuts=[2, 4])
def test_steps_tell_what_the_whole_has(name, make, left, right, cuts):
    operator, schemas, given = OPERATORS[name]
    result = pa.schema([*given, *TIMES])
    sides = [left, right][: len(schemas)]
    whole = [
        table(schema, [(*row[:3], row[3]) for row in side])
        for schema, side in zip(schemas, sides, strict=True)
    ]
    filled = [side if side.num_rows else None for side in whole]
    of_left = len(filled) == 1 or operator.name in OF_PARTNERS
    needed = filled if operator.name == "join" else filled[:1] if of_left else []
    is_empty = any(side is None for side in needed) or not any(side is not None for side in filled)
    wanted = [] if is_empty else list(operator.rows(*filled))
    operated = make(operator, schemas, result)
    told = []
    for times in steps(cuts):
        new_rows = [table(schema, in_step(side, times)) for schema, side in zip(schemas, sides, strict=True)]
        told.append(changes(operated.advance(new_rows, times), times))
    assert counted(pa.concat_tables(told)) == counted(changes_of(wanted, result))
    staying = sum(leave >= END for side in sides for *_, leave in side)
    assert operated.retained == staying or make is not Operated


KINDS = {
    "decimals": pa.decimal128(10, 2),
    "texts": pa.string(),
    "floats": pa.float64(),
    "integers": pa.int64(),
}


@pytest.mark.parametrize("kind", KINDS)
@given(given=rows, cuts=cuts)
def test_what_nothing_leaves_is_merged_and_not_kept(kind, given, cuts):
    """Groups of rows that only come: what is held are the groups, and they are told as of all rows."""
    type_ = KINDS[kind]
    side = pa.schema([("k", pa.int64()), ("v", type_)])
    values = {None: None, "a": 0.1, "b": 1e16} if kind == "floats" else {None: None, "a": 1, "b": 2}
    rows_in = [
        (k, str(values[v]) if kind == "texts" and v else values[v], at, NEVER) for k, v, at, _ in given
    ]
    specs = [
        ("n", COUNT),
        ("least", AggregateSpec("min", "v", type_)),
        ("most", AggregateSpec("max", "v", type_)),
    ]
    if kind != "texts":
        total = pa.decimal128(20, 2) if kind == "decimals" else type_
        mean = pa.decimal128(14, 6) if kind == "decimals" else pa.float64()
        specs += [("sum", AggregateSpec("sum", "v", total)), ("mean", AggregateSpec("avg", "v", mean))]
    operator = keyed("group", ("k",), aggregates=tuple(specs))
    result = pa.schema([("k", pa.int64()), *((name, spec.result_type) for name, spec in specs), *TIMES])
    whole = [] if not rows_in else list(operator.rows(table(side, rows_in)))
    operated = stepwise(operator, (side,), result, appends=True)
    told = []
    for times in steps(cuts):
        told.append(changes(operated.advance([table(side, in_step(rows_in, times))], times), times))
    assert counted(pa.concat_tables(told)) == counted(changes_of(whole, result))
    assert operated.retained == len({k for k, *_ in rows_in})


@pytest.mark.parametrize("keys", [(), ("k",)])
@given(given=rows, cuts=cuts)
def test_of_the_first_rows_of_what_only_comes_no_more_are_kept(keys, given, cuts):
    operator = keyed("first", keys, first=FIRST)
    result = pa.schema([*SIDE, *TIMES])
    rows_in = [(k, v, at, NEVER) for k, v, at, _ in given]
    wanted = list(operator.rows(table(SIDE, rows_in))) if rows_in else []
    operated = stepwise(operator, (SIDE,), result, appends=True)
    told = []
    for times in steps(cuts):
        told.append(changes(operated.advance([table(SIDE, in_step(rows_in, times))], times), times))
    assert counted(pa.concat_tables(told)) == counted(changes_of(wanted, result))
    of = Counter(k if keys else None for k, *_ in rows_in)
    assert operated.retained == sum(min(count, FIRST.offset + FIRST.limit) for count in of.values())


def test_the_first_of_rows_without_keys_and_order_are_those_that_came_first():
    operator, times = keyed("first", (), first=First(ALL, (), 0, 1)), Times(None, END)
    operated = stepwise(operator, (SIDE,), pa.schema([*SIDE, *TIMES]), appends=True)
    found = operated.advance([table(SIDE, [(1, "b", 0, NEVER), (1, "a", 0, NEVER)])], times)
    assert found.to_pylist() == [{"k": 1, "v": "b", ENTER: 0, LEAVE: NEVER}]


WINDOW = 4
of_windows = st.lists(
    st.tuples(
        st.integers(0, END - 2), st.sampled_from([None, 1, 2, 5]), st.none() | st.integers(0, WINDOW - 1)
    ),
    max_size=14,
)
OF_INTEGERS = (
    ("n", COUNT),
    ("sum", AggregateSpec("sum", "v", pa.int64())),
    ("most", AggregateSpec("max", "v", pa.int64())),
    ("kinds", AggregateSpec("count_distinct", "v", pa.int64())),
)
HOLDING = {  # what is held of windows that are over: nothing
    "groups that go on": (OF_INTEGERS, False),
    "of rows that only come": (OF_INTEGERS, True),
    "of states that are merged": ((("least", AggregateSpec("min", "v", pa.float64())),), True),
    "of rows": ((("mean", AggregateSpec("avg", "v", pa.float64())),), False),
}


@pytest.mark.parametrize("how", HOLDING)
@given(given=of_windows, cuts=cuts, forgotten=st.sets(st.integers(0, 4)))
def test_keys_that_are_over_are_forgotten(how, given, cuts, forgotten):
    """Of windows, each of which is over when time has passed it, what is told is what is told of all."""
    specs, appends = HOLDING[how]
    kind = pa.float64() if specs[0][1].result_type == pa.float64() else pa.int64()
    side = pa.schema([("w", pa.int64()), ("v", kind)])
    rows_in = []
    for at, value, stays in given:
        window = at // WINDOW
        leaves = not appends and stays is not None and at + 1 + stays < (window + 1) * WINDOW
        rows_in.append((window, value, at, at + 1 + stays if leaves else NEVER))
    operator = keyed("group", ("w",), aggregates=specs)
    result = pa.schema([("w", pa.int64()), *((name, spec.result_type) for name, spec in specs), *TIMES])
    whole, less = (stepwise(operator, (side,), result, appends=appends) for _ in range(2))
    for number, times in enumerate(steps(cuts)):
        rows = table(side, in_step(rows_in, times))
        assert less.advance([rows], times).equals(whole.advance([rows], times))
        if number in forgotten or times.until == END:
            over = times.until // WINDOW
            less.forget(lambda keys, over=over: keys.column("w").to_numpy() < over)
    assert less.retained == 0
    other = stepwise(operator, (side,), result, appends=appends)
    other.restore(from_stored(stored(less.state)))
    later = table(side, [(9, 3, END, NEVER), (9, 1, END, NEVER)])
    for each in (less, other):
        assert each.advance([later], Times(END, END + 1)).num_rows == 1
        assert each.retained == stepwise_held(operator, side, result, later, appends)


def stepwise_held(operator, side, result, rows, appends):
    """What an operator holds that knows nothing but these rows."""
    fresh = stepwise(operator, (side,), result, appends=appends)
    fresh.advance([rows], Times(END, END + 1))
    return fresh.retained


def test_a_group_leaves_with_the_key_with_which_it_came():
    """Equal keys may differ to the eye: zeros of either sign in a struct."""
    key = pa.struct([("x", pa.float64())])
    side = pa.schema([("k", key), ("v", pa.int64())])
    result = pa.schema([("k", key), ("n", pa.int64()), *TIMES])
    operated = stepwise(keyed("group", ("k",), aggregates=(("n", COUNT),)), (side,), result)
    told = [
        operated.advance([table(side, [({"x": zero}, 1, at, NEVER)])], times)
        for zero, at, times in ((-0.0, 0, Times(None, 1)), (0.0, 1, Times(1, 2)))
    ]
    assert [repr(one["k"]["x"]) for one in pa.concat_tables(told).to_pylist()] == ["-0.0"] * 3


def test_what_leaves_where_nothing_should_is_noticed():
    operator, schemas, given = OPERATORS["group"]
    operated = stepwise(operator, schemas, pa.schema([*given, *TIMES]), appends=True)
    operated.advance([table(SIDE, [(0, "a", 0, NEVER)])], Times(None, 3))
    with pytest.raises(UnmatchedError):
        operated.advance([table(SIDE, [(0, "a", 2, 4)])], Times(3, 6))


def test_a_time_without_a_window_says_so_where_no_rows_are_left_to_begin_again_from():
    side, names = pa.schema([("t", pa.int64())]), ("b", "e")
    windows = WindowingFunction("TUMBLE", "t", {"size": 10}, names, 2**63 - 1)
    result = pa.schema([("t", pa.int64()), *((name, pa.int64()) for name in names), *TIMES])
    operated = stepwise(keyed("windows", (), windows=windows), (side,), result)
    with pytest.raises(UnmatchedError) as caught:
        operated.advance([table(side, [(2**63 - 2, 0, NEVER)])], Times(None, 1))
    assert caught.value.reason.condition == "ARITHMETIC_OVERFLOW"


@given(given=rows, cuts=cuts, complete=st.lists(st.integers(0, 2 * END), min_size=3, max_size=3))
def test_rows_are_shown_from_when_they_are_complete(given, cuts, complete):
    """By the first of their columns; NULL is never complete."""
    when = {None: NEVER, **dict(enumerate(complete))}
    shown = [(k, v, max(enter, when[k]), leave) for k, v, enter, leave in given]
    shown = [row for row in shown if row[2] < row[3]]
    completing = Completing(SIDE)
    told = []
    for times in steps(cuts):

        def since_when(retained, times=times):
            found = [when[k] for k in retained.column("k").to_pylist()]
            return pa.array([at if at < times.until else NEVER for at in found], pa.int64()).to_numpy()

        new_rows = table(SIDE, in_step(given, times))
        told.append(changes(completing.advance(new_rows, since_when, times), times))
    wanted = table(SIDE, shown).to_batches()
    assert counted(pa.concat_tables(told)) == counted(changes_of(wanted, pa.schema([*SIDE, *TIMES])))


@given(given=rows, cuts=cuts)
def test_of_the_rows_that_are_held_only_those_are_looked_at_that_are_complete(given, cuts):
    """Where a watermark tells, which reaches a key above `k` when `4 * (k + 1)` has come."""
    line = line_of(pa.int64())
    whole, near = Completing(SIDE), Completing(SIDE, {"k": line})
    for times in steps(cuts):

        def since_when(retained, times=times):
            found = [NEVER if k is None else 4 * (k + 1) for k in retained.column("k").to_pylist()]
            return np.array([at if at < times.until else NEVER for at in found], np.int64)

        new_rows = table(SIDE, in_step(given, times))
        boxes = [{"k": (line.first, (times.until - 1) // 4)}]
        told = near.advance(new_rows, since_when, times, boxes)
        assert counted(changes(told, times)) == counted(
            changes(whole.advance(new_rows, since_when, times), times)
        )
    stays = [row for row in given if row[3] >= END and (row[0] is None or 4 * (row[0] + 1) >= END)]
    assert len(near.retained) == len(whole.retained) == len(stays)


def test_what_is_looked_at_does_not_grow_with_what_is_held():
    looked_at = []
    for count in (100, 10_000):
        line = line_of(pa.int64())
        completing = Completing(pa.schema([SIDE.field("k")]), {"k": line})
        schema = completing.schema
        completing.advance(table(schema, [(k, 0, NEVER) for k in range(count)]), _never, Times(None, 1), [])
        before = completing.looked_at
        for at in range(1, 6):

            def since_when(retained, at=at):
                return np.where(retained.column("k").to_numpy() < at, at, NEVER)

            near = [{"k": (line.first, at)}]
            told = completing.advance(table(schema, []), since_when, Times(at, at + 1), near)
            assert told.column("k").to_pylist() == [at - 1]
        looked_at.append(completing.looked_at - before)
    assert looked_at == [5, 5]


def _never(rows):
    return np.full(rows.num_rows, NEVER)


@given(st.lists(st.tuples(st.sampled_from([None, 0, 1]), st.integers(0, 9)), max_size=12), cuts)
@pytest.mark.parametrize("key", [("k",), ()])
def test_changes_are_numbered_by_group_over_all_steps(key, given, cuts):
    schema = pa.schema([("k", pa.int64())])
    versions = Versions(schema if key else pa.schema([]))
    edges = [0, *(cut for cut in cuts if cut < len(given)), len(given)]
    seen = {}
    for low, high in pairwise(edges):
        part = given[low:high]
        if not part:
            continue
        told = pa.table({"k": pa.array([k for k, _ in part], pa.int64()), "v": [v for _, v in part]})
        numbered = versions.numbered(told, (SortKey("v"),)).to_pylist()
        assert sorted(repr((row["k"], row["v"])) for row in numbered) == sorted(map(repr, part))
        for row in numbered:
            group = row["k"] if key else ()
            assert row["__version"] == seen.get(group, 0)
            seen[group] = row["__version"] + 1


FLOATS = pa.schema([("k", pa.int64()), ("v", pa.float64())])
SUMS = pa.schema([("k", pa.int64()), ("a", pa.float64()), ("b", pa.float64())])
ADDED = keyed(
    "group",
    ("k",),
    aggregates=(
        ("a", AggregateSpec("sum", "v", pa.float64())),
        ("b", AggregateSpec("avg", "v", pa.float64())),
    ),
)
numbers = st.sampled_from([0.1, 0.2, 0.3, 0.7, 3.3, 1e16, -1e16, 1.0, -0.0, float("nan"), None])


@given(given=rows, values=st.lists(numbers, min_size=12, max_size=12), cuts=cuts)
@example(
    given=[(0, None, at, NEVER) for at in (4, 6, 10, 5)],
    values=[0.7, 0.2, 0.2, 3.3] + [None] * 8,
    cuts=[2, 10],
)
def test_sums_of_floats_leave_as_they_came(given, values, cuts):
    """In which order floats are added differs from step to step, and so may the last digits."""
    side = [(k, value, *times) for (k, _, *times), value in zip(given, values, strict=False)]
    result = pa.schema([*SUMS, *TIMES])
    operated = Operated(ADDED, (FLOATS,), result)
    above = Operated(keyed("expand", ("k",)), (SUMS,), result)
    for times in steps(cuts):
        told = operated.advance([table(FLOATS, in_step(side, times))], times)
        above.advance([told], times)
    there = above.sides[0]
    groups = {k for k, _, enter, leave in side if enter < END <= leave}
    assert sorted(map(repr, there.rows(there.everything()).column("k").to_pylist())) == sorted(
        map(repr, groups)
    )


def test_what_leaves_without_having_come_is_noticed():
    operated = Operated(keyed("expand", ("k",)), (SIDE,), pa.schema([*SIDE, *TIMES]))
    operated.advance([table(SIDE, [(0, "a", 0, NEVER)])], Times(None, 3))
    with pytest.raises(UnmatchedError):
        operated.advance([table(SIDE, [(0, "b", 2, 4)])], Times(3, 6))


@pytest.mark.parametrize("name", ["join", "group", "distinct", "union", "semi", "mark"])
def test_a_step_looks_at_no_more_rows_where_more_are_kept(name):
    """Counted: the kept rows that are found or given, with 200 keys and with 5,000."""
    operator, schemas, given = OPERATORS[name]
    looked_at = []
    for count in (200, 5000):
        operated = stepwise(operator, schemas, pa.schema([*given, *TIMES]))
        before = [(k, "a", 0, NEVER) for k in range(count)]
        operated.advance([table(schema, before) for schema in schemas], Times(None, 1))
        seen = operated.looked_at
        changed = [(k, "a", 0, 3) for k in range(0, 100, 5)] + [(k, "b", 2, NEVER) for k in range(50, 60)]
        operated.advance([table(schema, changed) for schema in schemas], Times(1, 4))
        looked_at.append(operated.looked_at - seen)
    assert looked_at[0] == looked_at[1] > 0


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.lists(st.integers(0, 10), max_size=6))
def test_a_row_is_complete_from_the_first_watermark_above_it(values, ticks):
    """Also where watermarks fall, as those of local times do when a clock is set back."""
    wanted = [next((at for at, value in enumerate(values) if value > tick), NEVER) for tick in ticks]
    whens = np.arange(len(values))
    assert first_above(np.array(values), whens, np.array(ticks, np.int64)).tolist() == wanted
