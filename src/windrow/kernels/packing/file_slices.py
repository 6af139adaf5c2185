"""Slices of a long partition that tasks read themselves, as row groups have ranges of the first order key.

A task reads the row groups that may have rows of its slice. Then it reads the nearest others, until it has
the halo: as many rows on either side as the slice needs. A row group that lies in two slices is read by both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from windrow.kernels.packing.chunks import Borders, joined, written
from windrow.kernels.packing.messages import MessageKind, message
from windrow.kernels.packing.parquet_files import FileScan, RowGroup
from windrow.kernels.packing.shards import Edges, Layout, SlicedPartition
from windrow.kernels.slices.halo import Halo
from windrow.kernels.sorting import SortKey, cut_codes, one_array

__all__ = ["messages_of_slice", "rows_of_slices"]

Array = np.ndarray


def messages_of_slice(
    scan: FileScan, layout: Layout, shard: int, order: tuple[SortKey, ...], halo: Halo | None
) -> Iterator[pa.RecordBatch]:
    """The messages with the rows of a slice and its halo, as if they had been packed; none without own rows.

    Parameters
    ----------
    scan
        With `long`.
    layout
        The shards.
    shard
        The slice.
    order
        The order keys; the first is of a type with :func:`windrow.kernels.sorting.has_values_of_codes`, and
        never NULL.
    halo
        The rows that the slice needs around its own; None for none.
    """
    sequence, (first, stop) = layout.slice_of(shard)
    groups = scan.long[sequence]
    sides: list[_Side] = []
    if halo is not None:
        borders = Borders(layout, order, halo)
        if first is not None and halo.before:
            sides.append(_Side(scan, groups, borders, MessageKind.BEFORE, first))
        if stop is not None and halo.after:
            sides.append(_Side(scan, groups, borders, MessageKind.AFTER, stop))
    own: list[pa.Table] = []
    for place, group in enumerate(groups):
        rows = _rows(scan, group) if group.may_hold(first, stop) else None
        if rows is not None:
            codes = _codes(rows, order[0])
            own.append(_where(rows, _is_within(codes, (first, stop))))
            for side in sides:
                side.add(place, rows, codes)
    own = [rows for rows in own if rows.num_rows]
    for number, rows in enumerate(own):
        yield message(shard, MessageKind.ROWS, number, written(rows))
    for side in sides if own else ():
        around = side.nearest(shard)
        if around is not None:
            yield message(shard, side.kind, 0, written(around))


def rows_of_slices(groups: Sequence[RowGroup], sequence: SlicedPartition) -> int:
    """The number of rows in the row groups of a partition that tasks read for its slices."""
    return sum(group.rows for edges in sequence.edges for group in groups if group.may_hold(*edges))


def _is_within(codes: Array, edges: Edges) -> Array:
    first, stop = edges
    within = np.ones(len(codes), bool)
    if first is not None:
        within &= codes >= first
    if stop is not None:
        within &= codes < stop
    return within


def _rows(scan: FileScan, group: RowGroup) -> pa.Table | None:
    """The rows of a row group; None if there are none."""
    batches = list(scan.rows_of((group.part,)))
    return pa.Table.from_batches(batches) if batches else None


def _codes(rows: pa.Table, key: SortKey) -> Array:
    return cut_codes(rows.column(key.column), key)


def _where(rows: pa.Table, which: Array) -> pa.Table:
    return rows if which.all() else rows.filter(pa.array(which))


class _Side:
    """The rows on one side of a slice: of the row groups that are read, and of the nearest others.

    Distances increase away from the slice: after it they are the cut codes, before it their complements.
    """

    def __init__(
        self, scan: FileScan, groups: Sequence[RowGroup], borders: Borders, kind: MessageKind, edge: int
    ) -> None:
        self.scan, self.groups, self.borders, self.kind = scan, groups, borders, kind
        self.is_before = kind is MessageKind.BEFORE
        self.edge = ~(edge - 1) if self.is_before else edge
        self.found: dict[int, pa.Table] = {}
        self.counted: list[Array] = []
        nearest = [(~one.greatest if self.is_before else one.least) for one in groups]
        self.unread = sorted((at, place) for place, at in enumerate(nearest) if at >= self.edge)

    def add(self, place: int, rows: pa.Table, codes: Array) -> None:
        """Add the rows of a row group that are on this side."""
        distances = ~codes if self.is_before else codes
        is_outside = distances >= self.edge
        if not is_outside.any():
            return
        self.found[place] = rows = _where(rows, is_outside)
        distances, reach = distances[is_outside], self.borders.halo.reach
        if reach is not None and not self.is_before:
            key = self.borders.order[0].column
            distances = distances[reach.is_beyond(one_array(rows.column(key)), self.edge)]
        self.counted.append(distances)

    def nearest(self, shard: int) -> pa.Table | None:
        """The rows that the slice needs; reads row groups until no other has any of them."""
        halo = self.borders.halo
        count = halo.before if self.is_before else halo.after
        while self.unread:
            limit, place = self.unread[0]
            if sum(np.count_nonzero(distances < limit) for distances in self.counted) >= count:
                break
            del self.unread[0]
            rows = _rows(self.scan, self.groups[place])
            if rows is not None:
                self.add(place, rows, _codes(rows, self.borders.order[0]))
        around = joined([rows for _, rows in sorted(self.found.items())])
        return None if around is None else self.borders.near(shard, self.kind, around)
