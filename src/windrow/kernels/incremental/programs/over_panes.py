"""Rule: groups over sliding windows read the rows, not a copy of each row for each of its windows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa

from windrow.kernels.aggregates import FUNCTIONS
from windrow.kernels.computed.computed_operations import only
from windrow.kernels.computed.lookups import LookUp
from windrow.kernels.incremental.paned_groups import Panes
from windrow.kernels.incremental.programs.operator_program import Program, ProgramNode
from windrow.kernels.incremental.running import Added, Merged, running
from windrow.kernels.zset.relation import ENTER, LEAVE

__all__ = ["over_panes"]

_SLIDING = ("HOP", "CUMULATE")


def over_panes(program: Program) -> Program:
    """The program, in which groups over sliding windows read the rows themselves, if these never leave.

    This applies if nothing else reads the windows, and if all aggregates are merged from those of panes in
    any order.
    """
    readers = Counter(leaf for fragment in program.fragments for leaf in fragment.leaves)
    sliding = {
        node.leaf: node
        for node in program.nodes
        if node.operator.windows is not None
        and node.operator.windows.kind in _SLIDING
        and node.appends
        and readers[node.leaf] == 1
    }
    nodes, replaced = [], set()
    for node in program.nodes:
        side = node.sides[0] if len(node.sides) == 1 else None
        below = None if side is None or len(side.leaves) != 1 else sliding.get(side.leaves[0])
        paned = None if below is None else _paned(node, below)
        if below is not None and paned is not None:
            replaced.add(below.leaf)
        nodes.append(node if paned is None else paned)
    return replace(program, nodes=tuple(node for node in nodes if node.leaf not in replaced))


def _paned(node: ProgramNode, below: ProgramNode) -> ProgramNode | None:
    """Groups over windows as one operator; None if they stay two."""
    (side,), windows, operator = node.sides, below.operator.windows, node.operator
    assert windows is not None
    if operator.name != "group" or not operator.keys or side.parts:
        return None
    for _, spec in operator.aggregates:
        kind = pa.bool_() if spec.argument is None else side.schema.field(spec.argument).type
        if FUNCTIONS[spec.function].is_arbitrary or not isinstance(
            running(spec, kind, appends=True), Added | Merged
        ):
            return None
    if side.chosen is not None:
        origins: dict[str, str | None] = dict(zip(side.schema.names, side.chosen, strict=True))
        read = {side.chosen[side.schema.names.index(key)] for key in operator.keys}
    elif side.computed is not None and not any(isinstance(one, LookUp) for one in side.computed.operations):
        origins = {name: side.computed.origin(name) for name in side.schema.names}
        read = {*only(side.computed, operator.keys).columns.values()}
    else:
        return None
    arguments = {}
    for argument in {spec.argument for _, spec in operator.aggregates} - {None}:
        assert argument is not None
        origin = origins[argument]
        if origin is None or origin in windows.names:  # computed, or an edge of the windows
            return None
        arguments[argument] = origin
    cells = tuple(sorted(read - {*windows.names, ENTER, LEAVE}))
    return replace(
        node, sides=below.sides, panes=Panes(windows, side, cells, tuple(sorted(arguments.items())))
    )
