"""Rule: groups over tumbling windows in brackets read rows as they arrive, and no window retains them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from windrow.kernels.incremental.grouping import goes_on
from windrow.kernels.incremental.programs.operator_program import Program, ProgramNode

__all__ = ["over_tumbling"]


def over_tumbling(program: Program, leaves: Mapping[int, int]) -> Program:
    """The program, in which groups over tumbling windows read rows as they arrive.

    This applies if nothing else reads the window, and if all aggregates are updated from state.

    Parameters
    ----------
    leaves
        The leaves with rows of tumbling windows, and the lengths of these.
    """
    readers = Counter(leaf for fragment in program.fragments for leaf in fragment.leaves)

    def is_grouped(node: ProgramNode) -> bool:
        return (
            bool(node.operator.keys)
            and len(node.sides) == 1
            and node.sides[0].leaves[0] in leaves
            and len(node.sides[0].leaves) == 1
            and readers[node.sides[0].leaves[0]] == 1
            and node.operator.name == "group"
            and goes_on(node.operator, node.sides[0].schema, appends=True)
        )

    return replace(
        program,
        nodes=tuple(
            replace(node, tumbling=leaves[node.sides[0].leaves[0]]) if is_grouped(node) else node
            for node in program.nodes
        ),
    )
