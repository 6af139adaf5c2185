"""Groups over sliding windows that are aggregated by pane are those of each row in each of its windows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.computed.computed_operations import Computed, ComputedColumns, RowFilter
from windrow.kernels.computed.computed_values import Applied, ComputedColumn
from windrow.kernels.incremental import (
    Program,
    ProgramFragment,
    ProgramNode,
    Run,
    Times,
    changes,
    netted,
    over_panes,
)
from windrow.kernels.packing.shards import Layout
from windrow.kernels.stored import from_stored, stored
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER
from windrow.kernels.zset.time_windows import WindowingFunction

TIMES = [pa.field(ENTER, pa.int64()), pa.field(LEAVE, pa.int64())]
END = 9
WINDOWS = {
    "hops that divide": ("HOP", {"dur": 6, "hopsize": 2}),
    "hops that do not": ("HOP", {"dur": 5, "hopsize": 3, "offset": 1}),
    "hops with gaps": ("HOP", {"dur": 2, "hopsize": 5}),
    "steps that divide": ("CUMULATE", {"dur": 6, "step": 2}),
    "steps that do not": ("CUMULATE", {"dur": 7, "step": 3}),
}
SPECS = (
    ("n", AggregateSpec("count", None, pa.int64())),
    ("sum", AggregateSpec("sum", "v", pa.int64())),
    ("mean", AggregateSpec("avg", "x", pa.float64())),
    ("most", AggregateSpec("max", "v", pa.int64())),
)
RESULTS = tuple(pa.field(name, spec.result_type) for name, spec in SPECS)
rows = st.lists(
    st.tuples(
        st.none() | st.integers(-7, 25),
        st.sampled_from([None, "a", "b"]),
        st.none() | st.integers(-3, 3),
        st.none() | st.sampled_from([0.1, -0.0, 1e16, 3.0]),
        st.integers(0, END - 1),
    ),
    max_size=14,
)
cuts = st.sets(st.integers(1, END - 1), max_size=4).map(sorted)


def program_of(kind, lengths, keys, specs=SPECS, *, appends=True):
    """Windows of leaf 0 at leaf 1, under other names their groups at leaf 2, and these."""
    source = [pa.field("t", pa.int64()), pa.field("k", pa.string()), pa.field("v", pa.int64())]
    source.append(pa.field("x", pa.float64()))
    windows = WindowingFunction(kind, "t", lengths, ("b", "e", "l"), 1)
    own = pa.schema([*source, *TIMES])
    windowed = pa.schema([*source, *(pa.field(name, pa.int64()) for name in ("b", "e", "l")), *TIMES])
    names = {"b": "wstart", "e": "wend", "k": "k", "v": "v", "x": "x", ENTER: ENTER, LEAVE: LEAVE}
    read = {*keys, *(spec.argument for _, spec in specs), ENTER, LEAVE}
    names = {column: name for column, name in names.items() if name in read}
    side = pa.schema([windowed.field(column).with_name(name) for column, name in names.items()])
    result = pa.schema([*(side.field(key) for key in keys), *(RESULTS[: len(specs)]), *TIMES])
    layout = Layout(1)
    return Program(
        (
            ProgramNode(
                Keyed("windows", (), layout, windows=windows),
                (ProgramFragment(0, (0,), own, {0: frozenset(own.names)}, tuple(own.names)),),
                windowed,
                1,
                appends=appends,
            ),
            ProgramNode(
                Keyed("group", keys, layout, aggregates=specs),
                (ProgramFragment(1, (1,), side, {1: frozenset(names)}, tuple(names)),),
                result,
                2,
                appends=appends,
            ),
        ),
        (ProgramFragment(2, (2,), result, {2: frozenset(result.names)}, tuple(result.names)),),
    )


def nothing(fragment, tables):
    raise AssertionError(fragment, tables)


def filtered(program, *, fails):
    """The program whose groups are of the rows in windows that do not end at `v`, by a computation; with
    `fails`, one that does not take a `v` of 3.
    """
    windows, groups = program.nodes
    (side,) = groups.sides
    numbers = {name: at for at, name in enumerate(side.chosen)}

    def differs(end, value):
        if fails and pc.any(pc.equal(value, 3)).as_py():
            raise pa.ArrowInvalid("3")
        return pc.not_equal(end, pc.fill_null(value, 0))

    condition = Applied(differs, (ComputedColumn(numbers["e"]), ComputedColumn(numbers["v"])))
    columns = ComputedColumns({at + 100: ComputedColumn(at) for at in numbers.values()})
    made = Computed(
        {at: name for name, at in numbers.items()},
        [RowFilter(condition), columns],
        [at + 100 for at in numbers.values()],
        side.schema,
    )
    other = replace(groups, sides=(replace(side, chosen=None, computed=made),))
    return replace(program, nodes=(windows, other))


@pytest.mark.parametrize("fails", [False, True])
@given(given=rows, cuts=cuts)
def test_what_is_computed_of_windows_is_computed_of_panes(fails, given, cuts):
    """Also where only Spark computes it, of each row in each of its windows."""
    program = filtered(program_of(*WINDOWS["hops that divide"], ("wend", "k")), fails=fails)
    plain = filtered(program_of(*WINDOWS["hops that divide"], ("wend", "k")), fails=False)
    side = plain.nodes[1].sides[0]
    paned = over_panes(program)
    assert len(paned.nodes) == 1

    def spark(_, tables):
        return side.rows(tables, nothing)

    assert told(Run(paned, spark), given, cuts) == told(Run(plain, nothing), given, cuts)


def told(run, given, cuts, restored=None):
    """The net changes of each micro-batch; before one of them the state is stored and read again."""
    found = []
    for number, (since, until) in enumerate(pairwise([None, *cuts, END])):
        own = [row for row in given if (since or 0) <= row[-1] < until]
        names = ["t", "k", "v", "x", ENTER]
        kinds = [pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.int64()]
        table = pa.table({name: pa.array([row[at] for row in own], kind) for at, (name, kind) in
                          enumerate(zip(names, kinds, strict=True))})  # fmt: skip
        table = table.append_column(LEAVE, pa.array(np.full(len(own), NEVER)))
        if number == restored:
            run.restore(from_stored(stored(run.state)))
        (rows_out,) = run.advance({0: table}, Times(since, until))
        changed = netted(changes(rows_out, Times(since, until)))
        found.append(sorted(map(repr, (tuple(row.values()) for row in changed.to_pylist()))))
    return found


@pytest.mark.parametrize(
    ("keys", "specs"),
    [
        (("wstart", "k", "wend"), SPECS),
        (("wend",), SPECS),
        (("k",), SPECS),
        (("wend",), SPECS[:1]),  # which read no column of the rows
    ],
)
@pytest.mark.parametrize("name", WINDOWS)
@given(given=rows, cuts=cuts, restored=st.integers(0, 4))
def test_panes_give_what_rows_give(name, keys, specs, given, cuts, restored):
    program = program_of(*WINDOWS[name], keys, specs)
    paned = over_panes(program)
    assert [len(each.nodes) for each in (program, paned)] == [2, 1]
    of_rows, of_panes = (Run(each, nothing) for each in (program, paned))
    assert told(of_panes, given, cuts, restored) == told(of_rows, given, cuts)
    assert of_panes.retained == of_rows.retained


@pytest.mark.parametrize(
    ("kind", "keys", "specs", "appends"),
    [
        ("HOP", (), SPECS, True),
        ("TUMBLE", ("wend",), SPECS, True),  # of which each row has one
        ("HOP", ("wend",), SPECS, False),
        ("HOP", ("wend",), (("last", AggregateSpec("max", "wstart", pa.int64())),), True),
        ("HOP", ("wend",), (("some", AggregateSpec("any_value", "v", pa.int64())),), True),
    ],
)
def test_other_groups_stay_two_operators(kind, keys, specs, appends):
    program = program_of(kind, {"dur": 6, "hopsize": 2}, keys, specs, appends=appends)
    assert over_panes(program).nodes == program.nodes


@given(st.lists(st.integers(-40, 40), min_size=1), st.sampled_from([*WINDOWS.values()]))
def test_the_windows_of_a_pane_are_those_of_its_rows(ticks, windows):
    function = WindowingFunction(windows[0], "t", windows[1], ("b", "e"), 1)
    ticks = np.array(ticks)
    pane = function.pane(ticks)
    for own, of_pane in zip(function.fixed(ticks), function.fixed(pane), strict=True):
        assert own.tolist() == of_pane.tolist()
