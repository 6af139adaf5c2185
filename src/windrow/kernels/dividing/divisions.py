"""The columns by which the rows of a program may be divided, so that each part can run alone.

Rows with the same key of any operator must be in one part. So a *division* names a column of each leaf that
has the same values as a key column of each operator: rows that meet have equal values in it. It may also be a
column that is computed from each row of the leaf alone (:class:`.derived_keys.DerivedKey`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow.kernels.dividing.derived_keys import DerivedKey, Way
from windrow.kernels.incremental.programs.operator_program import Program, ProgramNode
from windrow.kernels.incremental.programs.program_fragment import ProgramFragment
from windrow.kernels.zset.relation import ENTER, LEAVE

__all__ = ["Division", "divisions", "undivided"]

Division = Mapping[int, str | DerivedKey]
"""A column of each leaf; leaves that no operator reads by a key are left out."""

_Columns = frozenset[tuple[int, str | DerivedKey]]
"""Columns of leaves that have the same value."""
_NONE: _Columns = frozenset()


@dataclass(frozen=True)
class _Origins:
    """The known origins of the columns of leaves.

    Attributes
    ----------
    columns
        For each column of a leaf, the columns of the input leaves that it copies or is computed from.
    ways
        The operations that compute their rows, if each comes from one row of an input leaf.
    """

    columns: dict[int, dict[str, _Columns]]
    ways: dict[int, Way]


def divisions(
    program: Program,
    leaves: Mapping[int, pa.Schema],
    visible: Collection[str] | None,
    missing: Mapping[int, pa.Schema] | None = None,
) -> list[Division]:
    """All divisions.

    Parameters
    ----------
    leaves
        The input leaves, and their columns.
    visible
        The output columns of which the division must include one, so that equal output rows come from one
        part. None if that does not matter.
    missing
        The leaves whose rows may also be divided by columns computed from each, and the columns that are then
        missing, by which the program leaves out rows that do not count.
    """
    origins = _Origins(
        {leaf: {name: frozenset([(leaf, name)]) for name in leaves[leaf].names} for leaf in leaves},
        {leaf: Way(leaf, leaves[leaf], columns) for leaf, columns in (missing or {}).items()},
    )
    keyed = []
    for node in program.nodes:
        sides = [_of_fragment(side, origins) for side in node.sides]
        origins.columns[node.leaf] = {**_of_node(node, sides), **_of_windows(node, origins)}
        if not _is_of_each_row(node):
            keyed.append([_meeting(sides, key) for key in node.operator.keys])
    if visible is not None:
        (output,) = program.outputs
        origins_of = _of_fragment(output, origins)
        keyed.append([origins_of.get(name, _NONE) for name in visible])
    found = [dict(one) for one in dict.fromkeys(frozenset(one.items()) for one in _chosen(keyed, {}))]
    return [one for one in found if len({_type(leaves[leaf], column) for leaf, column in one.items()}) <= 1]


def _type(leaf: pa.Schema, column: str | DerivedKey) -> pa.DataType:
    return column.type if isinstance(column, DerivedKey) else leaf.field(column).type


def undivided(program: Program) -> bool:
    """Whether all operators process each row alone, so that any part may have it."""
    return all(map(_is_of_each_row, program.nodes))


def _is_of_each_row(node: ProgramNode) -> bool:
    windows = node.operator.windows
    return windows is not None and windows.kind != "SESSION"


def _of_fragment(fragment: ProgramFragment, origins: _Origins) -> dict[str, _Columns]:
    """The origins of a fragment's columns, as far as they are columns of leaves."""
    names = fragment.schema.names
    if fragment.parts:
        parts = [_of_fragment(part, origins) for part in fragment.parts]
        return {name: _meeting(parts, name) for name in names if all(name in part for part in parts)}
    if fragment.chosen is not None:
        pairs = list(zip(names, fragment.chosen, strict=True))
    elif fragment.computed is not None:
        computed = fragment.computed
        pairs = [(name, own) for name in names if (own := computed.origin(name)) is not None]
    else:
        return {}
    (leaf,) = fragment.leaves
    known = origins.columns.get(leaf, {})
    plain = {name: known[own] for name, own in pairs if own in known}
    return {**_computed_in(fragment, origins.ways.get(leaf)), **plain}


def _computed_in(fragment: ProgramFragment, way: Way | None) -> dict[str, _Columns]:
    """The columns that a fragment computes from each row of a leaf alone."""
    if way is None:
        return {}
    columns = [column for column in fragment.schema if column.name not in (ENTER, LEAVE)]
    ways = [(column, way.through(fragment, [column.name])) for column in columns]
    return {column.name: _derived(to, column) for column, to in ways if to is not None}


def _of_windows(node: ProgramNode, origins: _Origins) -> dict[str, _Columns]:
    """The columns of windows that put each row into one window; the path continues through these."""
    before = [origins.ways[leaf] for leaf in node.sides[0].leaves if leaf in origins.ways]
    way = before[0].within(node) if len(before) == 1 else None
    if way is None or node.operator.windows is None:
        return {}
    origins.ways[node.leaf] = way
    names = [name for name in node.operator.windows.names if name in node.result.names]
    return {name: _derived(way, node.result.field(name)) for name in names}


def _derived(way: Way, column: pa.Field) -> _Columns:
    return frozenset([(way.leaf, DerivedKey(way, column.name, column.type))])


def _of_node(node: ProgramNode, sides: Sequence[Mapping[str, _Columns]]) -> dict[str, _Columns]:
    """The origins of an operator's output columns; for groups, only keys are columns of rows."""
    found = {}
    names = node.operator.keys if node.operator.aggregates else node.result.names
    for name in names:
        having = [known for side, known in zip(node.sides, sides, strict=True) if name in side.schema.names]
        if having and all(name in known for known in having):
            found[name] = _NONE.union(*(known[name] for known in having))
    return found


def _meeting(sides: Sequence[Mapping[str, _Columns]], key: str) -> _Columns:
    """The columns of leaves that are a key on all sides; none if one side computes it."""
    if not all(key in side for side in sides):
        return _NONE
    return _NONE.union(*(side[key] for side in sides))


def _chosen(keyed: Sequence[Sequence[_Columns]], division: Division) -> Iterator[Division]:
    """The divisions that contain one of each set of choices, and the columns that are already chosen."""
    if not keyed:
        if division:
            yield division
        return
    for columns in dict.fromkeys(keyed[0]):
        chosen = dict(columns)
        is_one = len(chosen) == len(columns)
        if columns and is_one and all(division.get(leaf, name) == name for leaf, name in columns):
            yield from _chosen(keyed[1:], {**division, **chosen})
