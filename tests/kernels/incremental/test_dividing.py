"""Programs are divided by columns that all their operators have as keys."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.computed.computed_operations import Computed, ComputedColumns, RowFilter
from windrow.kernels.computed.computed_values import Applied, ComputedColumn, Constant
from windrow.kernels.dividing import divisions, in_two_parts, undivided
from windrow.kernels.incremental import Program, ProgramFragment, ProgramNode
from windrow.kernels.packing.shards import Layout
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.time_windows import WindowingFunction

LEAF = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64())])
OTHER = pa.schema([("k", pa.int64()), ("j", pa.int32()), ("w", pa.int64())])
TIMES = [(ENTER, pa.int64()), (LEAVE, pa.int64())]


def schema(*names):
    return pa.schema([*((name, pa.int64()) for name in names), *TIMES])


def chosen(leaf, **columns):
    """A fragment that gives columns of a leaf under these names."""
    given = (*columns.values(), ENTER, LEAVE)
    return ProgramFragment(0, (leaf,), schema(*columns), {leaf: frozenset(given)}, given)


def computed(leaf, name, of, *plain):
    """A fragment with a column that is computed of another, and with some as they are."""
    read = [of, *plain, ENTER, LEAVE]
    values = {
        0: Applied(pa.compute.negate, (ComputedColumn(10),)),
        **{at: ComputedColumn(10 + at) for at in range(1, len(read))},
    }
    own = schema(name, *plain)
    made = Computed(
        {10 + at: one for at, one in enumerate(read)}, [ComputedColumns(values)], range(len(read)), own
    )
    return ProgramFragment(0, (leaf,), own, {leaf: frozenset(read)}, None, made)


def node(operator, keys, leaf, result, *sides, counts=None, **also):
    aggregates = () if counts is None else ((counts, AggregateSpec("count_star", None, pa.int64())),)
    return ProgramNode(
        Keyed(operator, keys, Layout(1), aggregates=aggregates, **also), sides, schema(*result), leaf
    )


def divided(nodes, output, shown=("a",), leaves=None):
    found = divisions(Program(tuple(nodes), (output,)), leaves or {0: LEAF}, shown)
    return sorted(sorted(one.items()) for one in found)


def test_groups_are_divided_by_any_key_that_is_a_column_and_is_shown():
    group = node("group", ("a", "b"), 1, ("a", "b", "n"), chosen(0, a="k", b="j"), counts="n")
    whole = chosen(1, a="a", b="b", n="n")
    assert divided([group], whole, ("a", "b", "n")) == [[(0, "j")], [(0, "k")]]
    assert divided([group], whole, ("a",)) == [[(0, "k")]]
    assert divided([group], whole, ("n",)) == []
    assert divided([group], whole, None) == [[(0, "j")], [(0, "k")]]


def test_a_key_that_is_computed_divides_nothing():
    group = node("group", ("a",), 1, ("a", "n"), computed(0, "a", "k"), counts="n")
    assert divided([group], chosen(1, a="a")) == []
    both = node("group", ("a", "j"), 1, ("a", "j", "n"), computed(0, "a", "k", "j"), counts="n")
    assert divided([both], chosen(1, a="a", j="j"), ("a", "j")) == [[(0, "j")]]


def test_operators_of_each_row_ask_for_no_key_and_others_for_one():
    windows = WindowingFunction("TUMBLE", "v", {"dur": 3, "offset": 0}, ("from", "to"), 1)
    side = chosen(0, k="k", v="v")
    tumble = node("windows", (), 1, ("k", "v", "from", "to"), side, windows=windows)
    assert undivided(Program((tumble,), (chosen(1, a="k"),)))
    group = node("group", ("a", "to"), 2, ("a", "to", "n"), chosen(1, a="k", to="to"), counts="n")
    assert divided([tumble, group], chosen(2, a="a", to="to"), ("a", "to")) == [[(0, "k")]]
    all_rows = node("group", (), 1, ("n",), chosen(0, v="v"), counts="n")
    assert divided([all_rows], chosen(1, a="n")) == []
    assert not undivided(Program((all_rows,), (chosen(1, a="n"),)))


def test_groups_of_groups_need_a_key_in_common():
    first = node("group", ("a", "b"), 1, ("a", "b", "n"), chosen(0, a="k", b="j"), counts="n")
    by_a = node("group", ("a",), 2, ("a", "m"), chosen(1, a="a"), counts="m")
    by_n = node("group", ("a",), 2, ("a", "m"), chosen(1, a="n"), counts="m")
    assert divided([first, by_a], chosen(2, a="a")) == [[(0, "k")]]
    assert divided([first, by_n], chosen(2, a="a")) == []


def test_a_join_is_divided_by_columns_of_one_type_that_are_equal():
    leaves = {0: LEAF, 1: OTHER}

    def pairs(left, right):
        sides = chosen(0, key=left, v="v"), chosen(1, key=right, w="w")
        return node("join", ("key",), 2, ("key", "v", "w"), *sides)

    output = chosen(2, a="key")
    assert divided([pairs("k", "k")], output, leaves=leaves) == [[(0, "k"), (1, "k")]]
    assert divided([pairs("j", "j")], output, leaves=leaves) == []
    twice = node("join", ("key",), 2, ("key", "v"), chosen(0, key="k"), chosen(0, key="j", v="v"))
    assert divided([twice], output) == []  # of one row two columns would have to be equal


def test_rows_of_several_leaves_are_divided_by_a_column_of_each():
    leaves = {0: LEAF, 1: OTHER}
    parts = chosen(0, a="k", v="v"), chosen(1, a="k", v="w")
    both = ProgramFragment(0, (0, 1), schema("a", "v"), {0: frozenset("kv"), 1: frozenset("kw")}, parts=parts)
    group = node("group", ("a",), 2, ("a", "n"), both, counts="n")
    assert divided([group], chosen(2, a="a"), leaves=leaves) == [[(0, "k"), (1, "k")]]
    crossed = chosen(0, a="v", v="k"), chosen(1, a="k", v="w")
    both = ProgramFragment(
        0, (0, 1), schema("a", "v"), {0: frozenset("kv"), 1: frozenset("kw")}, parts=crossed
    )
    group = node("group", ("a", "v"), 2, ("a", "v", "n"), both, counts="n")
    assert divided([group], chosen(2, a="a"), leaves=leaves) == [[(0, "v"), (1, "k")]]


# -- by what is computed -----------------------------------------------------------------------------------


def by_computed(nodes, output, shown=("a",), leaves=None, missing=()):
    """The divisions, those by columns that are computed among them."""
    leaves = leaves or {0: LEAF}
    without = {leaf: pa.schema(missing) for leaf in leaves}
    return divisions(Program(tuple(nodes), (output,)), leaves, shown, without)


ONLY = pa.schema([("a", pa.int64())])
ROWS = pa.table({"k": [1, None, 3, 4], "j": [5, 5, 5, 5], "v": [7, 8, None, 2]}, LEAF)


def test_rows_are_divided_by_a_key_that_is_computed_of_each():
    group = node("group", ("a",), 1, ("a", "n"), computed(0, "a", "k"), counts="n")
    (found,) = by_computed([group], chosen(1, a="a"))
    assert found.keys() == {0}
    assert found[0].of(ROWS).to_pylist() == [-1, None, -3, -4]
    assert by_computed([group], chosen(1, a="n")) == []  # the result does not show it


def test_rows_are_divided_by_a_window_of_which_each_is_in_one_and_by_no_others():
    def grouped(kind, **lengths):
        windows = WindowingFunction(kind, "v", {"dur": 3, "offset": 0, **lengths}, ("from", "to"), 1)
        rows = node("windows", (), 1, ("v", "to"), chosen(0, v="v"), windows=windows)
        group = node("group", ("to",), 2, ("to", "n"), computed(1, "w", "v", "to"), counts="n")
        return by_computed([rows, group], chosen(2, a="to"))

    (found,) = grouped("TUMBLE")
    assert found[0].of(ROWS).to_pylist() == [9, 9, None, 3]
    assert grouped("HOP", hopsize=2) == []
    assert grouped("CUMULATE", step=1) == []


def is_below_eight(value):
    return pa.compute.coalesce(pa.compute.less(value, 8), True)


def test_a_row_that_is_left_out_has_no_key_and_one_that_might_be_has_its_own():
    def filtered(of):
        values = {0: Applied(pa.compute.negate, (ComputedColumn(10),)), 1: ComputedColumn(11)}
        stays = Applied(is_below_eight, (ComputedColumn(11),))
        steps = [RowFilter(stays), ComputedColumns(values)]
        made = Computed({10: "k", 11: of}, steps, (0,), ONLY)
        side = ProgramFragment(0, (0,), ONLY, {0: frozenset(["k", of])}, None, made)
        group = node("group", ("a",), 1, ("a", "n"), side, counts="n")
        return by_computed([group], chosen(1, a="a"), missing=[("mark", pa.int64())])

    (found,) = filtered("v")
    assert found[0].of(ROWS).to_pylist() == [-1, None, -3, -4]
    leaves_out = found[0].of(ROWS.set_column(2, "v", pa.array([9, 1, 9, 1])))
    assert leaves_out.to_pylist() == [None, None, None, -4]
    (found,) = filtered("mark")
    assert found[0].of(ROWS).to_pylist() == [-1, None, -3, -4]
    assert filtered("enter") == []


def test_a_value_that_is_not_computed_divides_nothing():
    def overflows(value):
        raise pa.ArrowInvalid("overflow")

    values = ComputedColumns({0: Applied(overflows, (ComputedColumn(10),))})
    made = Computed({10: "k"}, [values], (0,), ONLY)
    side = ProgramFragment(0, (0,), ONLY, {0: frozenset(["k"])}, None, made)
    group = node("group", ("a",), 1, ("a", "n"), side, counts="n")
    (found,) = by_computed([group], chosen(1, a="a"))
    assert found[0].of(ROWS) is None


def test_a_column_divides_rows_that_meet_what_is_computed_of_others():
    leaves = {0: LEAF, 1: LEAF}
    sides = computed(0, "key", "k"), chosen(1, key="j", w="v")
    pairs = node("join", ("key",), 2, ("key", "w"), *sides)
    (found,) = by_computed([pairs], chosen(2, a="key"), leaves=leaves)
    assert found[0].of(ROWS).to_pylist() == [-1, None, -3, -4]
    assert found[1] == "j"
    twice = node("join", ("key",), 2, ("key",), computed(0, "key", "k"), computed(0, "key", "k"))
    assert by_computed([twice], chosen(2, a="key")) == []  # whether two ways compute the same, nobody says


# -- in two parts ------------------------------------------------------------------------------------------


def parts_of(nodes, output, leaves=None):
    """The leaves of the operators of each part, and the crossing leaves with their columns; None if all is
    one.
    """
    known = leaves or {0: LEAF}
    found = in_two_parts(Program(tuple(nodes), (output,)), known, known, {})
    if found is None:
        return None
    names = {
        leaf: [one for one in columns.names if one not in (ENTER, LEAVE)]
        for leaf, columns in found.crossing.items()
    }
    return [one.leaf for one in found.first.nodes], [one.leaf for one in found.second.nodes], names


def test_groups_of_groups_by_another_key_are_the_second_part():
    inner = node("group", ("a",), 1, ("a", "n"), chosen(0, a="k"), counts="n")
    outer = node("group", ("b",), 2, ("b", "m"), chosen(1, b="n"), counts="m")
    assert parts_of([inner, outer], chosen(2, b="b", m="m")) == ([1], [2], {1: ["n"]})
    by_the_same = node("group", ("a",), 2, ("a", "m"), chosen(1, a="a"), counts="m")
    assert parts_of([inner, by_the_same], chosen(2, a="a", m="m")) is None


def test_input_leaves_of_the_second_part_cross_with_the_columns_that_it_reads():
    inner = node("group", ("a",), 2, ("a", "n"), chosen(0, a="k"), counts="n")
    sides = chosen(2, b="n", a="a"), chosen(1, b="w")
    join = node("join", ("b",), 3, ("b", "a"), *sides)
    leaves = {0: LEAF, 1: OTHER}
    assert parts_of([inner, join], chosen(3, b="b", a="a"), leaves) == ([2], [3], {1: ["w"], 2: ["a", "n"]})


def test_without_a_key_below_nothing_is_divided_first():
    group = node("group", ("a",), 1, ("a", "n"), computed(0, "a", "k"), counts="n")
    whole = node("group", (), 2, ("n",), chosen(1, n="n"), counts="n")
    assert parts_of([group, whole], chosen(2, n="n")) is None
    keyed = node("group", ("a",), 1, ("a", "n"), chosen(0, a="k"), counts="n")
    assert parts_of([keyed, whole], chosen(2, n="n")) == ([1], [2], {1: ["n"]})
    assert parts_of([keyed], chosen(1, n="n")) is None


def test_aggregates_that_depend_on_the_order_of_rows_are_in_the_second_part():
    def by(function, kind):
        spec = AggregateSpec(function, "v", kind)
        side = replace(chosen(0, a="k", v="v"), schema=pa.schema([("a", pa.int64()), ("v", kind), *TIMES]))
        keyed = Keyed("group", ("a",), Layout(1), aggregates=(("n", spec),))
        inner = ProgramNode(keyed, (side,), schema("a", "n"), 1)
        outer = node("group", ("b",), 2, ("b", "m"), chosen(1, b="n"), counts="m")
        return parts_of([inner, outer], chosen(2, b="b", m="m"))

    assert by("sum", pa.int64()) == ([1], [2], {1: ["n"]})
    assert by("max", pa.float64()) == ([1], [2], {1: ["n"]})
    assert by("sum", pa.float64()) is None
    assert by("stddev_samp", pa.int64()) is None


def test_rows_that_a_column_may_not_divide_cross_with_all_that_is_read():
    inner = node("group", ("a",), 2, ("a", "n"), chosen(0, a="k"), counts="n")
    join = node("join", ("b",), 3, ("b", "a"), chosen(2, b="n", a="a"), chosen(1, b="w"))
    program = Program((inner, join), (chosen(3, b="b", a="a"),))
    found = in_two_parts(program, {0: LEAF, 1: pa.schema([])}, {0: LEAF, 1: OTHER}, {})
    assert [one for one in found.crossing[1].names if one not in (ENTER, LEAVE)] == ["w"]


def test_a_value_of_no_column_is_the_same_for_all_rows():
    value = Computed(
        {}, [ComputedColumns({0: Constant(pa.scalar("x"))})], [0], pa.schema([("a", pa.string())])
    )
    side = ProgramFragment(0, (0,), value.schema, {0: frozenset()}, None, value)
    group = node("group", ("a",), 1, ("a", "n"), side, counts="n")
    nothing = {0: pa.schema([])}
    (found,) = divisions(Program((group,), (chosen(1, a="a"),)), nothing, None, nothing)
    assert found[0].of(pa.table({"k": [1, 2, 3]})).to_pylist() == ["x", "x", "x"]


def test_the_output_may_read_the_first_part():
    keyed = node("group", ("a",), 1, ("a", "n"), chosen(0, a="k"), counts="n")
    whole = node("group", (), 2, ("m",), chosen(1, n="n"), counts="m")
    reads = {1: frozenset(["n"]), 2: frozenset(["m"])}
    union = ProgramFragment(0, (1, 2), schema("m"), reads, parts=(chosen(1, m="n"), chosen(2, m="m")))
    assert parts_of([keyed, whole], union) == ([1], [2], {1: ["n"]})
