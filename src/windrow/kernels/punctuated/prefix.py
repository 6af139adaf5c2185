"""What comes, in an order, before all rows that may still come, in a stream and in its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.trace import Trace
from windrow.punctuations import Cover, Values
from windrow.punctuations.boxes import NULL, Box, Lines
from windrow.punctuations.closing import closed_together
from windrow.punctuations.lines import Line, Place, Span
from windrow.punctuations.values import merged

__all__ = ["Prefixes", "different", "prefix"]


class Prefixes:
    """What comes in each partition before all rows that may still come in it. It changes as boxes are added.

    Parameters
    ----------
    lines
        Those of the stream's columns.
    partition
        The columns by which rows are partitioned.
    keys
        The order within partitions; at least one, of columns that are not among these.
    """

    def __init__(self, lines: Lines, partition: tuple[str, ...], keys: Sequence[SortKey]) -> None:
        self.partition, self.keys = partition, tuple(keys)
        self._parts, self._common = Cover(lines), Cover(lines)

    def add(self, boxes: Iterable[Box], closed: Iterable[Box], waiting: Trace) -> list[Box]:
        """Take in what is promised, and which partitions that closes; what comes before all then.

        Of partitions that are closed nothing is said, and of single ones only where rows of theirs wait.
        """
        fresh = [box for box in boxes if not box.keys() <= {*self.partition} and self._parts.add_box(box)]
        for box in closed:
            self._parts.forget(box)
        alike = [box for box in fresh if not self._own(box)]
        for box in alike:
            self._common.add_box(box)
        found: list[Box] = []
        if alike:
            found += self._before(self._common, {})
            fresh = [*self._parts]  # what was promised of one partition may say more together with it
        asked = [own for box in fresh if (own := self._own(box))]
        if asked:
            rows = different(waiting.rows(waiting.matching(asked)), self.partition)
            found += [box for one in self._each(rows) for box in self._before(self._parts, one)]
        return found

    def _own(self, box: Box) -> Box:
        """What a box tells of the columns of partitions."""
        return {name: span for name, span in box.items() if name in self.partition}

    def _before(self, cover: Cover, known: Box) -> list[Box]:
        """The rows of a partition that are before all that may come, and not with them."""
        found, _ = prefix(self.keys, cover, known, closed_where(cover, known, self.keys[0].column))
        return found

    def _each(self, rows: pa.Table) -> Iterator[Box]:
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
    keys: Sequence[SortKey], cover: Cover, known: Mapping[str, Span | None], closed: Iterable[Box]
) -> tuple[list[Box], Box | None]:
    """The boxes before the first row that may still come, and that of rows with its keys; None if none may.

    Parameters
    ----------
    keys
        The order.
    cover
        What has been promised.
    known
        Columns of which only one value is asked about, NULL for a NULL.
    closed
        What is closed of the first key there.
    """
    found: list[Box] = []
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


def closed_where(cover: Cover, known: Mapping[str, Span | None], name: str) -> list[Box]:
    """The values of a column that are closed where others are known."""
    telling = [
        {other: span for other, span in box.items() if other not in known}
        for box in cover.overlapping({**known})
    ]
    dropped = sorted({other for box in telling for other in box} - {name})
    return closed_together(telling, [name], dropped, cover.lines)


_NOTHING = object()
"""The first of the open values where there is none: all are closed, or they have no first."""


def _values(boxes: Iterable[Box], name: str, lines: Lines) -> Values:
    """What boxes over one column hold of it, and of nothing else."""
    line = lines[name]
    spans: list[Span] = []
    is_null = False
    for box in boxes:
        if name not in box:
            return Values(line, True, ((line.first, line.end),))
        span = box[name]
        if span is NULL:
            is_null = True
        else:
            spans.append(span)
    return Values(line, is_null, merged(spans))


def _up_to(open_: Values, key: SortKey) -> tuple[Sequence[Span | None], Place]:
    """What comes before the first of some values, and that one, in the order of a key."""
    line = open_.line
    whole = (line.first, line.end)
    if not open_.spans:
        values: list[Span | None] = [whole]
        first = _NOTHING
    elif key.descending:
        stop = open_.spans[-1][1]
        values = [(stop, line.end)] if stop != line.end else []
        # bytes have no greatest before others: then nothing at the edge itself is open
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
