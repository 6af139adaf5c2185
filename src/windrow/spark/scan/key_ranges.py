"""Rule: tasks read whole partitions where the row groups of files have ranges of a partition key.

Files are often sorted by such a key, or have a few keys each. Then each task reads all rows of a range of its
values, and no row is exchanged. A row group that lies in two ranges is read by two tasks, which filter it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

from windrow.kernels.packing.parquet_files import FilePart, KeyRange

__all__ = ["RowGroup", "divided"]

_MOST_READ = 1.75
"""The rows that tasks read altogether, in multiples of all rows, beyond which an exchange is cheaper."""
_LARGEST = 2.0
"""The rows of the largest task, in multiples of those that a task should have: it holds all of them."""

Value: TypeAlias = Any
"""An integer or bytes: the same in all row groups."""


@dataclass(frozen=True)
class RowGroup:
    """A row group, as a part of its file: the number of its rows, and the range of the key's values in it."""

    part: FilePart
    rows: int
    least: Value
    greatest: Value


def divided(groups: Sequence[RowGroup], column: str, count: int) -> tuple[tuple[FilePart, ...], ...] | None:
    """The parts of files that each of so many tasks, or somewhat fewer, reads; None if too many row groups
    would be read by several, or if one task would read much more than others.

    Parameters
    ----------
    groups
        The row groups in order. Their rows have no NULL in the column.
    column
        The partition key, as it is in the files.
    """
    cuts = _cuts(groups, count)
    edges = [None, *cuts, None]
    tasks = [_within(groups, KeyRange(column, first, stop)) for first, stop in pairwise(edges)]
    rows = [sum(group.rows for group in task) for task in tasks]
    total = sum(group.rows for group in groups)
    if not cuts or sum(rows) > _MOST_READ * total or max(rows) * count > _LARGEST * total:
        return None
    return tuple(
        _parts(task, KeyRange(column, first, stop))
        for task, (first, stop) in zip(tasks, pairwise(edges), strict=True)
    )


def _cuts(groups: Sequence[RowGroup], count: int) -> list[Value]:
    """The values that divide the row groups, by their least values, into ranges with about as many rows."""
    total = sum(group.rows for group in groups)
    cuts: list[Value] = []
    before = 0
    ordered = sorted(groups, key=lambda group: (group.least, group.greatest))
    for group in ordered:
        is_due = before * count >= (len(cuts) + 1) * total
        if is_due and group.least > (cuts[-1] if cuts else ordered[0].least):
            cuts.append(group.least)
        before += group.rows
    return cuts


def _within(groups: Sequence[RowGroup], keys: KeyRange) -> list[RowGroup]:
    """The row groups that may have rows in a range."""
    return [
        group
        for group in groups
        if (keys.stop is None or group.least < keys.stop)
        and (keys.first is None or group.greatest >= keys.first)
    ]


def _parts(groups: Sequence[RowGroup], keys: KeyRange) -> tuple[FilePart, ...]:
    """The parts of files with the rows in a range; row groups that lie in it are not filtered."""
    found: list[FilePart] = []
    for group in groups:
        is_inside = (keys.first is None or group.least >= keys.first) and (
            keys.stop is None or group.greatest < keys.stop
        )
        part = replace(group.part, within=None if is_inside else keys)
        last = found[-1] if found else None
        if last is not None and replace(last, row_groups=part.row_groups) == part:
            found[-1] = replace(last, row_groups=(*last.row_groups, *part.row_groups))
        else:
            found.append(part)
    return tuple(found)
