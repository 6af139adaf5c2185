"""ORDER BY: the rows of a prefix are given when nothing can come before them any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.punctuated.step import Promises, Step
from windrow.kernels.punctuated.store import Store
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.punctuations import Closing, Cover, Pattern, Values, lines_of
from windrow.punctuations.boxes import NULL, Box, Lines, meet
from windrow.punctuations.closing import closed_together
from windrow.punctuations.lines import Place, Span
from windrow.punctuations.values import merged

__all__ = ["Sort", "SortCarry"]


@dataclass
class SortCarry:
    """The rows that wait, and what has been promised."""

    store: Store
    cover: Cover
    closing: Closing
    promises: Promises
    came: int = 0
    passed: int = 0

    @property
    def kept(self) -> tuple[int, ...]:
        """How many rows wait."""
        return (len(self.store),)


@dataclass(frozen=True)
class Sort:
    """The rows in order, each as soon as no row can come before it.

    Output: the next rows of the order, and what is promised up to there. Rows with equal keys come in the
    order of the input. With a limit, no more rows are kept than may still be given, and when all are, it is
    promised that none follows.

    Attributes
    ----------
    keys
        Columns of a type with an order, and their directions.
    domain
        What no row of the input matches from the first on: of a column that is never negative, the negative
        numbers, and NULL.
    offset, limit
        How many rows of the order are left out, and how many are given then; None for all.
    """

    keys: tuple[SortKey, ...]
    domain: tuple[Pattern, ...] = ()
    offset: int = 0
    limit: int | None = None

    def advance(self, carry: SortCarry | None, step: Step) -> tuple[Step, SortCarry]:
        """Take a step; the carry that is given is used up."""
        told = step.punctuations
        if carry is None:
            lines = lines_of(step.rows.schema)
            first = self.keys[0].column
            carry = SortCarry(
                Store(step.rows.schema, (first,), lines, ("came",)),
                Cover(lines),
                Closing(lines, [first]),
                Promises(lines),
            )
            told = (*self.domain, *told)
        count = step.rows.num_rows
        carry.store.add(step.rows, came=np.arange(carry.came, carry.came + count))
        carry.came += count
        fresh = [box for pattern in told for box in carry.cover.add(pattern)]
        carry.closing.add(told)
        prefix = self._prefix(carry)
        initial = (meet(box, other) for box in prefix for other in carry.cover.overlapping(box))
        rows = self._given(carry, prefix) if fresh or count else step.rows.slice(0, 0)
        news = carry.promises.news(box for box in initial if box is not None) if fresh else ()
        before = carry.passed
        carry.passed += rows.num_rows
        rows = rows.slice(max(self.offset - before, 0))
        if self.limit is None:
            return Step(rows, news), carry
        last = self.offset + self.limit
        rows = rows.slice(0, max(last - max(before, self.offset), 0))
        carry.passed = min(carry.passed, last)
        self._forget(carry, last - carry.passed)
        return Step(rows, (*news, *carry.promises.news([{}])) if carry.passed == last else news), carry

    def _forget(self, carry: SortCarry, count: int) -> None:
        """Keep so many rows, the first of the order."""
        if len(carry.store) <= count:
            return
        places = carry.store.everything()
        places = places[np.argsort(carry.store.note("came", places), kind="stable")]
        order, _ = sorted_partitions(carry.store.rows(places), (), self.keys)
        carry.store.remove((places if order is None else places[order])[count:])

    def _given(self, carry: SortCarry, prefix: list[Box]) -> pa.Table:
        places = carry.store.matching(prefix)
        places = places[carry.cover.matches(carry.store.rows(places))]
        places = places[np.argsort(carry.store.note("came", places), kind="stable")]
        rows = carry.store.rows(places)
        carry.store.remove(places)
        order, _ = sorted_partitions(rows, (), self.keys)
        return rows if order is None else rows.take(pa.array(order))

    def _prefix(self, carry: SortCarry) -> list[Box]:
        """The rows up to the first, in the order, that may still come; those with its keys too."""
        lines = carry.cover.lines
        found: list[Box] = []
        known: dict[str, Span | None] = {}
        closed: Iterable[Box] = carry.closing.closed
        for number, key in enumerate(self.keys):
            open_ = ~_values(closed, key.column, lines)
            before, first = _up_to(open_, key)
            found += [{**known, key.column: span} for span in before]
            if first is _NOTHING:
                return found
            known[key.column] = first
            if number + 1 < len(self.keys):
                closed = _closed(carry.cover, known, self.keys[number + 1].column)
        return [*found, known]


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


def _closed(cover: Cover, known: dict[str, Span | None], name: str) -> list[Box]:
    """The values of a column that are closed where others are known."""
    telling = [
        {other: span for other, span in box.items() if other not in known} for box in cover.overlapping(known)
    ]
    dropped = sorted({other for box in telling for other in box} - {name})
    return closed_together(telling, [name], dropped, cover.lines)


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
