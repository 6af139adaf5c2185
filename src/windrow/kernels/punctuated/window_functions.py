"""OVER: window functions, emitted once their result is final."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExecutionError
from windrow.kernels.punctuated.delta import Announced, Delta
from windrow.kernels.punctuated.prefix import Prefixes, different
from windrow.kernels.punctuated.watch import Watched
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.trace import Trace
from windrow.punctuations import Closing, lines_of
from windrow.punctuations.regions import Region

__all__ = ["OverCarry", "OverOperator"]

Ints = npt.NDArray[np.int64]

_NUMBER = "came"  # in stored state


@dataclass
class OverCarry:
    """The state.

    Attributes
    ----------
    waiting, before
        The buffered rows, and the rows before them that functions look back at; or, of functions that go on
        from a total, that of each partition.
    closing
        The closed partitions.
    prefixes
        The complete prefix of each partition; None if functions read whole partitions.
    announced
        The punctuations of the output so far.
    row_count
        The number of rows that have arrived.
    """

    waiting: Watched
    before: Trace
    closing: Closing
    prefixes: Prefixes | None
    announced: Announced
    row_count: int = 0

    @property
    def retained(self) -> tuple[int, ...]:
        """The number of buffered rows, and of the retained rows or totals that functions look back at."""
        return len(self.waiting), len(self.before)


@dataclass(frozen=True)
class OverOperator:
    """Rows with window functions over their partitions.

    Output: the rows with further columns, in the order of their partitions. With functions of whole
    partitions a row is final when its partition is closed; with functions that only look back, when no row
    can arrive in its partition before it or with its order keys. A punctuation is passed on when no buffered
    row matches it.

    Attributes
    ----------
    partition
        The partition columns.
    order
        The order keys, of types with an order.
    looks_back
        Whether the functions read only rows up to those with the same order keys.
    reach
        How many rows before those with the same order keys they then read; None for all.
    compute
        Computes the further columns for whole partitions, or for the tails of partitions that are needed.
        Rows are in order; rows with equal keys are in the order of arrival.
    totals
        If each column of all rows follows from the same of the last row before them and of new rows alone:
        its name, and how both are combined, by ``sum``, ``min`` or ``max``. Else None.
    """

    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    looks_back: bool
    reach: int | None
    compute: Callable[[pa.Table], pa.Table]
    totals: tuple[tuple[str, str], ...] | None = None

    def advance(self, carry: OverCarry | None, delta: Delta) -> tuple[Delta, OverCarry]:
        """Process a micro-batch; consumes the carry."""
        schema = delta.rows.schema
        if carry is None:
            carry = self._begun(schema)
        elif self.totals is not None and carry.before.notes:  # the rows, which earlier versions retained
            self._retotalled(carry)
        count = delta.rows.num_rows
        carry.waiting.add(delta.rows, **{_NUMBER: np.arange(carry.row_count, carry.row_count + count)})
        carry.row_count += count
        closed = carry.closing.add(delta.punctuations)
        regions = [region for pattern in delta.punctuations for region in pattern.regions()]
        places = self._ready(carry, regions, closed)
        numbers = carry.waiting.store.note(_NUMBER, places)
        rows = carry.waiting.store.rows(places)
        carry.waiting.remove(places)
        output = self._emitted(carry, rows, numbers)
        carry.before.remove(carry.before.matching(closed))
        return Delta(output, carry.announced.news(carry.waiting.free(regions))), carry

    def _begun(self, schema: pa.Schema) -> OverCarry:
        lines = lines_of(schema)
        keys = [key for key in self.order if key.column not in self.partition]  # others are constant there
        output = pa.schema([*schema, *self.compute(schema.empty_table()).schema])
        before = Trace(schema, self.partition, lines, [_NUMBER])
        return OverCarry(
            Watched(schema, self.partition, lines, [_NUMBER]),
            before if self.totals is None else self._no_totals(output),
            Closing(lines, self.partition),
            Prefixes(lines, self.partition, keys) if keys and self.looks_back else None,
            Announced(lines_of(output)),
        )

    # -- which rows are final ------------------------------------------------------------------------

    def _ready(self, carry: OverCarry, regions: list[Region], closed: list[Region]) -> Ints:
        """The places of the rows whose results are final."""
        store = carry.waiting.store
        found = store.matching(closed)
        if carry.prefixes is None:
            return found
        known = carry.prefixes.add(regions, closed, store)
        return np.union1d(found, store.matching(known))

    # -- the output ----------------------------------------------------------------------------------

    def _emitted(self, carry: OverCarry, rows: pa.Table, numbers: Ints) -> pa.Table:
        """Rows with their computed columns; retains the rows that later ones look back at."""
        if not rows.num_rows:
            return _beside(rows, self.compute(rows))
        if self.totals is not None:
            return self._totalled(carry, rows.take(pa.array(np.argsort(numbers, kind="stable"))))
        places = carry.before.find(different(rows, self.partition)).places
        both = pa.concat_tables([carry.before.rows(places), rows])
        numbers = np.concatenate([carry.before.note(_NUMBER, places), numbers])
        is_new = np.arange(len(both)) >= len(places)
        order = np.argsort(numbers, kind="stable")
        in_order, bounds = sorted_partitions(both.take(pa.array(order)), self.partition, self.order)
        order = order if in_order is None else order[in_order]
        both, numbers, is_new = both.take(pa.array(order)), numbers[order], is_new[order]
        computed = self.compute(both)
        if self.looks_back and self.reach != 0:
            stays = is_new
            if self.reach is not None:
                carry.before.remove(places)
                stays = np.zeros(len(both), bool)
                for stop, start in zip(bounds[1:].tolist(), bounds[:-1].tolist(), strict=True):
                    stays[max(start, stop - self.reach) : stop] = True
            carry.before.add(both.filter(pa.array(stays)), **{_NUMBER: numbers[stays]})
        is_output = pa.array(is_new)
        return _beside(both.filter(is_output), computed.filter(is_output))

    # -- totals --------------------------------------------------------------------------------------

    def _no_totals(self, output: pa.Schema) -> Trace:
        columns = [*self.partition, *(name for name, _ in self.totals or ())]
        lines = lines_of(pa.schema([output.field(name) for name in self.partition]))
        return Trace(pa.schema([output.field(name) for name in columns]), self.partition, lines)

    def _totalled(self, carry: OverCarry, rows: pa.Table) -> pa.Table:
        """Rows in order of arrival with their computed columns; those of the last row are the new totals."""
        assert self.totals is not None
        order, bounds = sorted_partitions(rows, self.partition, self.order)
        rows = rows if order is None else rows.take(pa.array(order))
        computed = self.compute(rows)
        found = carry.before.find(rows.take(pa.array(bounds[:-1])))
        which = np.full(len(bounds) - 1, -1)
        which[found.probed] = np.arange(len(found.probed))
        of_row = np.repeat(which, np.diff(bounds))
        were = carry.before.rows(found.places).take(pa.array(of_row, mask=of_row < 0))
        columns = [_combined(how, were.column(name), computed.column(name)) for name, how in self.totals]
        output = _beside(rows, pa.table(columns, schema=computed.schema))
        carry.before.remove(found.places)
        carry.before.add(output.take(pa.array(bounds[1:] - 1)))
        return output

    def _retotalled(self, carry: OverCarry) -> None:
        """Replace the retained rows by totals."""
        store = carry.before
        places = store.everything()
        rows = store.rows(places[np.argsort(store.note(_NUMBER, places), kind="stable")])
        carry.before = self._no_totals(pa.schema([*rows.schema, *self.compute(rows.slice(0, 0)).schema]))
        if rows.num_rows:
            self._totalled(carry, rows)


def _combined(how: str, before: pa.ChunkedArray, computed: pa.ChunkedArray) -> pa.ChunkedArray:
    """Totals of rows before and of new ones; NULL where neither has one."""
    if how != "sum":
        combine = pc.min_element_wise if how == "min" else pc.max_element_wise
        return combine(before, computed, skip_nulls=True)
    try:
        both = pc.add_checked(before, computed)
    except pa.ArrowInvalid:
        raise ExecutionError(
            f"{computed.type} overflow in sum", condition="ARITHMETIC_OVERFLOW", sqlstate="22003",
            hint="sum a wider type, such as CAST(v AS DECIMAL(38, 0))",
        ) from None  # fmt: skip
    return pc.coalesce(both, before, computed)


def _beside(rows: pa.Table, computed: pa.Table) -> pa.Table:
    return pa.table([*rows.columns, *computed.columns], schema=pa.schema([*rows.schema, *computed.schema]))
