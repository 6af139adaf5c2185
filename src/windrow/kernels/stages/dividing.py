"""By which columns the rows of a program may be divided, so that each part can be run apart from the others.

Rows of one key of any operator have to be in one part. So a *division* names a column of each leaf that has
the same values as a key column of each operator: rows that meet have equal values in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from windrow.kernels.stages.program import Fragment, Node, Program

__all__ = ["Division", "divisions", "undivided"]

Division = Mapping[int, str]
"""Of leaves, a column each; leaves that no operator reads by a key are in none."""

_Columns = frozenset[tuple[int, str]]
"""Columns of leaves, of which one has the value, or all of them."""
_Origins = dict[int, dict[str, _Columns]]
"""Of the columns of leaves: which columns of the leaves at which rows come they are."""


def divisions(
    program: Program, leaves: Mapping[int, pa.Schema], shown: Collection[str] | None
) -> list[Division]:
    """All divisions.

    Parameters
    ----------
    leaves
        The leaves at which rows come, and their columns.
    shown
        The columns of the output of which one has to be the division's: then equal rows that are given come
        from one part. None where that does not matter.
    """
    origins: _Origins = {
        leaf: {name: frozenset([(leaf, name)]) for name in leaves[leaf].names} for leaf in leaves
    }
    keyed = []
    for node in program.nodes:
        sides = [_of_fragment(side, origins) for side in node.sides]
        origins[node.leaf] = _of_node(node, sides)
        if not _is_of_each_row(node):
            keyed.append([_meeting(sides, key) for key in node.stage.keys])
    if shown is not None:
        (output,) = program.outputs
        given = _of_fragment(output, origins)
        keyed.append([given.get(name, frozenset()) for name in shown])
    found = [dict(one) for one in dict.fromkeys(frozenset(one.items()) for one in _chosen(keyed, {}))]
    return [one for one in found if len({leaves[leaf].field(name).type for leaf, name in one.items()}) <= 1]


def undivided(program: Program) -> bool:
    """Whether all operators compute each row from itself, so that any part may have it."""
    return all(map(_is_of_each_row, program.nodes))


def _is_of_each_row(node: Node) -> bool:
    windows = node.stage.windows
    return windows is not None and windows.kind != "SESSION"


def _of_fragment(fragment: Fragment, origins: _Origins) -> dict[str, _Columns]:
    """Of the columns of a fragment, as far as they are columns of leaves."""
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
    known = origins.get(leaf, {})
    return {name: known[own] for name, own in pairs if own in known}


def _of_node(node: Node, sides: Sequence[Mapping[str, _Columns]]) -> dict[str, _Columns]:
    """Of the columns that an operator gives; of groups the keys alone are columns of rows."""
    found = {}
    kept = node.stage.keys if node.stage.aggregates else node.result.names
    for name in kept:
        having = [known for side, known in zip(node.sides, sides, strict=True) if name in side.schema.names]
        if having and all(name in known for known in having):
            found[name] = frozenset[tuple[int, str]]().union(*(known[name] for known in having))
    return found


def _meeting(sides: Sequence[Mapping[str, _Columns]], key: str) -> _Columns:
    """The columns of leaves that a key is on all sides; none where it is computed on one."""
    if not all(key in side for side in sides):
        return frozenset()
    return frozenset[tuple[int, str]]().union(*(side[key] for side in sides))


def _chosen(keyed: Sequence[Sequence[_Columns]], division: Division) -> Iterator[Division]:
    """The divisions that have one of the choices of each, and the columns that are chosen already."""
    if not keyed:
        if division:
            yield division
        return
    for columns in dict.fromkeys(keyed[0]):
        chosen = dict(columns)
        is_one = len(chosen) == len(columns)
        if columns and is_one and all(division.get(leaf, name) == name for leaf, name in columns):
            yield from _chosen(keyed[1:], {**division, **chosen})
