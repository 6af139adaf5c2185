"""Aggregates of groups over time, for each period in which a group does not change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates import AggregateSpec, aggregate
from windrow.kernels.aggregates.windows import expanded
from windrow.kernels.zset.elementary_intervals import ElementaryIntervals, elementary
from windrow.kernels.zset.group_and_time import by_group_and_time

__all__ = ["grouped", "is_compared", "merged", "parts"]

Ints = npt.NDArray[np.int64]
_REFERENCES = 1 << 22  # rows of pieces that are written out at once


def grouped(
    rows: pa.Table, group: Ints, enter: Ints, leave: Ints, specs: Sequence[AggregateSpec]
) -> Iterator[tuple[Ints, Ints, Ints, list[pa.Array]]]:
    """The aggregates of each group.

    If rows leave in the order in which they entered, the rows of an interval are a range, and the work does
    not depend on their number. Otherwise the rows of each interval are materialized.

    Parameters
    ----------
    rows
        With the columns that `specs` read.
    group, enter, leave
        Of each row, int64; groups are numbered from 0.

    Yields
    ------
    row, enter, leave, values
        For each period in which the group has rows and the same aggregates: one of the rows, the period, and
        the aggregates.
    """
    specs = [replace(spec, any_order=True) for spec in specs]
    order = by_group_and_time(group, enter, leave)
    group, enter, leave = group[order], enter[order], leave[order]
    rows = rows.take(pa.array(order))
    pieces = elementary(group, enter, leave)
    if (np.diff(pieces.stop) >= 0).all():
        number = np.arange(len(pieces.enter))
        lo, hi = _until(pieces.stop, len(number)), _until(pieces.first, len(number))
        filled = np.flatnonzero(lo < hi)
        lo, hi = lo[filled], hi[filled]
        values = [_array(aggregate(spec, rows, lo, hi)) for spec in specs]
        yield merged(pieces.group[filled], order[lo], pieces.enter[filled], pieces.leave[filled], values)
        return
    for part in parts(pieces):
        own = np.arange(part.start, part.stop)
        row, piece = expanded(pieces.first[own], pieces.stop[own])
        row = own[row]
        by_piece = np.argsort(piece, kind="stable")
        row, piece = row[by_piece], piece[by_piece]
        begins = np.flatnonzero(np.diff(piece, prepend=-1))
        hi = np.append(begins[1:], len(piece))
        there = rows.take(pa.array(row))
        values = [_array(aggregate(spec, there, begins, hi)) for spec in specs]
        found = piece[begins]
        times = pieces.enter[found], pieces.leave[found]
        yield merged(pieces.group[found], order[row[begins]], *times, values)


def _until(places: Ints, count: int) -> Ints:
    """For each of 0, 1, … how many of the places, which never decrease, are at most that."""
    return np.cumsum(np.bincount(places, minlength=count)[:count])


def is_compared(kind: pa.DataType) -> bool:
    """Whether values of a type are compared, so that adjacent periods with equal aggregates are merged."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal128(kind) or pa.types.is_string(kind))


def merged(
    group: Ints, row: Ints, enter: Ints, leave: Ints, values: list[pa.Array]
) -> tuple[Ints, Ints, Ints, list[pa.Array]]:
    """Merge adjacent periods with the same aggregates."""
    if not len(group):
        return row, enter, leave, values
    begins = np.ones(len(group), bool)
    begins[1:] = (group[1:] != group[:-1]) | (enter[1:] != leave[:-1])
    for column in values:
        begins[1:] |= ~_as_before(column) if is_compared(column.type) else True
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(group)) - 1
    if len(first) == len(group):
        return row, enter, leave, values
    chosen = pa.array(first)
    return row[first], enter[first], leave[last], [column.take(chosen) for column in values]


def _as_before(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Whether each value but the first equals the one before it; NULL and NaN equal themselves."""
    one, other = column.slice(1), column.slice(0, len(column) - 1)
    same = np.asarray(pc.fill_null(pc.equal(one, other), False))
    if pa.types.is_floating(column.type):
        same = same | np.asarray(pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
    if column.null_count:
        same = same | (np.asarray(pc.is_null(one)) & np.asarray(pc.is_null(other)))
    return same


def parts(pieces: ElementaryIntervals) -> Iterator[slice]:
    """Ranges of rows of whole groups, each with about the same number of references."""
    if not len(pieces.first):
        return
    groups = pieces.group[pieces.first]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    reached = np.cumsum(pieces.stop - pieces.first)
    begin = 0
    for end in [*starts[1:].tolist(), len(groups)]:
        done = int(reached[begin - 1]) if begin else 0
        if end == len(groups) or int(reached[end - 1]) - done >= _REFERENCES:
            yield slice(begin, end)
            begin = end


def _array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
