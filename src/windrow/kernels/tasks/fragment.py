"""Fragments: the plan that tasks run between exchanges, and the halo of rows that slices need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels import slices
from windrow.kernels.packing.parquet_files import FileScan
from windrow.kernels.packing.shards import Layout
from windrow.kernels.patterns.pattern_plan import MatchPlan
from windrow.kernels.patterns.pattern_slices import matches_halo
from windrow.kernels.slices.predicate_analysis import columns as expression_columns
from windrow.kernels.sorting import SortKey, has_values_of_codes, sorted_partitions
from windrow.kernels.window_plan import WindowPlan

__all__ = ["Batches", "Fragment", "halo_for", "only_put_out"]

_MOST_AROUND = 1 << 20  # rows that a task sends to all slices together
Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Fragment:
    """The plan that tasks run: the kernel's plan, the sort order of rows, and the layout of shards.

    `partition` and `order` name columns of the rows; `columns` are those that the kernel reads, and of
    them `coded` may stay dictionary-coded, as they are only output. With a `scan` tasks read the rows
    themselves, by their task number in it. With a `halo` slices need that many rows around them, and no more.
    """

    plan: WindowPlan | MatchPlan
    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    columns: tuple[str, ...]
    coded: frozenset[str]
    layout: Layout
    scan: FileScan | None = None
    halo: slices.Halo | None = None

    @property
    def reads_shards(self) -> bool:
        """Whether each task reads the rows of a shard itself.

        Slices that exchange rows do so only if there are no buckets, which would have to be exchanged, too.
        """
        if self.scan is None or not (self.scan.whole or self.scan.long):
            return False
        return not self.layout.sequences or self.halo is not None or not self.layout.buckets

    @property
    def windows(self) -> WindowPlan:
        """The plan of windows, whose long partitions come in slices."""
        assert isinstance(self.plan, WindowPlan)
        return self.plan

    @property
    def matches(self) -> MatchPlan:
        """The plan of matches, whose long partitions come in slices."""
        assert isinstance(self.plan, MatchPlan)
        return self.plan

    def sorted(self, rows: pa.Table, coded: frozenset[str]) -> tuple[pa.Table, np.ndarray]:
        """The columns that the kernel reads, in order, and the bounds of the partitions.

        Only the columns `coded` stay dictionary-coded where they are.
        """
        order, bounds = sorted_partitions(rows, self.partition, self.order)
        rows = rows.select(self.columns)
        for at, column in enumerate(rows.schema):
            if pa.types.is_dictionary(column.type) and column.name not in coded:
                plain = rows.column(at).cast(column.type.value_type)
                rows = rows.set_column(at, column.name, plain)
        return (rows if order is None else rows.take(pa.array(order))), bounds

    def sorted_slice(self, rows: pa.Table, coded: frozenset[str]) -> pa.Table:
        """Rows of one partition, sorted.

        Raises
        ------
        ExecutionError
            ``HASH_COLLISION``.
        """
        table, bounds = self.sorted(rows, coded)
        if len(bounds) != 2:
            raise ExecutionError(
                "two partitions have the same 64-bit hash",
                condition="HASH_COLLISION",
                sqlstate="XX000",
                hint="set spark.windrow.slice.rows to more rows than the longest partition has",
            )
        return table


def only_put_out(plan: WindowPlan, columns: Iterable[str]) -> frozenset[str]:
    """The columns that neither a predicate nor an aggregate reads."""
    read = {spec.argument for _, spec, _ in plan.aggregates}
    read |= {search.column for search in (plan.start, plan.end) if search is not None}
    for predicate in plan.expressions():
        read |= {ref.column for ref in expression_columns(predicate)}
    return frozenset(columns) - read


def halo_for(
    plan: WindowPlan | MatchPlan, layout: Layout, order: SortKey, key: pa.Field
) -> slices.Halo | None:
    """The halo of rows around slices, if a small one is all that they need.

    `key` is the field of the first order key, with its type and nullability.
    """
    if not layout.sequences:
        return None
    reaches = not key.nullable and has_values_of_codes(key.type)
    if isinstance(plan, MatchPlan):
        halo = matches_halo(plan)
    else:
        halo = slices.halo_of(plan, order if reaches else None)
    if halo is None or (halo.before + halo.after) * layout.shards > _MOST_AROUND:
        return None
    reach = halo.reach
    if reach is not None and not all(reach.spans(cut.cuts, key.type) for cut in layout.sequences):
        return None
    return halo
