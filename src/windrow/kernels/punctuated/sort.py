"""ORDER BY: rows are emitted in order, once no row can arrive before them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.punctuated.delta import Announced, Delta
from windrow.kernels.punctuated.prefix import prefix
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.trace import Trace
from windrow.punctuations import Closing, Cover, Pattern, lines_of
from windrow.punctuations.regions import Region, meet

__all__ = ["SortCarry", "SortOperator"]

_NUMBER = "came"  # in stored state


@dataclass
class SortCarry:
    """The buffered rows, and the punctuations of the input and of the output."""

    store: Trace
    cover: Cover
    closing: Closing
    announced: Announced
    row_count: int = 0
    passed: int = 0

    @property
    def retained(self) -> tuple[int, ...]:
        """The number of buffered rows."""
        return (len(self.store),)


@dataclass(frozen=True)
class SortOperator:
    """The rows in order, each once no row can arrive before it.

    Output: the next rows of the order, and the punctuations up to there. Rows with equal keys are in the
    order of the input. With a limit, the state has no more rows than may still be emitted; after the last
    one, a punctuation announces that no row follows.

    Attributes
    ----------
    keys
        Columns of a type with an order, and their directions.
    domain
        Patterns that no row of the input ever matches: for a column that is never negative, the negative
        numbers and NULL.
    offset, limit
        How many rows of the order to skip, and how many to emit then; None for all.
    """

    keys: tuple[SortKey, ...]
    domain: tuple[Pattern, ...] = ()
    offset: int = 0
    limit: int | None = None

    def advance(self, carry: SortCarry | None, delta: Delta) -> tuple[Delta, SortCarry]:
        """Process a micro-batch; consumes the carry."""
        incoming = delta.punctuations
        if carry is None:
            lines = lines_of(delta.rows.schema)
            first = self.keys[0].column
            carry = SortCarry(
                Trace(delta.rows.schema, (first,), lines, (_NUMBER,)),
                Cover(lines),
                Closing(lines, [first]),
                Announced(lines),
            )
            incoming = (*self.domain, *incoming)
        count = delta.rows.num_rows
        carry.store.add(delta.rows, **{_NUMBER: np.arange(carry.row_count, carry.row_count + count)})
        carry.row_count += count
        fresh = [region for pattern in incoming for region in carry.cover.add(pattern)]
        carry.closing.add(incoming)
        before_it, open_ = prefix(self.keys, carry.cover, {}, carry.closing.closed)
        regions = before_it if open_ is None else [*before_it, open_]
        initial = (meet(region, other) for region in regions for other in carry.cover.overlapping(region))
        rows = self._output(carry, regions) if fresh or count else delta.rows.slice(0, 0)
        news = carry.announced.news(region for region in initial if region is not None) if fresh else ()
        before = carry.passed
        carry.passed += rows.num_rows
        rows = rows.slice(max(self.offset - before, 0))
        if self.limit is None:
            return Delta(rows, news), carry
        last = self.offset + self.limit
        rows = rows.slice(0, max(last - max(before, self.offset), 0))
        carry.passed = min(carry.passed, last)
        self._forget(carry, last - carry.passed)
        return Delta(rows, (*news, *carry.announced.news([{}])) if carry.passed == last else news), carry

    def _forget(self, carry: SortCarry, count: int) -> None:
        """Retain so many rows, the first of the order."""
        if len(carry.store) <= count:
            return
        places = carry.store.everything()
        places = places[np.argsort(carry.store.note(_NUMBER, places), kind="stable")]
        order, _ = sorted_partitions(carry.store.rows(places), (), self.keys)
        carry.store.remove((places if order is None else places[order])[count:])

    def _output(self, carry: SortCarry, regions: list[Region]) -> pa.Table:
        places = carry.store.matching(regions)
        places = places[carry.cover.matches(carry.store.rows(places))]
        places = places[np.argsort(carry.store.note(_NUMBER, places), kind="stable")]
        rows = carry.store.rows(places)
        carry.store.remove(places)
        order, _ = sorted_partitions(rows, (), self.keys)
        return rows if order is None else rows.take(pa.array(order))
