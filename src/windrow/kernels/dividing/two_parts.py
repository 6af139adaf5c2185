"""Programs in two parts, where no column divides the rows of a whole program.

    leaves ─▶ first part, by a key of its own ─▶ crossing leaves ─▶ second part, by another key

The first part has operators, from the leaves on, that one division covers; the second part has the others.
Each crossing leaf goes through unchanged: the output of an operator of the first part, or an input leaf.

If the first part is computed again, as after a restart, rows must leave it as they entered: the second part
has a state of its own. So its aggregates must not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from windrow.kernels.aggregates import FUNCTIONS
from windrow.kernels.dividing.divisions import divisions, undivided
from windrow.kernels.incremental.programs.operator_program import Program, ProgramNode
from windrow.kernels.incremental.programs.program_fragment import ProgramFragment
from windrow.kernels.zset.relation import ENTER, LEAVE

__all__ = ["TwoParts", "in_two_parts"]

_TIMES = pa.schema([(ENTER, pa.int64()), (LEAVE, pa.int64())])


@dataclass(frozen=True, eq=False)
class TwoParts:
    """A program in two parts.

    Attributes
    ----------
    first
        The first part, which has an output for each crossing leaf.
    second
        The second part, whose leaves these are.
    crossing
        The numbers of the crossing leaves, and their columns.
    """

    first: Program
    second: Program
    crossing: Mapping[int, pa.Schema]


def in_two_parts(
    program: Program,
    leaves: Mapping[int, pa.Schema],
    whole: Mapping[int, pa.Schema],
    missing: Mapping[int, pa.Schema],
) -> TwoParts | None:
    """The parts of a program; None if the first one would have no operator with a key, or the second none.

    The arguments are those of :func:`.divisions.divisions`; `whole` are all columns of the leaves, also those
    that cannot divide rows.
    """
    first: list[ProgramNode] = []
    for node in program.nodes:
        known = {*leaves, *(one.leaf for one in first)}
        reads = {leaf for side in node.sides for leaf in side.leaves}
        longer = Program((*first, node), ())
        divides = undivided(longer) or _divides(longer, leaves, missing)
        if reads <= known and divides and _is_repeatable(node):
            first.append(node)
    operators = Program(tuple(first), ())
    made = {node.leaf for node in first}
    rest = tuple(node for node in program.nodes if node.leaf not in made)
    if undivided(operators) or not rest:
        return None
    second = Program(rest, program.outputs, program.beginning)
    own = {node.leaf for node in rest}
    read = {leaf for fragment in second.fragments for leaf in fragment.leaves} - own
    crossing = {leaf: _crossing(program, leaf, whole, missing) for leaf in sorted(read & {*leaves, *made})}
    outputs = tuple(_unchanged(leaf, schema) for leaf, schema in crossing.items())
    return TwoParts(replace(operators, outputs=outputs), second, crossing)


def _divides(program: Program, leaves: Mapping[int, pa.Schema], missing: Mapping[int, pa.Schema]) -> bool:
    """Whether one division covers all input leaves that the operators read."""
    read = {leaf for fragment in program.fragments for leaf in fragment.leaves} & leaves.keys()
    return any(read <= one.keys() for one in divisions(program, leaves, None, missing))


def _is_repeatable(node: ProgramNode) -> bool:
    """Whether an operator gives the same for the same rows in any order."""
    schema = node.sides[0].schema
    for _, spec in node.operator.aggregates:
        kind = pa.null() if spec.argument is None else schema.field(spec.argument).type
        if not FUNCTIONS[spec.function].in_any_order(kind):
            return False
    return node.operator.first is None


def _crossing(
    program: Program, leaf: int, leaves: Mapping[int, pa.Schema], missing: Mapping[int, pa.Schema]
) -> pa.Schema:
    """The columns of a leaf that are read, with the times of its rows."""
    made = next((node.result for node in program.nodes if node.leaf == leaf), None)
    known: Sequence[pa.Field] = [*leaves[leaf], *missing.get(leaf, ())] if made is None else [*made]
    read = program.read(leaf)
    columns = [one for one in known if one.name not in (ENTER, LEAVE) and one.name in read]
    return pa.schema([*columns, *_TIMES])


def _unchanged(leaf: int, schema: pa.Schema) -> ProgramFragment:
    """The rows of a leaf as they are."""
    names = tuple(schema.names)
    return ProgramFragment(-1, (leaf,), schema, {leaf: frozenset(names)}, chosen=names)
