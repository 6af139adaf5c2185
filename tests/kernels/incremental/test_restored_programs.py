"""The state of a program goes on with the operators that wrote it, and with no others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.errors import InputError
from windrow.kernels.incremental import Program, ProgramFragment, ProgramNode, Run
from windrow.kernels.packing.shards import Layout
from windrow.kernels.punctuated.delta import Delta
from windrow.kernels.punctuated.operator_graph import OperatorGraph, OperatorNode
from windrow.kernels.punctuated.symmetric_join import SymmetricJoin
from windrow.kernels.stored import from_stored, stored
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


def graph(*kinds):
    """A graph of joins of two streams, and its carry, stored and read."""
    made = OperatorGraph(
        tuple(OperatorNode(kind, SymmetricJoin((("a", "b"),), kind, mark="m"), ("s", "t")) for kind in kinds)
    )
    nothing = {name: Delta(pa.table({key: pa.array([], pa.int64())})) for name, key in ("sa", "tb")}
    return made, from_stored(stored(made.advance(None, nothing)[1]))


@pytest.mark.parametrize("kinds", [("semi",), ("mark", "anti")])
def test_a_graph_goes_on_with_its_carry(kinds):
    own, carry = graph(*kinds)
    own.check(carry)


@pytest.mark.parametrize(
    ("wrote", "reads"), [(("semi",), ("anti",)), (("semi",), ("semi", "anti")), (("mark",), ("semi",))]
)
def test_the_carry_of_another_graph_is_refused(wrote, reads):
    with pytest.raises(InputError) as refused:
        graph(*reads)[0].check(graph(*wrote)[1])
    assert refused.value.condition == "CHECKPOINT_VERSION"


def test_a_carry_without_kinds_is_refused_where_it_may_be_another():
    own, carry = graph("semi")
    carry.kinds = None
    own.check(carry)
    for other in (("mark",), ("semi", "semi")):
        with pytest.raises(InputError):
            graph(*other)[0].check(carry)
