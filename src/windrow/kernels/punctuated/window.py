"""A window of a stream as a changelog: rows enter when they arrive, and leave when their time is over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.punctuated.delta import Announced, Delta
from windrow.kernels.punctuated.watch import Watched
from windrow.punctuations import Closing, lines_of
from windrow.punctuations.lines import Place
from windrow.punctuations.regions import NULL

__all__ = ["AT", "DIFF", "Window", "WindowCarry"]

DIFF, AT = "__diff", "__at"
_LEAVES = "leaves"


@dataclass
class WindowCarry:
    """The rows that have not left."""

    rows: Watched
    time: Closing
    announced: Announced

    @property
    def retained(self) -> tuple[int, ...]:
        """The number of rows in the window."""
        return (len(self.rows),)


@dataclass(frozen=True)
class Window:
    """``[RANGE length]``: a row is in the window from its rowtime on, for so many ticks.

    Output: the rows with `DIFF`, 1 or −1, and `AT`, the tick of the change. A row leaves when no row can
    arrive at or before that tick. A punctuation is passed on when no row in the window matches it.

    Attributes
    ----------
    rowtime
        A column of integers or times without NULLs.
    length
        The length in places of the column's line, which are its ticks.
    """

    rowtime: str
    length: int

    def advance(self, carry: WindowCarry | None, delta: Delta) -> tuple[Delta, WindowCarry]:
        """Process a micro-batch; consumes the carry."""
        schema = delta.rows.schema
        lines = lines_of(schema)
        if carry is None:
            rows = Watched(schema, (self.rowtime,), lines, (_LEAVES,))
            carry = WindowCarry(rows, Closing(lines, [self.rowtime]), Announced(lines))
        line = lines[self.rowtime]
        ticks = line.places(delta.rows.column(self.rowtime))
        entered = _changes(delta.rows, 1, ticks)
        carry.rows.add(delta.rows, leaves=ticks + self.length)
        carry.time.add(delta.punctuations)
        reached = self._reached(carry)
        store = carry.rows.store
        until = reached - self.length
        gone = store.matching([{self.rowtime: (line.first, until)}] if line.first < until else [])
        gone = gone[np.argsort(store.note(_LEAVES, gone), kind="stable")]
        left = _changes(store.rows(gone), -1, store.note(_LEAVES, gone))
        carry.rows.remove(gone)
        free = carry.rows.free(region for pattern in delta.punctuations for region in pattern.regions())
        return Delta(pa.concat_tables([entered, left]), carry.announced.news(free)), carry

    def _reached(self, carry: WindowCarry) -> Place:
        """The least rowtime at which a row may still arrive; if there is none, after all rows have left."""
        line = carry.time.lines[self.rowtime]
        reached = line.first
        for region in carry.time.closed:
            if self.rowtime not in region:
                return line.end + self.length
            span = region[self.rowtime]
            if span is not NULL and span[0] <= reached < span[1]:
                reached = span[1]
        return reached if reached != line.end else line.end + self.length


def _changes(rows: pa.Table, diff: int, ticks: np.ndarray) -> pa.Table:
    changed = rows.append_column(DIFF, pa.array(np.full(len(rows), diff, np.int64)))
    return changed.append_column(AT, pa.array(ticks, pa.int64()))
