"""Rule: an operator that a program has several times runs once.

A query may contain the same groups twice, such as once to find the greatest. Each occurrence is read from the
text alone, under names of its own, so equal operators are found here, by the columns that they come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from windrow.kernels.incremental.programs.operator_program import Copy, Ending, Program, ProgramNode
from windrow.kernels.zset.keyed_operator import Keyed

__all__ = ["without_repeated"]


@dataclass(frozen=True)
class _Known:
    """An operator in the columns of the leaf that it reads.

    Attributes
    ----------
    leaf, operator, until, appends
        What it does; two operators that agree in these are equal.
    columns
        The columns of its output, by what they are.
    """

    leaf: int
    operator: Keyed
    until: tuple[Ending, ...]
    appends: bool
    columns: Mapping[str, str]

    def has(self, other: _Known) -> bool:
        """Whether the output of another operator is in that of this one."""
        mine, theirs = (replace(one, columns={}) for one in (self, other))
        return mine == theirs and other.columns.keys() <= self.columns.keys()


def without_repeated(program: Program) -> Program:
    """The program in which each operator over one side runs once, if its side selects columns of a leaf."""
    known: list[tuple[ProgramNode, _Known]] = []
    copies: dict[int, Copy] = {}
    nodes = []
    for node in program.nodes:
        own = _known(node, copies)
        same = None if own is None else next((one for one in known if one[1].has(own)), None)
        if own is None or same is None:
            nodes.append(node)
            known += [] if own is None else [(node, own)]
            continue
        first, columns = same[0], same[1].columns
        names = {name: columns[what] for what, name in own.columns.items()}
        copies[node.leaf] = Copy(node.leaf, first.leaf, names)
    kept = replace(program, nodes=tuple(nodes))
    read = {leaf for fragment in kept.fragments for leaf in fragment.leaves}
    return replace(kept, copies=tuple(one for leaf, one in copies.items() if leaf in read))


def _known(node: ProgramNode, copies: Mapping[int, Copy]) -> _Known | None:
    """An operator in the columns of its leaf; None if it may have no equal."""
    operator = node.operator
    if len(node.sides) != 1 or operator.first is not None or operator.compared or node.panes is not None:
        return None
    (side,) = node.sides
    if side.chosen is None:
        return None
    (leaf,), columns = side.leaves, dict(zip(side.schema.names, side.chosen, strict=True))
    if leaf in copies:
        copy = copies[leaf]
        leaf, columns = copy.of, {name: copy.columns[own] for name, own in columns.items()}
    what = {name: f"column {own}" for name, own in columns.items()}
    aggregates = []
    for at, (name, spec) in enumerate(operator.aggregates):
        what[name] = f"aggregate {at}"
        argument = None if spec.argument is None else what[spec.argument]
        aggregates.append((what[name], replace(spec, argument=argument)))
    windows = operator.windows
    if windows is not None:
        what |= {name: f"window {at}" for at, name in enumerate(windows.names)}
        names = tuple(what[name] for name in windows.names)
        windows = replace(windows, time=what[windows.time], names=names)
    keys = tuple(what[key] for key in operator.keys)
    whole = replace(operator, keys=keys, aggregates=tuple(aggregates), windows=windows)
    until = tuple(replace(one, column=what[one.column], origin=0) for one in node.until)
    return _Known(leaf, whole, until, node.appends, {what[name]: name for name in node.result.names})
