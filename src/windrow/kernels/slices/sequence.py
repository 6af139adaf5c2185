"""A sequence of slices, according to their summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from windrow.kernels import aggregates
from windrow.kernels.aggregates import FUNCTIONS, AggregateSpec, Gaps
from windrow.kernels.pairs import Array, PairRows, satisfied
from windrow.kernels.slices.bounds import Range, outward
from windrow.kernels.slices.predicate_analysis import columns, leaves, own_side, predicates, shifts
from windrow.kernels.slices.summary import Summary
from windrow.kernels.strategies.monotone import ascends
from windrow.kernels.window_plan import ColumnRef, ConstantRef, PairExpression, WindowPlan

__all__ = ["Bounds", "SliceSequence"]


@dataclass(frozen=True)
class Bounds:
    """Where the values of a column lie in each chunk: float64 (none if ``low > high``) and flags."""

    low: Array
    high: Array
    null: Array
    wild: Array


class SliceSequence:
    """All slices with rows. Chunks are numbered through all slices, rows from 0.

    Attributes
    ----------
    slices, chunks, rows
        Their numbers.
    first_row
        int64, the first row of each chunk and, last, the number of rows.
    slice_of
        int64, the slice of each chunk.
    first_chunk
        int64, the first chunk of each slice and, last, the number of chunks.
    """

    def __init__(self, plan: WindowPlan, summaries: Sequence[Summary]) -> None:
        self.plan = plan
        self.summaries = summaries
        self._bounds: dict[ColumnRef, Bounds] = {}
        sizes = [np.diff(summary.offsets) for summary in summaries]
        lengths = np.array([len(size) for size in sizes], np.int64)
        self.first_row = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        self.first_chunk = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.slice_of = np.repeat(np.arange(len(summaries)), lengths)
        self.slices, self.chunks, self.rows = len(summaries), len(self.slice_of), int(self.first_row[-1])

    @property
    def own(self) -> Array:
        """Bool, shape (slices, chunks): whether the chunk is the slice's."""
        own: Array = np.arange(self.slices)[:, None] == self.slice_of
        return own

    @cached_property
    def fence_rows(self) -> Array:
        """Which rows the fences are, ascending."""
        starts = self.first_row[self.first_chunk]
        parts = [start + summary.fence_rows for start, summary in zip(starts, self.summaries, strict=False)]
        return np.concatenate(parts).astype(np.int64)

    @cached_property
    def fences(self) -> pa.Table:
        """All fences."""
        return pa.concat_tables([summary.fences for summary in self.summaries]).combine_chunks()

    def fence(self, rows: Array) -> pa.Table:
        """These rows, which are fences."""
        return self.fences.take(pa.array(np.searchsorted(self.fence_rows, rows)))

    @cached_property
    def _fence_rows(self) -> PairRows:
        bounds = np.array([0, len(self.fence_rows)], np.int64)
        return PairRows(self.fences, bounds, self.plan.constants, self.plan.expressions(), self.plan.ansi)

    def true(self, name: str) -> Array | None:
        """For each chunk, whether a row satisfies this predicate; None if the summaries do not show it."""
        predicate = predicates(self.plan)[name].predicate
        if predicate is None or any(name not in summary.true for summary in self.summaries):
            return None
        true = np.concatenate([summary.true[name] for summary in self.summaries])
        side = own_side(self.plan) if name == "window" else name
        around = shifts(predicate)
        edges = [*self._first_chunks()] * (min(around) < 0), [*self._last_chunks()] * (max(around) > 0)
        rows = [*self.first_row[:-1][edges[0]], *self.first_row[1:][edges[1]] - 1]
        if rows:  # the first and last rows of slices, now that their neighbours are known
            fences = np.searchsorted(self.fence_rows, np.array(rows, np.int64))
            found = satisfied(predicate, self._fence_rows, {side: fences})
            true[np.array([*edges[0], *edges[1]], np.int64)[found]] = True
        return true

    def rises(self, ref: ColumnRef) -> bool:
        """Whether the column never decreases, so that it can be bisected."""
        key = ref.column, ref.rank
        return all(summary.rises[key] for summary in self.summaries) and ascends(self._fence_rows, ref)

    def state(self, number: int, low: Array, stop: Array) -> pa.Table:
        """The partial state of an aggregate over chunks ``low[k] <= c < stop[k]``, for every k."""
        spec = self.plan.aggregates[number][1]
        parts = [summary.states[number] for summary in self.summaries]
        empty = self._nothing(spec)
        function = FUNCTIONS[spec.function].partial
        assert function is not None
        return aggregates.combined(function, spec, pa.concat_tables(parts), empty, low, stop)

    def _nothing(self, spec: AggregateSpec) -> pa.Table:
        zero = np.zeros(1, np.int64)
        nothing = aggregates.state(spec, self.fences.slice(0, 0), zero, zero)
        assert nothing is not None
        return nothing

    def gaps(self, number: int, low: Array, stop: Array, first: Array, last: Array) -> Gaps:
        """Gaps for an aggregate: rows ``[low, stop)`` of a table stand for chunks ``[first, last)``."""
        return Gaps(low, stop, self.state(number, first, last))

    def _first_chunks(self) -> Array:
        return np.flatnonzero(np.diff(self.slice_of, prepend=-1))

    def _last_chunks(self) -> Array:
        return np.flatnonzero(np.diff(self.slice_of, append=self.slices))

    # -- where values lie ------------------------------------------------------------------------

    @cached_property
    def _zones(self) -> PairRows:
        """As columns: the least values of all chunks, the greatest, then those at fences."""
        table = {}
        expressions: list[PairExpression] = []
        for search in predicates(self.plan).values():
            for ref in columns(search.predicate) if search.predicate is not None else []:
                if any((ref.column, ref.shift) not in summary.zones for summary in self.summaries):
                    continue
                zones = [summary.zones[ref.column, ref.shift] for summary in self.summaries]
                ends = [zone.low for zone in zones] + [zone.high for zone in zones]
                fences = self.fences.column(ref.column)
                name = _zone_name(ref)
                table[name] = pa.chunked_array([*ends, *fences.chunks], fences.type)
                # as many of each group as there are shifts: only the order of the values counts
                expressions.append(replace(ref, column=name))
            expressions += _constants(search.predicate)
        lengths = 2 * self.chunks + len(self.fence_rows)
        made = pa.table(table) if table else pa.table({"": pa.nulls(lengths)})
        return PairRows(
            made, np.array([0, lengths], np.int64), self.plan.constants, tuple(expressions), self.plan.ansi
        )

    def bounds(self, ref: ColumnRef) -> Bounds:
        """The bounds of the column's values that each chunk's rows read, shifted by `ref.shift`."""
        key = replace(ref, side="")
        if key not in self._bounds:
            self._bounds[key] = self._made_bounds(key)
        return self._bounds[key]

    def _made_bounds(self, ref: ColumnRef) -> Bounds:
        values = self._zones.column(_zone_name(ref), ref.rank)
        valid, count = values.validity(), self.chunks
        if values.data.dtype.kind == "O":  # texts and decimals, which functions of several rows read
            anywhere = np.ones(count, bool)
            return Bounds(np.full(count, np.inf), np.full(count, -np.inf), anywhere, anywhere)
        low = np.where(valid, outward(values.data, up=False), np.inf)
        high = np.where(valid, outward(values.data, up=True), -np.inf)
        zones = [summary.zones[ref.column, ref.shift] for summary in self.summaries]
        bounds = Bounds(
            low[:count],
            high[count : 2 * count],
            np.concatenate([zone.null for zone in zones]),
            np.concatenate([zone.wild for zone in zones]),
        )
        if ref.shift == 0 or not count:
            return bounds
        # what the slices could not see: the row before their first, or after their last
        chunks = self._first_chunks() if ref.shift < 0 else self._last_chunks()
        rows = self.first_row[:-1][chunks] - 1 if ref.shift < 0 else self.first_row[1:][chunks]
        there = (rows >= 0) & (rows < self.rows)
        fences = 2 * count + np.searchsorted(self.fence_rows, rows[there])
        finite = np.isfinite(values.data[fences].astype(np.float64)) | ~valid[fences]
        inside = chunks[there]
        bounds.low[inside] = np.minimum(bounds.low[inside], np.where(finite, low[fences], np.inf))
        bounds.high[inside] = np.maximum(bounds.high[inside], np.where(finite, high[fences], -np.inf))
        bounds.null[inside] |= ~valid[fences]
        bounds.wild[inside] |= ~finite
        missing = self.missing(ref)
        for chunk in chunks[~there]:
            bounds.low[chunk] = min(bounds.low[chunk], missing.low[0, 0])
            bounds.high[chunk] = max(bounds.high[chunk], missing.high[0, 0])
            bounds.null[chunk] |= missing.null[0, 0]
            bounds.wild[chunk] |= missing.wild[0, 0]
        return bounds

    def missing(self, ref: ColumnRef) -> Range:
        """The value of the column for a missing row."""
        if ref.missing is None:
            yes, no = np.ones((1, 1), bool), np.zeros((1, 1), bool)
            return Range(np.full((1, 1), np.inf), np.full((1, 1), -np.inf), yes, no, no)
        return self.constant(ConstantRef(ref.missing, ref.rank))

    def constant(self, ref: ConstantRef) -> Range:
        """A constant."""
        value = self._zones.constant(ref.name, ref.rank)
        null = ~value.validity()[:1, None]
        if value.data.dtype.kind == "O":
            ends = np.full((1, 1), np.inf), np.full((1, 1), -np.inf)
            return Range(*ends, null, ~null, np.zeros((1, 1), bool))
        wild = ~np.isfinite(value.data[:1, None].astype(np.float64)) & ~null
        nothing = null | wild
        low, high = (outward(value.data[:1, None], up=up) for up in (False, True))
        return Range(
            np.where(nothing, np.inf, low),
            np.where(nothing, -np.inf, high),
            null,
            wild,
            np.zeros((1, 1), bool),
        )


def _zone_name(ref: ColumnRef) -> str:
    return f"{ref.column} {ref.shift}"


def _constants(expression: PairExpression | None) -> list[ConstantRef]:
    return (
        [] if expression is None else [leaf for leaf in leaves(expression) if isinstance(leaf, ConstantRef)]
    )
