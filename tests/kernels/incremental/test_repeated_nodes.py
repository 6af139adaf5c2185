"""Equal operators of a program run once, under whatever names they are written."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.incremental.test_panes import SPECS, WINDOWS, cuts, nothing, program_of, rows, told
from windrow.kernels.incremental import Run, rewritten
from windrow.kernels.incremental.programs.repeated_nodes import without_repeated
from windrow.kernels.zset.relation import ENTER, LEAVE

KEYS = ("wstart", "k", "wend")


def again(program, *, specs=SPECS):
    """The same program with other names for all that has a name, and its leaves two higher."""

    def other(name):
        return name if name in (ENTER, LEAVE, "t", "v", "x") else f"{name}_again"

    def schema(own):
        return pa.schema([field.with_name(other(field.name)) for field in own])

    def fragment(own, *, of_source):
        chosen = own.chosen if of_source else tuple(map(other, own.chosen))
        leaves = own.leaves if of_source else tuple(leaf + 2 for leaf in own.leaves)
        reads = {leaf: frozenset(chosen) for leaf in leaves}
        return replace(own, leaves=leaves, schema=schema(own.schema), reads=reads, chosen=chosen)

    windows, groups = program.nodes
    function = windows.operator.windows
    named = replace(function, time=other(function.time), names=tuple(map(other, function.names)))
    aggregates = tuple((other(name), spec) for name, spec in specs)
    keyed = replace(groups.operator, keys=tuple(map(other, groups.operator.keys)), aggregates=aggregates)
    nodes = (
        replace(windows, operator=replace(windows.operator, windows=named), leaf=3,
                sides=(fragment(windows.sides[0], of_source=True),), result=schema(windows.result)),
        replace(groups, operator=keyed, leaf=4,
                sides=(fragment(groups.sides[0], of_source=False),), result=schema(groups.result)),
    )  # fmt: skip
    return replace(program, nodes=nodes, outputs=(fragment(program.outputs[0], of_source=False),))


@pytest.mark.parametrize("name", WINDOWS)
@given(given=rows, cuts=cuts, restored=st.integers(0, 4))
def test_groups_that_are_written_twice_run_once(name, given, cuts, restored):
    first = program_of(*WINDOWS[name], KEYS)
    second = again(first)
    twice = replace(first, nodes=(*first.nodes, *second.nodes), outputs=second.outputs)
    once = rewritten(twice)
    assert len(twice.nodes) == 4
    assert len(once.nodes) == 1, "whose windows are its panes"
    assert told(Run(once, nothing), given, cuts, restored) == told(Run(first, nothing), given, cuts)


@pytest.mark.parametrize(
    "other",
    [
        again(program_of(*WINDOWS["hops that do not"], KEYS)),
        again(program_of(*WINDOWS["hops that divide"], ("wend", "k"))),
        again(program_of(*WINDOWS["hops that divide"], KEYS, appends=False)),
        again(program_of(*WINDOWS["hops that divide"], KEYS), specs=(*SPECS[:3], ("most", SPECS[1][1]))),
    ],
    ids=["windows", "keys", "rows that leave", "aggregates"],
)
def test_other_groups_stay(other):
    first = program_of(*WINDOWS["hops that divide"], KEYS)
    both = replace(first, nodes=(*first.nodes, *other.nodes), outputs=(*first.outputs, *other.outputs))
    groups = [node.leaf for node in without_repeated(both).nodes if node.operator.name == "group"]
    assert groups == [2, 4]
