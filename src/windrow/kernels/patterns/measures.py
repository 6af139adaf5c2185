"""Computes the measures of matches, for all rows of the output at once.

A measure is evaluated at a *point*: the place, among the concatenated rows of all matches, of the last row
that it reads. That is the row itself under RUNNING, the last row of the match under FINAL, and −1 without one
(an empty match, an unmatched row).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.aggregates import FUNCTIONS, aggregate
from windrow.kernels.patterns.execution import Matches
from windrow.kernels.patterns.pattern_plan import (
    CLASSIFIER,
    Aggregated,
    MatchNumber,
    MatchPlan,
    Measure,
    Navigation,
)

__all__ = ["MatchRows", "OutputRows", "measured"]

Array = np.ndarray


@dataclass(frozen=True)
class OutputRows:
    """The rows of the result, before their values.

    Attributes
    ----------
    match
        int64: the match of each, −1 for an unmatched row.
    point
        int64: the point from which running measures are seen.
    row
        int64: the row whose own columns are in the output.
    """

    match: Array
    point: Array
    row: Array


class MatchRows:
    """The concatenated rows of all matches."""

    def __init__(self, matches: Matches, table: pa.Table) -> None:
        self.matches, self.table = matches, table
        self.base = np.cumsum(matches.length) - matches.length
        self.match = np.repeat(np.arange(len(matches.start)), matches.length)
        self.row = np.arange(len(self.match)) + np.repeat(matches.start - self.base, matches.length)
        self._members: dict[frozenset[int], tuple[Array, Array]] = {}

    @cached_property
    def number(self) -> Array:
        """The number of each match in its partition, from 1."""
        partition = self.matches.partition
        begins = np.searchsorted(partition, partition, side="left")
        number: Array = np.arange(len(partition)) - begins + 1 + self.matches.before[partition]
        return number

    def members(self, labels: frozenset[int]) -> tuple[Array, Array]:
        """The places of the rows with these labels, and how many of them are before each place."""
        if labels not in self._members:
            mask = np.isin(self.matches.labels, sorted(labels))
            before = np.concatenate([[0], np.cumsum(mask)]).astype(np.int64)
            self._members[labels] = np.flatnonzero(mask), before
        return self._members[labels]

    def values(self, plan: MatchPlan, column: str, places: Array) -> pa.ChunkedArray:
        """A column at the rows of these places."""
        row = self.row[places]
        chosen = dict(plan.by_label).get(column)
        if chosen is None:
            return self.table.column(column).take(pa.array(row))
        every = [self.table.column(name) for name in chosen]
        whole = pa.chunked_array([chunk for one in every for chunk in one.chunks], every[0].type)
        return whole.take(pa.array(self.matches.labels[places].astype(np.int64) * self.table.num_rows + row))

    def seen(
        self, members: frozenset[int] | None, output: OutputRows, *, final: bool
    ) -> tuple[Array, Array, Array]:
        """The places of the members, and the range of them that each row of the output sees."""
        there = output.point >= 0
        match = np.where(there, output.match, 0)
        base = self.base[match] if len(self.base) else np.zeros(len(match), np.int64)
        length = self.matches.length[match] if len(self.base) else np.zeros(len(match), np.int64)
        stop = base + length if final else output.point + 1
        stop = np.where(there, stop, base)
        if members is None:
            return np.arange(len(self.row)), base, stop
        places, before = self.members(members)
        return places, before[base], before[stop]


def measured(
    plan: MatchPlan, measure: Measure, written: MatchRows, output: OutputRows
) -> pa.ChunkedArray | pa.Array:
    """The values of a measure, one for each row of the output."""
    match measure:
        case MatchNumber():
            there = output.match >= 0
            numbers = (
                written.number[np.where(there, output.match, 0)] if there.any() else np.zeros(len(there))
            )
            return pa.array(numbers.astype(np.int64), pa.int64(), mask=~there)
        case Navigation():
            return _navigated(plan, measure, written, output)
        case Aggregated():
            return _aggregated(plan, measure, written, output)


def _navigated(
    plan: MatchPlan, measure: Navigation, written: MatchRows, output: OutputRows
) -> pa.ChunkedArray:
    places, low, stop = written.seen(measure.members, output, final=measure.final)
    at = low + measure.offset if measure.from_first else stop - 1 - measure.offset
    there = (at >= low) & (at < stop)
    place = places[np.where(there, at, 0)] if len(places) else np.zeros(len(at), np.int64)
    if measure.column == CLASSIFIER:
        return _classifiers(plan, measure, written, output, place, there)
    row = (written.row[place] if len(written.row) else place) + measure.shift
    if measure.shift and len(written.matches.start):
        match = np.maximum(output.match, 0)
        there = there & (row >= written.matches.low[match]) & (row < written.matches.high[match])
    return written.table.column(measure.column).take(pa.array(np.where(there, row, 0), mask=~there))


def _classifiers(
    plan: MatchPlan, measure: Navigation, written: MatchRows, output: OutputRows, place: Array, there: Array
) -> pa.ChunkedArray:
    if len(written.row):
        match = np.maximum(output.match, 0)
        place = place + measure.shift
        low = written.base[match]
        there = there & (place >= low) & (place < low + written.matches.length[match])
        labels = written.matches.labels[np.where(there, place, 0)]
    else:
        labels = np.zeros(len(place), np.int32)
    names = pa.array(plan.labels, pa.string())
    return pa.chunked_array([names.take(pa.array(labels.astype(np.int64), mask=~there))])


def _aggregated(
    plan: MatchPlan, measure: Aggregated, written: MatchRows, output: OutputRows
) -> pa.ChunkedArray:
    places, low, stop = written.seen(measure.members, output, final=measure.final)
    spec = measure.spec
    rows = pa.table({})
    if spec.argument == CLASSIFIER:
        names = pa.array(plan.labels, pa.string())
        labels = written.matches.labels[places].astype(np.int64)
        rows = pa.table({CLASSIFIER: names.take(pa.array(labels))})
    elif spec.argument is not None:
        rows = pa.table({spec.argument: written.values(plan, spec.argument, places)})
    full = stop > low
    try:
        found = aggregate(spec, rows, low[full], stop[full])
    except ExecutionError as error:
        raise error.located(plan.sql or "") from None
    whole = found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
    nothing = pa.array([FUNCTIONS[spec.function].empty], whole.type)
    values = pa.chunked_array([*whole.chunks, nothing], whole.type)
    index = np.full(len(full), len(whole), np.int64)
    index[full] = np.arange(len(whole))
    return values.take(pa.array(index))
