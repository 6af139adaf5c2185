"""OVER: what functions find over the rows of a partition, given when no row can change it any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.punctuated.prefix import Prefixes, different
from windrow.kernels.punctuated.step import Promises, Step
from windrow.kernels.punctuated.watch import Watched
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.trace import Trace
from windrow.punctuations import Closing, lines_of
from windrow.punctuations.boxes import Box

__all__ = ["Over", "OverCarry"]

Ints = npt.NDArray[np.int64]

_CAME = "came"


@dataclass
class OverCarry:
    """The rows that wait, those before them that functions look back at, and what has been promised.

    Attributes
    ----------
    waiting, before
        The rows.
    closing
        Which partitions are closed.
    prefixes
        What comes in each partition before all that may still come; None where functions read all of it.
    promises
        What has been promised of the output.
    came
        How many rows have come.
    """

    waiting: Watched
    before: Trace
    closing: Closing
    prefixes: Prefixes | None
    promises: Promises
    came: int = 0

    @property
    def kept(self) -> tuple[int, ...]:
        """How many rows wait, and how many are looked back at."""
        return len(self.waiting), len(self.before)


@dataclass(frozen=True)
class Over:
    """Rows with what functions find over the partitions that they are in.

    Output: the rows with further columns, in the order of their partitions. Functions that look at whole
    partitions tell of a row when its partition is closed; those that look back, when no row can come in its
    partition that is before it or with it. What is promised of the rows holds of the output when no row that
    waits matches it.

    Attributes
    ----------
    partition
        The columns by which rows are partitioned.
    order
        The keys by which partitions are in order, of types with one.
    looks_back
        Whether the functions read no row that comes after all those with the keys of their own.
    reach
        How many rows before those with the keys of their own they read then; None for all.
    compute
        The further columns of rows in whole partitions, or the ends of partitions that are read: these are in
        order, rows with equal keys in the order in which they came.
    """

    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    looks_back: bool
    reach: int | None
    compute: Callable[[pa.Table], pa.Table]

    def advance(self, carry: OverCarry | None, step: Step) -> tuple[Step, OverCarry]:
        """Take a step; the carry that is given is used up."""
        schema = step.rows.schema
        if carry is None:
            carry = self._begun(schema)
        count = step.rows.num_rows
        carry.waiting.add(step.rows, **{_CAME: np.arange(carry.came, carry.came + count)})
        carry.came += count
        closed = carry.closing.add(step.punctuations)
        boxes = [box for pattern in step.punctuations for box in pattern.boxes()]
        places = self._ready(carry, boxes, closed)
        came = carry.waiting.store.note(_CAME, places)
        rows = carry.waiting.store.rows(places)
        carry.waiting.remove(places)
        output = self._given(carry, rows, came)
        carry.before.remove(carry.before.matching(closed))
        return Step(output, carry.promises.news(carry.waiting.free(boxes))), carry

    def _begun(self, schema: pa.Schema) -> OverCarry:
        lines = lines_of(schema)
        keys = [key for key in self.order if key.column not in self.partition]  # others do not differ there
        output = pa.schema([*schema, *self.compute(schema.empty_table()).schema])
        return OverCarry(
            Watched(schema, self.partition, lines, [_CAME]),
            Trace(schema, self.partition, lines, [_CAME]),
            Closing(lines, self.partition),
            Prefixes(lines, self.partition, keys) if keys and self.looks_back else None,
            Promises(lines_of(output)),
        )

    # -- which rows are given ------------------------------------------------------------------------

    def _ready(self, carry: OverCarry, boxes: list[Box], closed: list[Box]) -> Ints:
        """The places of the rows whose values are known."""
        store = carry.waiting.store
        found = store.matching(closed)
        if carry.prefixes is None:
            return found
        known = carry.prefixes.add(boxes, closed, store)
        return np.union1d(found, store.matching(known))

    # -- what is given -------------------------------------------------------------------------------

    def _given(self, carry: OverCarry, rows: pa.Table, came: Ints) -> pa.Table:
        """Rows with what is computed of them; those that others look back at then are kept."""
        if not rows.num_rows:
            return _beside(rows, self.compute(rows))
        places = carry.before.find(different(rows, self.partition)).places
        both = pa.concat_tables([carry.before.rows(places), rows])
        came = np.concatenate([carry.before.note(_CAME, places), came])
        is_new = np.arange(len(both)) >= len(places)
        order = np.argsort(came, kind="stable")
        in_order, bounds = sorted_partitions(both.take(pa.array(order)), self.partition, self.order)
        order = order if in_order is None else order[in_order]
        both, came, is_new = both.take(pa.array(order)), came[order], is_new[order]
        computed = self.compute(both)
        if self.looks_back and self.reach != 0:
            stays = is_new
            if self.reach is not None:
                carry.before.remove(places)
                stays = np.zeros(len(both), bool)
                for stop, start in zip(bounds[1:].tolist(), bounds[:-1].tolist(), strict=True):
                    stays[max(start, stop - self.reach) : stop] = True
            carry.before.add(both.filter(pa.array(stays)), **{_CAME: came[stays]})
        keeps = pa.array(is_new)
        return _beside(both.filter(keeps), computed.filter(keeps))


def _beside(rows: pa.Table, computed: pa.Table) -> pa.Table:
    return pa.table([*rows.columns, *computed.columns], schema=pa.schema([*rows.schema, *computed.schema]))
