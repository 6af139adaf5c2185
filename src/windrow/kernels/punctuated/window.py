"""A window of a stream as a changelog: rows enter when they come, and leave when time has passed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.punctuated.step import Promises, Step
from windrow.kernels.punctuated.watch import Watched
from windrow.punctuations import Closing, lines_of
from windrow.punctuations.boxes import NULL
from windrow.punctuations.lines import Place

__all__ = ["AT", "DIFF", "Window", "WindowCarry"]

DIFF, AT = "__diff", "__at"
_LEAVES = "leaves"


@dataclass
class WindowCarry:
    """The rows that have not left."""

    rows: Watched
    time: Closing
    promises: Promises

    @property
    def kept(self) -> tuple[int, ...]:
        """How many rows have not left."""
        return (len(self.rows),)


@dataclass(frozen=True)
class Window:
    """``[RANGE length]``: a row is there from its rowtime on, for so many ticks.

    Output: the rows with `DIFF`, 1 or −1, and `AT`, the tick of the change. A row has left when no row at its
    leaving or before it can come any more. A punctuation holds of the changes when no row that is there
    matches it.

    Attributes
    ----------
    rowtime
        A column of integers or times, nowhere NULL.
    length
        In places of its line, which are its ticks.
    """

    rowtime: str
    length: int

    def advance(self, carry: WindowCarry | None, step: Step) -> tuple[Step, WindowCarry]:
        """Take a step; the carry that is given is used up."""
        schema = step.rows.schema
        lines = lines_of(schema)
        if carry is None:
            rows = Watched(schema, (self.rowtime,), lines, (_LEAVES,))
            carry = WindowCarry(rows, Closing(lines, [self.rowtime]), Promises(lines))
        line = lines[self.rowtime]
        ticks = line.places(step.rows.column(self.rowtime))
        entered = _changes(step.rows, 1, ticks)
        carry.rows.add(step.rows, leaves=ticks + self.length)
        carry.time.add(step.punctuations)
        reached = self._reached(carry)
        store = carry.rows.store
        until = reached - self.length
        gone = store.matching([{self.rowtime: (line.first, until)}] if line.first < until else [])
        gone = gone[np.argsort(store.note(_LEAVES, gone), kind="stable")]
        left = _changes(store.rows(gone), -1, store.note(_LEAVES, gone))
        carry.rows.remove(gone)
        free = carry.rows.free(box for pattern in step.punctuations for box in pattern.boxes())
        return Step(pa.concat_tables([entered, left]), carry.promises.news(free)), carry

    def _reached(self, carry: WindowCarry) -> Place:
        """The least rowtime at which a row may still come; past all that leave if there is none."""
        line = carry.time.lines[self.rowtime]
        reached = line.first
        for box in carry.time.closed:
            if self.rowtime not in box:
                return line.end + self.length
            span = box[self.rowtime]
            if span is not NULL and span[0] <= reached < span[1]:
                reached = span[1]
        return reached if reached != line.end else line.end + self.length


def _changes(rows: pa.Table, diff: int, ticks: np.ndarray) -> pa.Table:
    changed = rows.append_column(DIFF, pa.array(np.full(len(rows), diff, np.int64)))
    return changed.append_column(AT, pa.array(ticks, pa.int64()))
