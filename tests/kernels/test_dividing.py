"""Programs are divided by columns that all their operators have as keys."""

from __future__ import annotations

import pyarrow as pa

from windrow.kernels.aggregates import Aggregate
from windrow.kernels.computed.computed_steps import Computed, ComputedColumns
from windrow.kernels.computed.computed_values import Applied, ComputedColumn
from windrow.kernels.packing.shards import Layout
from windrow.kernels.stages import Fragment, Node, Program, divisions, undivided
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.stage import Keyed
from windrow.kernels.zset.time_windows import TimeWindows

LEAF = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64())])
OTHER = pa.schema([("k", pa.int64()), ("j", pa.int32()), ("w", pa.int64())])
TIMES = [(ENTER, pa.int64()), (LEAVE, pa.int64())]


def schema(*names):
    return pa.schema([*((name, pa.int64()) for name in names), *TIMES])


def chosen(leaf, **columns):
    """A fragment that gives columns of a leaf under these names."""
    given = (*columns.values(), ENTER, LEAVE)
    return Fragment(0, (leaf,), schema(*columns), {leaf: frozenset(given)}, given)


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
    return Fragment(0, (leaf,), own, {leaf: frozenset(read)}, None, made)


def node(operator, keys, leaf, result, *sides, counts=None, **also):
    aggregates = () if counts is None else ((counts, Aggregate("count_star", None, pa.int64())),)
    return Node(Keyed(operator, keys, Layout(1), aggregates=aggregates, **also), sides, schema(*result), leaf)


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
    windows = TimeWindows("TUMBLE", "v", {"dur": 3, "offset": 0}, ("from", "to"), 1)
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
    both = Fragment(0, (0, 1), schema("a", "v"), {0: frozenset("kv"), 1: frozenset("kw")}, parts=parts)
    group = node("group", ("a",), 2, ("a", "n"), both, counts="n")
    assert divided([group], chosen(2, a="a"), leaves=leaves) == [[(0, "k"), (1, "k")]]
    crossed = chosen(0, a="v", v="k"), chosen(1, a="k", v="w")
    both = Fragment(0, (0, 1), schema("a", "v"), {0: frozenset("kv"), 1: frozenset("kw")}, parts=crossed)
    group = node("group", ("a", "v"), 2, ("a", "v", "n"), both, counts="n")
    assert divided([group], chosen(2, a="a"), leaves=leaves) == [[(0, "v"), (1, "k")]]
