"""The state of a program goes on with the operators that wrote it, and with no others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.errors import InputError
from windrow.kernels.incremental import Program, ProgramFragment, ProgramNode, Run
from windrow.kernels.packing.shards import Layout
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE

ROWS = pa.schema([(name, pa.int64()) for name in ("k", ENTER, LEAVE)])


def run(*names):
    """A program of these operators over two leaves."""
    sides = [
        ProgramFragment(leaf, (leaf,), ROWS, {leaf: frozenset(ROWS.names)}, tuple(ROWS.names))
        for leaf in (0, 1)
    ]
    nodes = [
        ProgramNode(Keyed(name, ("k",), Layout(1)), tuple(sides), ROWS, 2 + at)
        for at, name in enumerate(names)
    ]
    return Run(Program(tuple(nodes), (sides[0],)), None)


def without_names(state):
    """As an earlier version wrote it."""
    return [{name: value for name, value in one.items() if name != "operator"} for one in state]


@pytest.mark.parametrize("names", [("semi",), ("semi", "anti"), ()])
def test_state_goes_on_with_its_operators(names):
    run(*names).restore(run(*names).state)


@pytest.mark.parametrize(
    ("wrote", "reads"), [(("semi",), ("anti",)), (("semi",), ("semi", "anti")), ((), ("semi",))]
)
def test_state_of_other_operators_is_refused(wrote, reads):
    with pytest.raises(InputError) as refused:
        run(*reads).restore(run(*wrote).state)
    assert refused.value.condition == "CHECKPOINT_VERSION"


def test_state_without_names_is_refused_where_operators_have_changed_since():
    with pytest.raises(InputError) as refused:
        run("semi").restore(without_names(run("semi").state))
    assert refused.value.condition == "CHECKPOINT_VERSION"
    run("except").restore(without_names(run("except").state))
