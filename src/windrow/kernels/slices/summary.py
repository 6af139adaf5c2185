"""The summary of a slice for all others: some rows and numbers for each chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels import aggregates
from windrow.kernels.pairs import Array, PairRows, satisfied
from windrow.kernels.slices.cutting import CHUNK_ROWS, chunk_offsets
from windrow.kernels.slices.predicate_analysis import (
    columns,
    own_side,
    predicates,
    reads_positions,
    rising,
    shifts,
)
from windrow.kernels.strategies.monotone import ascends
from windrow.kernels.window_plan import PairExpression, WindowPlan

__all__ = ["Summary", "Zone", "summarise", "zone_of"]


@dataclass(frozen=True)
class Zone:
    """The bounds of a column's values in each chunk.

    Attributes
    ----------
    low, high
        The least and the greatest value; NULL if all are NULL.
    null
        Whether there is a NULL.
    wild
        Whether there is a NaN or an infinity, which the bounds ignore.
    """

    low: pa.Array
    high: pa.Array
    null: Array
    wild: Array


@dataclass(frozen=True)
class Summary:
    """The summary of one slice.

    Attributes
    ----------
    offsets
        First rows of the chunks and, last, the number of rows.
    fences, fence_rows
        The first two and last two rows of each chunk, with all columns, and which of the slice's they are.
    true
        For each predicate that reads one row only: whether it is true at any row of each chunk, except rows
        for which it reads a neighbour in another slice.
    zones
        For each column and shift that predicates over several rows read: the bounds of the values that the
        chunk's rows read, except those in another slice.
    rises
        For each column (and rank group) that bisection needs: whether it never decreases within the slice.
    states
        For each aggregate the partial state of each chunk; None if there is no partial form.
    """

    offsets: Array
    fences: pa.Table
    fence_rows: Array
    true: Mapping[str, Array]
    zones: Mapping[tuple[str, int], Zone]
    rises: Mapping[tuple[str, int | None], bool]
    states: tuple[pa.Table | None, ...]


def summarise(plan: WindowPlan, table: pa.Table, chunk_rows: int = CHUNK_ROWS) -> Summary:
    """Summarise a slice.

    Parameters
    ----------
    plan
        The clause; ``unsliceable(plan)`` is None.
    table
        The slice's rows, in order, with the columns that the plan names; may be empty.
    chunk_rows
        Rows of a chunk; the same in all slices.
    """
    table = table.combine_chunks()
    count = table.num_rows
    offsets = chunk_offsets(count, chunk_rows)
    low, stop = offsets[:-1], offsets[1:]
    fence_rows = np.unique(
        np.concatenate([low, np.minimum(low + 1, stop - 1), np.maximum(stop - 2, low), stop - 1])
    )
    rows = PairRows(table, np.array([0, count], np.int64), plan.constants, plan.expressions(), plan.ansi)
    true: dict[str, Array] = {}
    zones: dict[tuple[str, int], Zone] = {}
    rises: dict[tuple[str, int | None], bool] = {}
    for name, search in predicates(plan).items():
        predicate = search.predicate
        assert predicate is not None
        if search.strategy == "first true" and not reads_positions(predicate):
            side = own_side(plan) if name == "window" else name
            true[name] = _any_true(predicate, rows, side, offsets)
            continue
        for ref in columns(predicate):
            if (ref.column, ref.shift) not in zones:
                zones[ref.column, ref.shift] = zone_of(table.column(ref.column), ref.shift, offsets)
        for ref in rising(search, name):
            rises[ref.column, ref.rank] = ascends(rows, ref)
    states = tuple(aggregates.state(spec, table, low, stop) for _, spec, _ in plan.aggregates)
    return Summary(
        offsets, _compact(table.take(pa.array(fence_rows))), fence_rows, true, zones, rises, states
    )


def _compact(table: pa.Table) -> pa.Table:
    """The table with dictionaries reduced to the values of its rows."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            values = table.column(at).cast(field.type.value_type)
            table = table.set_column(at, field, values.dictionary_encode().cast(field.type))
    return table


def _any_true(predicate: PairExpression, rows: PairRows, side: str, offsets: Array) -> Array:
    """Whether the predicate is true at any row of each chunk for which the slice has all rows read."""
    around = shifts(predicate)
    candidates = np.arange(max(0, -min(around)), len(rows.first) - max(around), dtype=np.int64)
    true = candidates[satisfied(predicate, rows, {side: candidates})]
    return np.diff(np.searchsorted(true, offsets)) > 0


def zone_of(column: pa.ChunkedArray, shift: int, offsets: Array) -> Zone:
    """The bounds of the values `shift` rows after the rows of each chunk, as far as the slice has them."""
    count = len(column)
    bounds = zip(
        np.clip(offsets[:-1] + shift, 0, count).tolist(),
        np.clip(offsets[1:] + shift, 0, count).tolist(),
        strict=True,
    )
    kind = column.type
    floating = pa.types.is_floating(kind)
    # Arrow does not compare durations
    plain = column.cast(pa.int64()) if pa.types.is_duration(kind) else column
    found, null, wild = [], [], []
    for low, stop in bounds:
        part = plain.slice(low, stop - low)
        found.append(pc.min_max(part))
        null.append(part.null_count > 0)
        wild.append(floating and not pc.all(pc.is_finite(part), min_count=0).as_py())
    ends = [
        pa.array([scalar[end].as_py() for scalar in found], plain.type).cast(kind) for end in ("min", "max")
    ]
    low, high = ends
    return Zone(low, high, np.array(null, bool), np.array(wild, bool))
