"""ORDER BY: the rows of a prefix are given when nothing can come before them any more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.punctuated.prefix import prefix
from windrow.kernels.punctuated.step import Promises, Step
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.trace import Trace
from windrow.punctuations import Closing, Cover, Pattern, lines_of
from windrow.punctuations.boxes import Box, meet

__all__ = ["Sort", "SortCarry"]


@dataclass
class SortCarry:
    """The rows that wait, and what has been promised."""

    store: Trace
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
                Trace(step.rows.schema, (first,), lines, ("came",)),
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
        before_it, open_ = prefix(self.keys, carry.cover, {}, carry.closing.closed)
        boxes = before_it if open_ is None else [*before_it, open_]
        initial = (meet(box, other) for box in boxes for other in carry.cover.overlapping(box))
        rows = self._given(carry, boxes) if fresh or count else step.rows.slice(0, 0)
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

    def _given(self, carry: SortCarry, boxes: list[Box]) -> pa.Table:
        places = carry.store.matching(boxes)
        places = places[carry.cover.matches(carry.store.rows(places))]
        places = places[np.argsort(carry.store.note("came", places), kind="stable")]
        rows = carry.store.rows(places)
        carry.store.remove(places)
        order, _ = sorted_partitions(rows, (), self.keys)
        return rows if order is None else rows.take(pa.array(order))
