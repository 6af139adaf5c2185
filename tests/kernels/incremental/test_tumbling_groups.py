"""Groups over tumbling windows, from rows as they arrive, held to what the query means at every instant."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.kernels.incremental.test_stages import (
    SCHEMA,
    TIMES,
    folded,
    frontiers,
    instants,
    meant,
    rows,
    told,
)
from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.incremental import (
    BracketWindow,
    InputState,
    Program,
    ProgramFragment,
    ProgramNode,
    Run,
    Times,
    TumblingGroups,
    WindowInput,
    changes,
    over_tumbling,
)
from windrow.kernels.packing.shards import Layout
from windrow.kernels.stored import from_stored, stored
from windrow.kernels.zset import ENTER, LEAVE
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import AT, DIFF

SPECS = (
    ("s", AggregateSpec("sum", "v", pa.int64())),
    ("n", AggregateSpec("count", None, pa.int64())),
    ("high", AggregateSpec("max", "v", pa.int64())),
    ("d", AggregateSpec("count_distinct", "v", pa.int64())),
)
LEAF, GROUPS = 0, 1


def program(length, specs=SPECS, schema=SCHEMA):
    """GROUP BY k over the rows of a window."""
    whole = pa.schema([*schema, *TIMES])
    names = tuple(whole.names)
    side = ProgramFragment(0, (LEAF,), whole, {LEAF: frozenset(names)}, chosen=names)
    kinds = [(name, spec.result_type) for name, spec in specs]
    result = pa.schema([schema.field("k"), *kinds, *TIMES])
    own = tuple(result.names)
    keyed = Keyed("group", ("k",), Layout(1), aggregates=specs)
    output = ProgramFragment(1, (GROUPS,), result, {GROUPS: frozenset(own)}, chosen=own)
    nodes = (ProgramNode(keyed, (side,), result, GROUPS),)
    return over_tumbling(Program(nodes, (output,)), {LEAF: length})


def refused(*_):
    raise AssertionError("all is computed in memory")


def at_each(found, there):
    """What the groups are at each instant."""

    def relation(at):
        groups = {}
        for row, (enter, leave) in zip(found, there, strict=True):
            if enter <= at < leave:
                groups.setdefault(row[0], []).append(row[1])
        return [(key, sum(own), len(own), max(own), len(set(own))) for key, own in groups.items()]

    return relation


@settings(deadline=None, max_examples=200)
@given(rows, st.integers(1, 6), frontiers, st.sets(st.integers(0, 5)))
@example([("a", 1, 1), ("a", 1, 3)], 2, [2, 3, 4, 1 << 40], {1, 2})
def test_groups_of_tumbling_windows(rows, length, cuts, restarts):
    window = WindowInput("w", BracketWindow("t", length, length), SCHEMA, at_arrival=True)
    run, state = Run(program(length), refused), InputState.nothing(window)
    assert isinstance(run.operators[0], TumblingGroups)
    since, found = None, {}
    for number, until in enumerate(cuts):
        times = Times(since, until)
        now = [row for row in rows if row[2] < until and (since is None or row[2] >= since)]
        columns = [list(part) for part in zip(*now, strict=True)] or [[], [], []]
        state = state.with_arrivals(pa.table(columns, schema=SCHEMA), number).advanced(window, times)
        moves = window.moving(state.retained, times, SCHEMA.names)
        (changed,) = run.advance({LEAF: moves}, times)
        moved = changes(changed, times)
        now_told = told(moved)
        assert len(now_told) == moved.num_rows, "no group enters at the instant at which an equal one leaves"
        found |= now_told
        state = state.after(window, times)
        if number in restarts:  # from its state, without any row
            again = Run(program(length), refused)
            again.restore(from_stored(stored(run.state)))
            run, state = again, InputState.nothing(window)
        since = until
    there = meant(window.window, rows)
    assert found == folded(at_each(rows, there), instants(there))


def test_no_row_is_retained_and_closing_a_window_reads_groups_once():
    keys, each = 1000, 20
    run, looked = Run(program(1000, SPECS[:3]), refused), []
    for part in range(2 * each):  # two windows, of each key a row in each of twenty parts
        at = part * 50
        columns = [[f"k{key}" for key in range(keys)], [part] * keys, [at + 1] * keys]
        table = pa.table(columns, schema=SCHEMA)
        enter = np.full(keys, at + 1 + (-(at + 1)) % 1000)
        moves = table.append_column(ENTER, pa.array(enter)).append_column(LEAVE, pa.array(enter + 1000))
        before = run.looked_at
        run.advance({LEAF: moves}, Times(at or None, at + 50))
        looked.append(run.looked_at - before if part not in (each, each + 1) else 0)
        assert run.retained <= 2 * keys, "a group of the window that is there, and of the next"
    assert max(looked[2:each]) == max(looked[each + 2 :]), "a row costs the same, however many came before"


def test_other_windows_are_left_to_other_operators():
    specs = (("m", AggregateSpec("median", "v", pa.float64())),)
    assert program(5, specs).nodes[0].tumbling is None
    assert program(5).nodes[0].tumbling == 5


def test_only_the_total_of_a_window_must_fit():
    """A sum that is too large for its type while rows are missing is none that anyone sees."""
    run, most = Run(program(10, SPECS[:3]), refused), 2**63 - 1

    def rows_at(at, value):
        table = pa.table([["a"], [value], [at]], schema=SCHEMA)
        return table.append_column(ENTER, pa.array([10])).append_column(LEAVE, pa.array([20]))

    found = []
    for number, value in enumerate((most, 5, -9)):
        since = number or None
        (changed,) = run.advance({LEAF: rows_at(number, value)}, Times(since, number + 1))
        found += changed.to_pylist()
    (changed,) = run.advance({LEAF: rows_at(4, 0).slice(0, 0)}, Times(3, 11))
    assert found == []
    assert changed.select(["k", "s", "n", "high"]).to_pylist() == [
        {"k": "a", "s": most - 4, "n": 3, "high": most}
    ]


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (pa.struct([("a", pa.float64())]), {"a": 0.0}, {"a": -0.0}),
        (pa.list_(pa.int64()), [1, None], [1, None]),
        (pa.float64(), float("nan"), float("nan")),
        (pa.string(), None, None),
    ],
    ids=["structs", "lists", "NaN", "NULL"],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_group_that_a_window_does_not_change_stays(kind, first, second, at_once):
    """Whatever its key is, and whether both windows are in one micro-batch or not."""
    schema = pa.schema([("k", kind), ("v", pa.int64()), ("t", pa.int64())])
    run = Run(program(10, SPECS[:3], schema), refused)

    def rows_at(*found):
        keys, enters = ([one[place] for one in found] for place in (0, 1))
        table = pa.table([pa.array(keys, kind), [7] * len(found), enters], schema=schema)
        leaves = [at + 10 for at in enters]
        return table.append_column(ENTER, pa.array(enters)).append_column(LEAVE, pa.array(leaves))

    steps = [[(first, 10)], [(second, 20)], []]
    steps = [[*steps[0], *steps[1]], []] if at_once else steps
    found, since = [], None
    for own, until in zip(steps, (21, 31) if at_once else (9, 15, 31), strict=True):
        moves = rows_at(*own) if own else rows_at((first, 10)).slice(0, 0)
        times = Times(since, until)
        (changed,) = run.advance({LEAF: moves}, times)
        found += [(row[AT], row[DIFF]) for row in changes(changed, times).to_pylist()]
        since = until
    assert found == [(10, 1), (30, -1)]
