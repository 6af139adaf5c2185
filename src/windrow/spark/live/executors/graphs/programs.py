"""Which programs buckets run, and by which columns of their leaves rows are divided."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from windrow.kernels.computed.computed_operations import ComputedOperation
from windrow.kernels.computed.lookups import LookUp
from windrow.kernels.dividing import DerivedKey, TwoParts, divisions, in_two_parts
from windrow.kernels.incremental import Program, ProgramFragment
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.spark.analysis.small_tables import SmallTable

__all__ = ["DividedTwice", "Key", "divided_twice", "key_labels", "keys_of", "with_tables"]

Key = tuple[str | DerivedKey, ...]
"""The columns by which rows are divided."""


def with_tables(program: Program) -> Program:
    """A program with the current rows of its tables, which is sent to tasks."""

    def of(fragment: ProgramFragment) -> ProgramFragment:
        parts, computed = tuple(map(of, fragment.parts)), fragment.computed
        if computed is not None:
            computed = replace(computed, operations=[*map(_with_table, computed.operations)])
        return replace(fragment, computed=computed, parts=parts)

    nodes = tuple(replace(node, sides=tuple(map(of, node.sides))) for node in program.nodes)
    return replace(program, nodes=nodes, outputs=tuple(map(of, program.outputs)))


def _with_table(operation: ComputedOperation) -> ComputedOperation:
    if isinstance(operation, LookUp) and isinstance(operation.table, SmallTable):
        return replace(operation, table=operation.table.collected())
    return operation


def keys_of(
    program: Program,
    leaves: Mapping[int, pa.Schema],
    output: Collection[str] | None,
    missing: Mapping[int, pa.Schema],
) -> tuple[Key, ...]:
    """The partitioning columns of each leaf in the divisions that cover all leaves; empty if there are none.

    Computed columns are used if no division does without them. If rows of a table arrive at the beginning,
    one bucket has them. The arguments are those of :func:`divisions`.
    """
    found = divisions(program, leaves, output, missing) if program.beginning is None else []
    whole = [one for one in found if one.keys() == leaves.keys()]
    plain = [one for one in whole if not any(isinstance(column, DerivedKey) for column in one.values())]
    return tuple(tuple(dict.fromkeys(one[leaf] for one in plain or whole)) for leaf in leaves)


@dataclass(frozen=True, eq=False)
class DividedTwice:
    """A program in two parts, and by which columns the rows of each part are divided.

    Attributes
    ----------
    parts
        The parts.
    first
        The columns of each leaf.
    second
        The columns of each crossing leaf; none if one bucket has all rows.
    """

    parts: TwoParts
    first: tuple[Key, ...]
    second: Mapping[int, Key]


def divided_twice(
    program: Program,
    leaves: Mapping[int, pa.Schema],
    whole: Mapping[int, pa.Schema],
    output: Collection[str],
    missing: Mapping[int, pa.Schema],
) -> DividedTwice | None:
    """A program whose rows no column divides, in two parts; None if the first would have no key.

    The arguments are those of :func:`divisions`; `whole` are all columns of the leaves.
    """
    parts = in_two_parts(program, leaves, whole, missing)
    if parts is None:
        return None
    read = {leaf for node in parts.first.nodes for side in node.sides for leaf in side.leaves}
    own = {leaf: schema for leaf, schema in leaves.items() if leaf in read}
    operators = replace(parts.first, outputs=())
    derived = {leaf: schema for leaf, schema in missing.items() if leaf in own}
    keys = dict(zip(own, keys_of(operators, own, None, derived), strict=True))
    # the rows of other leaves go on to the second part: any bucket may have them
    first = tuple(keys[leaf] if leaf in keys else tuple(schema.names) for leaf, schema in leaves.items())
    crossing = {
        leaf: pa.schema([one for one in schema if one.name not in (ENTER, LEAVE)])
        for leaf, schema in parts.crossing.items()
    }
    second = keys_of(parts.second, crossing, output, dict.fromkeys(crossing, pa.schema([])))
    return DividedTwice(parts, first, dict(zip(crossing, second, strict=True)))


def key_labels(key: Key, names: Mapping[str, str]) -> tuple[str, ...]:
    """The user's names of the columns, as far as they have names; others are computed."""
    labels = [None if isinstance(one, DerivedKey) else names.get(one) for one in key]
    return tuple(dict.fromkeys(one or "a computed column" for one in labels))
