"""The rows of growing partitions from the first needed one on, with their carried state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.pairs import PairRows
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.window_plan import WindowPlan

__all__ = [
    "AT",
    "CARRIED",
    "DONE",
    "EMITTED",
    "SEARCHED",
    "STATE",
    "TAKEN",
    "CountedRows",
    "Suffix",
    "retained_rows",
    "suffix_of",
]

Array = np.ndarray

AT, STATE, EMITTED = "__at", "__state", "__given"
CARRIED = pa.schema([(AT, pa.int64()), (STATE, pa.int8()), (EMITTED, pa.int64())])
"""The additional columns of retained rows: the position in the partition, from 1; the decisions `DONE`,
`TAKEN` and `SEARCHED`; and the number of earlier matches of the partition.
"""

DONE, TAKEN, SEARCHED = 1, 2, 4
"""Decisions about a row: no further window or match begins at it; it is in an emitted match, or in an emitted
tumbling window with a label; it has been searched.
"""


@dataclass(frozen=True)
class Suffix:
    """Rows in order: for each partition, all from its first retained one on.

    Attributes
    ----------
    table
        The rows.
    bounds
        int64, (partitions + 1,): partition p is rows ``bounds[p] : bounds[p + 1]``.
    at
        int64: the rows' positions in their partitions, from 1.
    state
        int8: `DONE`, `TAKEN` and `SEARCHED`.
    emitted
        int64, one for each partition: the number of its earlier matches.
    """

    table: pa.Table
    bounds: Array
    at: Array
    state: Array
    emitted: Array

    @property
    def is_done(self) -> Array:
        """The rows at which no more windows or matches begin."""
        return self.state & DONE > 0

    def counts(self, rows: Array) -> Array:
        """How many of these rows, a bool for each, are in each partition."""
        before = np.concatenate([[0], np.cumsum(rows)])
        counted: Array = before[self.bounds[1:]] - before[self.bounds[:-1]]
        return counted


class CountedRows(PairRows):
    """The rows of windows, with their positions in the whole partitions."""

    def __init__(self, plan: WindowPlan, table: pa.Table, bounds: Array, at: Array) -> None:
        super().__init__(table, bounds, plan.constants, plan.expressions(), plan.ansi)
        self.at = at

    def position(self, index: Array) -> Array:
        """The positions in their partitions, from 1, of these rows."""
        return self.at[index] if len(self.at) else np.zeros(len(index), np.int64)


def suffix_of(
    retained: pa.Table | None,
    new_rows: pa.Table,
    partition: tuple[str, ...],
    order: tuple[SortKey, ...],
    columns: tuple[str, ...],
) -> Suffix:
    """These columns of the retained rows, in their order, and of the new ones.

    New rows are sorted, and follow the retained ones.
    """
    for field in CARRIED:
        new_rows = new_rows.append_column(field, pa.nulls(new_rows.num_rows, field.type))
    whole = new_rows
    if retained is not None:
        for field in new_rows.schema:
            if field.name not in retained.column_names:
                retained = retained.append_column(field, pa.nulls(retained.num_rows, field.type))
        whole = pa.concat_tables([retained.select(new_rows.column_names).cast(new_rows.schema), new_rows])
    whole = whole.combine_chunks()
    placed, bounds = sorted_partitions(whole, partition, (SortKey(AT, nulls_first=False), *order))
    whole = whole.select([*columns, *CARRIED.names])
    if not whole.num_rows:
        bounds = np.zeros(1, np.int64)
    whole = whole if placed is None else whole.take(pa.array(placed))
    at, state, emitted = (whole.column(name).fill_null(0).to_numpy() for name in CARRIED.names)
    first = bounds[:-1]
    begins = np.maximum(at[first], 1)
    counted = np.repeat(begins - first, np.diff(bounds)) + np.arange(whole.num_rows)
    return Suffix(whole.drop_columns(CARRIED.names), bounds, counted, state.astype(np.int8), emitted[first])


def retained_rows(suffix: Suffix, needed: Array, state: Array, emitted: Array) -> pa.Table:
    """The rows from these of each partition on, with their carried state.

    Parameters
    ----------
    needed
        int64, one a partition: the first row to retain.
    state
        int8: of all rows.
    emitted
        int64, one a partition.
    """
    counts = np.diff(suffix.bounds)
    rows = np.flatnonzero(np.arange(suffix.table.num_rows) >= np.repeat(needed, counts))
    carried = (suffix.at, state.astype(np.int8), np.repeat(emitted, counts))
    table = suffix.table.take(pa.array(rows))
    for field, values in zip(CARRIED, carried, strict=True):
        table = table.append_column(field.name, pa.array(values[rows], field.type))
    return table
