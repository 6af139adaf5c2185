"""Complete prefixes: the rows before, in an order, all that may still arrive, overall or in a partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.trace import Trace
from windrow.punctuations import Cover, Values
from windrow.punctuations.closing import closed_together
from windrow.punctuations.column_values import merged
from windrow.punctuations.lines import Line, Place, Span
from windrow.punctuations.regions import NULL, Lines, Region

__all__ = ["Prefixes", "different", "prefix"]


class Prefixes:
    """The complete prefix of each partition. It is mutable.

    Parameters
    ----------
    lines
        Those of the stream's columns.
    partition
        The partition columns.
    keys
        The order within partitions: at least one key, of other columns.
    """

    def __init__(self, lines: Lines, partition: tuple[str, ...], keys: Sequence[SortKey]) -> None:
        self.partition, self.keys = partition, tuple(keys)
        self._parts, self._common = Cover(lines), Cover(lines)

    def add(self, regions: Iterable[Region], closed: Iterable[Region], waiting: Trace) -> list[Region]:
        """Add punctuations and the partitions that they close; return the prefixes that are now complete.

        The result leaves out closed partitions, and single partitions without buffered rows.
        """
        fresh = [
            region
            for region in regions
            if not region.keys() <= {*self.partition} and self._parts.add_region(region)
        ]
        for region in closed:
            self._parts.forget(region)
        alike = [region for region in fresh if not self._own(region)]
        for region in alike:
            self._common.add_region(region)
        found: list[Region] = []
        if alike:
            found += self._before(self._common, {})
            fresh = [*self._parts]  # earlier punctuations of one partition may extend its prefix now
        own_parts = [own for region in fresh if (own := self._own(region))]
        if own_parts:
            rows = different(waiting.rows(waiting.matching(own_parts)), self.partition)
            found += [region for one in self._each(rows) for region in self._before(self._parts, one)]
        return found

    def _own(self, region: Region) -> Region:
        """The part of a region over the partition columns."""
        return {name: span for name, span in region.items() if name in self.partition}

    def _before(self, cover: Cover, known: Region) -> list[Region]:
        """The rows of a partition strictly before all that may still arrive."""
        found, _ = prefix(self.keys, cover, known, closed_where(cover, known, self.keys[0].column))
        return found

    def _each(self, rows: pa.Table) -> Iterator[Region]:
        """The partitions of rows."""
        lines = self._parts.lines
        columns = [
            (name, lines[name], lines[name].places(rows.column(name)), rows.column(name).is_valid())
            for name in self.partition
            if name in lines
        ]
        for at in range(rows.num_rows):
            yield {
                name: _point(line, places[at]) if is_valid[at].as_py() else NULL
                for name, line, places, is_valid in columns
            }


def different(rows: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """The first row of each partition."""
    if not rows.num_rows:
        return rows
    order, bounds = sorted_partitions(rows, columns, ())
    return rows.take(pa.array(bounds[:-1] if order is None else order[bounds[:-1]]))


def _point(line: Line, place: Place) -> Span:
    return line.point(place if line.is_wide else int(place))


def prefix(
    keys: Sequence[SortKey], cover: Cover, known: Mapping[str, Span | None], closed: Iterable[Region]
) -> tuple[list[Region], Region | None]:
    """The regions before the first row that may still arrive, and the region of its keys; None if none may.

    Parameters
    ----------
    keys
        The order.
    cover
        The punctuations.
    known
        Columns with a fixed value, NULL for a NULL.
    closed
        The closed values of the first key there.
    """
    found: list[Region] = []
    first_open = dict(known)
    for number, key in enumerate(keys):
        open_ = ~_values(closed, key.column, cover.lines)
        before, first = _up_to(open_, key)
        found += [{**first_open, key.column: span} for span in before]
        if first is _NOTHING:
            return found, None
        first_open[key.column] = first
        if number + 1 < len(keys):
            closed = closed_where(cover, first_open, keys[number + 1].column)
    return found, first_open


def closed_where(cover: Cover, known: Mapping[str, Span | None], name: str) -> list[Region]:
    """The closed values of a column for fixed values of others."""
    overlapping = [
        {other: span for other, span in region.items() if other not in known}
        for region in cover.overlapping({**known})
    ]
    dropped = sorted({other for region in overlapping for other in region} - {name})
    return closed_together(overlapping, [name], dropped, cover.lines)


_NOTHING = object()
"""There is no first open value: all are closed, or they have no first."""


def _values(regions: Iterable[Region], name: str, lines: Lines) -> Values:
    """The values that regions over one column contain."""
    line = lines[name]
    spans: list[Span] = []
    is_null = False
    for region in regions:
        if name not in region:
            return Values(line, True, ((line.first, line.end),))
        span = region[name]
        if span is NULL:
            is_null = True
        else:
            spans.append(span)
    return Values(line, is_null, merged(spans))


def _up_to(open_: Values, key: SortKey) -> tuple[Sequence[Span | None], Place]:
    """The values before the first of some values in the order of a key, and that first value."""
    line = open_.line
    whole = (line.first, line.end)
    if not open_.spans:
        values: list[Span | None] = [whole]
        first = _NOTHING
    elif key.descending:
        stop = open_.spans[-1][1]
        values = [(stop, line.end)] if stop != line.end else []
        # bytes have no predecessor: then nothing at the edge itself is open
        first = _NOTHING if line.is_of_bytes else (stop - 1, stop)
    else:
        start = open_.spans[0][0]
        values = [(line.first, start)] if start != line.first else []
        first = line.point(start)
    if open_.null:
        if key.nulls_first:
            return [], NULL
        return (values, first) if open_.spans else (values, NULL)
    if key.nulls_first or not open_.spans:
        return [NULL, *values], first
    return values, first
