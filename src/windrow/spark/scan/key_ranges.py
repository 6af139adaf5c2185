"""Rule: tasks read whole partitions where the row groups of files have ranges of a partition key.

Files are often sorted by such a key, or have a few keys each. Then each task reads all rows of a range of its
values, and no row is exchanged. A row group that lies in two ranges is read by two tasks, which filter it.
Keys with very many rows are apart: several tasks read slices of each.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

from windrow.kernels.packing.parquet_files import FilePart, KeyRange, RowGroup

__all__ = ["LongKey", "divided", "long_keys"]

_MOST_READ = 1.75
"""The rows that tasks read altogether, in multiples of all rows, beyond which an exchange is cheaper."""
_LARGEST = 2.0
"""The rows of the largest task, in multiples of those that a task should have: it holds all of them."""

_GREATEST = 2**63 - 1

Value: TypeAlias = Any
"""An integer or bytes: the same in all row groups."""


@dataclass(frozen=True)
class LongKey:
    """A partition key with more rows than one task should have.

    Attributes
    ----------
    value
        As the files have it.
    alone
        The places of the row groups that have no rows of other keys.
    parts
        The row groups that may have its rows, by place, as parts with these rows only.
    """

    value: Value
    alone: tuple[int, ...]
    parts: Mapping[int, FilePart]


def long_keys(groups: Sequence[RowGroup], column: str, most: int) -> list[LongKey]:
    """The keys that have more than so many rows in row groups of their own."""
    of_key: dict[Value, list[int]] = defaultdict(list)
    for place, group in enumerate(groups):
        if group.least == group.greatest:
            of_key[group.least].append(place)
    found = []
    for value, alone in of_key.items():
        if sum(groups[place].rows for place in alone) > most:
            keys = KeyRange(column, value, _next(value))
            parts = {
                place: _part(one, keys)
                for place, one in enumerate(groups)
                if one.may_hold(keys.first, keys.stop)
            }
            found.append(LongKey(value, tuple(alone), parts))
    return found


def divided(
    groups: Sequence[RowGroup],
    column: str,
    count: int,
    apart: Sequence[LongKey] = (),
    most: float = math.inf,
) -> tuple[tuple[FilePart, ...], ...] | None:
    """The parts of files that each of so many tasks, or somewhat fewer, reads; None if too many row groups
    would be read by several, or if one task would read much more than others.

    Parameters
    ----------
    groups
        The row groups in order. Their rows have no NULL in the column.
    column
        The partition key, as it is in the files.
    apart
        The keys that other tasks read. Without them, there are at least two tasks.
    most
        The most rows that one task may read beside such keys.
    """
    alone = {place for key in apart for place in key.alone}
    rest = [group for place, group in enumerate(groups) if place not in alone]
    cuts = {*_cuts(rest, count)}
    if not cuts and not apart:
        return None
    cuts |= {edge for key in apart for edge in (key.value, _next(key.value)) if edge is not None}
    edges = [None, *sorted(cuts), None]
    long = {key.value for key in apart}
    ranges = [KeyRange(column, first, stop) for first, stop in pairwise(edges) if first not in long]
    tasks = [
        (keys, found)
        for keys in ranges
        if (found := [one for one in rest if one.may_hold(keys.first, keys.stop)])
    ]
    rows = [sum(group.rows for group in found) for _, found in tasks]
    total = sum(group.rows for group in rest)
    largest = most if apart else _LARGEST * total / count
    if sum(rows) > _MOST_READ * total or max([0, *rows]) > largest:
        return None
    return tuple(_parts(found, keys) for keys, found in tasks)


def _next(value: Value) -> Value:
    """The least value that is greater; None after the greatest integer."""
    if isinstance(value, bytes):
        return value + b"\0"
    return None if value == _GREATEST else value + 1


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


def _part(group: RowGroup, keys: KeyRange) -> FilePart:
    """The rows of a row group in a range; not filtered if it lies in it."""
    is_inside = (keys.first is None or group.least >= keys.first) and (
        keys.stop is None or group.greatest < keys.stop
    )
    return replace(group.part, within=None if is_inside else keys)


def _parts(groups: Sequence[RowGroup], keys: KeyRange) -> tuple[FilePart, ...]:
    """The parts of files with the rows in a range."""
    found: list[FilePart] = []
    for part in (_part(group, keys) for group in groups):
        last = found[-1] if found else None
        if last is not None and replace(last, row_groups=part.row_groups) == part:
            found[-1] = replace(last, row_groups=(*last.row_groups, *part.row_groups))
        else:
            found.append(part)
    return tuple(found)
