"""Which programs buckets run, and by which columns of their leaves rows are divided."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pyarrow as pa

from windrow.kernels.computed.computed_operations import ComputedOperation
from windrow.kernels.computed.lookups import LookUp
from windrow.kernels.dividing import DerivedKey, divisions
from windrow.kernels.incremental import Program, ProgramFragment
from windrow.spark.analysis.small_tables import SmallTable

__all__ = ["Key", "key_labels", "keys_of", "with_tables"]

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
    output: Collection[str],
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


def key_labels(key: Key, names: Mapping[str, str]) -> tuple[str, ...]:
    """The user's names of the columns, as far as they have names; others are computed."""
    labels = [None if isinstance(one, DerivedKey) else names.get(one) for one in key]
    return tuple(dict.fromkeys(one or "a computed column" for one in labels))
